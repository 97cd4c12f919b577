//! The core of every buffer: some bytes of a block, and the owner that gets them back.

#[cfg(feature = "sim")]
use crate::{mem::Holder, types::Bus};
use crate::{
    mem::{
        Backend, Port,
        region::{Block, State},
        span::Span,
    },
    types::{Align, Direction, Error},
};

/// Who hands out bytes and takes them back: a region, a pool, an arena.
pub(crate) trait Owner {
    /// The block that the bytes are in.
    fn block(&self) -> &dyn Block;
    /// One handle to `token`'s bytes is gone. The last one frees them.
    fn release(&self, token: u32);
    /// One handle more to `token`'s bytes.
    fn share(&self, token: u32) -> Result<(), Error>;
}

/// Some bytes of a block, owned by exactly one handle.
///
/// INVARIANT: `extent` lies inside the block, and no other chunk holds any byte of it. The makers
/// of chunks guarantee it: `State::bump`, a pool's bitmap, an arena's blocks, and `split`, which
/// divides one chunk into two.
// Aligned to 4, so that the four bytes behind `token` are not lost: a buffer keeps what else it
// knows there, and an operand has 128 bytes (`Operand`).
#[repr(C, packed(4))]
pub(crate) struct Chunk<'p> {
    pub(crate) owner: &'p dyn Owner,
    pub(crate) extent: Span,
    pub(crate) token: u32,
}

impl<'p> Chunk<'p> {
    pub(crate) fn new(owner: &'p dyn Owner, token: u32, extent: Span) -> Self {
        Self { owner, token, extent }
    }

    pub(crate) fn state(&self) -> &'p State {
        self.owner.block().state()
    }

    pub(crate) fn backend(&self) -> &'p dyn Backend {
        self.owner.block().backend()
    }

    pub(crate) fn line(&self) -> Align {
        self.state().line
    }

    /// Tells a simulated board that the devices behind `port`, or any of its devices, may touch
    /// `span`. It counts what they touch beside it. Other memory hears nothing, and without the
    /// feature `sim` this is nothing.
    #[inline(always)]
    pub(crate) fn give_to_device(&self, span: Span, port: Option<&Port>, direction: Direction) {
        #[cfg(feature = "sim")]
        tell(self.owner, span, Holder::Device { port, writes: direction.device_writes() });
        #[cfg(not(feature = "sim"))]
        let _ = (span, port, direction);
    }

    /// Tells it that no device may touch `span` any more.
    #[inline(always)]
    pub(crate) fn take_from_device(&self, span: Span) {
        #[cfg(feature = "sim")]
        tell(self.owner, span, Holder::Nobody);
        #[cfg(not(feature = "sim"))]
        let _ = span;
    }
}

/// Apart from the fast path, and with the owner by value: a reference to the chunk would keep a
/// job's buffers in memory where they could be in registers.
#[cfg(feature = "sim")]
#[cold]
#[inline(never)]
fn tell(owner: &dyn Owner, span: Span, holder: Holder<'_>) {
    let block = owner.block();
    if matches!(block.state().mapping.bus, Bus::Sim(_)) {
        block.backend().held_by(span.range(), holder);
    }
}
