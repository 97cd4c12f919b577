//! The quarantine: memory of a device that has not stopped when its user goes. It ends when that
//! user's own stop sequence finds the device stopped, by a reset, by the administrator, and by the
//! loss of the driver; no other user's stop sequence ends it. What an unarmed user imported is kept
//! where it may have started the device, and only there.

use super::subject::Subject;
use crate::{
    lab::{Exporter, Part, property},
    pages::block,
    raw::{RawDevNode, RawRegisters, info},
    verdict::{Verdict, Wrong, ensure, must, refused, skip},
};
use nix::errno::Errno;
use std::fs;

const BLOCK_BYTES: usize = 64 << 10;
const CACHED_PAGES: u32 = 4;
/// What each user leaves.
const LEFT_BYTES: u64 = BLOCK_BYTES as u64 + CACHED_PAGES as u64 * 4096;

pub(crate) fn kept(subject: &Subject) -> Verdict {
    let seen = kept_by(subject, subject.reset())?;
    let then = subject.without_reset(|| kept_by(subject, None))?;
    Ok(then.map_or_else(|| seen.clone(), |then| format!("{seen}; without its reset line: {then}")))
}

/// What it holds, with the reset line that it has.
fn kept_by(subject: &Subject, line: Option<Part>) -> Verdict {
    let lab = Lab::of(subject)?;
    let mut seen = Vec::new();

    // While it lasts: what other users can do about it. The flag tells the stop sequence.
    let dev_node = subject.open()?;
    let has_iommu = must("GET_INFO", dev_node.info())?.flags & info::IOMMU != 0;
    drop(dev_node);
    let fails = lab.leaves(subject, || {
        must("fail", line.as_ref().map(|line| line.told("fail")).transpose())
    })?;
    if line.is_some() {
        refused("open without its reset", RawDevNode::open(&subject.dev_node), Errno::EIO)?;
        drop(fails);
        seen.push("until a reset");
    } else if has_iommu {
        refused("open, while it is mapped", RawDevNode::open(&subject.dev_node), Errno::EBUSY)?;
        let registers = RawRegisters::of_function(&subject.dev_node)?;
        subject.set_flag(&registers, true);
        seen.push("EBUSY behind the IOMMU, until its own stop sequence finds the device stopped");
    } else {
        let dev_node = subject.open()?;
        lab.keeps(&dev_node, 1)?;
        if let Some(clock) = subject.clock() {
            ensure(
                must("enabled", clock.number("enabled"))? == 1,
                "the clock of a device that is at work is off",
            )?;
        }
        let registers = must("mmap", dev_node.map())?;
        must("ARM", dev_node.arm(&subject.always(&registers)))?;
        drop((dev_node, registers));
        let dev_node = subject.open()?;
        lab.keeps(&dev_node, 1)
            .map_err(|wrong| wrong.when("another user's stop sequence was met"))?;
        let registers = must("mmap", dev_node.map())?;
        subject.set_flag(&registers, true);
        seen.push("until its own stop sequence finds the device stopped, and no other");
    }
    lab.nothing_is_kept(subject)?;

    // The administrator ends it. Without an IOMMU that loses the memory.
    if line.is_none() {
        lab.leaves(subject, || Ok(()))?;
        let place = format!("/sys/class/contigo/{}/quarantine", subject.dev_node);
        let bytes = must("quarantine", fs::read_to_string(&place))?;
        ensure(
            bytes.trim() == LEFT_BYTES.to_string(),
            format!("{bytes:?} bytes are in quarantine, and {LEFT_BYTES} were left"),
        )?;
        ensure(fs::write(&place, "1").is_err(), "a number of bytes to keep was taken")?;
        must("quarantine", fs::write(&place, "0"))?;
        lab.nothing_is_mapped()?;
        let info = subject.info()?;
        ensure(
            info.quarantined == 0 && info.quarantined_bytes == 0,
            format!("the administrator ended it, and {} buffers are kept", info.quarantined),
        )?;
        seen.push("until the administrator ends it");
    }

    // The driver goes: nothing is mapped for the device any more, and nothing goes to others.
    let fails = lab.leaves(subject, || {
        must("fail", line.as_ref().map(|line| line.told("fail")).transpose())
    })?;
    let buffers = lab.number("buffers")?;
    let unbound = subject.unbind()?;
    lab.nothing_is_mapped()?;
    let lost = if has_iommu { 1 } else { 0 };
    ensure(
        lab.number("buffers")? == buffers - lost,
        "the exporter's buffer went to others without an IOMMU, or stayed behind one",
    )?;
    drop(fails);
    unbound.bind()?;
    ensure(subject.info()?.quarantined == 0, "a driver that was bound anew keeps something")?;
    seen.push("through the loss of its driver");
    Ok(format!("{LEFT_BYTES} bytes of two buffers: {}", seen.join("; ")))
}

/// What the lab's exporter and the kernel count.
struct Lab {
    exporter: Exporter,
    counts: Part,
    mapped: u64,
    buffers: u64,
    bytes: u64,
}

