//! `contigo-lab-exit STATUS`: ends the emulator that this guest runs in, with that exit status.
//!
//! It returns only where there is no emulator to end: then with status 1, and with the reason on
//! standard error.

mod semihosting;

use std::env;
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(status) = env::args().nth(1).and_then(|status| status.parse().ok()) else {
        eprintln!("usage: contigo-lab-exit STATUS (a number from 0 to 255)");
        return ExitCode::from(2);
    };
    semihosting::exit(status);
    eprintln!(
        "contigo-lab-exit: no emulator answers; QEMU wants -semihosting-config \
         enable=on,target=native,userspace=on"
    );
    ExitCode::FAILURE
}
