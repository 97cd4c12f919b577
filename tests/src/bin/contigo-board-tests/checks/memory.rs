#![allow(unsafe_code, reason = "madvise(2) on a block's mapping")]
//! Memory: all of it taken, refused, and given back; memory without an address; a pinned page that
//! stays where it is.

use crate::machine::meminfo;
use crate::verdict::{Verdict, Wrong, ensure, fail, skip};
use contigo::linux::memory::{DmaHeap, HugeTlb};
use contigo::names::MemoryName;
use contigo::{Backend as _, Error, Region, Result};
use std::fs;
use std::thread::sleep;
use std::time::Duration;

/// Blocks of one memory at most: 4 GiB of them.
const BLOCKS_MAX: usize = 4096;
/// A block: one huge page, and a good part of a CMA pool.
const BLOCK_BYTES: usize = HugeTlb::PAGE_BYTES;
/// Rounds of using everything up. In the first ones pages of others move out of a CMA pool, into
/// which the kernel had lent them, and the counter changes with them. A leak shows in every round.
const ROUNDS: usize = 4;
/// How long the kernel may take to add up its counters: each processor adds its own once a second
/// (`vmstat_interval`).
const COUNTERS: Duration = Duration::from_millis(2_500);
const LOOK: Duration = Duration::from_millis(50);

/// Everything is taken, one more is refused with the kernel's ENOMEM, and after the release the
/// kernel's counter is what it was and as much can be had again.
pub(crate) fn all_of(name: &MemoryName) -> Verdict {
    let make = |len_bytes| name.open(len_bytes);
    match name.kind() {
        "hugetlb" => exhausted(&Counter::of("HugePages_Free"), || make(BLOCK_BYTES), || Ok(())),
        // Pages that were freed wait in each processor's list, uncounted, until the next block of
        // CMA is taken, which empties the lists (`alloc_contig_range`). So the counter is read with
        // one page taken.
        _ => exhausted(&Counter::of("CmaFree"), || make(BLOCK_BYTES), || make(1)),
    }
}

/// An ordinary user gets no address, and no block with address 0.
pub(crate) fn hidden(name: &MemoryName) -> Verdict {
    match name.open(BLOCK_BYTES).map(drop) {
        Err(error @ Error::PagemapHidden { .. }) => Ok(error.to_string()),
        Err(Error::Os { errno: libc::EACCES | libc::EPERM, .. }) => {
            skip("this user may not open it")
        }
        other => fail(format!("not refused as hidden: {other:?}")),
    }
}

fn exhausted<B, P>(
    counter: &Counter<impl Fn() -> Option<u64>>,
    make: impl Fn() -> Result<B>,
    probe: impl Fn() -> Result<P>,
) -> Verdict {
    let counted = |expected: Option<u64>| {
        let _held = probe()?;
        expected.map_or_else(|| counter.count(), |expected| counter.settled(expected))
    };
    let mut blocks = Vec::with_capacity(BLOCKS_MAX);
    let (first, _) = use_up(&mut blocks, &make)?;
    let mut seen = Vec::with_capacity(ROUNDS);
    for round in 1..=ROUNDS {
        let before = counted(None)?;
        let (count, refusal) = use_up(&mut blocks, &make)?;
        ensure(first == count, format!("{first} blocks the first time, {count} the next"))?;
        let after = counted(Some(before))?;
        if after == before {
            let name = counter.name;
            return Ok(format!(
                "{count} blocks of {BLOCK_BYTES} bytes, then {refusal}; {name} {before} before and \
                 after, in round {round}"
            ));
        }
        seen.push(format!("{before} and then {after}"));
    }
    fail(format!("{} was {}", counter.name, seen.join(", ")))
}

/// Takes blocks until one is refused as it must be, and gives them all back: how many there were,
/// and the refusal.
fn use_up<B>(
    blocks: &mut Vec<B>,
    make: impl Fn() -> Result<B>,
) -> std::result::Result<(usize, Error), Wrong> {
    let refused = loop {
        match make() {
            Ok(block) if blocks.len() < BLOCKS_MAX => blocks.push(block),
            Ok(_) => {
                return skip(format!(
                    "more than {BLOCKS_MAX} blocks: this memory is too large to be used up"
                ));
            }
            Err(error) => break error,
        }
    };
    let count = blocks.len();
    blocks.clear();
    ensure(count > 0, format!("not one block: {refused}"))?;
    match refused {
        Error::Os { errno: libc::ENOMEM, .. } | Error::NoMemory { .. } => Ok((count, refused)),
        other => fail(format!("refused after {count} blocks, but as: {other}")),
    }
}

