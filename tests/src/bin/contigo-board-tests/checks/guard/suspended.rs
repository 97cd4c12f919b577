//! System sleep: the device is stopped, and taken from its user. No user can prevent sleep, except
//! where the administrator wants it so.

use super::{
    super::{Verdict, Wrong, ensure, ok},
    subject::{Subject, file, refused, sys},
};
use crate::{
    heap,
    raw::{RawGuard, RawRegisters},
};
use nix::errno::Errno;
use std::{fs, io};

/// As far as the devices, and a second there instead of five.
pub(super) fn suspend() -> io::Result<()> {
    fs::write("/sys/module/suspend/parameters/pm_test_delay", "1")?;
    fs::write("/sys/power/pm_test", "devices")?;
    fs::write("/sys/power/state", "freeze")
}

const NEEDS_STOP: &str = "/sys/module/contigo/parameters/sleep_needs_stop";

/// The system sleeps, and then the device is not this file's any more.
fn ended_by_sleep(
    subject: &Subject,
    guard: RawGuard,
    registers: RawRegisters,
) -> Result<(), Wrong> {
    file("system sleep", suspend())?;
    refused("GET_INFO after it", guard.info(), Errno::ENODEV)?;
    let after = registers.read(subject.steady());
    ensure(after == u32::MAX, format!("its registers are still mapped: {after:#x}"))
}

pub(super) fn suspended(subject: &Subject) -> Verdict {
    if !fs::exists("/sys/power/pm_test").unwrap_or(false) {
        return Err(Wrong::Skipped("this kernel has no /sys/power/pm_test".into()));
    }
    let mut seen = "";
    let guard = subject.open()?;
    let registers = sys("mmap", guard.map())?;
    if Subject::has_no_reset(&guard)? {
        let block = ok(heap::block(&subject.heap, 1 << 16))?;
        sys("IMPORT", guard.import(&block, 0))?;
        file(NEEDS_STOP, fs::write(NEEDS_STOP, "Y"))?;
        let refused = suspend();
        file(NEEDS_STOP, fs::write(NEEDS_STOP, "N"))?;
        let busy =
            refused.as_ref().err().and_then(io::Error::raw_os_error) == Some(nix::libc::EBUSY);
        ensure(
            busy,
            format!(
                "nothing stops the device, sleep_needs_stop is set, and system sleep: {refused:?}"
            ),
        )?;
        ensure(
            registers.read(subject.steady()) != u32::MAX && guard.info().is_ok(),
            "system sleep was refused, and the device is gone",
        )?;
        seen = "EBUSY with sleep_needs_stop, and sleep without, while nothing could stop it; ";
        ended_by_sleep(subject, guard, registers)?;
        file(
            "quarantine",
            fs::write(format!("/sys/class/contigo/{}/quarantine", subject.guard), "0"),
        )?;
    } else {
        drop((guard, registers));
    }
    let guard = subject.open()?;
    let registers = sys("mmap", guard.map())?;
    sys("ARM", guard.arm(&subject.always(&registers)))?;
    ended_by_sleep(subject, guard, registers)?;
    let guard = subject.open()?;
    let registers = sys("mmap", guard.map())?;
    ensure(registers.read(subject.steady()) != u32::MAX, "opened again, its registers are ones")?;
    Ok(format!("{seen}stopped and taken away, then opened again"))
}
