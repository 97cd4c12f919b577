#![allow(unsafe_code, reason = "a buffer's thread marker decides whether it is `Send`")]
//! The device's side of a buffer.

use super::{AnyThread, Chunk, CpuBuf, Operand};
use crate::{
    Bus, DevAddr, Direction, Error, Port,
    audit::{self, Event, Site},
    refused::Refused,
    span::{Part, Span, after_device, before_device, before_writing},
};
use core::{fmt, marker::PhantomData, mem::ManuallyDrop, ops::RangeBounds, ptr::NonNull};

/// What a driver is told of one operand: where the device finds it. A plain number: it gives no right to the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct DevSlice {
    /// The bus address. Where addresses are arithmetic (every backend here) it is the operand's first byte; where a handle
    /// is opaque it is the handle's.
    pub addr: DevAddr,
    /// Bytes to add beside an opaque handle; 0 where `addr` holds everything.
    pub offset_bytes: usize,
    /// How many bytes the job may touch.
    pub len_bytes: usize,
}

impl DevSlice {
    /// Stands in an array before the real ones are known. No job sees it.
    pub(crate) const EMPTY: Self = Self { addr: DevAddr(u64::MAX), offset_bytes: 0, len_bytes: 0 };
}

/// A buffer that stays a device's between two jobs: it has an address, and no view. It is what
/// [`wait_device`](crate::Running::wait_device) returns, so that one accelerator's output is the next one's input with no
/// cache maintenance and no CPU between them.
///
/// No job is using it while you hold it: dropping it gives it back to its pool, unseen. [`into_cpu`](Self::into_cpu) makes
/// it the CPU's again.
///
/// ```compile_fail,E0599
/// # use contigo::DevBuf;
/// fn peek(buf: &DevBuf<'_>) {
///     buf.view::<u8>(); // error: no such method
/// }
/// ```
#[must_use = "dropping a buffer gives it back"]
pub struct DevBuf<'p, T = AnyThread> {
    chunk: Chunk<'p>,
    /// What its views showed, and will show again.
    cpu_span: Span,
    /// What was handed over: no other byte may go into a job.
    span: Span,
    /// What devices may have written since then.
    written: Option<Span>,
    /// Does the port of its last job snoop?
    coherent: bool,
    addr: DevAddr,
    thread: PhantomData<T>,
}

impl<'p, T> DevBuf<'p, T> {
    /// After the hand-over: `span` was cleaned (or the port is coherent), and `port` reaches it.
    pub(super) fn new(cpu: CpuBuf<'p, T>, span: Span, direction: Direction, port: &Port, addr: DevAddr) -> Self {
        let cpu_span = cpu.span();
        let written = direction.device_writes().then_some(span);
        Self { chunk: cpu.into_chunk(), cpu_span, span, written, coherent: port.coherent, addr, thread: PhantomData }
    }

    /// The same buffer in another job, maybe through another port.
    pub(super) fn again(mut self, part: Span, direction: Direction, port: &Port, addr: DevAddr) -> Self {
        if direction.device_writes() {
            self.written = Some(self.written.map_or(part, |before| before.hull(part)));
        }
        self.coherent = port.coherent;
        self.addr = addr;
        self
    }

    /// What the caches need when the next job goes through a port of the other kind: what was behind the caches becomes
    /// visible in them, and what is in them goes behind, for all that was handed over.
    pub(super) fn change_port(&self, direction: Direction, port: &Port, site: Site) -> Result<(), Error> {
        self.sync_for_cpu(site)?;
        if port.coherent {
            return Ok(());
        }
        let both = if direction.device_writes() || self.written.is_some() { Direction::Bidirectional } else { direction };
        let what = before_device(self.span, both, self.chunk.extent, self.chunk.line())?;
        self.chunk.state().sync_for_device(self.chunk.backend(), &what, site)
    }

    /// The bus address of what the last job used of it, through that job's port.
    #[must_use]
    pub const fn addr(&self) -> DevAddr {
        self.addr
    }

    /// Where the address is valid.
    pub(crate) fn bus(&self) -> Bus {
        self.chunk.state().mapping.bus
    }

    /// Where what was handed over begins, in bytes from the beginning of the block.
    pub(crate) const fn offset_bytes(&self) -> usize {
        self.span.start
    }

    /// How many bytes were handed over.
    #[must_use]
    pub const fn len_bytes(&self) -> usize {
        self.span.len
    }