/// A dma-heap whose blocks have no address: refused, every time, and no page is kept.
///
/// The pages that a refusal frees may wait in a processor's list, uncounted, and no block can be
/// held here to empty the lists. So there are rounds. A page that is kept is missing after each of
/// them, a page that waits only after some.
pub(crate) fn heap_refused(name: &str) -> Verdict {
    const TIMES: usize = 16;
    const ROUNDS: usize = 8;
    let refuse = || match DmaHeap::allocate(name, BLOCK_BYTES) {
        Err(error @ Error::NoAddress { .. }) => Ok(error),
        other => fail(format!("not refused for want of an address: {:?}", other.map(drop))),
    };
    let error = refuse()?;
    let counter = Counter::of("CmaFree");
    let mut seen = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let before = counter.count()?;
        for _ in 0..TIMES {
            refuse()?;
        }
        let after = counter.settled(before)?;
        if after == before {
            return Ok(error.to_string());
        }
        seen.push(format!("{before} and {after}"));
    }
    fail(format!("CmaFree before and after {TIMES} refusals, {ROUNDS} times: {}", seen.join(", ")))
}

struct Counter<R> {
    name: &'static str,
    read: R,
}

impl Counter<fn() -> Option<u64>> {
    fn of(name: &'static str) -> Counter<impl Fn() -> Option<u64>> {
        Counter { name, read: move || meminfo(name) }
    }
}

impl<R: Fn() -> Option<u64>> Counter<R> {
    fn count(&self) -> std::result::Result<u64, Wrong> {
        (self.read)().ok_or_else(|| Wrong::Skipped(format!("/proc/meminfo has no {}", self.name)))
    }

    /// The count, when it may take a moment to be `expected` again.
    fn settled(&self, expected: u64) -> std::result::Result<u64, Wrong> {
        let mut found = self.count()?;
        for _ in 0..COUNTERS.as_millis() / LOOK.as_millis() {
            if found == expected {
                break;
            }
            sleep(LOOK);
            found = self.count()?;
        }
        Ok(found)
    }
}

/// 0: programs may make an io_uring. 2: none may. Since Linux 6.6.
const KNOB: &str = "/proc/sys/kernel/io_uring_disabled";

/// Forbids io_uring to all programs while it lives.
struct Forbidden(String);

impl Forbidden {
    fn new() -> std::result::Result<Self, Wrong> {
        let skipped = |error: std::io::Error| Wrong::Skipped(format!("{KNOB}: {error}"));
        let before = fs::read_to_string(KNOB).map_err(skipped)?;
        fs::write(KNOB, "2").map_err(skipped)?;
        Ok(Self(before))
    }
}

impl Drop for Forbidden {
    fn drop(&mut self) {
        let _ = fs::write(KNOB, &self.0);
    }
}

/// Each moved page costs the machine one of 2 MiB until it is started anew.
pub(crate) fn pinned() -> Verdict {
    let loose = {
        let _forbidden = Forbidden::new()?;
        HugeTlb::new(1)?
    };
    ensure(!loose.is_pinned(), "pinned without io_uring".to_owned())?;
    match soft_offline(&loose) {
        Ok(()) => {}
        Err(libc::EINVAL | libc::EPERM) => {
            return skip("needs CONFIG_MEMORY_FAILURE and root");
        }
        Err(errno) => return fail(format!("without a pin: errno {errno}")),
    }
    let moved = match loose.verify() {
        Err(moved @ Error::NotContiguous { offset_bytes: 0, .. }) => moved,
        other => return fail(format!("a page that was moved: {other:?}")),
    };

    let block = HugeTlb::new(1)?;
    ensure(block.is_pinned(), "not pinned, though this kernel has io_uring".to_owned())?;
    let offline = soft_offline(&block);
    ensure(
        offline == Err(libc::EBUSY),
        format!("a pinned page, taken out of service: {offline:?}"),
    )?;
    block.verify()?;
    let region = Region::new(block)?;
    region.verify()?;
    Ok(format!("without a pin: {moved}; with one: EBUSY, still at {:#x}", region.base().raw()))
}

