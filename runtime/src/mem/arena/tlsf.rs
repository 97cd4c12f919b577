//! The arithmetic of a two-level segregated fit allocator: which granules of a region are free, decided in constant time.
//!
//! It owns no memory and touches none: it hands out ranges of granules (cache lines) by number. What it knows lies in fixed
//! arrays beside the managed memory, which may be uncached, or the device's at the moment.
//!
//! # The picture
//!
//! ```text
//! granule  0                                                   granules
//!          | gap | block a | block b |   gap   | block c | gap |
//!           `--- a.gap = 2  b.gap = 0 `-------- c.gap     `---- end.gap
//! ```
//!
//! Free neighbours are always merged, so there is at most one gap before each live block and one after the last. A gap needs
//! no node of its own: it is a field of the block behind it, its *owner*. The nodes needed are
//!
//! ```text
//! BLOCKS   one for each live block, with the gap before it
//! +    1   the end of the memory, with the gap after the last block
//! ```
//!
//! and they cannot run out before the live blocks do. Blocks and the end form a ring in the order of their addresses.
//!
//! # The lists
//!
//! Gaps are kept in lists by size. The first level (`fl`) doubles the size, the second (`sl`) cuts each doubling into
//! [`SL_COUNT`] equal steps; one bit per list says whether it holds a gap, so that two `trailing_zeros` find the first list that
//! is sure to fit. [`Tlsf::allocate`] and [`Tlsf::free`] have no loop: they are O(1), whatever is live.
//!
//! # The good-fit bound
//!
//! Every gap of the list found must fit, so a search rounds up to the next step: an allocation fails with [`Full::Memory`] only
//! if no gap is as large as `granules + align - 1`, rounded up by less than 1/[`SL_COUNT`] of itself (not at all below
//! `2 * SL_COUNT`). A smaller gap that would do is taken if it comes first in its list, as the place where a block of the same
//! size was just freed does: see [`Tlsf::search`].
//!
//! # References
//! M. Masmano, I. Ripoll, A. Crespo, J. Real: "TLSF: a new dynamic memory allocator for real-time systems", ECRTS 2004.
//! The names `fl`, `sl`, `insert`, `remove`, `split` and `merge` are theirs.

/// Bits of a size, below its highest one, that choose the second level: 5 of them make one 32-bit word of flags per level.
const SL_BITS: u32 = 5;
/// Lists per power of two: the good-fit bound.
const SL_COUNT: u32 = 1 << SL_BITS;
/// Powers of two: sizes below `2 * SL_COUNT` share the first, each size with a list of its own; `u32::MAX` falls in the last.
const FL_COUNT: usize = (u32::BITS - SL_BITS) as usize + 1;
/// All lists.
const LISTS: usize = FL_COUNT * SL_COUNT as usize;

/// A link to no node. As `next` it marks a node that is no live block.
const NIL: u16 = u16::MAX;
/// The link to the end of the memory: like any number that is no block's, it leads to [`Tlsf::end`].
const END: u16 = u16::MAX - 1;

/// A range of granules that was handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// Names the block to [`Tlsf::free`]. Below `BLOCKS`, and used again after the block was freed.
    pub(crate) id: u16,
    /// The first granule.
    pub(crate) start: u32,
    /// How many granules: what was asked for.
    pub(crate) len: u32,
}

/// What ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// As many blocks are live as there are nodes for. Raise `BLOCKS`, or free one.
    Blocks,
    /// No gap is sure to fit (or the request is for no granules, or for an alignment that is no power of two).
    Memory,
}

/// One live block, or the end, and the gap before it. Its length is `next`'s gap's start less its own: 16 bytes, four to a line.
#[derive(Clone, Copy, Debug)]
struct Node {
    /// The first granule; of the end, the number of granules.
    start: u32,
    /// Free granules right before `start`.
    gap: u32,
    /// The block before this one in memory, or the end.
    prev: u16,
    /// The block after this one in memory, or the end; [`NIL`] where no block is live.
    next: u16,
    /// The owner before this one in the gap's list.
    prev_free: u16,
    /// The owner after this one in the gap's list; of a node that is not live, the next such node.
    next_free: u16,
}

impl Node {
    /// No live block.
    const SPARE: Self = Self { start: 0, gap: 0, prev: NIL, next: NIL, prev_free: NIL, next_free: NIL };
    /// The end, alone in the ring, of a memory of no granules.
    const EMPTY_END: Self = Self { prev: END, next: END, ..Self::SPARE };
}

/// A list of gaps by its number, `fl * SL_COUNT + sl`: it grows with the size, and is 0 for no gap at all.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Class(u32);

impl Class {
    /// No gap: the list of the size 0, which stays empty.
    const NONE: Self = Self(0);

    const fn new(fl: u32, sl: u32) -> Self {
        Self(fl * SL_COUNT + sl)
    }

