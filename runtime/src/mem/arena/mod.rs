//! Blocks of any size over one carve, for one thread.

pub(crate) mod tlsf;

use crate::{
    mem::{
        Carve, CpuBuf,
        buf::{Chunk, OneThread, Owner},
        pool::LocalParts,
        region::Block,
        span::Span,
    },
    trace::{self, Event, Site},
    types::{Align, Error, Refused, Result},
};
use core::{cell::RefCell, fmt};
use tlsf::{Fixed, Full};

/// Blocks of any size, up to `BLOCKS` at once (1 to 16,384), in O(1): two-level segregated fit. All
/// of its bookkeeping is in this value and none in the memory it manages, which may be uncached, or
/// a device's.
///
/// It belongs to one thread, and so do its buffers; for several threads there is
/// [`Pool`](crate::Pool). A block is whole cache lines. Good fit, not best fit: an allocation is
/// sure to succeed where a free run is as long as the request rounded up by 1/32.
///
/// ```
/// use contigo::{Align, Arena, Region, sim::SimBoard};
/// let board = SimBoard::new(1);
/// let region = Region::new(board.memory(1 << 20)?)?;
/// let arena = Arena::<64>::new(region.carve(256 * 1024, Align::PAGE)?)?;
/// let header = arena.take(100)?;
/// let tensor = arena.take_aligned(3 * 224 * 224, Align::DLPACK)?;
/// assert_eq!((header.len_bytes(), tensor.len_bytes()), (128, 150_528)); // whole lines
/// # Ok::<(), contigo::Error>(())
/// ```
pub struct Arena<'r, const BLOCKS: usize> {
    carve: Carve<'r>,
    line: Align,
    /// The device's address of the carve's first byte, in lines: what alignments count from.
    phase: u64,
    blocks: RefCell<Fixed<BLOCKS>>,
    parts: LocalParts<BLOCKS>,
}

impl<'r, const BLOCKS: usize> Arena<'r, BLOCKS> {
    /// An arena over all of `carve`.
    ///
    /// # Errors
    /// The carve comes back with [`Error::OutOfRange`] where it has 2³² lines or more.
    pub fn new(carve: Carve<'r>) -> Result<Self, Refused<Carve<'r>>> {
        let state = carve.block().state();
        let line = state.line;
        let Ok(granules) = u32::try_from(carve.len_bytes() / line.bytes()) else {
            let error = Error::OutOfRange { start: 0, end: carve.len_bytes(), len_bytes: u32::MAX as usize };
            return Err(Refused::new(error, carve));
        };
        let mut blocks = Fixed::new();
        blocks.init(granules);
        let phase = state.mapping.base.plus(carve.span().start).raw() / line.bytes() as u64;
        Ok(Self { carve, line, phase, blocks: RefCell::new(blocks), parts: LocalParts::new() })
    }

    /// A block of at least `len_bytes`, in whole lines. It holds whatever its last owner left.
    ///
    /// # Errors
    /// [`Error::Exhausted`] where no free run is long enough, [`Error::TooMany`] where `BLOCKS`
    /// blocks are out.
    #[inline]
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn take(&self, len_bytes: usize) -> Result<CpuBuf<'_, OneThread>> {
        self.take_aligned(len_bytes, self.line)
    }

    /// As [`take`](Self::take), at an address that is a multiple of `align` for the device.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn take_aligned(&self, len_bytes: usize, align: Align) -> Result<CpuBuf<'_, OneThread>> {
        let capacity_bytes = self.carve.len_bytes();
        let refusal = Error::Exhausted { need_bytes: len_bytes, capacity_bytes };
        let lines = |bytes: usize| self.line.round_up(bytes).and_then(|bytes| u32::try_from(bytes / self.line.bytes()).ok());
        let (granules, align) = (lines(len_bytes).ok_or(refusal)?, lines(align.max(self.line).bytes()).ok_or(refusal)?);
        // Only the part below `align` matters, and that is a u32.
        let phase = u32::try_from(self.phase & u64::from(align - 1)).map_err(|_| refusal)?;
        // Nobody holds the other end: nothing is called while it is borrowed, and the arena stays
        // on one thread.
        let mut blocks = self.blocks.try_borrow_mut().map_err(|_| Error::Busy)?;
        let block = blocks.allocate(granules, align, phase).map_err(|full| match full {
            Full::Blocks => Error::TooMany { what: "blocks out of this arena", most: BLOCKS as u64 },
            Full::Memory => refusal,
        })?;
        drop(blocks);
        let line_bytes = self.line.bytes();
        let span = Span::new(self.carve.span().start + block.start as usize * line_bytes, block.len as usize * line_bytes);
        trace::happened(Event::Take { slot: block.id.into(), len_bytes: span.len }, Site::here());
        Ok(CpuBuf::new(Chunk::new(self, u32::from(block.id), span)))
    }

    /// How many blocks are out.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.blocks.try_borrow().map_or(BLOCKS, |blocks| blocks.live())
    }

    /// How many bytes it manages.
    #[must_use]
    pub const fn capacity_bytes(&self) -> usize {
        self.carve.len_bytes()
    }
}

impl<const BLOCKS: usize> Owner for Arena<'_, BLOCKS> {
    fn block(&self) -> &dyn Block {
        self.carve.block()
    }
    fn release(&self, token: u32) {
        if self.parts.last_is_gone(token)
            && let Ok(id) = u16::try_from(token)
        {
            // Before the borrow: a listener is the user's code, and may drop a buffer of this
            // arena.
            trace::happened(Event::Release { slot: id.into() }, Site::NONE);
            if let Ok(mut blocks) = self.blocks.try_borrow_mut() {
                blocks.free(id);
            }
        }
    }
    fn share(&self, token: u32) -> Result<()> {
        self.parts.one_more(token)
    }
}

impl<const BLOCKS: usize> Drop for Arena<'_, BLOCKS> {
    fn drop(&mut self) {
        if self.taken() != 0 {
            // As in `Pool`: a forgotten block keeps the region's memory.
            self.carve.block().state().share();
        }
    }
}

impl<const BLOCKS: usize> fmt::Debug for Arena<'_, BLOCKS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arena").field("capacity_bytes", &self.capacity_bytes()).field("taken", &self.taken()).finish()
    }
}
