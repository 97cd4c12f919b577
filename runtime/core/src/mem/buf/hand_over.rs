#![allow(
    unsafe_code,
    reason = "an address is given out here without a job: its caller must know when the device \
     has stopped"
)]
//! The hand-over: the one way from the CPU to a device, and from one device on to the next.
//!
//! Three steps, each in one place: [`check`] compares memory with port and touches nothing;
//! `prepare` does the cache maintenance; `DevBuf::first` and `DevBuf::again` put the buffer on the
//! device's side. A queue takes each step for all operands of a job before the next; the functions
//! here take the three for one buffer.

use super::{Chunk, Cleaning, CpuBuf, DevBuf, DevSlice};
use crate::mem::span::{Part, Span, before_device, before_writing};
use crate::mem::{Port, SyncScope};
use crate::trace::Site;
use crate::types::{DevAddr, Direction, Error, Refused, barrier};
use core::ops::RangeBounds;

/// Checks `span` of a chunk against a port, and returns where the device will find it.
#[inline(always)]
pub(super) fn check(
    chunk: &Chunk,
    span: Span,
    direction: Direction,
    index: usize,
    port: &Port,
    reach: (u64, u64),
) -> Result<DevSlice, Error> {
    if span.len == 0 {
        return Err(Error::BufferSize { index, need_bytes: 1, have_bytes: 0 });
    }
    let state = chunk.state();
    let mapping = &state.mapping;
    if mapping.bus != port.bus {
        return Err(Error::WrongBus { port: port.name, memory: mapping.bus });
    }
    match mapping.coherent {
        Some(memory_coherent) if memory_coherent != port.coherent => {
            return Err(Error::CoherencyMismatch { port: port.name, memory_coherent });
        }
        _ => {}
    }
    if !port.coherent {
        check_caches(chunk, span, direction, port)?;
    }
    let addr = port.dev_addr_within(mapping.base.plus(span.start), span.len, reach)?;
    Ok(DevSlice { addr, offset_bytes: 0, len_bytes: span.len })
}

/// Checks whether the caches can be maintained for a port that does not snoop.
fn check_caches(chunk: &Chunk, span: Span, direction: Direction, port: &Port) -> Result<(), Error> {
    let state = chunk.state();
    match state.mapping.scope {
        SyncScope::Coherent => {
            return Err(Error::CoherencyMismatch { port: port.name, memory_coherent: true });
        }
        SyncScope::None { install } => {
            return Err(Error::CannotSync { port: port.name, install });
        }
        SyncScope::Whole => state.shared_with_others(chunk.extent).map_or(Ok(()), Err)?,
        SyncScope::Range { .. } => {}
    }
    before_device(span, direction, chunk.extent, state.line).map(|_| ())
}

/// The cache maintenance before a device uses `span` of a chunk that belonged to the CPU. `check`
/// has passed.
#[inline]
pub(super) fn prepare(
    chunk: &Chunk,
    span: Span,
    direction: Direction,
    port: &Port,
    site: Site,
) -> Result<(), Error> {
    if port.coherent {
        return Ok(());
    }
    let state = chunk.state();
    state.sync_for_device(
        chunk.backend(),
        &[before_device(span, direction, chunk.extent, state.line)?],
        site,
    )
}

/// Does the checks, the cache maintenance and the barrier before a doorbell for one buffer, as a
/// job does for its operands.
fn ready(
    chunk: &Chunk,
    span: Result<Span, Error>,
    direction: Direction,
    (port, addr_bits): (&Port, u32),
    prepare: impl FnOnce(Span) -> Result<(), Error>,
) -> Result<(Span, DevAddr), Error> {
    let span = span?;
    let slice = check(chunk, span, direction, 0, port, port.reach(addr_bits))?;
    prepare(span)?;
    barrier::before_doorbell();
    Ok((span, slice.addr))
}

