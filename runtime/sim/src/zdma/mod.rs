#![allow(unsafe_code, reason = "a model promises to touch only what it was told of")]
//! A model of one ZDMA channel, by the sources that `manual.rs` names: what its registers do, and
//! what it does to memory. It reports an error if a list changes while the channel walks it.

mod descriptor;
mod manual;

use crate::faults::{Fate, GARBAGE};
use crate::{Model, SimBus, SimWindow};
use contigo_core::mem::CpuBuf;
use contigo_core::types::{DevAddr, Refused, Result};
use contigo_drivers::zdma::Zdma;
use descriptor::{COMMAND, Descriptor, address};
use manual as ug1087;

/// From the doorbell to the first burst.
const LATENCY_NS: u64 = 500;
/// The time that each further descriptor adds, for both sides.
const DESCRIPTOR_NS: u64 = 200;
/// How many bytes a channel moves in a nanosecond.
const BYTES_PER_NS: u64 = 2;
/// One burst: 16 beats of 128 bits.
const BURST_BYTES: usize = 256;
/// The most descriptors that a side follows. A longer list counts as endless.
const DESCRIPTORS_MAX: u32 = 4096;
/// Words between the first register and the last: 0x000 to 0x200.
const WORDS: usize = ug1087::WINDOW_BYTES / 4;
/// ZDMA_ERR_CTRL: whether accesses to registers that do not exist get an error response.
const ERR_CTRL: usize = 0x000;
/// The bits of CTRL0 that can be read back; CONT is a command.
const CTRL0_BITS: u32 = 0xFC;

impl SimWindow<ZdmaModel> {
    /// As [`simple`](Zdma::simple), with its errors, but safe: the window's type proves that a
    /// channel is behind it.
    pub fn simple(self) -> Result<Zdma<Self>> {
        // SAFETY: the model is a ZDMA channel, and `SimDevice::window` gives one window at a time.
        unsafe { Zdma::simple(self) }
    }

    /// As [`linked`](Zdma::linked), with its errors, but safe: the window's type proves that a
    /// channel is behind it.
    pub fn linked(self, descriptors: CpuBuf) -> Result<Zdma<Self>, Refused<CpuBuf>> {
        // SAFETY: as in `simple`.
        unsafe { Zdma::linked(self, descriptors) }
    }
}

/// The channel's state.
#[derive(Debug)]
pub struct ZdmaModel {
    /// Registers that only hold what was written.
    words: [u32; WORDS],
    isr: u32,
    imr: u32,
    state: u32,
    total_bytes: u32,
    job: Option<Job>,
    /// When the line rises for the bits in `isr`; `None`: never, the interrupt got lost.
    line_at_ns: Option<u64>,
}

/// A transfer under way. Its registers do not change until it ends.
#[derive(Clone, Copy, Debug)]
struct Job {
    ends_at_ns: u64,
    irq_delay_ns: Option<u64>,
    fate: Fate,
    /// The address of the first byte to write; `u64::MAX` if the descriptor cannot be read.
    to: u64,
    /// The list's length at the start, by [`ZdmaModel::length`].
    list: Option<Length>,
    /// EN was cleared while the job hung: bytes that were not moved by then are dropped.
    dropped: bool,
}

/// A list's length and checksum, by the source side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Length {
    bytes: u64,
    descriptors: u32,
    /// A checksum of all descriptors' words.
    sum: u64,
}

impl Default for ZdmaModel {
    /// As after power-on.
    fn default() -> Self {
        let (isr, imr, state, total_bytes) = (0, ug1087::INTERRUPTS, ug1087::DONE, 0);
        let mut model =
            Self { words: [0; WORDS], isr, imr, state, total_bytes, job: None, line_at_ns: None };
        model.set(ERR_CTRL, 1);
        model.set(ug1087::ZDMA_CH_CTRL0, ug1087::OVR_FETCH);
        model.set(ug1087::ZDMA_CH_CTRL1, ug1087::CTRL1_RESET);
        model.set(ug1087::ZDMA_CH_DATA_ATTR, ug1087::DATA_ATTR_RESET);
        model
    }
}

