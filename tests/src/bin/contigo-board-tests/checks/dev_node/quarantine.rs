//! The quarantine: memory of a device that has not stopped when its user goes. It ends when that
//! user's own stop sequence finds the device stopped, by a reset, by the administrator, and by the
//! loss of the driver; no other user's stop sequence ends it. What an unarmed user imported is kept
//! where it may have started the device, and only there.

use super::subject::Subject;
use crate::lab::{Exporter, Part, property};
use crate::pages::block;
use crate::raw::{RawDevNode, RawRegisters, info};
use crate::verdict::{Verdict, Wrong, ensure, must, refused, same, skip};
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
    let leaves = || {
        lab.leaves(subject, || {
            must("fail", line.as_ref().map(|line| line.told("fail")).transpose())
        })
    };

    // While it lasts: what other users can do about it. The flag tells the stop sequence.
    let has_iommu = subject.info()?.flags & info::IOMMU != 0;
    let fails = leaves()?;
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
        let (dev_node, registers) = subject.open_mapped()?;
        keeps(&dev_node, "the first user is gone", 2, LEFT_BYTES)?;
        if let Some(clock) = subject.clock() {
            let enabled = must("enabled", clock.number("enabled"))?;
            same("the clock of a device at work", enabled, 1)?;
        }
        must("ARM", dev_node.arm(&subject.always(&registers)))?;
        drop((dev_node, registers));
        let (dev_node, registers) = subject.open_mapped()?;
        keeps(&dev_node, "another user's stop sequence was met", 2, LEFT_BYTES)?;
        subject.set_flag(&registers, true);
        seen.push("until its own stop sequence finds the device stopped, and no other");
    }
    lab.nothing_is_kept(subject)?;

    // The administrator ends it. Without an IOMMU that loses the memory.
    if line.is_none() {
        lab.leaves(subject, || Ok(()))?;
        same("bytes in quarantine", subject.quarantined_bytes()?, LEFT_BYTES)?;
        let kept = fs::write(subject.in_class("quarantine"), "1");
        ensure(kept.is_err(), "a number of bytes to keep was taken")?;
        subject.end_quarantine()?;
        lab.nothing_is_mapped()?;
        keeps(&subject.open()?, "the administrator ended it", 0, 0)?;
        seen.push("until the administrator ends it");
    }

    // The driver goes: nothing is mapped for the device any more, and nothing goes to others.
    let fails = leaves()?;
    let buffers = lab.number("buffers")?;
    let unbound = subject.unbind()?;
    lab.nothing_is_mapped()?;
    let lost = u64::from(has_iommu);
    same("the exporter's buffers after the driver", lab.number("buffers")?, buffers - lost)?;
    drop(fails);
    unbound.bind()?;
    keeps(&subject.open()?, "its driver was bound anew", 0, 0)?;
    seen.push("through the loss of its driver");
    Ok(format!("{LEFT_BYTES} bytes of two buffers: {}", seen.join("; ")))
}

/// Fails unless so much is in quarantine.
fn keeps(dev_node: &RawDevNode, when: &str, buffers: u32, bytes: u64) -> Result<(), Wrong> {
    let info = must("GET_INFO", dev_node.info())?;
    let kept = (info.quarantined, info.quarantined_bytes);
    same(&format!("{when}: buffers and bytes in quarantine"), kept, (buffers, bytes))
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
        let exporter = Exporter::open()?;
        let Some(counts) = Part::named("exporter") else {
            return skip("the exporter does not count");
        };
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
        let (dev_node, registers) = subject.open_mapped()?;
        subject.set_flag(&registers, false);
        must("ARM", dev_node.arm(&subject.by_flag()))?;
        let buffer = block(&subject.heap, BLOCK_BYTES)?;
        let cached = must("LAB_EXPORT", self.exporter.buffer(CACHED_PAGES, property::CACHED))?;
        must("IMPORT of a block", dev_node.import(&buffer, 0))?;
        must("IMPORT of what its exporter caches", dev_node.import(&cached, 0))?;
        let fails = fails()?;
        drop((buffer, cached, dev_node, registers));
        same("bytes kept while the device is at work", all_bytes()? - bytes, LEFT_BYTES)?;
        same("the exporter's buffers under the device", self.number("buffers")?, buffers + 1)?;
        Ok(fails)
    }

    fn nothing_is_mapped(&self) -> Result<(), Wrong> {
        let left = self.number("maps")? - self.number("unmaps")? - self.mapped;
        same("mappings of an exporter that caches them", left, 0)
    }

    /// It has stopped, so all is given back; at the next opening.
    fn nothing_is_kept(&self, subject: &Subject) -> Result<(), Wrong> {
        keeps(&subject.open()?, "it has stopped", 0, 0)?;
        same("bytes held by a device that has stopped", all_bytes()? - self.bytes, 0)?;
        same("the exporter's buffers", self.number("buffers")?, self.buffers)
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
    let kept = |when: &str, buffers: u32| {
        keeps(&subject.open()?, when, buffers, u64::from(buffers) * BLOCK_BYTES as u64)
    };
    let dev_node = subject.open()?;
    if must("GET_INFO", dev_node.info())?.flags & info::IOMMU != 0 {
        return skip("behind an IOMMU no process could open the device again");
    }
    let buffer = block(&subject.heap, BLOCK_BYTES)?;
    must("IMPORT", dev_node.import(&buffer, 0))?;
    drop((buffer, dev_node));
    kept("no register was touched", 0)?;

    let (dev_node, registers) = subject.open_mapped()?;
    let _ = registers.read(subject.steady());
    let buffer = block(&subject.heap, BLOCK_BYTES)?;
    must("IMPORT", dev_node.import(&buffer, 0))?;
    drop((registers, buffer, dev_node));
    kept("a register was touched, and nothing says that the device stopped", 1)?;

    // No stop sequence of another user ends it: the device may not have stopped for the first one.
    let (dev_node, registers) = subject.open_mapped()?;
    must("ARM", dev_node.arm(&subject.always(&registers)))?;
    drop((registers, dev_node));
    kept("another user's stop sequence was met", 1)?;
    subject.end_quarantine()?;
    kept("the administrator ended it", 0)?;
    Ok("kept where a register was touched, until the administrator ends it; nothing kept where \
        none was"
        .into())
}
