#![allow(unsafe_code, reason = "an eventfd")]
//! Interrupts: masked until they are wanted, and every wrong question refused. edu, which raises
//! one at a write to its register, shows all of it.

use super::{
    super::{Verdict, ensure},
    subject::{Subject, file, refused, soon, sys},
};
use nix::{errno::Errno, libc};
use std::{
    fs::File,
    io::Read,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
};

/// edu's registers (`docs/specs/edu.rst`): what it raises, and what acknowledges it.
const STATUS: u32 = 0x24;
const RAISE: u32 = 0x60;
const ACKNOWLEDGE: u32 = 0x64;

pub(super) fn interrupts(subject: &Subject) -> Verdict {
    let guard = subject.open()?;
    let count = sys("GET_INFO", guard.info())?.interrupts;
    ensure(count > 0, "it has no interrupt")?;
    sys("fcntl", guard.set_nonblocking())?;
    refused("a read of nothing", guard.read(4), Errno::EAGAIN)?;
    refused("a read of 3 bytes", guard.read(3), Errno::EINVAL)?;
    refused("unmasking what it has not", guard.unmask(1 << count), Errno::EINVAL)?;
    let mut event = sys("eventfd", eventfd())?;
    refused(
        "an interrupt that it has not",
        guard.set_eventfd(count, event.as_raw_fd()),
        Errno::EINVAL,
    )?;
    let null = file("/dev/null", File::open("/dev/null"))?;
    refused("a file that is no eventfd", guard.set_eventfd(0, null.as_raw_fd()), Errno::EINVAL)?;
    refused("no descriptor", guard.set_eventfd(0, 9999), Errno::EBADF)?;
    sys("an eventfd", guard.set_eventfd(0, event.as_raw_fd()))?;
    let registers = sys("mmap", guard.map())?;
    let acknowledge = || registers.write(ACKNOWLEDGE, registers.read(STATUS));
    if subject.is_edu() {
        // It has no reset: what another check had it raise is raised still.
        acknowledge();
    }
    sys("unmask", guard.unmask(1))?;
    ensure(guard.poll(0) == 0, "an interrupt came, and the device was never told to raise one")?;
    if !subject.is_edu() {
        sys("none", guard.set_eventfd(0, -1))?;
        return Ok(format!("{count} interrupts; every wrong question is refused"));
    }
    for round in 0..3 {
        registers.write(RAISE, 1);
        ensure(
            guard.poll(1_000) == libc::POLLIN,
            format!("round {round}: no interrupt within a second"),
        )?;
        ensure(sys("read", guard.read(4))? == 1, "read does not say which one came")?;
        let times = signalled(&mut event);
        ensure(
            times == Some(1),
            format!("round {round}: the eventfd was signalled {times:?} times"),
        )?;
        acknowledge();
        // It is masked now: another one is seen when it is unmasked.
        registers.write(RAISE, 1);
        ensure(guard.poll(50) == 0, "it came while it was masked")?;
        sys("unmask", guard.unmask(1))?;
        ensure(guard.poll(1_000) == libc::POLLIN, "one that came while it was masked is lost")?;
        sys("read", guard.read(4))?;
        ensure(signalled(&mut event).is_some(), "the eventfd was not signalled again")?;
        acknowledge();
        sys("unmask", guard.unmask(1))?;
    }
    Ok("seen by poll, by read and by an eventfd; masked when taken".into())
}

fn eventfd() -> Result<File, Errno> {
    // SAFETY: a new descriptor, which no other code owns.
    Errno::result(unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) })
        .map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }.into())
}

/// How often it was signalled since the last look; `None`: not at all. Another processor may not
/// have signalled it yet when poll already reports the interrupt.
fn signalled(event: &mut File) -> Option<u64> {
    let mut count = [0; 8];
    soon(|| event.read_exact(&mut count).is_ok()).then_some(u64::from_ne_bytes(count))
}
