#![allow(unsafe_code, reason = "a buffer goes to any thread, and gives its bytes back")]
//! The device's side of a buffer.

use super::{Chunk, Cleaning, CpuBuf};
use crate::mem::span::Span;
use crate::mem::{Handle, Port, WrongAccesses};
use crate::trace::{self, Event, Site};
use crate::types::{Bus, DevAddr, Direction, Error, Refused, barrier};
use core::fmt;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;

/// One operand as a driver sees it: where the device finds it. A plain number: it gives no right to
/// the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct DevSlice {
    /// The bus address of the operand's first byte. On a bus of objects it is an object's number
    /// and the offset in it ([`Bus::Objects`]).
    pub addr: DevAddr,
    /// Bytes to add beside an opaque handle; 0 if `addr` holds everything. A driver of registers
    /// can ignore it: its port has addresses, and there it is 0.
    pub offset_bytes: usize,
    /// How many bytes the job may touch.
    pub len_bytes: usize,
}

impl DevSlice {
    /// Fills an array before the real slices are known. No job sees it.
    pub(crate) const EMPTY: Self = Self { addr: DevAddr(u64::MAX), offset_bytes: 0, len_bytes: 0 };
}

/// A buffer that stays on the device's side between two jobs: it has an address, and no view.
/// [`wait_device`](crate::Queue::wait_device) returns it. So one accelerator's output is the next
/// one's input, with no cache maintenance and no CPU between them.
///
/// No job uses it while you hold it: dropping it gives it back to its pool, unread.
/// [`into_cpu`](Self::into_cpu) makes it the CPU's again. A buffer from [`CpuBuf::hand_over`] may
/// be in use: the caller of `hand_over` makes sure that the device has stopped first.
///
/// ```compile_fail,E0599
/// # use contigo::DevBuf;
/// fn peek(buf: &DevBuf) {
///     buf.view::<u8>(); // error: no such method
/// }
/// ```
#[must_use = "dropping a buffer gives it back"]
pub struct DevBuf {
    chunk: Chunk,
    /// Does the port of the last hand-over snoop?
    pub(super) coherent: bool,
    pub(super) history: History,
    /// For an operand, which has room for it here: what the next device does with it.
    pub(super) direction: Direction,
    /// For an operand: does the buffer have all bytes that it asks for?
    pub(super) inside: bool,
    /// The bytes that the buffer's views showed, and will show again.
    cpu_span: Span,
    /// The bytes that were handed over first: no other byte may go into a job.
    span: Span,
    /// The bytes that were handed over last: all of `span`, or a part of it.
    last: Span,
    /// Where the device of the last hand-over finds the first byte of `last`.
    addr: DevAddr,
    /// The bytes that devices may have written since the first hand-over, or since the last change
    /// between a port that snoops and one that does not; none if they only read. (Not an `Option`,
    /// which is larger: see `Operand`.)
    pub(super) written: Span,
}

/// The history of a buffer among devices.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum History {
    /// No device has it yet: it belongs to the CPU, and only its type is a device's.
    Unsent,
    /// The same, and memory has all of its bytes ([`CpuBuf::is_clean`]).
    UnsentClean,
    /// Its first hand-over has still to be cleaned, before its burst's doorbell.
    Uncleaned,
    /// That doorbell was never rung: no device saw the hand-over, and its bytes are in the caches.
    NotRung,
    /// No device had written any of it before the last hand-over.
    Fresh,
    /// A device may have written some of it.
    Written,
}

impl DevBuf {
    /// Wraps a buffer that no device has yet: it is the CPU's until `first`.
    #[inline]
    pub(super) fn unsent(cpu: CpuBuf) -> Self {
        let (cpu_span, addr) = (cpu.span(), DevSlice::EMPTY.addr);
        let written = Span::new(cpu_span.start, 0);
        let (span, last) = (cpu_span, cpu_span);
        let history = if cpu.is_clean() { History::UnsentClean } else { History::Unsent };
        Self {
            chunk: cpu.into_chunk(),
            coherent: false,
            history,
            direction: Direction::Bidirectional,
            inside: true,
            cpu_span,
            span,
            last,
            addr,
            written,
        }
    }

