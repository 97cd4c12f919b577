//! The allocator against a plain list of what must be live.
#![cfg(test)]
#![allow(clippy::indexing_slicing, reason = "a test that indexes past an array has found a bug")]
#![allow(clippy::cast_possible_truncation, reason = "random numbers are cut to size")]

use super::class::{Class, LISTS, SL_COUNT};
use super::node::{END, NIL};
use super::{Block, Fixed, Full};
use std::boxed::Box;
use std::eprintln;
use std::vec::Vec;

/// A generator of its own (splitmix64), so that a seed means the same run for ever. It prints
/// itself when a test fails.
struct Random {
    seed: u64,
    state: u64,
    blocks: usize,
}

impl Random {
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    /// Each of the `bits` powers of two is equally likely, so that small and large sizes meet.
    fn sized(&mut self, bits: u64) -> u32 {
        let shift = 63 - self.below(bits);
        (self.next() >> shift) as u32
    }
}

impl Drop for Random {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("failing seed: run::<{}>({:#x})", self.blocks, self.seed);
        }
    }
}

/// The allocator beside a plain list of what must be live, sorted by `start`.
struct Checked<const BLOCKS: usize> {
    tlsf: Box<Fixed<BLOCKS>>,
    live: Vec<Block>,
    granules: u32,
}

impl<const BLOCKS: usize> Checked<BLOCKS> {
    fn new(granules: u32) -> Self {
        let mut tlsf = Box::new(Fixed::new());
        tlsf.init(granules);
        Self { tlsf, live: Vec::new(), granules }
    }

    /// Every gap of the model, one per live block and the end: `(start, len)`, also where `len` is
    /// 0.
    fn gaps(&self) -> Vec<(u32, u32)> {
        let starts = self.live.iter().map(|block| block.start).chain([self.granules]);
        let ends = [0].into_iter().chain(self.live.iter().map(|block| block.start + block.len));
        starts.zip(ends).map(|(start, end)| (end, start - end)).collect()
    }

    fn allocate(&mut self, granules: u32, align: u32, phase: u32) -> Result<Block, Full> {
        let result = self.tlsf.allocate(granules, align, phase);
        match result {
            Ok(block) => {
                assert!(
                    usize::from(block.id) < BLOCKS
                        && self.live.iter().all(|live| live.id != block.id),
                    "id {block:?}"
                );
                assert!(block.len == granules && granules > 0, "length {block:?}");
                assert_eq!(
                    (u64::from(phase) + u64::from(block.start)) % u64::from(align),
                    0,
                    "alignment {align} {phase} {block:?}"
                );
                let at = self.live.partition_point(|live| live.start < block.start);
                let (gap_start, gap) = self.gaps()[at];
                assert!(
                    block.start >= gap_start && gap - (block.start - gap_start) >= granules,
                    "overlap or out of bounds {block:?}"
                );
                self.live.insert(at, block);
            }
            Err(Full::Blocks) => assert_eq!(self.live.len(), BLOCKS),
            Err(Full::Memory) => {
                assert!(self.live.len() < BLOCKS);
                let bound = good_fit(u64::from(granules) + u64::from(align) - 1);
                let largest = self.gaps().iter().map(|gap| gap.1).max();
                assert!(
                    granules == 0 || largest.is_none_or(|gap| u64::from(gap) < bound),
                    "{granules} at {align}, {largest:?} free"
                );
            }
        }
        self.check();
        result
    }

    fn free(&mut self, id: u16) -> bool {
        let at = self.live.iter().position(|live| live.id == id);
        assert_eq!(self.tlsf.free(id), at.is_some());
        if let Some(at) = at {
            self.live.remove(at);
        }
        self.check();
        at.is_some()
    }

    /// These hold between two calls: the ring is the model, every gap is in its list, and the
    /// bitmaps agree.
    fn check(&self) {
        let tlsf = &self.tlsf;
        assert_eq!(tlsf.live(), self.live.len());
        let mut gaps_in_ring = 0;
        let mut at = END;
        for (index, (gap_start, gap)) in self.gaps().into_iter().enumerate() {
            let next = tlsf.node(at).next;
            let node = tlsf.node(next);
            assert_eq!(node.prev, at, "ring");
            assert_eq!((node.start - node.gap, node.gap), (gap_start, gap), "gap {index}");
            gaps_in_ring += usize::from(gap > 0);
            if let Some(block) = self.live.get(index) {
                assert_eq!(next, block.id);
                assert_eq!(tlsf.start_len(next), Some((block.start, block.len)));
            } else {
                assert_eq!(next, END);
                assert_eq!(tlsf.start_len(next), None);
            }
            at = next;
        }
        assert_eq!(self.gaps_in_lists(), gaps_in_ring);
        let mut spare = tlsf.spare;
        for _ in self.live.len()..BLOCKS {
            assert_eq!(tlsf.nodes[usize::from(spare)].next, NIL);
            assert_eq!(tlsf.start_len(spare), None);
            spare = tlsf.node(spare).next_free;
        }
        assert_eq!(usize::from(spare), BLOCKS, "a node is missing or twice");
    }

