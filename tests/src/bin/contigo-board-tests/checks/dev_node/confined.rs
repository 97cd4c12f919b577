//! Who may open a device, and arm what: one that an IOMMU confines, alone in its group; a kernel
//! that is locked down; and a window where nothing answers.

use super::subject::{Subject, soon};
use crate::apart::{Apart, USER, allow, apart, opens};
use crate::lab::Part;
use crate::raw::{RawDevNode, Step, info};
use crate::verdict::{Verdict, Wrong, ensure, must, refused, same};
use nix::errno::Errno;
use nix::sys::signal::Signal;
use nix::sys::wait::WaitStatus;
use std::fs;
use std::path::{Path, PathBuf};

fn ensure_user(subject: &Subject, when: &str, expected: Result<(), Errno>) -> Result<(), Wrong> {
    same(&format!("{when}, user {USER}"), opens(&subject.dev_node)?, expected)
}

/// CONFINED is set exactly where the device is confined, and only there may a user who is not root
/// open it.
pub(crate) fn confined(subject: &Subject) -> Verdict {
    let flags = || Ok::<_, Wrong>(subject.info()?.flags);
    let has = |flags: u32, all: u32| flags & all == all;
    let first = flags()?;
    if !has(first, info::IOMMU) {
        ensure(!has(first, info::CONFINED), "nothing is before it, and it is called confined")?;
        let taint = must("tainted", fs::read_to_string("/proc/sys/kernel/tainted"))?;
        let taint: u32 = taint.trim().parse().unwrap_or(0);
        ensure(taint & 1 << 6 != 0, format!("the kernel is not tainted by its user: {taint:#x}"))?;
        return Ok("not confined; the kernel is tainted".into());
    }
    let kind_file = must("its group", fs::canonicalize(group(subject)))?.join("type");
    let kind = || must("type", fs::read_to_string(&kind_file)).map(|kind| kind.trim().to_owned());
    if kind()? == "DMA" {
        let all = has(first, info::STRICT | info::ALONE | info::CONFINED);
        ensure(all, format!("strict and alone, and its flags are {first:#x}"))?;
        allow(&subject.dev_node)?;
        ensure_user(subject, "confined", Ok(()))?;
        must("type", fs::write(&kind_file, "DMA-FQ"))?;
    }
    let lazy = flags()?;
    let is_open = kind()? == "DMA-FQ" && !has(lazy, info::STRICT) && !has(lazy, info::CONFINED);
    ensure(is_open, format!("lazy, and its flags are {lazy:#x}"))?;
    ensure_user(subject, "not confined", Err(Errno::EPERM))?;
    let unbound = subject.unbind()?;
    must("type", fs::write(&kind_file, "DMA"))?;
    unbound.bind()?;
    let again = flags()?;
    ensure(has(again, info::CONFINED), format!("strict again, and its flags are {again:#x}"))?;
    Ok(format!(
        "flags {first:#x} while strict; {lazy:#x} while lazy, and EPERM for user {USER}; \
         {again:#x} again"
    ))
}

/// Does `work` behind an IOMMU that forgets an address by and by, where there is one and this user
/// can have it so.
pub(crate) fn lazily(subject: &Subject, work: impl FnOnce() -> Verdict) -> Verdict {
    let kind = group(subject).join("type");
    let is_strict = fs::read_to_string(&kind).is_ok_and(|kind| kind.trim() == "DMA");
    if !is_strict || fs::write(&kind, "DMA-FQ").is_err() {
        return work();
    }
    let kind = must("type", fs::canonicalize(kind))?;
    let done = work();
    let unbound = subject.unbind()?;
    must("type", fs::write(kind, "DMA"))?;
    unbound.bind()?;
    allow(&subject.dev_node)?;
    done.map(|seen| format!("lazy: {seen}"))
}

/// Has the device an IOMMU group, in which the lab can put another one?
pub(crate) fn can_have_a_companion(subject: &Subject) -> bool {
    Part::named(&subject.dev_node).is_some() && group(subject).exists()
}

/// A device that shares its group reaches what is mapped for the other.
pub(crate) fn group_of_two(subject: &Subject) -> Verdict {
    let lab = subject.lab()?;
    let companion = must("companion", lab.told("companion"))?;
    let devices = must("its group", fs::read_dir(group(subject).join("devices")))?.count();
    same("devices in its group, or this check can catch nothing", devices, 2)?;
    let flags = subject.info()?.flags;
    let right = flags & info::IOMMU != 0 && flags & (info::ALONE | info::CONFINED) == 0;
    ensure(right, format!("two in a group, and its flags are {flags:#x}"))?;
    allow(&subject.dev_node)?;
    ensure_user(subject, "not confined", Err(Errno::EPERM))?;
    drop(companion);
    let alone = subject.info()?.flags;
    ensure(alone & info::ALONE != 0, format!("alone again, and its flags are {alone:#x}"))?;
    Ok(format!("flags {flags:#x}, and EPERM for user {USER}; {alone:#x} when it is alone"))
}