impl ZdmaModel {
    fn set(&mut self, offset: usize, value: u32) {
        if let Some(word) = self.words.get_mut(offset / 4) {
            *word = value;
        }
    }

    fn word(&self, offset: usize) -> u32 {
        self.words.get(offset / 4).copied().unwrap_or(0)
    }

    fn pointer(&self, offset: usize) -> u64 {
        address(self.word(offset), self.word(offset + 4))
    }

    fn in_memory(&self) -> bool {
        self.word(ug1087::ZDMA_CH_CTRL0) & ug1087::POINT_TYPE != 0
    }

    /// The first descriptor of the source or the destination, from memory or from registers.
    fn first(&self, bus: &mut SimBus<'_>, start: usize, register: usize) -> Option<Descriptor> {
        if self.in_memory() {
            return Descriptor::fetch(bus, self.pointer(start));
        }
        let left = self.word(register + 8) & ug1087::SIZE;
        Some(Descriptor { addr: self.pointer(register), left, word3: ug1087::CMD_STOP, next: 0 })
    }

    fn source(&self, bus: &mut SimBus<'_>) -> Option<Descriptor> {
        self.first(bus, ug1087::ZDMA_CH_SRC_START_LSB, ug1087::ZDMA_CH_SRC_DSCR_WORD0)
    }

    /// In simple mode only the source's size counts.
    fn destination(&self, bus: &mut SimBus<'_>) -> Option<Descriptor> {
        let first =
            self.first(bus, ug1087::ZDMA_CH_DST_START_LSB, ug1087::ZDMA_CH_DST_DSCR_WORD0)?;
        Some(if self.in_memory() { first } else { Descriptor { left: u32::MAX, ..first } })
    }

    /// Measures the source's list. `None`: it has no end.
    fn length(&self, bus: &mut SimBus<'_>) -> Option<Length> {
        let (mut length, mut descriptor) = (Length::default(), self.source(bus));
        for count in 1..=DESCRIPTORS_MAX {
            length.descriptors = count;
            // A descriptor that cannot be fetched ends the list when the transfer reaches it.
            let Some(one) = descriptor else { return Some(length) };
            length.bytes += u64::from(one.left);
            for word in [one.addr, u64::from(one.left), u64::from(one.word3), one.next] {
                length.sum = length.sum.rotate_left(7) ^ word;
            }
            if one.ends() {
                return Some(length);
            }
            descriptor = Descriptor::fetch(bus, one.next);
        }
        None
    }

    fn start(&mut self, bus: &mut SimBus<'_>) {
        let length = self.length(bus);
        let Length { bytes, descriptors, .. } = length.unwrap_or_default();
        let busy_ns = LATENCY_NS + u64::from(descriptors) * DESCRIPTOR_NS + bytes / BYTES_PER_NS;
        let faults = *bus.faults();
        let fate = match bus.fate() {
            Fate::Good if length.is_none() => Fate::Hang,
            // One of the four adjacent bits of `INT_FATAL`.
            Fate::Good if bus.strikes(faults.error) => {
                Fate::Error(ug1087::AXI_RD_SRC_DSCR << bus.rng().u32(..4))
            }
            Fate::Good if bus.strikes(faults.short) => {
                Fate::Short(bus.rng().u32(..u32::try_from(bytes).unwrap_or(u32::MAX).max(1)))
            }
            fate => fate,
        };
        let irq_delay_ns = bus.irq_delay_ns(busy_ns * 10);
        let jitter_ns = bus.rng().u64(..=busy_ns / 8);
        let to = self.destination(bus).map_or(u64::MAX, |first| first.addr);
        self.state = ug1087::BUSY;
        self.job = Some(Job {
            ends_at_ns: bus.now_ns() + busy_ns + jitter_ns,
            irq_delay_ns,
            fate,
            to,
            list: length,
            dropped: false,
        });
    }

