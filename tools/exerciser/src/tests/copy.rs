#![allow(unsafe_code, reason = "a driver and a model of it are promises about hardware")]
//! A copy engine that is as simple as one can be, its model on the simulated board, and what can be
//! wrong with it.

use contigo::hw::mmio::{Pointer, ReadClears, ReadWrite, Register};
use contigo::hw::poll_until;
use contigo::job::exactly;
use contigo::mem::DevSlice;
use contigo::sim::{Model, SimBus};
use contigo::{
    Backend, Completion, DevAddr, Device, Direction, Driver, Error, OperandSpec, Port, Result,
    forward,
};
use core::ops::Range;
use std::time::Duration;

const CTRL: Register<ReadClears> = Register::at(0x00);
const FROM: Pointer = Pointer::at(0x10);
const TO: Pointer = Pointer::at(0x18);
const LEN: Register<ReadWrite> = Register::at(0x20);
/// CTRL, written: begin.
const START: u32 = 1;
/// CTRL, read: the job is done. Clears.
const DONE: u32 = 2;
/// CTRL, read: nothing is under way.
const IDLE: u32 = 4;

/// The largest copy: two pages, and a line before and after.
const BUFFER_BYTES: usize = 8192 + 128;

#[derive(Debug)]
pub(super) struct Copy<D> {
    device: D,
    port: Port,
}

impl<D: Device> Copy<D> {
    pub(super) fn open(device: D) -> Self {
        Self { port: *device.port(), device }
    }

    /// A driver that takes its device's port for one that snoops: the missing sync.
    pub(super) fn believed_coherent(device: D) -> Self {
        Self { port: Port { coherent: true, ..*device.port() }, device }
    }
}

// SAFETY: the model reads `LEN` bytes at `FROM` and writes as many at `TO` before it says that it
// is done. Those with a bug touch bytes that they were not given. Their memory is one block of the
// simulated board, of which no reference is alive while a job runs. The block behind the caches
// has no view.
unsafe impl<D: Device> Driver for Copy<D> {
    fn name(&self) -> &'static str {
        "copy"
    }

    fn addr_bits(&self) -> u32 {
        64
    }

    fn operands(&self) -> &[OperandSpec] {
        const { &[OperandSpec::to_device(), OperandSpec::from_device()] }
    }

    fn port(&self) -> &Port {
        &self.port
    }
    forward!(|this| this.device => simulated);

    fn check(&self, operands: &[DevSlice], _: &[u32]) -> Result<()> {
        let [from, to] = exactly(operands)?;
        if to.len_bytes < from.len_bytes {
            return Err(Error::BufferSize {
                index: 1,
                need_bytes: from.len_bytes as u64,
                have_bytes: to.len_bytes,
            });
        }
        Ok(())
    }

    unsafe fn submit(&mut self, _slot: usize, operands: &[DevSlice], _: &[u32]) -> Result<()> {
        let [from, to] = exactly(operands)?;
        // SAFETY: both operands were handed over, and `check` found the second large enough.
        unsafe {
            FROM.write(&self.device, from.addr);
            TO.write(&self.device, to.addr);
            LEN.write(&self.device, u32::try_from(from.len_bytes).unwrap_or(0));
            CTRL.write(&self.device, START);
        }
        Ok(())
    }

    fn poll(&mut self, timeout: Duration) -> Result<Option<Completion>> {
        let is_done = |device: &D| {
            let ctrl = CTRL.read_and_clear(device);
            ctrl & DONE != 0 && ctrl != u32::MAX
        };
        Ok(poll_until(&self.device, timeout, is_done)?.then_some(Completion::of(0)))
    }

    fn stop(&mut self) -> Result<()> {
        let mut status = 0;
        let idle = poll_until(&self.device, Duration::from_millis(100), |device| {
            status = CTRL.read_and_clear(device);
            status & IDLE != 0 && status != u32::MAX
        })?;
        if idle {
            Ok(())
        } else {
            Err(Error::WillNotStop { device: "copy", status, waited_us: 100_000 })
        }
    }
}

/// Memory whose hand-over to the CPU throws no line away where it is one of a job's: only whole
/// slots, of which no job here is one.
#[derive(Debug)]
pub(super) struct Forgetful<B> {
    pub(super) memory: B,
    pub(super) slot_bytes: usize,
}