impl Lab {
    fn of(subject: &Subject) -> Result<Self, Wrong> {
        let exporter = Exporter::open()
            .map_err(|error| Wrong::Skipped(format!("/dev/contigo-lab: {error}")))?;
        let counts = Part::named("exporter")
            .ok_or_else(|| Wrong::Skipped("the exporter does not count".into()))?;
        drop(subject.open()?);
        let mut lab = Self { exporter, counts, mapped: 0, buffers: 0, bytes: all_bytes()? };
        lab.mapped = lab.number("maps")? - lab.number("unmaps")?;
        lab.buffers = lab.number("buffers")?;
        Ok(lab)
    }

    fn number(&self, what: &str) -> Result<u64, Wrong> {
        must(what, self.counts.number(what))
    }

    /// A user goes, and nothing stops the device: its stop sequence is not met, and `fails` is made
    /// before.
    fn leaves<T>(
        &self,
        subject: &Subject,
        fails: impl FnOnce() -> Result<T, Wrong>,
    ) -> Result<T, Wrong> {
        let (bytes, buffers) = (all_bytes()?, self.number("buffers")?);
        let dev_node = subject.open()?;
        let registers = must("mmap", dev_node.map())?;
        subject.set_flag(&registers, false);
        must("ARM", dev_node.arm(&subject.by_flag()))?;
        let buffer = block(&subject.heap, BLOCK_BYTES)?;
        let cached = must("LAB_EXPORT", self.exporter.buffer(CACHED_PAGES, property::CACHED))?;
        must("IMPORT of a block", dev_node.import(&buffer, 0))?;
        must("IMPORT of what its exporter caches", dev_node.import(&cached, 0))?;
        let fails = fails()?;
        drop((buffer, cached, dev_node, registers));
        let held = all_bytes()? - bytes;
        ensure(
            held == LEFT_BYTES,
            format!(
                "its user is gone, the device is at work, and {held} bytes of {LEFT_BYTES} are kept"
            ),
        )?;
        ensure(
            self.number("buffers")? == buffers + 1,
            "the exporter's buffer was dropped under the device",
        )?;
        Ok(fails)
    }

    fn keeps(&self, dev_node: &RawDevNode, users: u32) -> Result<(), Wrong> {
        let info = must("GET_INFO", dev_node.info())?;
        let right = info.quarantined == 2 * users
            && info.quarantined_bytes == u64::from(users) * LEFT_BYTES;
        ensure(
            right,
            format!("{} buffers of {} bytes are kept", info.quarantined, info.quarantined_bytes),
        )
    }

    fn nothing_is_mapped(&self) -> Result<(), Wrong> {
        let left = self.number("maps")? - self.number("unmaps")? - self.mapped;
        ensure(left == 0, format!("{left} mappings of an exporter that caches them are left"))
    }

    /// It has stopped, so all is given back; at the next opening.
    fn nothing_is_kept(&self, subject: &Subject) -> Result<(), Wrong> {
        let info = subject.info()?;
        ensure(
            info.quarantined == 0 && info.quarantined_bytes == 0,
            format!("it has stopped, and {} buffers are kept", info.quarantined),
        )?;
        let held = all_bytes()? - self.bytes;
        ensure(held == 0, format!("it has stopped, and {held} bytes are held"))?;
        ensure(self.number("buffers")? == self.buffers, "the exporter's buffer is still held")
    }
}

/// Of all dma-bufs of the machine.
fn all_bytes() -> Result<u64, Wrong> {
    const LIST: &str = "/sys/kernel/debug/dma_buf/bufinfo";
    let list = must(LIST, fs::read_to_string(LIST))?;
    let total = list.lines().rev().find_map(|line| {
        line.strip_prefix("Total ")?.split(", ").nth(1)?.split(' ').next()?.parse().ok()
    });
    total.ok_or_else(|| Wrong::Failed(format!("{LIST} has no total")))
}

pub(crate) fn unarmed(subject: &Subject) -> Verdict {
    let dev_node = subject.open()?;
    if must("GET_INFO", dev_node.info())?.flags & info::IOMMU != 0 {
        return skip("behind an IOMMU no process could open the device again");
    }
    let buffer = block(&subject.heap, BLOCK_BYTES)?;
    must("IMPORT", dev_node.import(&buffer, 0))?;
    drop((buffer, dev_node));
    let kept = |when: &str, expected: u32| -> Result<(), Wrong> {
        let info = subject.info()?;
        let bytes = u64::from(expected) * BLOCK_BYTES as u64;
        ensure(
            info.quarantined == expected && info.quarantined_bytes == bytes,
            format!(
                "{when}: {} buffers, {} bytes are kept",
                info.quarantined, info.quarantined_bytes
            ),
        )
    };
    kept("no register was touched", 0)?;

    let dev_node = subject.open()?;
    let registers = must("mmap", dev_node.map())?;
    let _ = registers.read(subject.steady());
    let buffer = block(&subject.heap, BLOCK_BYTES)?;
    must("IMPORT", dev_node.import(&buffer, 0))?;
    drop((registers, buffer, dev_node));
    kept("a register was touched, and nothing says that the device stopped", 1)?;

    // No stop sequence of another user ends it: the device may not have stopped for the first one.
    let dev_node = subject.open()?;
    let registers = must("mmap", dev_node.map())?;
    must("ARM", dev_node.arm(&subject.always(&registers)))?;
    drop((registers, dev_node));
    kept("another user's stop sequence was met", 1)?;
    subject.end_quarantine()?;
    kept("the administrator ended it", 0)?;
    Ok("kept where a register was touched, until the administrator ends it; nothing kept where \
        none was"
        .into())
}