    /// The list that a gap of `granules` is kept in. The highest bit of the size stays in the sum and counts as one more level.
    const fn of(granules: u32) -> Self {
        // `ilog2` says the same, but costs a tenth of an allocation more.
        let shift = u32::BITS - 1 - SL_BITS - (granules | SL_COUNT).leading_zeros();
        Self::new(shift, granules >> shift)
    }

    /// The first list of which every gap is at least `granules`, which is not 0.
    const fn holding(granules: u32) -> Self {
        Self(Self::of(granules - 1).0 + 1)
    }

    const fn fl(self) -> u32 {
        self.0 / SL_COUNT
    }

    const fn sl(self) -> u32 {
        self.0 % SL_COUNT
    }
}

/// The allocator. See the [module](self).
#[derive(Debug)]
pub(crate) struct Tlsf<const BLOCKS: usize> {
    /// A bit per power of two: one of its lists has a gap.
    fl_bitmap: u32,
    /// A bit per list: it has a gap.
    sl_bitmap: [u32; FL_COUNT],
    /// The first owner of each list.
    heads: [u16; LISTS],
    /// The first node that is not live; past the last one where all are.
    spare: u16,
    /// Live blocks.
    live: u16,
    /// The owner of the last gap.
    end: Node,
    nodes: [Node; BLOCKS],
}

impl<const BLOCKS: usize> Tlsf<BLOCKS> {
    /// An allocator of no memory, which refuses everything until [`init`](Self::init).
    pub(crate) const fn new() -> Self {
        // Links are 16 bits wide and two of their values are taken; 16384 keeps the table at 256 KiB.
        const { assert!(1 <= BLOCKS && BLOCKS <= 16384, "an arena has 1 to 16384 blocks") };
        Self {
            fl_bitmap: 0,
            sl_bitmap: [0; FL_COUNT],
            heads: [NIL; LISTS],
            spare: 0,
            live: 0,
            end: Node::EMPTY_END,
            nodes: [Node::SPARE; BLOCKS],
        }
    }

    /// Forgets every block and starts again with one gap of `granules`. The only loop in this file, over `BLOCKS`, is here.
    pub(crate) fn init(&mut self, granules: u32) {
        self.fl_bitmap = 0;
        self.sl_bitmap.fill(0);
        self.heads.fill(NIL);
        self.spare = 0;
        self.live = 0;
        self.end = Node { start: granules, ..Node::EMPTY_END };
        for (node, next_free) in self.nodes.iter_mut().zip(1..) {
            *node = Node { next_free, ..Node::SPARE };
        }
        self.set_gap(END, granules);
    }

    /// A block of `granules` at a `start` with `(phase + start) % align == 0`. `align` is a power of two, in granules like
    /// `phase`, which is how far granule 0 is past an aligned address.
    ///
    /// # Errors
    /// [`Full::Blocks`] if `BLOCKS` are live, else [`Full::Memory`] within the [good-fit bound](self).
    pub(crate) fn allocate(&mut self, granules: u32, align: u32, phase: u32) -> Result<Block, Full> {
        if self.live() == BLOCKS {
            return Err(Full::Blocks);
        }
        if granules == 0 || !align.is_power_of_two() {
            return Err(Full::Memory);
        }
        let (owner, pad) = self.search(granules, align - 1, phase).ok_or(Full::Memory)?;
        Ok(self.split(owner, pad, granules))
    }

    /// Takes a block back and merges it with the gaps around it. An `id` that is not live changes nothing and gives `false`.
    pub(crate) fn free(&mut self, id: u16) -> bool {
        let is_live = self.nodes.get(usize::from(id)).is_some_and(|node| node.next != NIL);
        if is_live {
            self.merge(id);
        }
        is_live
    }

    /// How many blocks are live.
    pub(crate) fn live(&self) -> usize {
        usize::from(self.live)
    }

    /// Where a live block lies, and how long it is.
    #[cfg(test)]
    pub(crate) fn start_len(&self, id: u16) -> Option<(u32, u32)> {
        let node = self.nodes.get(usize::from(id)).filter(|node| node.next != NIL)?;
        let next = self.node(node.next);
        Some((node.start, next.start - next.gap - node.start))
    }

    /// The owner of a gap that fits, and how many granules to leave free before the block. Only the first gap of three lists is
    /// looked at: the size's own, the first that is sure to fit without padding, and the first that is sure to fit.
    fn search(&self, granules: u32, align_mask: u32, phase: u32) -> Option<(u16, u32)> {
        let padded = granules.saturating_add(align_mask);
        let fit = |class| self.fit(class, granules, align_mask, phase);
        fit(Class::of(granules))
            .or_else(|| fit(self.first_from(Class::holding(granules))))
            .or_else(|| fit(self.first_from(Class::holding(padded))))
    }

