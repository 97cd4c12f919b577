//! The limits of a region, and where the parts of its control block lie. Arithmetic only: no memory
//! is touched here.

use super::slots::{WORD_SLOTS, words_for};
use crate::{
    mem::arena::tlsf::{MAX_BLOCKS, Node, Tlsf},
    types::{
        Error, Result,
        atomic::{AtomicU8, AtomicUsize},
    },
};
use core::alloc::{Layout, LayoutError};

/// Words of a pool's bitmap come by the cache line, so that two pools share none: eight of 64 bits.
pub(super) const GROUP_WORDS: usize = 64 / size_of::<usize>();
/// How many slots a line of a bitmap has: 504 of 64 bits.
const GROUP_SLOTS: usize = GROUP_WORDS * WORD_SLOTS;
/// More than any program's: the control block stays below 5 MiB.
const MAX_SLOTS: usize = 1 << 20;
const MAX_POOLS: usize = 4096;

/// How much a region keeps account of. It is said once, when the region is opened, because it
/// decides how large the control block is. A refusal names the limit that was reached
/// ([`Error::TooMany`]).
///
/// ```
/// use contigo::own::Limits;
/// let few = Limits { allocations: 16, ..Limits::default() };
/// assert!(few.control_bytes()? < Limits::default().control_bytes()?);
/// # Ok::<(), contigo::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Limits {
    /// How many buffers of [`Region::alloc`](super::Region::alloc) and pools there can be at once,
    /// together: 1 to 16,384. Each is 17 bytes of the control block.
    pub allocations: usize,
    /// How many of those may be pools: 1 to 4,096. More than `allocations` are no harm.
    pub pools: usize,
    /// How many slots all pools have together: 1 to 1,048,576. Each is about a byte.
    pub slots: usize,
}

impl Default for Limits {
    /// 1,024 allocations, 32 of them pools, and 8,192 slots: 54 KiB, of which a small program
    /// touches half.
    fn default() -> Self {
        Self { allocations: 1024, pools: 32, slots: 8192 }
    }
}

impl Limits {
    /// How many bytes of memory [`Region::with_memory`](super::Region::with_memory) needs, beside
    /// the size of the backend's own value.
    ///
    /// # Errors
    /// [`Error::Argument`]: a limit is 0, or more than there can be.
    pub fn control_bytes(&self) -> Result<usize> {
        Ok(Plan::new(self, Layout::new::<()>())?.size_bytes() + Plan::ALIGN)
    }
}

/// Where each part of a control block begins, in bytes from the beginning of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) limits: Limits,
    /// How many lines of bitmaps there are.
    pub(super) groups: usize,
    pub(super) blocks: usize,
    pub(super) bitmaps: usize,
    pub(super) returned: usize,
    pub(super) parts: usize,
    pub(super) cells: usize,
    pub(super) words: usize,
    pub(super) slot_parts: usize,
    pub(super) backend: usize,
    layout: Layout,
}

impl Plan {
    /// What every part is aligned to at most, and the block itself: a cache line.
    pub(super) const ALIGN: usize = 64;

    pub(super) fn new(limits: &Limits, backend: Layout) -> Result<Self> {
        let rows = [
            ("allocations", limits.allocations, MAX_BLOCKS),
            ("pools", limits.pools, MAX_POOLS),
            ("slots", limits.slots, MAX_SLOTS),
            ("the alignment of the backend", backend.align(), 4096),
        ];
        for (name, value, max) in rows {
            if value == 0 || value > max {
                return Err(Error::Argument { name, value: value as u64, min: 1, max: max as u64, multiple_of: 1 });
            }
        }
        // All bounded above: no sum overflows, also with 32 bits.
        Self::lay_out(*limits, backend).map_err(|_| Error::Exhausted { need_bytes: usize::MAX, capacity_bytes: 0 })
    }

    fn lay_out(limits: Limits, backend: Layout) -> Result<Self, LayoutError> {
        // A group that one pool has, no other has: so each pool may leave up to one line unused.
        let groups = limits.slots.div_ceil(GROUP_SLOTS) + limits.pools;
        let all_words = groups * GROUP_WORDS;
        let start = Layout::new::<super::control::Control>();
        let (layout, blocks) = start.extend(table(limits.allocations)?)?;
        let (layout, bitmaps) = layout.extend(table(limits.pools)?)?;
        let (layout, returned) =
            layout.extend(Layout::array::<AtomicUsize>((limits.allocations + limits.pools).div_ceil(usize::BITS as usize))?)?;
        let (layout, cells) = layout.extend(Layout::array::<super::cell::Cell>(limits.pools)?)?;
        let (layout, words) = layout.extend(Layout::array::<AtomicUsize>(all_words)?.align_to(Self::ALIGN)?)?;
        let (layout, parts) = layout.extend(Layout::array::<AtomicU8>(limits.allocations)?)?;
        let (layout, slot_parts) = layout.extend(Layout::array::<AtomicU8>(all_words * usize::BITS as usize)?)?;
        let (layout, backend) = layout.extend(backend)?;
        Ok(Self { limits, groups, blocks, bitmaps, returned, parts, cells, words, slot_parts, backend, layout: layout.pad_to_align() })
    }

    pub(super) const fn size_bytes(&self) -> usize {
        self.layout.size()
    }

    pub(super) const fn align_bytes(&self) -> usize {
        self.layout.align()
    }
}

/// An allocator's table with `nodes` nodes.
fn table(nodes: usize) -> Result<Layout, LayoutError> {
    let (layout, _) = Layout::new::<Tlsf<[Node; 0]>>().extend(Layout::array::<Node>(nodes)?)?;
    Ok(layout.pad_to_align())
}

/// How many lines of bitmaps a pool of `slots` needs.
pub(super) fn groups_for(slots: usize) -> usize {
    words_for(slots).div_ceil(GROUP_WORDS)
}
