//! A piece of a region, before it becomes a buffer, a pool or an arena.

use super::{Block, Region};
use crate::{
    mem::{
        Backend,
        buf::{Chunk, CpuBuf, Owner},
        span::Span,
    },
    types::Error,
};
use core::{fmt, mem::ManuallyDrop};

/// A piece of a [`Region`], in whole cache lines. It owns the bytes, and gives no view and no
/// address: make it a buffer ([`into_buf`](Self::into_buf)), a [`Pool`](crate::Pool), a
/// [`LocalPool`](crate::LocalPool) or an [`Arena`](crate::Arena).
#[must_use = "carved bytes stay carved"]
pub struct Carve<'r> {
    region: &'r dyn CarveOwner,
    span: Span,
}

/// A region as its carves see it: a block, and an owner of buffers.
pub(crate) trait CarveOwner: Block {
    fn chunk(&self, span: Span) -> Chunk<'_>;
}

impl<B: Backend> CarveOwner for Region<B> {
    fn chunk(&self, span: Span) -> Chunk<'_> {
        Chunk::new(self, 0, span)
    }
}

impl<'r> Carve<'r> {
    pub(super) fn new<B: Backend>(region: &'r Region<B>, span: Span) -> Self {
        Self { region, span }
    }

    /// How many bytes there are: what was asked for, rounded up to whole lines.
    #[must_use]
    pub const fn len_bytes(&self) -> usize {
        self.span.len
    }

    /// One buffer over all of it. It goes back to nobody: a carve is a plan for the region's whole
    /// life.
    pub fn into_buf(self) -> CpuBuf<'r> {
        // The count that stands for this carve now stands for the buffer.
        let this = ManuallyDrop::new(self);
        CpuBuf::new(this.region.chunk(this.span))
    }

    pub(crate) fn block(&self) -> &'r dyn Block {
        self.region
    }

    pub(crate) const fn span(&self) -> Span {
        self.span
    }
}

impl Drop for Carve<'_> {
    fn drop(&mut self) {
        self.region.state().release();
    }
}

impl<B: Backend> Owner for Region<B> {
    fn block(&self) -> &dyn Block {
        self
    }
    fn release(&self, _token: u32) {
        self.state().release();
    }
    fn share(&self, _token: u32) -> Result<(), Error> {
        self.state().one_more()
    }
}

impl fmt::Debug for Carve<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Carve").field("start", &self.span.start).field("len_bytes", &self.span.len).finish()
    }
}
