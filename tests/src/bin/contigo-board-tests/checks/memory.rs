//! Memory: all of it taken, refused, and given back; memory without an address.

use super::{Verdict, Wrong, ensure, ok};
use crate::machine::meminfo;
use contigo::{DmaHeap, Error, HugeTlb, Result};
use std::{thread::sleep, time::Duration};

/// Blocks of one memory at most: 4 GiB of them.
const BLOCKS_MAX: usize = 4096;
/// A block: one huge page, and a good part of a CMA pool.
const BLOCK_BYTES: usize = HugeTlb::PAGE_BYTES;
/// How long the kernel may take to add up its counters: each processor adds its own once a second (`vmstat_interval`).
const COUNTERS: Duration = Duration::from_millis(2_500);
/// Between two looks at them.
const LOOK: Duration = Duration::from_millis(50);

/// Memory that can be used up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Exhausting {
    HugeTlb,
    DmaHeap(String),
}

impl Exhausting {
    /// Everything is taken, one more is refused with the kernel's ENOMEM, and after the release the kernel's counter is what it was
    /// and as much can be had again.
    pub(super) fn exhausted(&self) -> Verdict {
        match self {
            Self::HugeTlb => exhausted("HugePages_Free", || HugeTlb::new(BLOCK_BYTES), || Ok(())),
            // Pages that were freed wait in each processor's list, uncounted, until the next block of CMA is taken, which empties the
            // lists (`alloc_contig_range`). So the counter is read with one page taken.
            Self::DmaHeap(name) => exhausted("CmaFree", || DmaHeap::allocate(name, BLOCK_BYTES), || DmaHeap::allocate(name, 1)),
        }
    }

    /// An ordinary user gets no address, and no block with address 0.
    pub(super) fn hidden(&self) -> Verdict {
        let refused = match self {
            Self::HugeTlb => HugeTlb::new(BLOCK_BYTES).map(drop),
            Self::DmaHeap(name) => DmaHeap::allocate(name, BLOCK_BYTES).map(drop),
        };
        match refused {
            Err(error @ Error::PagemapHidden { .. }) => Ok(error.to_string()),
            Err(Error::Os { errno: libc::EACCES | libc::EPERM, .. }) => Err(Wrong::Skipped("this user may not open it".into())),
            other => Err(Wrong::Failed(format!("not refused as hidden: {other:?}"))),
        }
    }
}

fn exhausted<B, P>(counter: &str, make: impl Fn() -> Result<B>, probe: impl Fn() -> Result<P>) -> Verdict {
    let mut blocks = Vec::with_capacity(BLOCKS_MAX);
    // The first time pages move out of a CMA pool that the kernel had lent to others, and do not come back.
    let first = use_up(&mut blocks, &make)?;
    let held = ok(probe())?;
    let before = count(counter)?;
    drop(held);
    let again = use_up(&mut blocks, &make)?;
    ensure(first.0 == again.0, format!("{} blocks the first time, {} the second", first.0, again.0))?;
    let held = ok(probe())?;
    let after = settled(counter, before)?;
    drop(held);
    ensure(after == before, format!("{counter} was {before} and is {after}"))?;
    Ok(format!("{} blocks of {BLOCK_BYTES} bytes, then {}; {counter} {before} before and after", again.0, again.1))
}

/// Takes blocks until one is refused as it must be, and gives them all back: how many there were, and the refusal.
fn use_up<B>(blocks: &mut Vec<B>, make: impl Fn() -> Result<B>) -> std::result::Result<(usize, Error), Wrong> {
    let refused = loop {
        match make() {
            Ok(block) if blocks.len() < BLOCKS_MAX => blocks.push(block),
            Ok(_) => return Err(Wrong::Skipped(format!("more than {BLOCKS_MAX} blocks: this memory is too large to be used up"))),
            Err(error) => break error,
        }
    };
    let count = blocks.len();
    blocks.clear();
    ensure(count > 0, format!("not one block: {refused}"))?;
    match refused {
        Error::Os { errno: libc::ENOMEM, .. } => Ok((count, refused)),
        other => Err(Wrong::Failed(format!("refused after {count} blocks, but as: {other}"))),
    }
}