    /// EN was cleared during a job. A job that hangs is dropped; any other runs to its end.
    const fn disable(&mut self) {
        if let Some(Job { fate: Fate::Hang, dropped, .. }) = &mut self.job {
            *dropped = true;
        }
    }

    /// Ends the job, whatever its result.
    fn finish(&mut self, job: Job, what: u32, state: u32) {
        self.job = None;
        self.state = state;
        self.isr |= what;
        self.line_at_ns = job.irq_delay_ns.map(|delay| job.ends_at_ns + delay);
        if state != ug1087::PAUSED {
            self.set(ug1087::ZDMA_CH_CTRL2, 0);
        }
    }

    fn run(&mut self, job: Job, bus: &mut SimBus<'_>) {
        let limit = match job.fate {
            Fate::Short(bytes) => bytes,
            Fate::Error(_) => 0,
            _ => u32::MAX,
        };
        let ended = match job.fate {
            Fate::Error(bit) => Err(bit),
            // The list changed: the channel may have fetched any mix of old and new descriptors.
            _ if self.length(bus) != job.list => Err(ug1087::AXI_RD_SRC_DSCR),
            _ => self.copy(limit, bus),
        };
        match ended {
            Ok(ug1087::CMD_PAUSE) => self.finish(job, ug1087::DMA_PAUSE, ug1087::PAUSED),
            Ok(_) => self.finish(job, ug1087::DMA_DONE, ug1087::DONE),
            Err(bit) => self.finish(job, bit | ug1087::DMA_DONE, ug1087::DONE_WITH_ERROR),
        }
    }

    /// Moves up to `limit` bytes, source by source, into the destinations in their order. Returns
    /// the command that ended the transfer, or the error's bit.
    fn copy(&mut self, limit: u32, bus: &mut SimBus<'_>) -> Result<u32, u32> {
        let mut to = self.destination(bus).ok_or(ug1087::AXI_RD_DST_DSCR)?;
        let mut from = self.source(bus).ok_or(ug1087::AXI_RD_SRC_DSCR)?;
        let (mut moved, mut destinations) = (0, 1);
        for _ in 0..DESCRIPTORS_MAX {
            while from.left > 0 {
                while to.left == 0 {
                    destinations += 1;
                    if destinations > DESCRIPTORS_MAX {
                        return Err(ug1087::AXI_RD_DST_DSCR);
                    }
                    to = Descriptor::fetch(bus, to.next).ok_or(ug1087::AXI_RD_DST_DSCR)?;
                }
                if moved >= limit {
                    return Ok(ug1087::CMD_STOP);
                }
                let size = burst(&from, &to, limit - moved);
                let mut beats = [0; BURST_BYTES];
                let bytes = beats.get_mut(..size as usize).unwrap_or_default();
                bus.read(DevAddr(from.addr), bytes).map_err(|_| ug1087::AXI_RD_DATA)?;
                bus.write(DevAddr(to.addr), bytes).map_err(|_| ug1087::AXI_WR_DATA)?;
                for side in [&mut from, &mut to] {
                    side.addr = side.addr.wrapping_add(u64::from(size));
                    side.left -= size;
                }
                moved += size;
                self.count(size);
            }
            if from.ends() {
                return Ok(from.word3 & COMMAND);
            }
            from = Descriptor::fetch(bus, from.next).ok_or(ug1087::AXI_RD_SRC_DSCR)?;
        }
        Err(ug1087::AXI_RD_SRC_DSCR)
    }

    fn count(&mut self, bytes: u32) {
        let (sum, overflows) = self.total_bytes.overflowing_add(bytes);
        self.total_bytes = sum;
        if overflows {
            self.isr |= ug1087::BYTE_CNT_OVRFL;
        }
    }

    fn is_raised(&self) -> bool {
        self.isr & !self.imr != 0
    }
}