    /// Is it a buffer that no device has yet?
    #[inline]
    pub(super) fn is_unsent(&self) -> bool {
        matches!(self.history, History::Unsent | History::UnsentClean)
    }

    /// Does memory have all bytes of a buffer that no device has yet?
    #[inline]
    pub(super) fn is_clean(&self) -> bool {
        self.history == History::UnsentClean
    }

    /// Notes the first hand-over: `span` was cleaned (or the port is coherent), and `port` reaches
    /// it.
    #[inline]
    pub(super) fn first(
        &mut self,
        span: Span,
        direction: Direction,
        port: &Port,
        addr: DevAddr,
        cleaning: Cleaning,
    ) {
        (self.span, self.last, self.addr, self.coherent) = (span, span, addr, port.coherent);
        self.history = match (self.history, cleaning) {
            (History::Unsent, Cleaning::Later) => History::Uncleaned,
            _ => History::Fresh,
        };
        self.written = if direction.device_writes() { span } else { Span::new(span.start, 0) };
    }

    /// Notes that the same buffer was handed over again, maybe through another port.
    #[inline]
    pub(super) fn again(&mut self, part: Span, direction: Direction, port: &Port, addr: DevAddr) {
        if self.coherent != port.coherent {
            // `change_port` made caches and memory agree.
            self.written.len = 0;
        }
        (self.last, self.addr, self.coherent) = (part, addr, port.coherent);
        self.history = if self.written.len == 0 { History::Fresh } else { History::Written };
        self.will_be_written(part, direction);
    }

    /// Tells a simulated board that a device behind `port` has the bytes of the last hand-over, and
    /// nothing beside them. Kept out of the fast path, as `at_rest` is.
    pub(crate) fn is_given(&self, port: &Port, direction: Direction) {
        self.at_rest();
        self.chunk.give_to_device(self.last, Some(port), direction);
    }

    /// The wrong accesses on the board that its memory is on:
    /// [`Backend::wrong_accesses`](crate::Backend::wrong_accesses).
    pub(crate) fn wrong_accesses(&self) -> Result<WrongAccesses, Error> {
        self.chunk.backend().wrong_accesses()
    }

    /// Notes that a consumer on the device's side of the caches uses `part` from here on.
    pub(super) fn handed_on(&mut self, part: Span, direction: Direction) {
        self.will_be_written(part, direction);
        self.chunk.give_to_device(part, None, direction);
    }

    fn will_be_written(&mut self, part: Span, direction: Direction) {
        if direction.device_writes() {
            self.written = self.written().map_or(part, |before| before.hull(part));
        }
    }

    /// Notes that no device works on it any more. It stays on the device's side.
    #[inline(always)]
    pub(crate) fn at_rest(&self) {
        self.chunk.take_from_device(self.span);
    }

    /// Where its device finds it: the bytes of the last hand-over, through that hand-over's port.
    /// After a job on a part of it, this is that part. Address and length belong together and are
    /// only given out together.
    ///
    /// ```
    /// use contigo::{Align, Direction, sim::SimBoard, Region};
    /// let board = SimBoard::new(1);
    /// let region = Region::new(board.memory(64 * 1024)?)?;
    /// let frame = region.alloc(4096, Align::LINE)?;
    /// // SAFETY: no device receives the address.
    /// let frame = unsafe { frame.hand_over(&board.port(), 32, 1024..2048, Direction::ToDevice)? };
    /// assert_eq!(frame.slice().len_bytes, 1024);
    /// # Ok::<(), contigo::Error>(())
    /// ```
    #[must_use]
    pub const fn slice(&self) -> DevSlice {
        DevSlice { addr: self.addr, offset_bytes: 0, len_bytes: self.last.len }
    }

    /// The bus on which the address is valid.
    pub(crate) fn bus(&self) -> Bus {
        self.chunk.state().mapping.bus
    }

    /// The block as an object, if its device takes objects and no addresses. What was handed over
    /// begins [`offset_bytes`](Self::offset_bytes) behind its first byte.
    #[must_use]
    pub fn handle(&self) -> Option<Handle> {
        self.chunk.backend().handle()
    }

