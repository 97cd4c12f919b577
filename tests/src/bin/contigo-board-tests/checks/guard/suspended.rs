//! System sleep: refused while a device is open that nothing can stop; else it is stopped, and
//! taken from its user.

use super::{
    super::{Verdict, Wrong, ensure, ok},
    subject::{Subject, file, refused, sys},
};
use crate::{heap, raw::import};
use nix::errno::Errno;
use std::{fs, io};

/// As far as the devices, and a second there instead of five.
fn suspend() -> io::Result<()> {
    fs::write("/sys/module/suspend/parameters/pm_test_delay", "1")?;
    fs::write("/sys/power/pm_test", "devices")?;
    fs::write("/sys/power/state", "freeze")
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
        sys("IMPORT", guard.import(&block, import::CONTIGUOUS, 0))?;
        let refused = suspend();
        let busy = refused.as_ref().err().and_then(io::Error::raw_os_error) == Some(nix::libc::EBUSY);
        ensure(busy, format!("nothing stops the device, and system sleep: {refused:?}"))?;
        ensure(registers.read(subject.steady()) != u32::MAX && guard.info().is_ok(), "system sleep was refused, and the device is gone")?;
        seen = "EBUSY while nothing could stop it; ";
    }
    sys("ARM", guard.arm(&subject.always(&registers)))?;
    file("system sleep with a device that can be stopped", suspend())?;
    refused("GET_INFO after it", guard.info(), Errno::ENODEV)?;
    let after = registers.read(subject.steady());
    ensure(after == u32::MAX, format!("its registers are still mapped: {after:#x}"))?;
    drop((guard, registers));
    let guard = subject.open()?;
    let registers = sys("mmap", guard.map())?;
    ensure(registers.read(subject.steady()) != u32::MAX, "opened again, its registers are ones")?;
    Ok(format!("{seen}stopped and taken away, then opened again"))
}