/// MADV_SOFT_OFFLINE of the first page: its contents go to another frame, and this one is used no
/// more.
fn soft_offline(block: &HugeTlb) -> std::result::Result<(), i32> {
    let cpu = block.mapping().cpu.as_ptr();
    // SAFETY: one page of a live mapping that no other code uses. Its bytes stay what they are.
    let status = unsafe { libc::madvise(cpu.cast(), 4096, libc::MADV_SOFT_OFFLINE) };
    if status == 0 { Ok(()) } else { Err(nix::errno::Errno::last_raw()) }
}

#[cfg(test)]
#[allow(clippy::panic, reason = "a test that panics has failed, which is its purpose")]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::rc::Rc;

    struct Room(Rc<Cell<usize>>);

    struct Block(Rc<Cell<usize>>);

    impl Drop for Block {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
        }
    }

    impl Room {
        fn take(&self, refusal: Error) -> Result<Block> {
            self.0.set(self.0.get().checked_sub(1).ok_or(refusal)?);
            Ok(Block(self.0.clone()))
        }
    }

    const ENOMEM: Error = Error::Os { call: "take", errno: libc::ENOMEM };
    fn steady() -> Counter<impl Fn() -> Option<u64>> {
        Counter { name: "Steady", read: || Some(100) }
    }

    fn room(free: usize) -> Room {
        Room(Rc::new(Cell::new(free)))
    }

    #[test]
    fn what_comes_back_passes() {
        let room = room(7);
        let seen = exhausted(&steady(), || room.take(ENOMEM), || Ok(()));
        assert!(seen.as_ref().is_ok_and(|text| text.starts_with("7 blocks")), "{seen:?}");
    }

    #[test]
    fn what_is_kept_is_missed() {
        let room = room(9);
        let taken = Cell::new(0);
        // Every third time one block more is taken, and never given back.
        let make = || {
            taken.set(taken.get() + 1);
            if taken.get() % 3 == 0 {
                std::mem::forget(room.take(ENOMEM)?);
            }
            room.take(ENOMEM)
        };
        let seen = exhausted(&steady(), make, || Ok(()));
        let Err(Wrong::Failed(why)) = &seen else { panic!("{seen:?}") };
        assert!(why.contains("blocks the first time"), "{why}");
    }

    #[test]
    fn another_refusal_is_not_the_one() {
        for (free, refusal) in [
            (3, Error::PagemapHidden { page: 7 }),
            (3, Error::Os { call: "take", errno: libc::EPERM }),
            (0, ENOMEM),
        ] {
            let room = room(free);
            let seen = exhausted(&steady(), || room.take(refusal), || Ok(()));
            assert!(matches!(seen, Err(Wrong::Failed(_))), "{free} {refusal}: {seen:?}");
        }
    }

    #[test]
    fn missing_counter_skips_memory_check() {
        let (room, none) = (room(3), Counter::of("NoSuchCounter"));
        let seen = exhausted(&none, || room.take(ENOMEM), || Ok(()));
        assert!(matches!(seen, Err(Wrong::Skipped(_))), "{seen:?}");
    }

    #[test]
    fn falling_counter_fails_lagging_one_passes() {
        // It is 100 at first; then it is right again after so many looks, or 7 less after each
        // round.
        for (lag, falls, passes) in [(3, false, true), (0, true, false)] {
            let (room, looks, taken) = (room(3), Cell::new(0_usize), Cell::new(0_u64));
            let read = || {
                looks.set(looks.get() + 1);
                let rounds = taken.get() / 4;
                let lags = u64::from((2..=lag).contains(&looks.get()));
                Some(if falls { 200 - 7 * rounds } else { 100 - lags })
            };
            let make = || {
                taken.set(taken.get() + 1);
                room.take(ENOMEM)
            };
            let seen = exhausted(&Counter { name: "Falling", read }, make, || Ok(()));
            assert_eq!(seen.is_ok(), passes, "{seen:?}");
            let falls = "Falling was 193 and then 186, 186 and";
            let is_named = matches!(&seen, Err(Wrong::Failed(why)) if why.starts_with(falls));
            assert!(passes || is_named, "{seen:?}");
        }
    }
}