    /// The first list at or above `class` with a gap in it; [`Class::NONE`], whose list is always empty, if there is none.
    fn first_from(&self, class: Class) -> Class {
        let here = self.sl_flags(class.fl()) & (u32::MAX << class.sl());
        if here != 0 {
            return Class::new(class.fl(), here.trailing_zeros());
        }
        let above = self.fl_bitmap & (u32::MAX << class.fl() << 1);
        if above == 0 {
            return Class::NONE;
        }
        let fl = above.trailing_zeros();
        Class::new(fl, self.sl_flags(fl).trailing_zeros())
    }

    /// Does a request fit into the first gap of this list, and after how many granules of padding?
    fn fit(&self, class: Class, granules: u32, align_mask: u32, phase: u32) -> Option<(u16, u32)> {
        let owner = self.head(class);
        if owner == NIL {
            return None;
        }
        let Node { start, gap, .. } = self.node(owner);
        let pad = phase.wrapping_add(start - gap).wrapping_neg() & align_mask;
        (gap.checked_sub(pad)? >= granules).then_some((owner, pad))
    }

    /// Makes a block of a part of `owner`'s gap: `pad` granules stay free before it, and `owner` keeps what is left behind it.
    fn split(&mut self, owner: u16, pad: u32, granules: u32) -> Block {
        let Node { start: owner_start, gap, prev, .. } = self.node(owner);
        let start = owner_start - gap + pad;
        let id = self.spare;
        self.spare = self.node(id).next_free;
        self.live += 1;
        *self.node_mut(id) = Node { start, gap: pad, prev, next: owner, ..Node::SPARE };
        self.node_mut(prev).next = id;
        self.node_mut(owner).prev = id;
        self.set_gap(owner, gap - pad - granules);
        if pad != 0 {
            self.insert(id, Class::of(pad));
        }
        Block { id, start, len: granules }
    }

    /// Gives a live block, and the gap before it, to the gap of the next one.
    fn merge(&mut self, id: u16) {
        let Node { start, gap, prev, next, .. } = self.node(id);
        if gap != 0 {
            self.remove(id, Class::of(gap));
        }
        self.node_mut(prev).next = next;
        self.node_mut(next).prev = prev;
        self.set_gap(next, self.node(next).start - (start - gap));
        *self.node_mut(id) = Node { next_free: self.spare, ..Node::SPARE };
        self.spare = id;
        self.live -= 1;
    }

    /// Changes the size of the gap before `owner`, and its list if that is another one.
    #[inline(always)] // A tenth less time for an allocation and its free.
    fn set_gap(&mut self, owner: u16, gap: u32) {
        let (from, to) = (Class::of(self.node(owner).gap), Class::of(gap));
        self.node_mut(owner).gap = gap;
        if from == to {
            return;
        }
        if from != Class::NONE {
            self.remove(owner, from);
        }
        if to != Class::NONE {
            self.insert(owner, to);
        }
    }

    /// Puts a gap at the head of its list.
    fn insert(&mut self, owner: u16, class: Class) {
        let head = self.head(class);
        let node = self.node_mut(owner);
        node.prev_free = NIL;
        node.next_free = head;
        if head != NIL {
            self.node_mut(head).prev_free = owner;
        }
        self.set_head(class, owner);
        self.fl_bitmap |= 1 << class.fl();
        if let Some(flags) = self.sl_bitmap.get_mut(class.fl() as usize) {
            *flags |= 1 << class.sl();
        }
    }

    /// Takes a gap out of its list.
    fn remove(&mut self, owner: u16, class: Class) {
        let Node { prev_free, next_free, .. } = self.node(owner);
        if next_free != NIL {
            self.node_mut(next_free).prev_free = prev_free;
        }
        if prev_free != NIL {
            self.node_mut(prev_free).next_free = next_free;
            return;
        }
        self.set_head(class, next_free);
        if next_free == NIL
            && let Some(flags) = self.sl_bitmap.get_mut(class.fl() as usize)
        {
            *flags &= !(1 << class.sl());
            if *flags == 0 {
                self.fl_bitmap &= !(1 << class.fl());
            }
        }
    }

    /// The block or the end that a link leads to. Never asked for [`NIL`].
    fn node(&self, link: u16) -> Node {
        *self.nodes.get(usize::from(link)).unwrap_or(&self.end)
    }

    fn node_mut(&mut self, link: u16) -> &mut Node {
        self.nodes.get_mut(usize::from(link)).unwrap_or(&mut self.end)
    }

    /// The first owner of a list; [`NIL`] if it is empty.
    fn head(&self, class: Class) -> u16 {
        self.heads.get(class.0 as usize).copied().unwrap_or(NIL)
    }

    fn set_head(&mut self, class: Class, owner: u16) {
        if let Some(head) = self.heads.get_mut(class.0 as usize) {
            *head = owner;
        }
    }