    /// Walks every list, and counts what is in them.
    fn gaps_in_lists(&self) -> usize {
        let tlsf = &self.tlsf;
        let mut found = 0;
        for (fl, heads) in (0u32..).zip(tlsf.heads.chunks(SL_COUNT as usize)) {
            let flags = tlsf.sl_bitmap[fl as usize];
            assert_eq!(tlsf.fl_bitmap >> fl & 1 == 1, flags != 0, "fl {fl}");
            if flags == 0 {
                assert_eq!(heads, [NIL; SL_COUNT as usize], "a gap that no flag shows, fl {fl}");
                continue;
            }
            for (sl, head) in (0u32..).zip(heads) {
                assert_eq!(flags >> sl & 1 == 1, *head != NIL, "fl {fl} sl {sl}");
                let (mut before, mut owner) = (NIL, *head);
                while owner != NIL {
                    let node = tlsf.node(owner);
                    assert_eq!(node.prev_free, before, "list links");
                    assert!(
                        sizes(fl, sl).contains(&u64::from(node.gap)),
                        "gap {} in list {fl} {sl}",
                        node.gap
                    );
                    found += 1;
                    assert!(found <= BLOCKS + 1, "a list runs in a circle");
                    (before, owner) = (owner, node.next_free);
                }
            }
        }
        found
    }
}

/// The sizes of one list, from the paper's definition.
fn sizes(fl: u32, sl: u32) -> core::ops::Range<u64> {
    let (fl, sl) = (u64::from(fl), u64::from(sl));
    if fl == 0 {
        return sl..sl + 1;
    }
    let step = 1 << (fl - 1);
    let first = (1 << (fl - 1 + 5)) + sl * step;
    first..first + step
}

/// A request rounded up to the first size of a list: the bound that the module promises.
fn good_fit(granules: u64) -> u64 {
    let step = if granules < 64 { 1 } else { 1 << (granules.ilog2() - 5) };
    granules.next_multiple_of(step)
}

/// One run: some memory, two hundred calls, then everything freed in any order and the whole
/// allocated at once.
fn run<const BLOCKS: usize>(seed: u64) {
    let mut random = Random { seed, state: seed, blocks: BLOCKS };
    let bits = [3, 7, 10, 14, 20, 32][random.below(6) as usize];
    let granules = random.sized(bits);
    let phase = random.sized(bits);
    let same = random.sized(bits / 2 + 1);
    let mut checked = Checked::<BLOCKS>::new(granules);
    let mut stale = 0;
    for _ in 0..200 {
        match random.below(16) {
            0 => drop(checked.free(random.next() as u16)),
            1 => drop(checked.free(stale)),
            2..=7 if !checked.live.is_empty() => {
                stale = checked.live[random.below(checked.live.len() as u64) as usize].id;
                assert!(checked.free(stale));
                assert!(!checked.free(stale), "freed twice");
            }
            8 => drop(checked.allocate(same, 1, phase)),
            9 => drop(checked.allocate(random.sized(32), 1 << random.below(32), random.sized(32))),
            10 | 11 => drop(checked.allocate(random.sized(bits), 1 << random.below(bits), phase)),
            _ => drop(checked.allocate(random.sized(bits / 2 + 1), 1 << random.below(4), phase)),
        }
    }
    while !checked.live.is_empty() {
        let id = checked.live[random.below(checked.live.len() as u64) as usize].id;
        assert!(checked.free(id));
    }
    if granules > 0 {
        assert_eq!(
            checked.allocate(granules, 1, phase).map(|block| (block.start, block.len)),
            Ok((0, granules))
        );
    }
}

fn runs<const BLOCKS: usize>(seeds: u64) {
    // On targets other than the build machines, an emulator runs them.
    let seeds = if cfg!(target_arch = "x86_64") { seeds } else { seeds / 10 };
    (0..if cfg!(miri) { 2 } else { seeds }).for_each(run::<BLOCKS>);
}

#[test]
fn one_block() {
    runs::<1>(600);
}

#[test]
fn few_blocks() {
    runs::<2>(600);
    runs::<5>(600);
}

#[test]
fn many_blocks() {
    runs::<16>(600);
    runs::<64>(600);
}

#[test]
fn static_refuses_all_until_given_memory() {
    static EMPTY: Fixed<4> = Fixed::new();
    assert_eq!((EMPTY.live(), EMPTY.start_len(0)), (0, None));
    let mut tlsf = Fixed::<4>::new();
    assert_eq!(tlsf.allocate(1, 1, 0), Err(Full::Memory));
    assert!(!tlsf.free(0));
    tlsf.init(0);
    assert_eq!(tlsf.allocate(1, 1, 0), Err(Full::Memory));
    tlsf.init(1);
    assert_eq!(tlsf.allocate(1, 1, 0), Ok(Block { id: 0, start: 0, len: 1 }));
}