    /// An operand that the next device reads: `range` of what was handed over.
    pub fn to_device(self, range: impl RangeBounds<usize>) -> Operand<'p, T> {
        Operand::from_dev(self, Part::of(range), Direction::ToDevice)
    }

    /// An operand that the next device writes.
    pub fn from_device(self, range: impl RangeBounds<usize>) -> Operand<'p, T> {
        Operand::from_dev(self, Part::of(range), Direction::FromDevice)
    }

    /// An operand that the next device reads and writes.
    pub fn in_out(self, range: impl RangeBounds<usize>) -> Operand<'p, T> {
        Operand::from_dev(self, Part::of(range), Direction::Bidirectional)
    }

    /// The CPU's again: what devices wrote is visible after this.
    ///
    /// # Errors
    /// What the backend's sync says; the buffer comes back as it was, because a view of it could change under its reader.
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn into_cpu(self) -> Result<CpuBuf<'p, T>, Refused<Self>> {
        match self.sync_for_cpu(Site::here()) {
            Ok(()) => Ok(self.reclaim()),
            Err(error) => Err(Refused::new(error, self)),
        }
    }

    /// The CPU's again. `sync_for_cpu` has succeeded since the last job.
    pub(crate) fn reclaim(self) -> CpuBuf<'p, T> {
        let span = self.cpu_span;
        CpuBuf::with_span(self.into_chunk(), span)
    }

    /// Invalidates what devices wrote; nothing where the port snoops, or nothing was written.
    pub(crate) fn sync_for_cpu(&self, site: Site) -> Result<(), Error> {
        match self.written {
            Some(written) if !self.coherent => {
                let what = after_device(written, self.chunk.extent, self.chunk.line())?;
                self.chunk.state().sync_for_cpu(self.chunk.backend(), &what, site)
            }
            _ => Ok(()),
        }
    }

    /// Cleans `len_bytes` from `offset_bytes` of what was handed over, so that the device sees them.
    pub(super) fn publish(&self, offset_bytes: usize, len_bytes: usize, site: Site) -> Result<(), Error> {
        if self.coherent {
            return Ok(());
        }
        let part = self.span.part(Part::of(offset_bytes..offset_bytes + len_bytes))?;
        let what = before_device(part, Direction::ToDevice, self.chunk.extent, self.chunk.line())?;
        self.chunk.state().sync_for_device(self.chunk.backend(), &what, site)
    }

    /// The CPU's address of the first byte that was handed over.
    pub(super) fn cpu_ptr(&self) -> NonNull<u8> {
        // SAFETY: the span lies in the block (`Chunk`'s invariant), which is one mapping.
        unsafe { self.chunk.state().mapping.cpu.add(self.span.start) }
    }

    pub(super) const fn chunk(&self) -> &Chunk<'p> {
        &self.chunk
    }

    pub(super) const fn span(&self) -> Span {
        self.span
    }

    /// What the caches need before a device writes `part` of what devices may only have read so far.
    pub(super) fn before_writing(&self, part: Span, site: Site) -> Result<(), Error> {
        let state = self.chunk.state();
        let runs = before_writing(part, self.written, self.chunk.extent, state.line, state.mapping.scope)?;
        runs.iter().filter(|run| !run.range.is_empty()).try_for_each(|run| state.sync_for_device(self.chunk.backend(), run, site))
    }

    pub(super) const fn coherent(&self) -> bool {
        self.coherent
    }

    fn into_chunk(self) -> Chunk<'p> {
        let this = ManuallyDrop::new(self);
        Chunk::new(this.chunk.owner, this.chunk.token, this.chunk.extent)
    }
}

impl<T> Drop for DevBuf<'_, T> {
    /// Gives the bytes back, or leaks them where the caches cannot be made to agree with memory: the next owner's view
    /// would change under it. A buffer whose job is running is inside [`Running`](crate::Running), which forgets it rather
    /// than drop it when the device will not stop.
    fn drop(&mut self) {
        if self.sync_for_cpu(Site::NONE).is_ok() {
            self.chunk.owner.release(self.chunk.token);
        } else {
            audit::happened(Event::Leak { len_bytes: self.chunk.extent.len }, Site::NONE);
        }
    }
}

// SAFETY: as for `CpuBuf`.
unsafe impl<T: Send> Send for DevBuf<'_, T> {}
// SAFETY: `&DevBuf` gives numbers only.
unsafe impl<T: Send> Sync for DevBuf<'_, T> {}

impl<T> fmt::Debug for DevBuf<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DevBuf").field("addr", &self.addr).field("len_bytes", &self.span.len).finish()
    }
}
