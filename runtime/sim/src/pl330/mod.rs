#![allow(unsafe_code, reason = "a model promises to touch only what it was told of")]
//! A model of Arm's DMA-330 (PL330), by Arm DDI 0424C and QEMU `hw/dma/pl330.c`. It has registers,
//! the debug interface, and channels. The channels fetch their programs from the board's memory,
//! through the port of their data. So a missing synchronisation shows: an old program runs.
//!
//! It fetches, loads and stores in virtual time. A write arrives some time after its DMAST, and a
//! channel that has ended or was killed waits for it. An instruction at the debug interface takes
//! effect some time after the interface is idle again; while the interface is busy it is lost.
//!
//! Not modelled: peripherals and their instructions, DMASTZ, DMAADDH, DMAADNH (all undefined here),
//! endian swaps (an invalid operand here). A channel that finds no room in the data buffer locks up
//! at once, and does not wait for the channels that compete for it. Of [`Faults`](super::Faults),
//! `short` does nothing: a DMA-330 that reports its end has moved every byte.

mod channel;
mod events;
mod instruction;
mod manual;

use self::channel::{BUFFER_BYTES, Channel, Fate, Shared};
use self::events::Events;
use self::manual as ddi0424;
use crate::{Model, SimBus, SimWindow};
use contigo_core::mem::CpuBuf;
use contigo_core::types::{Refused, Result};
use contigo_drivers::pl330::{Controller, Pl330};
use heapless::Deque;

/// How long one instruction keeps the debug interface busy.
const DEBUG_NS: u64 = 300;
/// After this much more time the instruction takes effect. The manual does not promise that a
/// channel has left Stopped when the debug interface is idle again, so in the model it has not.
const EFFECT_NS: u64 = 600;
/// The most instructions that are waiting to take effect: one is accepted each `DEBUG_NS`, and
/// takes effect `EFFECT_NS` later.
const GIVEN: usize = 4;
/// Faults strike within this many instructions: mostly at the beginning of the copy.
const STRIKES_WITHIN: u32 = 40;
/// The longest delay of an interrupt.
const LATE_NS: u64 = 100_000;

impl SimWindow<Pl330Model> {
    /// As [`open`](Pl330::open), with its errors, but safe: the window's type proves that a DMA-330
    /// is behind it.
    pub fn driver(self, program: CpuBuf) -> Result<Pl330<Self>, Refused<CpuBuf>> {
        // SAFETY: the model is a DMA-330, and `SimDevice::window` gives one window at a time.
        unsafe { Pl330::open(self, program) }
    }

    /// As [`open`](Controller::open), with its errors, but safe: the window's type proves that a
    /// DMA-330 is behind it.
    pub fn controller(self) -> Result<Controller<Self>> {
        // SAFETY: as in `driver`.
        unsafe { Controller::open(self) }
    }
}

/// How a controller is built. The default is Zynq-7000's, in its state under Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pl330Spec {
    /// How many channels: 1 to 8.
    pub channels: u32,
    /// How many events and interrupts: 1 to 32.
    pub events: u32,
    /// The width of its bus in bytes: 4, 8 or 16.
    pub bus_bytes: u32,
    /// The size of the data buffer in words of that width: 1 to 1,024. Each channel of the model
    /// uses 1,024 bytes at most.
    pub buffer_words: u32,
    /// The manager, and so every channel, is in the Non-secure state.
    pub nonsecure: bool,
    /// Bit N: event N may be used in the Non-secure state.
    pub nonsecure_events: u32,
    /// 0: r0p0, 1: r1p0, 2: r1p1.
    pub revision: u32,
}

impl Default for Pl330Spec {
    fn default() -> Self {
        Self {
            channels: 8,
            events: 16,
            bus_bytes: 8,
            buffer_words: 128,
            nonsecure: false,
            nonsecure_events: 0,
            revision: 2,
        }
    }
}

/// The controller's state.
#[derive(Debug)]
pub struct Pl330Model {
    spec: Pl330Spec,
    events: Events,
    channels: [Channel; ddi0424::CHANNELS],
    /// FTRD; the manager is faulting while it is not 0.
    ftrd: u32,
    /// DBGINST0 and DBGINST1.
    debug: [u32; 2],
    /// When the debug interface becomes idle.
    busy_until_ns: u64,
    /// Instructions accepted by the debug interface, and when each takes effect.
    given: Deque<(u64, [u32; 2]), GIVEN>,
    /// When each channel's program will raise its interrupt.
    predicted_ns: [Option<u64>; ddi0424::CHANNELS],
}

impl Pl330Model {
    /// As after power-on.
    #[must_use]
    pub fn new(spec: Pl330Spec) -> Self {
        Self {
            spec,
            events: Events::new(),
            channels: core::array::from_fn(|_| Channel::new()),
            ftrd: 0,
            debug: [0; 2],
            busy_until_ns: 0,
            given: Deque::new(),
            predicted_ns: [None; ddi0424::CHANNELS],
        }
    }