#[test]
fn what_no_memory_can_satisfy_is_refused() {
    let mut checked = Checked::<4>::new(1000);
    for granules in [0, 1001, u32::MAX] {
        assert_eq!(checked.tlsf.allocate(granules, 1, 0), Err(Full::Memory));
    }
    for align in [0, 3, u32::MAX] {
        assert_eq!(checked.tlsf.allocate(1, align, 0), Err(Full::Memory));
    }
    for granules in [u32::MAX, (1 << 31) + 1, 1 << 31] {
        // With the padding these are 2^32 and its neighbours.
        assert_eq!(checked.allocate(granules, 1 << 31, u32::MAX), Err(Full::Memory));
    }
    checked.check();
}

#[test]
fn the_largest_memory_is_one_block() {
    let mut checked = Checked::<2>::new(u32::MAX);
    let whole = checked.allocate(u32::MAX, 1, 0);
    assert_eq!(whole, Ok(Block { id: 0, start: 0, len: u32::MAX }));
    assert!(checked.free(0));
    assert_eq!(checked.allocate(1 << 30, 1 << 31, 1).map(|block| block.start), Ok((1 << 31) - 1));
}

#[test]
fn as_many_blocks_as_were_planned_and_no_more() {
    let mut tlsf = Box::new(Fixed::<16384>::new());
    tlsf.init(3 * 16384);
    for expected in 0..16384 {
        // Each at a distance from the last: the most gaps that there can be.
        let start = tlsf.allocate(1, 2, 1).map(|block| (block.id, block.start));
        assert_eq!(start, Ok((expected, 2 * u32::from(expected) + 1)));
    }
    assert_eq!(tlsf.allocate(1, 1, 0), Err(Full::Blocks));
    assert!(tlsf.free(77));
    assert!(!tlsf.free(77));
    assert_eq!(tlsf.live(), 16383);
    assert_eq!(tlsf.allocate(1, 1, 0).map(|block| block.id), Ok(77));
}

#[test]
fn a_freed_place_takes_a_block_of_the_same_size() {
    // 1001 is no list's first size, so the good-fit search alone would never look where such a
    // block was freed.
    let mut checked = Checked::<4>::new(4 * 1001);
    for _ in 0..4 {
        assert!(checked.allocate(1001, 1, 0).is_ok());
    }
    assert!(checked.free(2));
    assert_eq!(checked.allocate(1001, 1, 0).map(|block| block.start), Ok(2002));
    // The same with an alignment: 1024 + 7 free granules are not there.
    let mut checked = Checked::<4>::new(4 * 1024);
    for _ in 0..4 {
        assert!(checked.allocate(1024, 8, 0).is_ok());
    }
    assert!(checked.free(1));
    assert_eq!(checked.allocate(1024, 8, 0).map(|block| block.start), Ok(1024));
}

#[test]
fn gap_is_used_if_it_happens_to_be_aligned() {
    let mut checked = Checked::<4>::new(33);
    assert_eq!(checked.allocate(32, 8, 0).map(|block| block.start), Ok(0));
    assert!(checked.free(0));
    assert_eq!(checked.allocate(32, 8, 7).map(|block| block.start), Ok(1));
}

#[test]
fn padding_before_aligned_block_is_free() {
    let mut checked = Checked::<4>::new(64);
    assert_eq!(checked.allocate(8, 16, 3).map(|block| block.start), Ok(13));
    assert_eq!(checked.allocate(13, 1, 3).map(|block| block.start), Ok(0));
    assert_eq!(checked.allocate(43, 1, 3).map(|block| block.start), Ok(21));
    assert_eq!(checked.allocate(1, 1, 3), Err(Full::Memory));
}

#[test]
fn a_second_init_forgets_the_first() {
    let mut checked = Checked::<8>::new(500);
    for granules in 1..=8 {
        assert!(checked.allocate(granules, 4, 1).is_ok());
    }
    checked.tlsf.init(77);
    (checked.granules, checked.live) = (77, Vec::new());
    checked.check();
    assert_eq!(checked.allocate(77, 1, 0).map(|block| block.start), Ok(0));
}

#[test]
fn a_list_holds_the_sizes_of_the_paper() {
    for power in 0..32 {
        for near in [1u32 << power, 3 << power >> 1, 33 << power >> 5, u32::MAX >> power] {
            for granules in [near.saturating_sub(1), near, near.saturating_add(1)] {
                let class = Class::of(granules);
                assert!(
                    (class.0 as usize) < LISTS
                        && sizes(class.fl(), class.sl()).contains(&u64::from(granules)),
                    "{granules}"
                );
                if granules > 0 {
                    let holding = Class::holding(granules);
                    assert_eq!(
                        sizes(holding.fl(), holding.sl()).start,
                        good_fit(u64::from(granules)),
                        "{granules}"
                    );
                }
            }
        }
    }
}