    /// Where the last hand-over's bytes begin, in bytes from the beginning of the block.
    #[must_use]
    pub const fn offset_bytes(&self) -> usize {
        self.last.start
    }

    /// How many bytes were handed over first: the ranges of the next operands are within these.
    /// [`slice`](Self::slice) has the length that goes with the address.
    #[must_use]
    pub const fn handed_over_bytes(&self) -> usize {
        self.span.len
    }

    /// Makes it the CPU's again: what devices wrote is then visible, even if the port snoops.
    ///
    /// # Errors
    /// The error of the backend's sync. The buffer comes back as it was, because a view of it could
    /// change under its reader.
    #[inline]
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn into_cpu(self) -> Result<CpuBuf, Refused<Self>> {
        // The device's status showed its end, and a load of its output may not come before that
        // load.
        barrier::after_completion();
        self.at_rest();
        match self.sync_for_cpu(Site::here()) {
            Ok(()) => Ok(self.reclaim()),
            Err(error) => Err(Refused::new(error, self)),
        }
    }

    /// Notes that the device wrote only the first `bytes` of the last hand-over. Bytes that others
    /// wrote before stay written.
    #[inline]
    pub(crate) fn received(&mut self, bytes: usize) {
        if self.history == History::Fresh && self.written == self.last {
            self.written.len = self.written.len.min(bytes);
        }
    }

    /// Makes it the CPU's again. It is at rest, the barrier after the device's end has been passed,
    /// and `sync_for_cpu` has succeeded.
    #[inline]
    pub(crate) fn reclaim(self) -> CpuBuf {
        let span = self.cpu_span;
        let is_clean = if self.is_unsent() { self.is_clean() } else { self.is_all_clean() };
        CpuBuf::back(self.into_chunk(), span, is_clean)
    }

    /// The CPU's address of the first byte of the first hand-over.
    #[inline]
    pub(super) fn cpu_ptr(&self) -> NonNull<u8> {
        // SAFETY: the span lies in the block (`Chunk`'s invariant), which is one mapping.
        unsafe { self.chunk.state().mapping.cpu.add(self.span.start) }
    }

    pub(super) const fn chunk(&self) -> &Chunk {
        &self.chunk
    }

    pub(super) const fn span(&self) -> Span {
        self.span
    }

    /// The bytes of the last hand-over.
    pub(super) const fn slice_span(&self) -> Span {
        self.last
    }

    /// The bytes that devices may have written.
    pub(super) const fn written(&self) -> Option<Span> {
        if self.written.len == 0 { None } else { Some(self.written) }
    }

    /// Does the port of the last hand-over snoop?
    pub(super) const fn is_coherent(&self) -> bool {
        self.coherent
    }

    #[inline]
    fn into_chunk(self) -> Chunk {
        let this = ManuallyDrop::new(self);
        this.chunk.with_extent(this.chunk.extent)
    }
}

impl Drop for DevBuf {
    /// Gives the bytes back, or leaks them if the caches cannot be made to agree with memory: the
    /// next owner's view would change under it. A buffer whose job is in flight is inside a
    /// [`Queue`](crate::Queue), which forgets it rather than drop it if the device will not stop.
    fn drop(&mut self) {
        // The next owner's loads may not come before the poll that saw the device's end.
        barrier::after_completion();
        self.at_rest();
        if self.sync_for_cpu(Site::NONE).is_ok() {
            // SAFETY: `drop` runs once, and does nothing after this.
            unsafe { self.chunk.release() };
        } else {
            trace::happened(Event::Leak { len_bytes: self.chunk.extent.len }, Site::NONE);
        }
    }
}

// SAFETY: as for `CpuBuf`.
unsafe impl Send for DevBuf {}
// SAFETY: `&DevBuf` gives numbers only.
unsafe impl Sync for DevBuf {}

impl fmt::Debug for DevBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DevBuf")
            .field("slice", &self.slice())
            .field("handed_over_bytes", &self.span.len)
            .finish()
    }
}