impl CpuBuf {
    /// Hands bytes `range` of this buffer to a device behind `port`, without a job: all the checks
    /// of [`Queue::submit`](crate::Queue::submit), its cache maintenance, and the barrier before a
    /// doorbell. `addr_bits` is the width of the device's register for an address.
    /// [`DevBuf::slice`] says where the device finds the bytes.
    ///
    /// It is for devices that a program drives by itself: registers with no driver, another
    /// language's driver, a framework. With a driver in Rust a [`Queue`](crate::Queue) does the
    /// same, and knows when the device has stopped.
    ///
    /// A `?` after the doorbell would drop the buffer under a running device. If the device will
    /// not stop, forget the `DevBuf` ([`core::mem::forget`]): its bytes are leaked, and never given
    /// out again. On the simulated board `SimBoard::counts().unowned_accesses` stays 0 while the
    /// device keeps to what it was given.
    ///
    /// ```
    /// use contigo::{Align, Direction, sim::SimBoard, Region};
    /// let board = SimBoard::new(1);
    /// let region = Region::new(board.memory(64 * 1024)?)?;
    /// let mut packet = region.alloc(1500, Align::LINE)?;
    /// packet.view_at_mut::<u8>(..1500)?.fill(7);
    /// // SAFETY: the device only reads these bytes, and its status is asked below before the buffer comes back.
    /// let packet = unsafe { packet.hand_over(&board.port(), 32, ..1500, Direction::ToDevice)? };
    /// let registers = (packet.slice().addr, packet.slice().len_bytes);
    /// // … the doorbell, and a wait until the device's status says that it has finished …
    /// let packet = packet.into_cpu()?;
    /// # let _ = (registers, packet);
    /// # Ok::<(), contigo::Error>(())
    /// ```
    ///
    /// # Errors
    /// The buffer comes back with [`Error::OutOfRange`], [`Error::BufferSize`] for no bytes,
    /// [`Error::WrongBus`], [`Error::CoherencyMismatch`], [`Error::CannotSync`],
    /// [`Error::WholeBlock`], or [`Error::Unreachable`]. [`Error::SharedLine`]: the device writes a
    /// line whose rest belongs to another buffer. Or the error of the backend's sync.
    ///
    /// # Safety
    /// 1. Each device that is given the address is behind `port`, touches these bytes only, and
    ///    writes only if `direction` allows it. A read may extend to the ends of its bus words, as
    ///    AXI's masters do, if they lie in the same block.
    /// 2. The device has stopped, its last write included, before the [`DevBuf`] comes back to the
    ///    CPU, is handed over again, or is dropped.
    #[cfg_attr(feature = "audit", track_caller)]
    pub unsafe fn hand_over(
        self,
        port: &Port,
        addr_bits: u32,
        range: impl RangeBounds<usize>,
        direction: Direction,
    ) -> Result<DevBuf, Refused<Self>> {
        let (part, site) = (self.span().part(Part::of(range)), Site::here());
        let prepare = |span| {
            if self.is_clean() {
                return Ok(());
            }
            prepare(self.chunk(), span, direction, port, site)
        };
        match ready(self.chunk(), part, direction, (port, addr_bits), prepare) {
            Ok((span, addr)) => {
                let mut buf = DevBuf::unsent(self);
                buf.first(span, direction, port, addr, Cleaning::Now);
                buf.is_given(port, direction);
                Ok(buf)
            }
            Err(error) => Err(Refused::new(error, self)),
        }
    }
}

impl DevBuf {
    /// Hands bytes `range` of the first hand-over on to a device behind `port`, maybe another one.
    /// It maintains the caches only if this device writes what the one before only read, or if one
    /// port snoops and the other does not.
    ///
    /// # Errors
    /// As [`CpuBuf::hand_over`].
    ///
    /// # Safety
    /// As [`CpuBuf::hand_over`]; and the device that had it before has stopped.
    #[cfg_attr(feature = "audit", track_caller)]
    pub unsafe fn hand_over(
        mut self,
        port: &Port,
        addr_bits: u32,
        range: impl RangeBounds<usize>,
        direction: Direction,
    ) -> Result<Self, Refused<Self>> {
        let (part, site) = (self.span().part(Part::of(range)), Site::here());
        let prepare = |span| self.prepare(span, direction, port, site);
        match ready(self.chunk(), part, direction, (port, addr_bits), prepare) {
            Ok((span, addr)) => {
                self.again(span, direction, port, addr);
                self.is_given(port, direction);
                Ok(self)
            }
            Err(error) => Err(Refused::new(error, self)),
        }
    }

    /// The cache maintenance before the next device uses `span`. `check` has passed.
    #[inline]
    pub(super) fn prepare(
        &self,
        span: Span,
        direction: Direction,
        port: &Port,
        site: Site,
    ) -> Result<(), Error> {
        if self.is_coherent() != port.coherent {
            return self.change_port(span, direction, port, site);
        }
        if direction.device_writes() && !port.coherent {
            self.before_writing(span, self.written(), site)
        } else {
            Ok(())
        }
    }

    /// Hands the first `len_bytes` of the last hand-over on to a consumer on the same side of the
    /// caches: a framework that gets its tensor. A consumer that writes needs the same cache
    /// maintenance as a job that writes.
    pub(crate) fn hand_on(
        &mut self,
        len_bytes: usize,
        direction: Direction,
        site: Site,
    ) -> Result<(), Error> {
        let part = self.slice_span().part(Part::of(..len_bytes))?;
        self.clean_not_rung(site)?;
        if direction.device_writes() && !self.is_coherent() {
            self.before_writing(part, self.written(), site)?;
        }
        self.handed_on(part, direction);
        Ok(())
    }

    /// From a port that does not snoop to one that does: the caches get what devices wrote to
    /// memory. The other way: memory gets what is in the caches, for all that was handed over.
    /// Caches and memory agree then, so that nothing counts as written (`DevBuf::again`). It
    /// refuses nothing that `check` lets through.
    fn change_port(
        &self,
        span: Span,
        direction: Direction,
        port: &Port,
        site: Site,
    ) -> Result<(), Error> {
        // As in `into_cpu`: no maintenance may come before the poll that saw the device's end.
        barrier::after_completion();
        if port.coherent {
            return self.sync_for_cpu(site);
        }
        let (chunk, state) = (self.chunk(), self.chunk().state());
        state.sync_for_device(
            chunk.backend(),
            &[before_device(self.span(), Direction::ToDevice, chunk.extent, state.line)?],
            site,
        )?;
        if direction.device_writes() { self.before_writing(span, None, site) } else { Ok(()) }
    }

    /// Cleans the bytes that a device will write, except for `written`, which devices wrote
    /// already.
    fn before_writing(&self, span: Span, written: Option<Span>, site: Site) -> Result<(), Error> {
        let (chunk, state) = (self.chunk(), self.chunk().state());
        let runs = before_writing(span, written, chunk.extent, state.line, state.mapping.scope)?;
        runs.iter().filter(|run| !run.range.is_empty()).try_for_each(|run| {
            state.sync_for_device(chunk.backend(), core::slice::from_ref(run), site)
        })
    }
}