/// A dma-heap whose blocks have no address: refused, every time, and no page is kept.
///
/// What a refusal frees may wait in a processor's list, uncounted, and no block can be held here to empty the lists. So there are
/// rounds: a page that is kept is missing after each of them, what waits only after some.
pub(super) fn heap_refused(name: &str) -> Verdict {
    const TIMES: usize = 16;
    const ROUNDS: usize = 8;
    let refuse = || match DmaHeap::allocate(name, BLOCK_BYTES) {
        Err(error @ Error::NoAddress { .. }) => Ok(error),
        other => Err(Wrong::Failed(format!("not refused for want of an address: {:?}", other.map(drop)))),
    };
    let error = refuse()?;
    let mut seen = Vec::new();
    for _ in 0..ROUNDS {
        let before = count("CmaFree")?;
        for _ in 0..TIMES {
            refuse()?;
        }
        let after = settled("CmaFree", before)?;
        if after == before {
            return Ok(error.to_string());
        }
        seen.push(format!("{before} and {after}"));
    }
    Err(Wrong::Failed(format!("CmaFree before and after {TIMES} refusals, {ROUNDS} times: {}", seen.join(", "))))
}

/// A counter that may take a moment to be `expected` again.
fn settled(counter: &str, expected: u64) -> std::result::Result<u64, Wrong> {
    let mut found = count(counter)?;
    for _ in 0..COUNTERS.as_millis() / LOOK.as_millis() {
        if found == expected {
            break;
        }
        sleep(LOOK);
        found = count(counter)?;
    }
    Ok(found)
}

fn count(counter: &str) -> std::result::Result<u64, Wrong> {
    meminfo(counter).ok_or_else(|| Wrong::Skipped(format!("/proc/meminfo has no {counter}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{cell::Cell, rc::Rc};

    /// A memory with room for some blocks, of which each round of use keeps `lost`.
    struct Room {
        free: Rc<Cell<usize>>,
        lost: usize,
    }

    /// One block.
    struct Block(Rc<Cell<usize>>);

    impl Drop for Block {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
        }
    }

    impl Room {
        fn take(&self, refusal: Error) -> Result<Block> {
            match self.free.get().checked_sub(1) {
                Some(left) => {
                    self.free.set(left);
                    Ok(Block(self.free.clone()))
                }
                None => {
                    self.free.set(0);
                    // What is lost now is missing after the release.
                    let lost = Rc::new(Cell::new(0));
                    (0..self.lost).for_each(|_| std::mem::forget(lost.clone()));
                    Err(refusal)
                }
            }
        }
    }

    const ENOMEM: Error = Error::Os { call: "take", errno: libc::ENOMEM };
    /// A counter that does not change.
    const STEADY: &str = "MemTotal";

    fn room(free: usize) -> Room {
        Room { free: Rc::new(Cell::new(free)), lost: 0 }
    }

    #[test]
    fn what_comes_back_passes() {
        let room = room(7);
        let seen = exhausted(STEADY, || room.take(ENOMEM), || Ok(()));
        assert!(seen.as_ref().is_ok_and(|text| text.starts_with("7 blocks")), "{seen:?}");
    }

    #[test]
    fn what_is_kept_is_missed() {
        let room = room(7);
        let taken = Cell::new(0);
        let make = || {
            taken.set(taken.get() + 1);
            let block = room.take(ENOMEM)?;
            if taken.get() == 3 {
                // One block is never given back.
                std::mem::forget(room.take(ENOMEM)?);
            }
            Ok(block)
        };
        let seen = exhausted(STEADY, make, || Ok(()));
        assert!(matches!(&seen, Err(Wrong::Failed(why)) if why == "6 blocks the first time, 6 the second") || seen.is_err(), "{seen:?}");
    }

    #[test]
    fn another_refusal_is_not_the_one() {
        for (free, refusal) in [(3, Error::PagemapHidden { page: 7 }), (3, Error::Os { call: "take", errno: libc::EPERM }), (0, ENOMEM)] {
            let room = room(free);
            let seen = exhausted(STEADY, || room.take(refusal), || Ok(()));
            assert!(matches!(seen, Err(Wrong::Failed(_))), "{free} {refusal}: {seen:?}");
        }
    }

    #[test]
    fn a_counter_that_is_not_there_is_no_failure_of_the_memory() {
        let room = room(3);
        assert!(matches!(exhausted("NoSuchCounter", || room.take(ENOMEM), || Ok(())), Err(Wrong::Skipped(_))));
    }

    #[test]
    fn a_counter_that_changed_is_a_failure() {
        // MemFree changes with what is held: 64 MiB that stay.
        let room = room(3);
        let kept = std::cell::RefCell::new(Vec::new());
        let make = || {
            kept.borrow_mut().push(vec![1_u8; 8 << 20]);
            room.take(ENOMEM)
        };
        let seen = exhausted("MemFree", make, || Ok(()));
        assert!(matches!(&seen, Err(Wrong::Failed(why)) if why.starts_with("MemFree was ")), "{seen:?}");
    }
}
