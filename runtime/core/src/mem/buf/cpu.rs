#![allow(unsafe_code, reason = "views are made here, and nowhere else")]
//! The CPU's side of a buffer.

use super::Chunk;
use crate::mem::block::Block;
use crate::mem::span::{Part, Span};
use crate::trace::{self, Event, Site};
use crate::types::{Bus, Error, Refused};
use core::mem::ManuallyDrop;
use core::ops::RangeBounds;
use core::ptr::NonNull;
use core::{fmt, mem};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// A buffer that the CPU owns: it has views, and no address. Dropping it gives it back to its pool.
///
/// No device holds its address, so references into it are ordinary references. To give a device
/// access, give it away: [`to_device`](Self::to_device), [`from_device`](Self::from_device) or
/// [`in_out`](Self::in_out) make it an [`Operand`](super::Operand) of a job, and no view outlives
/// that:
///
/// ```compile_fail,E0505
/// # use contigo::{CpuBuf, Operand};
/// fn race(mut buf: CpuBuf) {
///     let view = buf.view_mut::<u8>().unwrap();
///     let operand = buf.to_device(..); // error: `buf` is borrowed
///     view[0] = 1;
/// }
/// ```
#[must_use = "dropping a buffer gives it back"]
pub struct CpuBuf {
    chunk: Chunk,
    /// The bytes that views show: the extent, or the slice of it that was asked for.
    span: Span,
    /// Memory has all of the chunk's bytes: a device behind a port that does not snoop had them,
    /// and the CPU has only read them since. So the next hand-over has nothing to clean.
    is_clean: bool,
}

impl CpuBuf {
    /// A buffer over all of `chunk`, which the CPU may have written.
    pub(crate) fn new(chunk: Chunk) -> Self {
        let span = chunk.extent;
        Self { chunk, span, is_clean: false }
    }

    pub(super) fn back(chunk: Chunk, span: Span, is_clean: bool) -> Self {
        Self { chunk, span, is_clean }
    }

    /// How many bytes views show.
    #[must_use]
    pub const fn len_bytes(&self) -> usize {
        self.span.len
    }

    /// The offset of the first byte shown, from the beginning of the region.
    #[must_use]
    pub const fn offset_bytes(&self) -> usize {
        self.span.start
    }

    /// All of it as a slice of `Elem`: any type for which every bit pattern is a value (zerocopy's
    /// `FromBytes`).
    ///
    /// # Errors
    /// [`Error::View`] if the length is no multiple of the element, or the address is not aligned
    /// for it.
    pub fn view<Elem: FromBytes + Immutable>(&self) -> Result<&[Elem], Error> {
        <[Elem]>::ref_from_bytes(self.bytes()).map_err(|_| self.no_view::<Elem>())
    }

    /// As [`view`](Self::view), to write.
    ///
    /// # Errors
    /// As [`view`](Self::view).
    pub fn view_mut<Elem: FromBytes + IntoBytes>(&mut self) -> Result<&mut [Elem], Error> {
        let refusal = self.no_view::<Elem>();
        <[Elem]>::mut_from_bytes(self.bytes_mut()).map_err(|_| refusal)
    }

    /// The bytes `range` as a slice of `Elem`.
    ///
    /// # Errors
    /// [`Error::OutOfRange`], [`Error::View`].
    pub fn view_at<Elem: FromBytes + Immutable>(
        &self,
        range: impl RangeBounds<usize>,
    ) -> Result<&[Elem], Error> {
        let part = self.span.part(Part::of(range))?;
        let bytes = self
            .bytes()
            .get(part.start - self.span.start..)
            .and_then(|rest| rest.get(..part.len))
            .unwrap_or_default();
        <[Elem]>::ref_from_bytes(bytes).map_err(|_| no_view::<Elem>(part.len))
    }

    /// As [`view_at`](Self::view_at), to write.
    ///
    /// # Errors
    /// As [`view_at`](Self::view_at).
    pub fn view_at_mut<Elem: FromBytes + IntoBytes>(
        &mut self,
        range: impl RangeBounds<usize>,
    ) -> Result<&mut [Elem], Error> {
        let part = self.span.part(Part::of(range))?;
        let first = part.start - self.span.start;
        let bytes = self
            .bytes_mut()
            .get_mut(first..)
            .and_then(|rest| rest.get_mut(..part.len))
            .unwrap_or_default();
        <[Elem]>::mut_from_bytes(bytes).map_err(|_| no_view::<Elem>(part.len))
    }