    /// The channels' shared state, with `taken_bytes` of the data buffer used by other channels.
    fn shared(&self, taken_bytes: usize) -> Shared {
        let Pl330Spec { events, nonsecure_events, bus_bytes, buffer_words, .. } = self.spec;
        let all_bytes = bus_bytes.saturating_mul(buffer_words) as usize;
        let room_bytes = all_bytes.saturating_sub(taken_bytes).min(BUFFER_BYTES);
        Shared { events, nonsecure_events, buffer_bytes: all_bytes.min(BUFFER_BYTES), room_bytes }
    }

    fn channels_until(&mut self, until_ns: u64, bus: &mut SimBus<'_>) {
        for index in 0..self.channels.len() {
            let taken = self.channels.iter().enumerate().filter(|(other, _)| *other != index);
            let shared = self.shared(taken.map(|(_, channel)| channel.buffered_bytes()).sum());
            if let Some(channel) = self.channels.get_mut(index) {
                channel.advance(until_ns, &shared, &mut self.events, bus);
            }
        }
    }

    /// Executes an instruction of the debug interface: DMAKILL for a channel or the manager, DMAGO
    /// and DMASEV for the manager.
    fn execute(&mut self, at_ns: u64, [inst0, inst1]: [u32; 2], bus: &mut SimBus<'_>) {
        let (opcode, operand) = (inst0 >> 16 & 0xFF, inst0 >> 24);
        let by_channel = inst0 & 1 == 1;
        match (opcode, by_channel) {
            (0x01, true) => {
                let number = inst0 as usize >> 8 & 7;
                if let (Some(channel), Some(predicted_ns)) =
                    (self.channels.get_mut(number), self.predicted_ns.get_mut(number))
                {
                    channel.kill();
                    *predicted_ns = None;
                }
            }
            (0x01, false) => self.ftrd = 0,
            // A faulting manager executes nothing until it is killed.
            _ if self.ftrd != 0 => {}
            (0xA0 | 0xA2, false) => self.go(at_ns, opcode & 2 != 0, operand, inst1, bus),
            (0x34, false) if operand & 7 == 0 && operand >> 3 < self.spec.events => {
                // At most 31: the operand has 8 bits.
                self.events.raise((operand >> 3).to_le_bytes()[0], at_ns);
            }
            (0x34, false) => self.ftrd = ddi0424::OPERAND_INVALID | ddi0424::DBG_INSTR,
            _ => self.ftrd = ddi0424::UNDEF_INSTR | ddi0424::DBG_INSTR,
        }
    }

    fn go(&mut self, at_ns: u64, nonsecure: bool, number: u32, pc: u32, bus: &mut SimBus<'_>) {
        let shared = self.shared(0);
        let channel =
            self.channels.get_mut(number as usize).filter(|_| number < self.spec.channels);
        let Some(channel) = channel.filter(|channel| channel.status == ddi0424::STOPPED) else {
            self.ftrd = ddi0424::OPERAND_INVALID | ddi0424::DBG_INSTR;
            return;
        };
        if self.spec.nonsecure && !nonsecure {
            self.ftrd = ddi0424::DMAGO_ERR | ddi0424::DBG_INSTR;
            return;
        }
        let faults = *bus.faults();
        let after = bus.rng().u32(..STRIKES_WITHIN);
        let fate = if bus.strikes(faults.stuck) {
            Fate::Stuck(after)
        } else if bus.strikes(faults.hang) {
            Fate::Hang(after)
        } else if bus.strikes(faults.error) {
            Fate::Error(after)
        } else {
            Fate::Good
        };
        let irq_delay_ns = bus.irq_delay_ns(LATE_NS);
        channel.go(at_ns, pc, nonsecure, fate, irq_delay_ns);
        if let Some(predicted_ns) = self.predicted_ns.get_mut(number as usize) {
            *predicted_ns = channel.predict(&shared, &self.events, bus);
        }
    }

    /// Reads a register of one channel.
    fn channel_register(&self, offset: usize) -> Option<u32> {
        let present = self.channels.iter().take(self.spec.channels as usize).enumerate();
        present.into_iter().find_map(|(n, channel)| {
            let nonsecure = if channel.nonsecure { ddi0424::CNS } else { 0 };
            Some(match offset {
                o if o == ddi0424::FTR0 + 4 * n => channel.ftr,
                o if o == ddi0424::CSR0 + 8 * n => {
                    channel.status | u32::from(channel.awaited) << 4 | nonsecure
                }
                o if o == ddi0424::CPC0 + 8 * n => channel.pc,
                o if o == ddi0424::SAR0 + 0x20 * n => channel.sar,
                o if o == ddi0424::DAR0 + 0x20 * n => channel.dar,
                o if o == ddi0424::CCR0 + 0x20 * n => channel.ccr,
                o if o == ddi0424::LC0_0 + 0x20 * n => u32::from(channel.lc[0]),
                o if o == ddi0424::LC1_0 + 0x20 * n => u32::from(channel.lc[1]),
                _ => return None,
            })
        })
    }