// SAFETY: `memory` keeps them, except for the fifth promise, whose breach is the test's subject.
// Views then show the bytes that caches remember, in a block of the simulated board, where that is
// ordinary memory that nothing writes meanwhile.
unsafe impl<B: Backend> Backend for Forgetful<B> {
    forward!(|this| this.memory => name, mapping, sync_for_device, held_by, wrong_accesses);
    unsafe fn sync_for_cpu(&self, range: Range<usize>, direction: Direction) -> Result<()> {
        if range.len() < self.slot_bytes {
            return Ok(());
        }
        // SAFETY: the caller's promise.
        unsafe { self.memory.sync_for_cpu(range, direction) }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bug {
    None,
    /// Writes one byte too many.
    Overrun,
    /// Leaves the last byte.
    Underrun,
    /// Writes one byte before the first.
    Early,
    /// Everything lands one byte further.
    ToShifted,
    /// Everything is read one byte further.
    FromShifted,
    /// Writes so many bytes further: into the slot behind the right one.
    Neighbour(u64),
    /// Writes the same once more, so many bytes further: outside the operand.
    Echo(u64),
    /// Flips one bit of one byte in one job of so many.
    Flip(u32),
    /// Writes whole words of so many bytes, as an engine with a wide bus and no byte strobes does.
    Words(u64),
    /// Never ends a job, from this one on.
    HangsAt(u32),
}

#[derive(Debug)]
pub(super) struct CopyModel {
    bug: Bug,
    from: u64,
    to: u64,
    len: u32,
    ends_at_ns: Option<u64>,
    done: bool,
    jobs: u32,
    /// The bytes that it has read: the largest copy, and those that a bug adds.
    bytes: [u8; BUFFER_BYTES],
}

impl CopyModel {
    pub(super) const fn new(bug: Bug) -> Self {
        Self {
            bug,
            from: 0,
            to: 0,
            len: 0,
            ends_at_ns: None,
            done: false,
            jobs: 0,
            bytes: [0; BUFFER_BYTES],
        }
    }

    fn copy(&mut self, bus: &mut SimBus<'_>) {
        let (mut from, mut to, mut len) = (self.from, self.to, self.len as usize);
        match self.bug {
            Bug::Overrun => len += 1,
            Bug::Underrun => len -= 1,
            Bug::Early => (from, to, len) = (from - 1, to - 1, len + 1),
            Bug::ToShifted => to += 1,
            Bug::FromShifted => from += 1,
            Bug::Neighbour(further) => to += further,
            Bug::Words(word) => {
                let (first, last) = (to % word, (to + self.len as u64).next_multiple_of(word));
                (from, to) = (from - first.min(from), to - first);
                len = usize::try_from(last - to).unwrap_or(0);
            }
            Bug::None | Bug::Flip(_) | Bug::HangsAt(_) | Bug::Echo(_) => {}
        }
        let Some(bytes) = self.bytes.get_mut(..len) else { return };
        // A bus error is an answer too: then it writes what it had.
        let _ = bus.read(DevAddr(from), bytes);
        if let Bug::Flip(jobs) = self.bug
            && self.jobs.is_multiple_of(jobs)
            && let Some(byte) = bytes.last_mut()
        {
            *byte ^= 0x10;
        }
        let _ = bus.write(DevAddr(to), bytes);
        if let Bug::Echo(further) = self.bug {
            let _ = bus.write(DevAddr(to + further), bytes);
        }
    }
}

// SAFETY: as `Copy` says of it; it says that it is done after its last write.
unsafe impl Model for CopyModel {
    const WINDOW_BYTES: usize = 0x40;

    fn advance(&mut self, bus: &mut SimBus<'_>) {
        if self.ends_at_ns.is_some_and(|at| at <= bus.now_ns()) {
            self.jobs += 1;
            self.copy(bus);
            (self.ends_at_ns, self.done) = (None, true);
        }
    }

    fn read32(&mut self, offset: usize, _bus: &mut SimBus<'_>) -> u32 {
        if offset != CTRL.offset() {
            return 0;
        }
        let done = core::mem::take(&mut self.done);
        (if done { DONE } else { 0 }) | if self.ends_at_ns.is_none() { IDLE } else { 0 }
    }

    fn write32(&mut self, offset: usize, value: u32, bus: &mut SimBus<'_>) {
        let wide = u64::from(value);
        match offset {
            0x00 if matches!(self.bug, Bug::HangsAt(job) if self.jobs + 1 >= job) => {
                self.ends_at_ns = Some(u64::MAX)
            }
            0x00 => self.ends_at_ns = Some(bus.now_ns() + 500 + u64::from(self.len)),
            0x10 => self.from = self.from >> 32 << 32 | wide,
            0x14 => self.from = self.from & 0xFFFF_FFFF | wide << 32,
            0x18 => self.to = self.to >> 32 << 32 | wide,
            0x1C => self.to = self.to & 0xFFFF_FFFF | wide << 32,
            0x20 => self.len = value,
            _ => {}
        }
    }

    fn irq_at_ns(&self) -> Option<u64> {
        self.ends_at_ns
    }

    fn reset(&mut self) {
        *self = Self::new(self.bug);
    }
}
