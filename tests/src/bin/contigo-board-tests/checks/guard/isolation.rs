//! A device is confined by an IOMMU that forgets an address at once, in a group of its own. Each of
//! these is asked for at every opening.

use super::{
    super::{Verdict, Wrong, ensure},
    subject::{Subject, file, sys},
};
use crate::{
    checks::as_user::{USER, allow, opens},
    lab::Part,
    raw::info,
};
use nix::errno::Errno;
use std::{fs, path::PathBuf};

/// CONFINED is set exactly where the device is confined, and only there may a user who is not root
/// open it.
pub(super) fn confined(subject: &Subject) -> Verdict {
    let flags = || Ok::<_, Wrong>(sys("GET_INFO", subject.open()?.info())?.flags);
    let has = |flags: u32, all: u32| flags & all == all;
    let first = flags()?;
    if !has(first, info::IOMMU) {
        ensure(!has(first, info::CONFINED), "nothing is before it, and it is called confined")?;
        let taint = file("tainted", fs::read_to_string("/proc/sys/kernel/tainted"))?;
        let taint: u32 = taint.trim().parse().unwrap_or(0);
        ensure(taint & 1 << 6 != 0, format!("the kernel is not tainted by its user: {taint:#x}"))?;
        return Ok("not confined; the kernel is tainted".into());
    }
    let group = file("its group", fs::canonicalize(group(subject)))?;
    let kind =
        || Ok::<_, Wrong>(file("type", fs::read_to_string(group.join("type")))?.trim().to_owned());
    if kind()? == "DMA" {
        ensure(
            has(first, info::STRICT | info::ALONE | info::CONFINED),
            format!("strict and alone, and its flags are {first:#x}"),
        )?;
        allow(&subject.guard)?;
        let user = opens(&subject.guard)?;
        ensure(user.is_ok(), format!("it is confined, and user {USER} cannot open it: {user:?}"))?;
        file("type", fs::write(group.join("type"), "DMA-FQ"))?;
    }
    let lazy = flags()?;
    ensure(
        kind()? == "DMA-FQ" && !has(lazy, info::STRICT) && !has(lazy, info::CONFINED),
        format!("lazy, and its flags are {lazy:#x}"),
    )?;
    let user = opens(&subject.guard)?;
    ensure(user == Err(Errno::EPERM), format!("it is not confined, and user {USER}: {user:?}"))?;
    let unbound = subject.unbind()?;
    file("type", fs::write(group.join("type"), "DMA"))?;
    unbound.bind()?;
    let again = flags()?;
    ensure(has(again, info::CONFINED), format!("strict again, and its flags are {again:#x}"))?;
    Ok(format!(
        "flags {first:#x} while strict; {lazy:#x} while lazy, and EPERM for user {USER}; {again:#x} again"
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
    let kind = file("type", fs::canonicalize(kind))?;
    let done = work();
    let unbound = subject.unbind()?;
    file("type", fs::write(kind, "DMA"))?;
    unbound.bind()?;
    allow(&subject.guard)?;
    done.map(|seen| format!("lazy: {seen}"))
}

/// Has the device an IOMMU group, in which the lab can put another one?
pub(super) fn can_have_a_companion(subject: &Subject) -> bool {
    Part::named(&subject.guard).is_some() && group(subject).exists()
}

/// A device that shares its group reaches what is mapped for the other.
pub(super) fn group_of_two(subject: &Subject) -> Verdict {
    let lab = Part::named(&subject.guard)
        .ok_or_else(|| Wrong::Skipped("its device is not the lab's".into()))?;
    let companion = file("companion", lab.told("companion"))?;
    let devices = file("its group", fs::read_dir(group(subject).join("devices")))?.count();
    ensure(
        devices == 2,
        format!("{devices} devices are in its group: this check can catch nothing"),
    )?;
    let flags = sys("GET_INFO", subject.open()?.info())?.flags;
    let right = flags & info::IOMMU != 0 && flags & (info::ALONE | info::CONFINED) == 0;
    ensure(right, format!("two in a group, and its flags are {flags:#x}"))?;
    allow(&subject.guard)?;
    let user = opens(&subject.guard)?;
    ensure(user == Err(Errno::EPERM), format!("it is not confined, and user {USER}: {user:?}"))?;
    drop(companion);
    let alone = sys("GET_INFO", subject.open()?.info())?.flags;
    ensure(
        alone & info::ALONE != 0,
        format!("alone in its group again, and its flags are {alone:#x}"),
    )?;
    Ok(format!("flags {flags:#x}, and EPERM for user {USER}; {alone:#x} when it is alone"))
}

fn group(subject: &Subject) -> PathBuf {
    PathBuf::from(format!("/sys/class/contigo/{}/device/iommu_group", subject.guard))
}