    /// The second level's flags; none above the largest size.
    fn sl_flags(&self, fl: u32) -> u32 {
        self.sl_bitmap.get(fl as usize).copied().unwrap_or(0)
    }
}

#[cfg(test)]
#[allow(clippy::indexing_slicing, reason = "a test that indexes past an array has found a bug")]
#[allow(clippy::cast_possible_truncation, reason = "random numbers are cut to size")]
mod tests {
    use super::*;
    use std::{boxed::Box, eprintln, vec::Vec};

    /// A generator of its own (splitmix64), so that a seed means the same run for ever. It prints itself when a test fails.
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

        /// Any of the `bits` powers of two is as likely as the next: small sizes and large ones meet.
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
        tlsf: Box<Tlsf<BLOCKS>>,
        live: Vec<Block>,
        granules: u32,
    }

    impl<const BLOCKS: usize> Checked<BLOCKS> {
        fn new(granules: u32) -> Self {
            let mut tlsf = Box::new(Tlsf::new());
            tlsf.init(granules);
            Self { tlsf, live: Vec::new(), granules }
        }

        /// Every gap of the model, one per live block and the end: `(start, len)`, also where `len` is 0.
        fn gaps(&self) -> Vec<(u32, u32)> {
            let starts = self.live.iter().map(|block| block.start).chain([self.granules]);
            let ends = [0].into_iter().chain(self.live.iter().map(|block| block.start + block.len));
            starts.zip(ends).map(|(start, end)| (end, start - end)).collect()
        }

        fn allocate(&mut self, granules: u32, align: u32, phase: u32) -> Result<Block, Full> {
            let result = self.tlsf.allocate(granules, align, phase);
            match result {
                Ok(block) => {
                    assert!(usize::from(block.id) < BLOCKS && self.live.iter().all(|live| live.id != block.id), "id {block:?}");
                    assert!(block.len == granules && granules > 0, "length {block:?}");
                    assert_eq!((u64::from(phase) + u64::from(block.start)) % u64::from(align), 0, "alignment {align} {phase} {block:?}");
                    let at = self.live.partition_point(|live| live.start < block.start);
                    let (gap_start, gap) = self.gaps()[at];
                    assert!(block.start >= gap_start && gap - (block.start - gap_start) >= granules, "overlap or out of bounds {block:?}");
                    self.live.insert(at, block);
                }
                Err(Full::Blocks) => assert_eq!(self.live.len(), BLOCKS),
                Err(Full::Memory) => {
                    assert!(self.live.len() < BLOCKS);
                    let bound = good_fit(u64::from(granules) + u64::from(align) - 1);
                    let largest = self.gaps().iter().map(|gap| gap.1).max();
                    assert!(granules == 0 || largest.is_none_or(|gap| u64::from(gap) < bound), "{granules} at {align}, {largest:?} free");
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

        /// What must hold between two calls: the ring is the model, every gap is in its list, and the bitmaps agree.
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
                        assert!(sizes(fl, sl).contains(&u64::from(node.gap)), "gap {} in list {fl} {sl}", node.gap);
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

    /// One run: some memory, two hundred calls, then everything freed in any order and the whole allocated at once.
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
            assert_eq!(checked.allocate(granules, 1, phase).map(|block| (block.start, block.len)), Ok((0, granules)));
        }
    }

    fn runs<const BLOCKS: usize>(seeds: u64) {
        // Elsewhere than on the machines that build, an emulator does them.
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
    fn a_static_refuses_everything_until_it_is_given_memory() {
        static EMPTY: Tlsf<4> = Tlsf::new();
        assert_eq!((EMPTY.live(), EMPTY.start_len(0)), (0, None));
        let mut tlsf = Tlsf::<4>::new();
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
        let mut tlsf = Box::new(Tlsf::<16384>::new());
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
        // 1001 is no list's first size, so the good-fit search alone would never look where such a block was freed.
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
    fn a_gap_without_room_for_the_worst_padding_is_used_where_it_happens_to_be_aligned() {
        let mut checked = Checked::<4>::new(33);
        assert_eq!(checked.allocate(32, 8, 0).map(|block| block.start), Ok(0));
        assert!(checked.free(0));
        assert_eq!(checked.allocate(32, 8, 7).map(|block| block.start), Ok(1));
    }

    #[test]
    fn the_padding_before_an_aligned_block_stays_free() {
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
                    assert!((class.0 as usize) < LISTS && sizes(class.fl(), class.sl()).contains(&u64::from(granules)), "{granules}");
                    if granules > 0 {
                        let holding = Class::holding(granules);
                        assert_eq!(sizes(holding.fl(), holding.sl()).start, good_fit(u64::from(granules)), "{granules}");
                    }
                }
            }
        }
    }
}
