//! A window where nothing answers. Who reads there gets SIGBUS; a kernel that reads there for a
//! stop sequence does not survive. So no ordinary user arms a step in a window of which the node
//! does not say that all of it answers (`contigo,stop-windows`).

use super::{
    super::{
        Verdict, Wrong,
        apart::{Apart, apart},
        as_user::{USER, allow},
        ensure,
    },
    subject::{Subject, file, refused, soon, sys},
};
use crate::{
    lab::Part,
    raw::{RawGuard, Step},
};
use nix::{
    errno::Errno,
    sys::{signal::Signal, wait::WaitStatus},
};
use std::{fs, path::Path};

/// The lab's device whose only window this is (`cross/lab/module/lab_platform.c`).
const HOLE: &str = "b000000.hole";
/// `CONTIGO_WINDOW_STOP`.
const STOP: u32 = 1 << 1;

/// Can the lab make such a device?
pub(super) fn is_possible(subject: &Subject) -> bool {
    Part::named(&subject.guard).is_some_and(|part| part.has("hole"))
}

pub(super) fn aborts(subject: &Subject) -> Verdict {
    let lab = Part::named(&subject.guard)
        .ok_or_else(|| Wrong::Skipped("its device is not the lab's".into()))?;
    let hole = file("hole", lab.told("hole"))?;
    let device = Path::new("/sys/bus/platform/devices").join(HOLE);
    file("driver_override", fs::write(device.join("driver_override"), "contigo"))?;
    file("drivers_probe", fs::write("/sys/bus/platform/drivers_probe", HOLE))?;
    ensure(soon(|| Path::new("/dev/contigo").join(HOLE).exists()), "the module has not bound it")?;
    allow(HOLE)?;
    allow(&subject.guard)?;

    let reads = || {
        let guard = sys("open", RawGuard::open(HOLE))?;
        let value = sys("mmap", guard.map())?.read(0);
        Ok(format!("{value:#x}"))
    };
    let (end, said) = Apart::begin(None, |_| reads())?.ended()?;
    let aborted = matches!(end, WaitStatus::Signaled(_, Signal::SIGBUS, _));
    ensure(
        aborted,
        format!(
            "what reads there ended as {end:?}, {:?}: this check can catch nothing",
            String::from_utf8_lossy(&said)
        ),
    )?;

    // As an ordinary user, where one may open what nothing confines: with unprivileged=1.
    let user = apart(Some(USER), || {
        let guard = match RawGuard::open(HOLE) {
            Err(Errno::EPERM) => return Ok("may not open it".into()),
            opened => sys("open", opened)?,
        };
        ensure(
            sys("GET_INFO", guard.info())?.window[0].flags & STOP == 0,
            "its node does not say that it answers, and GET_INFO does",
        )?;
        for step in [Step::poll(0, 1, 1, 1), Step::poll(0xFFC, 1, 0, 1)] {
            never_armed(&guard, &[step])?;
            never_armed(&guard, &[Step::write(0, 1), step])?;
            never_armed(&guard, &[step, Step::ELSE, step])?;
        }
        Ok("EPERM for a step there".into())
    })?;
    // And a window that its node lists in `contigo,stop-windows`.
    let listed = apart(Some(USER), || {
        let guard = subject.open()?;
        let registers = sys("mmap", guard.map())?;
        ensure(
            sys("GET_INFO", guard.info())?.window[0].flags & STOP != 0,
            "its node says that it answers, and GET_INFO does not",
        )?;
        sys("ARM in a window that answers", guard.arm(&subject.always(&registers)))?;
        refused(
            "ARM behind its windows",
            guard.arm(&[Step::poll(0, 1, 1, 1).in_window(5)]),
            Errno::ENXIO,
        )?;
        Ok("armed in a window that answers".into())
    })?;

    // Root answers for what it arms. It is disarmed before the teardown.
    let guard = sys("open", RawGuard::open(HOLE))?;
    sys("ARM by root", guard.arm(&[Step::poll(0, 1, 1, 1)]))?;
    sys("disarm", guard.arm(&[]))?;
    drop(guard);
    drop(hole);
    Ok(format!("SIGBUS for who reads; user {USER}: {user}, {listed}"))
}

/// Where it is armed all the same it must not be run, for the check's machine to go on.
fn never_armed(guard: &RawGuard, steps: &[Step]) -> Result<(), Wrong> {
    let armed = guard.arm(steps);
    if armed.is_ok() {
        sys("disarm", guard.arm(&[]))?;
    }
    refused("ARM where nothing answers", armed, Errno::EPERM)
}
