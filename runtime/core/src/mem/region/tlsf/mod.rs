//! The arithmetic of a two-level segregated fit allocator: which granules of a region are free,
//! decided in constant time.
//!
//! It owns no memory and touches none: it hands out ranges of granules (cache lines) by number. Its
//! bookkeeping lies in fixed arrays beside the managed memory, which may be uncached, or belong to
//! a device at the moment.
//!
//! # The picture
//!
//! ```text
//! granule  0                                                   granules
//!          | gap | block a | block b |   gap   | block c | gap |
//!           `--- a.gap = 2  b.gap = 0 `-------- c.gap     `---- end.gap
//! ```
//!
//! Free neighbours are always merged, so there is at most one gap before each live block and one
//! after the last. A gap needs no node of its own: it is a field of the block behind it, its
//! *owner*. The nodes needed are
//!
//! ```text
//! blocks   one for each live block, with the gap before it
//! +    1   the end of the memory, with the gap after the last block
//! ```
//!
//! and they cannot run out before the live blocks do. Blocks and the end form a ring in the order
//! of their addresses.
//!
//! # The lists
//!
//! Gaps are kept in lists by size. The first level (`fl`) doubles the size. The second (`sl`) cuts
//! each doubling into [`SL_COUNT`](class::SL_COUNT) equal steps. One bit per list says whether it
//! holds a gap, so that two `trailing_zeros` find the first list that is sure to fit.
//! [`Tlsf::allocate`] and [`Tlsf::free`] have no loop: they are O(1), whatever is live.
//!
//! # The good-fit bound
//!
//! Every gap of the list found must fit, so a search rounds up to the next step. So an allocation
//! fails with [`Full::Memory`] only if no gap is as large as `granules + align - 1`, rounded up.
//! The rounding adds less than 1/[`SL_COUNT`](class::SL_COUNT), and nothing below `2 * SL_COUNT`. A
//! smaller gap that would do is taken if it comes first in its list: see [`Tlsf::search`]. The
//! place where a block of the same size was just freed comes first.
//!
//! # References
//! M. Masmano, I. Ripoll, A. Crespo, J. Real: "TLSF: a new dynamic memory allocator for real-time
//! systems", ECRTS 2004. The names `fl`, `sl`, `insert`, `remove`, `split` and `merge` are theirs.

mod class;
mod lists;
mod node;
mod tests;

use class::{Class, FL_COUNT, LISTS};
pub(crate) use node::Node;
use node::{END, NIL};

/// A range of granules that was handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// Names the block to [`Tlsf::free`]. Below the number of nodes, and used again after the block
    /// was freed.
    pub(crate) id: u16,
    /// The first granule.
    pub(crate) start: u32,
    /// How many granules: what was asked for.
    pub(crate) len: u32,
}

/// What ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// As many blocks are live as there are nodes for.
    Blocks,
    /// No gap is sure to fit (or the request is for no granules, or for an alignment that is no
    /// power of two).
    Memory,
}

/// The allocator of at most `BLOCKS` blocks, a number in the program's text.
#[cfg(test)]
pub(crate) type Fixed<const BLOCKS: usize> = Tlsf<[Node; BLOCKS]>;

/// The most blocks that there can be. Links are 16 bits wide and two of their values are taken;
/// 16384 keeps the table at 256 KiB.
pub(crate) const MAX_BLOCKS: usize = 16_384;

/// The allocator, with a node for each block: an array ([`Fixed`]), or a slice, whose length is
/// known at run time. See the [module](self).
// The nodes come last, at the same place whether they are an array or a slice.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Tlsf<N: ?Sized> {
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
    nodes: N,
}

#[cfg(test)]
impl<const BLOCKS: usize> Fixed<BLOCKS> {
    /// An allocator of no memory, which refuses everything until [`init`](Self::init).
    pub(crate) const fn new() -> Self {
        const { assert!(1 <= BLOCKS && BLOCKS <= MAX_BLOCKS, "an arena has 1 to 16384 blocks") };
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
}

impl<N: AsRef<[Node]> + AsMut<[Node]> + ?Sized> Tlsf<N> {
    /// Forgets every block and starts again with one gap of `granules`. The only loop, over the
    /// nodes, is here. Whatever the fields held before does not matter.
    pub(crate) fn init(&mut self, granules: u32) {
        self.fl_bitmap = 0;
        self.sl_bitmap.fill(0);
        self.heads.fill(NIL);
        self.spare = 0;
        self.live = 0;
        self.end = Node { start: granules, ..Node::EMPTY_END };
        for (node, next_free) in self.nodes.as_mut().iter_mut().zip(1..) {
            *node = Node { next_free, ..Node::SPARE };
        }
        self.set_gap(END, granules);
    }

    /// A block of `granules` at a `start` with `(phase + start) % align == 0`. `align` is a power
    /// of two, in granules like `phase`, which is how far granule 0 is past an aligned address.
    ///
    /// # Errors
    /// [`Full::Blocks`] if all nodes are live, else [`Full::Memory`] within the [good-fit
    /// bound](self).
    pub(crate) fn allocate(
        &mut self,
        granules: u32,
        align: u32,
        phase: u32,
    ) -> Result<Block, Full> {
        if self.live() == self.nodes.as_ref().len() {
            return Err(Full::Blocks);
        }
        if granules == 0 || !align.is_power_of_two() {
            return Err(Full::Memory);
        }
        let (owner, pad) = self.search(granules, align - 1, phase).ok_or(Full::Memory)?;
        Ok(self.split(owner, pad, granules))
    }

    /// Takes a block back and merges it with the gaps around it. An `id` that is not live changes
    /// nothing and gives `false`.
    pub(crate) fn free(&mut self, id: u16) -> bool {
        let is_live = self.nodes.as_ref().get(usize::from(id)).is_some_and(|node| node.next != NIL);
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
    pub(crate) fn start_len(&self, id: u16) -> Option<(u32, u32)> {
        let node = self.nodes.as_ref().get(usize::from(id)).filter(|node| node.next != NIL)?;
        let next = self.node(node.next);
        Some((node.start, next.start - next.gap - node.start))
    }

    /// The owner of a gap that fits, and how many granules to leave free before the block. Only the
    /// first gap of three lists is tried: the size's own, the first that is sure to fit without
    /// padding, and the first that is sure to fit.
    fn search(&self, granules: u32, align_mask: u32, phase: u32) -> Option<(u16, u32)> {
        let padded = granules.saturating_add(align_mask);
        let fit = |class| self.fit(class, granules, align_mask, phase);
        fit(Class::of(granules))
            .or_else(|| fit(self.first_from(Class::holding(granules))))
            .or_else(|| fit(self.first_from(Class::holding(padded))))
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

    /// Makes a block of a part of `owner`'s gap: `pad` granules stay free before it, and `owner`
    /// keeps what is left behind it.
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

    /// The block or the end that a link leads to. Never asked for [`NIL`].
    fn node(&self, link: u16) -> Node {
        *self.nodes.as_ref().get(usize::from(link)).unwrap_or(&self.end)
    }

    fn node_mut(&mut self, link: u16) -> &mut Node {
        self.nodes.as_mut().get_mut(usize::from(link)).unwrap_or(&mut self.end)
    }
}