/// The next burst's length: to a descriptor's end, the limit, or a multiple of the burst size.
fn burst(from: &Descriptor, to: &Descriptor, limit: u32) -> u32 {
    #[allow(clippy::cast_possible_truncation, reason = "less than 256")]
    let room = (BURST_BYTES as u64 - to.addr % BURST_BYTES as u64) as u32;
    room.min(from.left).min(to.left).min(limit)
}

// SAFETY: the model reads and writes only where its registers and the descriptors that these name
// say, in `copy` and while it is stuck, and reads descriptors there and in `start`. STATUS leaves
// its busy state in `finish`, or when a job is dropped; after either there is no job, and without
// one the model touches nothing.
unsafe impl Model for ZdmaModel {
    const WINDOW_BYTES: usize = ug1087::WINDOW_BYTES;

    fn advance(&mut self, bus: &mut SimBus<'_>) {
        match self.job {
            Some(Job { fate: Fate::Stuck, to, .. }) => {
                // A stuck channel keeps writing into the last buffer that it was given.
                let _ = bus.write(DevAddr(to), &[GARBAGE]);
            }
            Some(Job { dropped: true, .. }) => {
                self.job = None;
                self.state = ug1087::DONE;
            }
            Some(job) if job.fate != Fate::Hang && job.ends_at_ns <= bus.now_ns() => {
                self.run(job, bus)
            }
            _ => {}
        }
    }

    fn read32(&mut self, offset: usize, _bus: &mut SimBus<'_>) -> u32 {
        match offset {
            ug1087::ZDMA_CH_ISR => self.isr,
            ug1087::ZDMA_CH_IMR => self.imr,
            ug1087::ZDMA_CH_IEN | ug1087::ZDMA_CH_IDS => 0,
            ug1087::ZDMA_CH_STATUS => self.state,
            ug1087::ZDMA_CH_TOTAL_BYTE => self.total_bytes,
            _ => self.word(offset),
        }
    }

    fn write32(&mut self, offset: usize, value: u32, bus: &mut SimBus<'_>) {
        match offset {
            ug1087::ZDMA_CH_ISR => self.isr &= !value,
            ug1087::ZDMA_CH_IEN => self.imr &= !value,
            ug1087::ZDMA_CH_IDS => self.imr |= value & ug1087::INTERRUPTS,
            ug1087::ZDMA_CH_IMR | ug1087::ZDMA_CH_STATUS => {}
            ug1087::ZDMA_CH_TOTAL_BYTE => self.total_bytes &= !value,
            ug1087::ZDMA_CH_CTRL2 => {
                self.set(offset, value & ug1087::EN);
                match (value & ug1087::EN != 0, self.job) {
                    (true, None) if self.state != ug1087::PAUSED => self.start(bus),
                    (false, Some(_)) => self.disable(),
                    _ => {}
                }
            }
            // The channel latched the other registers when it was enabled.
            _ if self.job.is_some() => {}
            ug1087::ZDMA_CH_CTRL0 => {
                self.set(offset, value & CTRL0_BITS);
                // This leaves the paused state with EN at 0. To resume is not modelled: no driver
                // here does it.
                if value & ug1087::CONT != 0
                    && self.state == ug1087::PAUSED
                    && self.word(ug1087::ZDMA_CH_CTRL2) == 0
                {
                    self.state = ug1087::DONE;
                }
            }
            o => self.set(o, value),
        }
    }

    fn irq_at_ns(&self) -> Option<u64> {
        if self.is_raised() {
            return self.line_at_ns;
        }
        match self.job {
            Some(Job { fate: Fate::Hang | Fate::Stuck, .. } | Job { dropped: true, .. }) => None,
            Some(Job { ends_at_ns, irq_delay_ns: Some(delay), .. })
                if self.imr & ug1087::DMA_DONE == 0 =>
            {
                Some(ends_at_ns + delay)
            }
            _ => None,
        }
    }

    fn reset(&mut self) {
        *self = Self::default();
    }
}