fn group(subject: &Subject) -> PathBuf {
    subject.in_class("device/iommu_group")
}

const LOCKDOWN: &str = "/sys/kernel/security/lockdown";

pub(crate) fn can_be_locked_down() -> bool {
    fs::read_to_string(LOCKDOWN)
        .is_ok_and(|levels| levels.contains("[none]") || levels.contains("[integrity]"))
}

/// A kernel that is locked down lets no process, not even root's, open a device that nothing
/// confines. It stays locked down until it is started anew.
pub(crate) fn locked_down(subject: &Subject) -> Verdict {
    let flags = subject.info()?.flags;
    must(LOCKDOWN, fs::write(LOCKDOWN, "integrity"))?;
    let after = RawDevNode::open(&subject.dev_node);
    if flags & info::CONFINED != 0 {
        ensure(after.is_ok(), format!("it is confined, and yet: {after:?}"))?;
        return Ok("it is confined, and can be opened".into());
    }
    refused("open", after, Errno::EPERM)?;
    Ok("EPERM for root".into())
}

/// The lab's device whose only window this is (`cross/lab/module/lab_platform.c`).
const HOLE: &str = "b000000.hole";
/// `CONTIGO_WINDOW_STOP`.
const STOP: u32 = 1 << 1;

pub(crate) fn can_have_a_hole(subject: &Subject) -> bool {
    Part::named(&subject.dev_node).is_some_and(|part| part.has("hole"))
}

/// A window where nothing answers. A program that reads there gets SIGBUS; a kernel that reads
/// there for a stop sequence does not survive. So no ordinary user arms a step in a window of which
/// the node does not say that all of it answers (`contigo,stop-windows`).
pub(crate) fn aborts(subject: &Subject) -> Verdict {
    let lab = subject.lab()?;
    let hole = must("hole", lab.told("hole"))?;
    let device = Path::new("/sys/bus/platform/devices").join(HOLE);
    must("driver_override", fs::write(device.join("driver_override"), "contigo"))?;
    must("drivers_probe", fs::write("/sys/bus/platform/drivers_probe", HOLE))?;
    ensure(soon(|| Path::new("/dev/contigo").join(HOLE).exists()), "the module has not bound it")?;
    allow(HOLE)?;
    allow(&subject.dev_node)?;
    let window_flags =
        |dev_node: &RawDevNode| must("GET_INFO", dev_node.info()).map(|info| info.window[0].flags);

    let reads = || {
        let dev_node = must("open", RawDevNode::open(HOLE))?;
        let value = must("mmap", dev_node.map())?.read(0);
        Ok(format!("{value:#x}"))
    };
    let (end, said) = Apart::begin(None, |_| reads())?.ended()?;
    let aborted = matches!(end, WaitStatus::Signaled(_, Signal::SIGBUS, _));
    let said = String::from_utf8_lossy(&said);
    ensure(aborted, format!("a read there: {end:?}, {said:?}: this check can catch nothing"))?;

    // As an ordinary user, where one may open what nothing confines: with unprivileged=1.
    let user = apart(Some(USER), || {
        let dev_node = match RawDevNode::open(HOLE) {
            Err(Errno::EPERM) => return Ok("may not open it".into()),
            opened => must("open", opened)?,
        };
        same("STOP of a window that may not answer", window_flags(&dev_node)? & STOP, 0)?;
        for step in [Step::poll(0, 1, 1, 1), Step::poll(0xFFC, 1, 0, 1)] {
            never_armed(&dev_node, &[step])?;
            never_armed(&dev_node, &[Step::write(0, 1), step])?;
            never_armed(&dev_node, &[step, Step::ELSE, step])?;
        }
        Ok("EPERM for a step there".into())
    })?;
    // And a window that its node lists in `contigo,stop-windows`.
    let listed = apart(Some(USER), || {
        let (dev_node, registers) = subject.open_mapped()?;
        same("STOP of a window that answers", window_flags(&dev_node)? & STOP, STOP)?;
        must("ARM in a window that answers", dev_node.arm(&subject.always(&registers)))?;
        let behind = [Step::poll(0, 1, 1, 1).in_window(5)];
        refused("ARM behind its windows", dev_node.arm(&behind), Errno::ENXIO)?;
        Ok("armed in a window that answers".into())
    })?;

    // Root answers for what it arms. It is disarmed before the teardown.
    let dev_node = must("open", RawDevNode::open(HOLE))?;
    must("ARM by root", dev_node.arm(&[Step::poll(0, 1, 1, 1)]))?;
    must("disarm", dev_node.arm(&[]))?;
    drop(dev_node);
    drop(hole);
    Ok(format!("SIGBUS for who reads; user {USER}: {user}, {listed}"))
}

/// Where it is armed all the same it must not be run, for the check's machine to go on.
fn never_armed(dev_node: &RawDevNode, steps: &[Step]) -> Result<(), Wrong> {
    let armed = dev_node.arm(steps);
    if armed.is_ok() {
        must("disarm", dev_node.arm(&[]))?;
    }
    refused("ARM where nothing answers", armed, Errno::EPERM)
}
