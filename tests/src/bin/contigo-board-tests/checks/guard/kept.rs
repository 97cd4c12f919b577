//! Memory of a device that does not stop: kept when its user goes, through the loss of its driver
//! too, and given back when it has stopped.

use super::{
    super::{Verdict, Wrong, ensure, ok},
    subject::{Subject, file, refused, soon, sys},
};
use crate::{
    heap,
    lab::{Exporter, Part, property},
    raw::{RawGuard, RawRegisters, import, info},
};
use nix::errno::Errno;

const BLOCK_BYTES: usize = 4 << 20;
const CACHED_PAGES: u32 = 4;

pub(super) fn kept(subject: &Subject) -> Verdict {
    let exporter = Exporter::open().map_err(|error| Wrong::Skipped(format!("/dev/contigo-lab: {error}")))?;
    let counts = Part::named("exporter").ok_or_else(|| Wrong::Skipped("the exporter does not count".into()))?;
    let number = |what| file(what, counts.number(what));
    let line = subject.reset();
    let before = all_bytes()?;
    let (maps, unmaps, buffers) = (number("maps")?, number("unmaps")?, number("buffers")?);

    // Nothing stops it: the program is not met, and the reset, where there is one, fails.
    let guard = subject.open()?;
    let registers = sys("mmap", guard.map())?;
    let has_iommu = sys("GET_INFO", guard.info())?.flags & info::IOMMU != 0;
    subject.set_flag(&registers, false);
    sys("ARM", guard.arm(&subject.by_flag()))?;
    let block = ok(heap::block(&subject.heap, BLOCK_BYTES))?;
    let cached = file("LAB_EXPORT", exporter.buffer(CACHED_PAGES, property::CACHED))?;
    sys("IMPORT of a block", guard.import(&block, import::CONTIGUOUS, 0))?;
    sys("IMPORT of what its exporter caches", guard.import(&cached, import::CONTIGUOUS, 0))?;
    drop((block, cached));
    let fails = line.as_ref().map(|line| line.told("fail")).transpose();
    let fails = file("fail", fails)?;
    drop((guard, registers));
    let both = BLOCK_BYTES as u64 + u64::from(CACHED_PAGES) * 4096;
    let held = all_bytes()? - before;
    ensure(held == both, format!("its user is gone, the device is at work, and {held} bytes of {both} are kept"))?;
    ensure(number("buffers")? == buffers + 1, "the exporter's buffer was dropped under the device")?;

    // Another user finds it so; and so does whoever binds it again. Behind an IOMMU nobody gets in.
    let mut through = "";
    if line.is_none() && has_iommu {
        refused("open of what is kept behind an IOMMU", RawGuard::open(&subject.guard), Errno::EBUSY)?;
    } else if line.is_none() {
        let info = sys("GET_INFO", subject.open()?.info())?;
        ensure(info.kept == 2 && info.kept_bytes == both, format!("{} buffers of {} bytes are kept", info.kept, info.kept_bytes))?;
        if let Some(clock) = subject.clock() {
            ensure(file("enabled", clock.number("enabled"))? == 1, "the clock of a device that is at work is off")?;
        }
    }
    let unbound = subject.unbind()?;
    let lost = number("maps")? - maps - (number("unmaps")? - unmaps);
    ensure(lost == 0, format!("{lost} mappings of an exporter that caches them are left, and their device has no driver"))?;
    ensure(number("buffers")? == buffers + 1, "the exporter's buffer was dropped when the device lost its driver")?;
    unbound.bind()?;
    ensure(soon(|| std::path::Path::new("/dev/contigo").join(&subject.guard).exists()), "it did not come back")?;
    if line.is_none() && has_iommu {
        refused("open after it was bound again", RawGuard::open(&subject.guard), Errno::EBUSY)?;
        let unbound = subject.unbind()?;
        let registers = file("its registers through sysfs", RawRegisters::of_function(&subject.guard))?;
        subject.set_flag(&registers, true);
        drop(registers);
        unbound.bind()?;
        through = ", through the loss of its driver, and EBUSY meanwhile";
    } else if line.is_none() {
        let guard = subject.open()?;
        let kept = sys("GET_INFO", guard.info())?.kept;
        ensure(kept == 2, format!("{kept} buffers are kept after it was bound again"))?;
        // It stops: what is armed finds it so at the next opening.
        let registers = sys("mmap", guard.map())?;
        subject.set_flag(&registers, true);
        through = ", through the loss of its driver";
    }
    drop(fails);
    let guard = subject.open()?;
    let info = sys("GET_INFO", guard.info())?;
    ensure(info.kept == 0 && info.kept_bytes == 0, format!("it has stopped, and {} buffers are kept", info.kept))?;
    drop(guard);
    ensure(soon(|| counts.number("buffers").is_ok_and(|now| now == buffers)), "the exporter's buffer was not given back")?;
    let is_back = soon(|| all_bytes().is_ok_and(|now| now == before));
    ensure(is_back, format!("dma-bufs had {before} bytes and have {}", all_bytes()?))?;
    if let Some(clock) = subject.clock() {
        ensure(soon(|| clock.number("enabled").is_ok_and(|on| on == 0)), "its clock is still on")?;
    }
    Ok(format!("{held} bytes kept{through}, and all of it given back when it had stopped"))
}

/// The bytes of all dma-bufs that there are. Memory that is free says less: each processor holds
/// some back.
fn all_bytes() -> Result<u64, Wrong> {
    const LIST: &str = "/sys/kernel/debug/dma_buf/bufinfo";
    let list = file(LIST, std::fs::read_to_string(LIST))?;
    let total = list.lines().rev().find_map(|line| line.strip_prefix("Total ")?.split(", ").nth(1)?.split(' ').next()?.parse().ok());
    total.ok_or_else(|| Wrong::Failed(format!("{LIST} has no total")))
}