    /// The CPU's address of the first byte shown, for code that is not Rust: no reference is made.
    /// Valid until this buffer is sliced, given away or dropped; write through it only while
    /// no view exists, and ask for it anew after a device had the buffer.
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.will_be_written();
        self.start().as_ptr()
    }

    /// Copies `source` to the beginning of the buffer, and counts the copy. It is the runtime's
    /// only one, for data that already lies elsewhere. New data is better made directly in
    /// [`view_mut`](Self::view_mut).
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if it does not fit.
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn copy_from_slice(&mut self, source: &[u8]) -> Result<(), Error> {
        let refusal = Error::OutOfRange { start: 0, end: source.len(), len_bytes: self.span.len };
        let (event, site) = (Event::CopyBytes { len_bytes: source.len() }, Site::here());
        let target = self.bytes_mut().get_mut(..source.len()).ok_or(refusal)?;
        trace::begins(event, site);
        target.copy_from_slice(source);
        trace::happened(event, site);
        self.chunk.state().counters.bytes_copied.add(source.len());
        Ok(())
    }

    /// The same buffer, showing only `range` of what it shows now. All of it stays claimed until it
    /// is dropped.
    ///
    /// # Errors
    /// [`Error::OutOfRange`]; the buffer comes back as it was.
    pub fn slice(mut self, range: impl RangeBounds<usize>) -> Result<Self, Refused<Self>> {
        match self.span.part(Part::of(range)) {
            Ok(span) => {
                self.span = span;
                Ok(self)
            }
            Err(error) => Err(Refused::new(error, self)),
        }
    }

    /// The same buffer, showing all of it again: the reverse of [`slice`](Self::slice).
    pub fn whole(mut self) -> Self {
        self.span = self.chunk.extent;
        self
    }

    /// Splits the buffer in two at byte `mid` of what it shows: one can belong to a device while
    /// the other belongs to the CPU. Bytes that it did not show go with the side they lie on. The
    /// slot is free again when both are dropped.
    ///
    /// Cut at a multiple of the cache line: a device on a non-coherent port cannot write to either
    /// side of a line that both share ([`Error::SharedLine`]).
    ///
    /// # Errors
    /// [`Error::OutOfRange`], [`Error::TooManyParts`]; the buffer comes back as it was.
    pub fn split_at(self, mid: usize) -> Result<(Self, Self), Refused<Self>> {
        let cut = match self.span.part(Part::of(..mid)) {
            Ok(left) => left.end(),
            Err(error) => return Err(Refused::new(error, self)),
        };
        if let Err(error) = self.chunk.share() {
            return Err(Refused::new(error, self));
        }
        let (extent, span) = (self.chunk.extent, self.span);
        let chunk = self.into_chunk();
        let half = |extent, span| Self::back(chunk.with_extent(extent), span, false);
        let left = half(Span::new(extent.start, cut - extent.start), Span::new(span.start, mid));
        let right = half(Span::new(cut, extent.end() - cut), Span::new(cut, span.len - mid));
        Ok((left, right))
    }

    pub(super) fn chunk(&self) -> &Chunk {
        &self.chunk
    }

    pub(super) const fn span(&self) -> Span {
        self.span
    }

    pub(super) const fn is_clean(&self) -> bool {
        self.is_clean
    }

    /// Notes that the CPU may write it from here on.
    pub(crate) const fn will_be_written(&mut self) {
        self.is_clean = false;
    }

    /// The chunk, without giving it back.
    pub(super) fn into_chunk(self) -> Chunk {
        let this = ManuallyDrop::new(self);
        this.chunk.with_extent(this.chunk.extent)
    }

    /// The CPU's address of the block.
    pub(crate) fn block_start(&self) -> NonNull<u8> {
        self.chunk.state().mapping.cpu
    }

    /// The bus on which the block's addresses are valid.
    pub(crate) fn bus(&self) -> Bus {
        self.chunk.state().mapping.bus
    }

    /// The bytes that views show, if the buffer is of this block.
    pub(crate) fn span_in(&self, block: &dyn Block) -> Option<Span> {
        core::ptr::eq(self.chunk.state(), block.state()).then_some(self.span)
    }

    /// The CPU's address of the first byte shown.
    pub(crate) fn start(&self) -> NonNull<u8> {
        // SAFETY: a chunk's extent, and so its span, lies inside the block, and the block is one
        // mapping.
        unsafe { self.chunk.state().mapping.cpu.add(self.span.start) }
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: 1. The span lies inside the mapping, which is initialised (`Backend`, 2), and
        // lives as long as this buffer, whose unit of the region's count keeps it
        // (`region::control`). The view borrows `self`. 2. No other handle holds these bytes
        // (`Chunk`'s invariant), and `&self` excludes `view_mut`. 3. No device was given their
        // address since they came back: only a `DevBuf` gives it out. A `DevBuf` becomes this only
        // after the device has stopped: its driver reported that (`Driver`, 2), or the caller of
        // `hand_over` guarantees it.
        unsafe { NonNull::slice_from_raw_parts(self.start(), self.span.len).as_ref() }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self.will_be_written();
        // SAFETY: as in `bytes`, and `&mut self` makes the borrow exclusive.
        unsafe { NonNull::slice_from_raw_parts(self.start(), self.span.len).as_mut() }
    }

    fn no_view<Elem>(&self) -> Error {
        no_view::<Elem>(self.span.len)
    }
}

fn no_view<Elem>(len_bytes: usize) -> Error {
    Error::View {
        len_bytes,
        element_bytes: mem::size_of::<Elem>(),
        align_bytes: mem::align_of::<Elem>(),
    }
}

impl Drop for CpuBuf {
    fn drop(&mut self) {
        // SAFETY: `drop` runs once, and no view is alive.
        unsafe { self.chunk.release() };
    }
}

// SAFETY: the owner is a control block, which is atomics and an allocator behind a lock. From
// another thread a buffer only calls `release`, `share` and a sync of its owner. A release may be
// the last use of a control block: it then drops the backend on that thread, which a `Backend`
// allows (it is `Send`), and no other thread has the control block any more. The bytes are reached
// through one handle only.
unsafe impl Send for CpuBuf {}
// SAFETY: `&CpuBuf` gives `&[Elem]` and numbers; see `Send` for the rest.
unsafe impl Sync for CpuBuf {}

impl fmt::Debug for CpuBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CpuBuf")
            .field("offset_bytes", &self.span.start)
            .field("len_bytes", &self.span.len)
            .finish()
    }
}
