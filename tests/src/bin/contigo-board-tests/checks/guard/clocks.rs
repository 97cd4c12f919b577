//! A device's clock and power are on while its guard is open, and a clock that cannot be had is
//! named.

use super::{
    super::{Verdict, Wrong, ensure},
    subject::{Subject, file, refused, soon},
};
use crate::{
    lab::{KernelLog, Part},
    raw::RawGuard,
};
use nix::errno::Errno;
use std::fs;

pub(super) fn clocks(subject: &Subject) -> Verdict {
    let clock =
        subject.clock().ok_or_else(|| Wrong::Skipped("its clock is not the lab's".into()))?;
    let power = Part::power_of(&subject.guard);
    let on = |wanted: u64| {
        let has = |part: &Part, file| part.number(file).is_ok_and(|number| number == wanted);
        soon(|| has(&clock, "enabled") && power.as_ref().is_none_or(|power| has(power, "on")))
    };
    let enables = || file("enables", clock.number("enables"));
    ensure(on(0), "the clock or the power is on, and no process has opened it")?;
    let before = enables()?;
    let guard = subject.open()?;
    ensure(on(1), "opened, and the clock or the power is off")?;
    drop(guard);
    ensure(on(0), "closed, and the clock or the power is on")?;
    ensure(
        enables()? == before + 1,
        format!("turned on {} times by one opening", enables()? - before),
    )?;

    let names = file(
        "its node",
        fs::read_to_string(format!(
            "/sys/class/contigo/{}/device/of_node/clock-names",
            subject.guard
        )),
    )?;
    let name = names.split('\0').next().unwrap_or_default();
    let mut log = file("/dev/kmsg", KernelLog::from_here())?;
    let fails = file("fail", clock.told("fail"))?;
    refused("open without its clock", RawGuard::open(&subject.guard), Errno::EIO)?;
    drop(fails);
    let lines = log.lines();
    // The clock framework's line has the clock, and the module's behind it the device.
    let said = lines.windows(2).find_map(|pair| match pair {
        [clock, device] if clock.contains(name) && device.contains(&subject.guard) => Some(clock),
        _ => None,
    });
    let said = said.ok_or_else(|| {
        Wrong::Failed(format!(
            "no lines of the kernel's log have {name} and then {}: {lines:?}",
            subject.guard
        ))
    })?;
    ensure(on(0), "an open that failed left the power on")?;
    drop(subject.open()?);
    Ok(format!(
        "on and off{}; EIO and \"{said}\"",
        if power.is_some() { ", with its power domain" } else { "" }
    ))
}
