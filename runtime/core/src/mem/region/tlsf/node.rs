//! A node of the ring, and the links between nodes.

/// A link to no node. As `next` it marks a node that is no live block.
pub(super) const NIL: u16 = u16::MAX;
/// The link to the end of the memory. Like any number that belongs to no block, it leads to
/// [`Tlsf::end`](super::Tlsf::end).
pub(super) const END: u16 = u16::MAX - 1;

/// One live block, or the end, and the gap before it. Its length is the start of `next`'s gap minus
/// its own start. A node has 16 bytes, four to a line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    /// The first granule; of the end, the number of granules.
    pub(super) start: u32,
    /// Free granules right before `start`.
    pub(super) gap: u32,
    /// The block before this one in memory, or the end.
    pub(super) prev: u16,
    /// The block after this one in memory, or the end; [`NIL`] where no block is live.
    pub(super) next: u16,
    /// The owner before this one in the gap's list.
    pub(super) prev_free: u16,
    /// The owner after this one in the gap's list; of a node that is not live, the next such node.
    pub(super) next_free: u16,
}

impl Node {
    /// No live block.
    pub(super) const SPARE: Self =
        Self { start: 0, gap: 0, prev: NIL, next: NIL, prev_free: NIL, next_free: NIL };
    /// The end, alone in the ring, of a memory of no granules.
    pub(super) const EMPTY_END: Self = Self { prev: END, next: END, ..Self::SPARE };
}
