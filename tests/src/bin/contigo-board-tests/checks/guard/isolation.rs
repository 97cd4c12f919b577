//! A device is confined by an IOMMU that forgets an address at once, in a group of its own. Each of
//! these is asked for at every opening.

use super::{
    super::{Verdict, Wrong, ensure},
    subject::{Subject, file, sys},
};
use crate::{
    checks::as_user::{USER, allow, opens},
    raw::{RawGuard, info},
};
use nix::errno::Errno;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// QEMU's device for tests, of which the lab has two functions in one slot.
const PAIR: [&str; 2] = ["0x1b36", "0x0005"];
const FUNCTIONS: &str = "/sys/bus/pci/devices";

/// CONFINED says what is so, and whoever is not root gets in only where it is.
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
    let group = PathBuf::from(format!("/sys/class/contigo/{}/device/iommu_group", subject.guard));
    let group = file("its group", fs::canonicalize(group))?;
    let kind = || Ok::<_, Wrong>(file("type", fs::read_to_string(group.join("type")))?.trim().to_owned());
    if kind()? == "DMA" {
        ensure(has(first, info::STRICT | info::ALONE | info::CONFINED), format!("strict and alone, and its flags are {first:#x}"))?;
        allow(&subject.guard)?;
        let user = opens(&subject.guard)?;
        ensure(user.is_ok(), format!("it is confined, and user {USER} cannot open it: {user:?}"))?;
        file("type", fs::write(group.join("type"), "DMA-FQ"))?;
    }
    let lazy = flags()?;
    ensure(kind()? == "DMA-FQ" && !has(lazy, info::STRICT) && !has(lazy, info::CONFINED), format!("lazy, and its flags are {lazy:#x}"))?;
    let user = opens(&subject.guard)?;
    ensure(user == Err(Errno::EPERM), format!("it is not confined, and user {USER}: {user:?}"))?;
    let unbound = subject.unbind()?;
    file("type", fs::write(group.join("type"), "DMA"))?;
    unbound.bind()?;
    let again = flags()?;
    ensure(has(again, info::CONFINED), format!("strict again, and its flags are {again:#x}"))?;
    Ok(format!("flags {first:#x} while strict; {lazy:#x} while lazy, and EPERM for user {USER}; {again:#x} again"))
}

/// Does `work` behind an IOMMU that forgets an address by and by, where there is one and this user
/// can have it so.
pub(crate) fn lazily(subject: &Subject, work: impl FnOnce() -> Verdict) -> Verdict {
    let kind = PathBuf::from(format!("/sys/class/contigo/{}/device/iommu_group/type", subject.guard));
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

pub(super) fn has_pair() -> bool {
    pair().len() >= 2
}

/// The functions of the pair. They have a group only once they have a driver.
fn pair() -> Vec<String> {
    let functions = fs::read_dir(FUNCTIONS).into_iter().flatten().flatten();
    let is_one = |function: &Path| {
        let reads = |file: &str, value: &str| fs::read_to_string(function.join(file)).is_ok_and(|text| text.trim() == value);
        reads("vendor", PAIR[0]) && reads("device", PAIR[1])
    };
    functions.filter(|function| is_one(&function.path())).filter_map(|function| function.file_name().into_string().ok()).collect()
}

/// A function that shares its group reaches what is mapped for the other.
pub(super) fn group_of_two(_: &Subject) -> Verdict {
    let both = pair();
    let [one, other, ..] = both.as_slice() else { return Err(Wrong::Skipped("there is no pair".into())) };
    let write = |place: &str, text: &str| file(place, fs::write(place, text));
    for function in [other, one] {
        write(&format!("{FUNCTIONS}/{function}/driver_override"), "contigo")?;
        write("/sys/bus/pci/drivers_probe", function)?;
    }
    let group = |function: &str| fs::canonicalize(format!("{FUNCTIONS}/{function}/iommu_group")).ok();
    ensure(group(one).is_some() && group(one) == group(other), "the two are in groups of their own: this check can catch nothing")?;
    let look = || -> Result<u32, Wrong> {
        let flags = sys("GET_INFO", sys("open", RawGuard::open(one))?.info())?.flags;
        let right = flags & info::IOMMU != 0 && flags & (info::ALONE | info::CONFINED) == 0;
        ensure(right, format!("two in a group, and its flags are {flags:#x}"))?;
        allow(one)?;
        let user = opens(one)?;
        ensure(user == Err(Errno::EPERM), format!("it is not confined, and user {USER}: {user:?}"))?;
        Ok(flags)
    };
    let seen = look();
    for function in [one, other] {
        write("/sys/bus/pci/drivers/contigo/unbind", function)?;
        write(&format!("{FUNCTIONS}/{function}/driver_override"), "\n")?;
    }
    Ok(format!("flags {:#x}; EPERM for user {USER}", seen?))
}