    /// FSRC.
    fn faulting(&self) -> u32 {
        let faults = |channel: &Channel| {
            matches!(channel.status, ddi0424::FAULTING | ddi0424::FAULTING_COMPLETING)
        };
        self.channels.iter().rev().fold(0, |bits, channel| bits << 1 | u32::from(faults(channel)))
    }
}

impl Default for Pl330Model {
    fn default() -> Self {
        Self::new(Pl330Spec::default())
    }
}

// SAFETY: it fetches where DMAGO points, and loads and stores where the program says. A channel
// does so only while it runs. It becomes Stopped, and raises its event after a DMAWMB, only when
// its last write has arrived. A stuck channel never becomes Stopped.
unsafe impl Model for Pl330Model {
    const WINDOW_BYTES: usize = ddi0424::WINDOW_BYTES;

    fn advance(&mut self, bus: &mut SimBus<'_>) {
        let now_ns = bus.now_ns();
        for _ in 0..GIVEN {
            let Some(&(at_ns, instruction)) =
                self.given.front().filter(|&&(at_ns, _)| at_ns <= now_ns)
            else {
                break;
            };
            self.given.pop_front();
            self.channels_until(at_ns, bus);
            self.execute(at_ns, instruction, bus);
        }
        self.channels_until(now_ns, bus);
        // A prediction of the past was fulfilled, or overtaken by something else.
        self.predicted_ns =
            self.predicted_ns.map(|predicted_ns| predicted_ns.filter(|&at_ns| at_ns > now_ns));
    }

    fn read32(&mut self, offset: usize, bus: &mut SimBus<'_>) -> u32 {
        let Pl330Spec {
            channels,
            events,
            bus_bytes,
            buffer_words,
            nonsecure,
            nonsecure_events,
            revision,
        } = self.spec;
        let security = if nonsecure { ddi0424::DNS } else { 0 };
        let byte_of = |id: u32, first: usize| id >> (8 * (offset - first) / 4) & 0xFF;
        match offset {
            ddi0424::DSR => {
                security | if self.ftrd != 0 { ddi0424::FAULTING } else { ddi0424::STOPPED }
            }
            ddi0424::INTEN => self.events.enabled,
            ddi0424::INT_EVENT_RIS => self.events.raised,
            ddi0424::INTMIS => self.events.interrupts(),
            ddi0424::FSRD => u32::from(self.ftrd != 0),
            ddi0424::FSRC => self.faulting(),
            ddi0424::FTRD => self.ftrd,
            ddi0424::DBGSTATUS => u32::from(self.busy_until_ns > bus.now_ns()),
            ddi0424::CR0 => {
                channels.saturating_sub(1) << 4 | events.saturating_sub(1) << 17 | security >> 7
            }
            ddi0424::CR3 => nonsecure_events,
            ddi0424::CRD => {
                bus_bytes.checked_ilog2().unwrap_or(0) | buffer_words.saturating_sub(1) << 20
            }
            o @ 0xFE0..=0xFEC if o % 4 == 0 => byte_of(ddi0424::PERIPH_ID | revision << 20, 0xFE0),
            o @ 0xFF0..=0xFFC if o % 4 == 0 => byte_of(ddi0424::PCELL_ID, 0xFF0),
            _ => self.channel_register(offset).unwrap_or(0),
        }
    }

    fn write32(&mut self, offset: usize, value: u32, bus: &mut SimBus<'_>) {
        match offset {
            ddi0424::INTEN => self.events.enabled = value,
            ddi0424::INTCLR => self.events.clear(value),
            ddi0424::DBGINST0 => self.debug[0] = value,
            ddi0424::DBGINST1 => self.debug[1] = value,
            // While the interface is busy, the instruction is lost.
            ddi0424::DBGCMD if value & 3 == 0 && self.busy_until_ns <= bus.now_ns() => {
                self.busy_until_ns = bus.now_ns() + DEBUG_NS;
                let _ = self.given.push_back((self.busy_until_ns + EFFECT_NS, self.debug));
            }
            _ => {}
        }
    }

    fn irq_at_ns(&self) -> Option<u64> {
        // Before DMAGO takes effect the program is unknown, so one wait ends at that time.
        let given = self.given.front().map(|&(at_ns, _)| at_ns);
        self.predicted_ns.into_iter().chain([given, self.events.delivered_at_ns()]).flatten().min()
    }

    fn reset(&mut self) {
        *self = Self::new(self.spec);
    }
}
