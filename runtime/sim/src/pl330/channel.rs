//! One channel: it fetches its program from the board's memory and executes it, in virtual time.

use super::events::Events;
use super::instruction::{Instruction, decode, len_bytes};
use super::manual as ddi0424;
use crate::SimBus;
use crate::faults::GARBAGE;
use contigo_core::types::DevAddr;
use heapless::Deque;

/// One instruction, at 200 MHz.
const INSTRUCTION_NS: u64 = 5;
/// From an address to its first beat, and from each beat to the next.
const LATENCY_NS: u64 = 20;
const BEAT_NS: u64 = 5;
/// From the last beat of a write to its response.
const ANSWER_NS: u64 = 40;
/// The most bytes in a burst: 16 beats of 16.
const BURST_BYTES: usize = 256;
/// The most bytes of the data buffer that a channel fills: the whole buffer of a Zynq-7000 (UG585,
/// 9.1).
pub(super) const BUFFER_BYTES: usize = 1024;
/// The instruction cache: the number of lines, and the bytes of a line.
const LINES: usize = 8;
const LINE_BYTES: usize = 16;
/// The most steps that `predict` follows: those of some 200 KiB byte by byte. A longer copy has no
/// predicted end.
const PREDICTED: u32 = 1 << 20;

/// How and when its next program will end: after this many instructions, or at its first barrier or
/// its end if these come earlier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Fate {
    #[default]
    Good,
    /// A read is answered with an error.
    Error(u32),
    /// Never ends; can be killed.
    Hang(u32),
    /// Never ends, keeps writing garbage where its first store went, and only a reset stops it.
    Stuck(u32),
}

/// A write that memory has not answered.
#[derive(Clone, Copy, Debug)]
struct Write {
    at_ns: u64,
    addr: u32,
    len: usize,
    bytes: [u8; BURST_BYTES],
}

/// One line of the instruction cache.
#[derive(Clone, Copy, Debug)]
struct Line {
    addr: u32,
    bytes: [u8; LINE_BYTES],
}

/// The state that all channels share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shared {
    pub(super) events: u32,
    /// CR3.
    pub(super) nonsecure_events: u32,
    /// The size of the data buffer, in bytes.
    pub(super) buffer_bytes: usize,
    /// How many of its bytes the other channels' loads leave for this channel.
    pub(super) room_bytes: usize,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Channel {
    /// CSRn's status field.
    pub(super) status: u32,
    pub(super) nonsecure: bool,
    pub(super) ftr: u32,
    pub(super) pc: u32,
    pub(super) sar: u32,
    pub(super) dar: u32,
    pub(super) ccr: u32,
    pub(super) lc: [u8; 2],
    /// The event that DMAWFE waits for.
    pub(super) awaited: u8,
    /// When the channel executes its next instruction.
    next_at_ns: u64,
    executed: u32,
    fate: Fate,
    /// How late the interrupt is; `None`: it gets lost.
    irq_delay_ns: Option<u64>,
    buffer: Deque<u8, BUFFER_BYTES>,
    write: Option<Write>,
    lines: [Option<Line>; LINES],
    first_store: Option<(u32, usize)>,
    stuck: bool,
    /// A dry run that finds the program's end: it moves no data.
    rehearsal: bool,
}

impl Channel {
    pub(super) fn new() -> Self {
        Self { status: ddi0424::STOPPED, next_at_ns: u64::MAX, ..Self::default() }
    }

    /// Executes DMAGO.
    pub(super) fn go(
        &mut self,
        at_ns: u64,
        pc: u32,
        nonsecure: bool,
        fate: Fate,
        irq_delay_ns: Option<u64>,
    ) {
        let next_at_ns = at_ns + INSTRUCTION_NS;
        *self = Self {
            status: ddi0424::EXECUTING,
            pc,
            nonsecure,
            next_at_ns,
            fate,
            irq_delay_ns,
            ..Self::new()
        };
    }

    /// How many bytes of the data buffer the channel uses.
    pub(super) fn buffered_bytes(&self) -> usize {
        self.buffer.len()
    }

    /// Executes DMAKILL: waits for writes under way, and discards everything else.
    pub(super) fn kill(&mut self) {
        if self.status == ddi0424::STOPPED {
            return;
        }
        self.ftr = 0;
        self.status = ddi0424::KILLING;
        self.settle();
    }

    /// Executes everything that is due by `until_ns`, in the order of time.
    pub(super) fn advance(
        &mut self,
        until_ns: u64,
        shared: &Shared,
        events: &mut Events,
        bus: &mut SimBus<'_>,
    ) {
        if let Some((addr, len)) = self.first_store.filter(|_| self.stuck) {
            let _ = bus.write(
                DevAddr(u64::from(addr)),
                [GARBAGE; BURST_BYTES].get(..len).unwrap_or_default(),
            );
        }
        while self.step(until_ns, shared, events, bus) {}
    }

    /// When the program will raise an interrupt if nothing interferes: a dry run of the channel,
    /// without data.
    pub(super) fn predict(
        &self,
        shared: &Shared,
        events: &Events,
        bus: &mut SimBus<'_>,
    ) -> Option<u64> {
        let (mut future, mut events) = (Self { rehearsal: true, ..self.clone() }, events.clone());
        events.raised = 0;
        for _ in 0..PREDICTED {
            if !future.step(u64::MAX - 1, shared, &mut events, bus) || events.interrupts() != 0 {
                break;
            }
        }
        events.delivered_at_ns()
    }

    /// Takes the next step if it is due by `until_ns`.
    fn step(
        &mut self,
        until_ns: u64,
        shared: &Shared,
        events: &mut Events,
        bus: &mut SimBus<'_>,
    ) -> bool {
        let answered_at_ns = self.write.map_or(u64::MAX, |write| write.at_ns);
        if self.status == ddi0424::WAITING_FOR_EVENT && events.take(self.awaited) {
            self.status = ddi0424::EXECUTING;
        }
        let runs = matches!(self.status, ddi0424::EXECUTING | ddi0424::AT_BARRIER);
        if answered_at_ns <= until_ns && (!runs || answered_at_ns <= self.next_at_ns) {
            self.answered(bus);
            return true;
        }
        if runs && self.next_at_ns <= until_ns {
            self.execute(shared, events, bus);
            return true;
        }
        false
    }

    /// Memory answers the oldest write.
    fn answered(&mut self, bus: &mut SimBus<'_>) {
        let Some(Write { addr, len, bytes, .. }) = self.write.take() else { return };
        let failed = !self.rehearsal
            && bus.write(DevAddr(u64::from(addr)), bytes.get(..len).unwrap_or_default()).is_err();
        if failed && self.status != ddi0424::KILLING {
            self.fault(ddi0424::DATA_WRITE_ERR);
        } else {
            self.settle();
        }
    }

    /// Leaves a state that only waits for the last answer, once it is there.
    fn settle(&mut self) {
        if self.write.is_some() || self.stuck {
            return;
        }
        match self.status {
            ddi0424::KILLING | ddi0424::COMPLETING => {
                self.status = ddi0424::STOPPED;
                self.buffer.clear();
                self.lines = [None; LINES];
            }
            ddi0424::FAULTING_COMPLETING => self.status = ddi0424::FAULTING,
            _ => {}
        }
    }

    fn fault(&mut self, bits: u32) {
        self.ftr |= bits;
        self.status = ddi0424::FAULTING_COMPLETING;
        self.settle();
    }

    fn execute(&mut self, shared: &Shared, events: &mut Events, bus: &mut SimBus<'_>) {
        self.status = ddi0424::EXECUTING;
        let (instruction, len) = match self.fetch(bus) {
            Ok(found) => found,
            Err(bits) => return self.fault(bits),
        };
        let at_the_end = matches!(instruction, Instruction::WriteBarrier | Instruction::End);
        match self.fate {
            Fate::Error(after) if self.executed >= after || at_the_end => {
                return self.fault(ddi0424::DATA_READ_ERR);
            }
            Fate::Hang(after) if self.executed >= after || at_the_end => {
                self.next_at_ns = u64::MAX;
                return;
            }
            Fate::Stuck(after)
                if self.executed >= after && self.first_store.is_some() || at_the_end =>
            {
                (self.next_at_ns, self.stuck) = (u64::MAX, true);
                return;
            }
            _ => {}
        }
        // An instruction that must wait for a write is executed again after the answer.
        let waits_for =
            |instruction| matches!(instruction, Instruction::Store | Instruction::WriteBarrier);
        if let Some(write) = self.write.filter(|_| waits_for(instruction)) {
            self.next_at_ns = write.at_ns;
            self.status = if instruction == Instruction::WriteBarrier {
                ddi0424::AT_BARRIER
            } else {
                ddi0424::EXECUTING
            };
            return;
        }
        let before = self.pc;
        self.pc = before.wrapping_add(len);
        self.executed += 1;
        self.next_at_ns = self.next_at_ns.saturating_add(INSTRUCTION_NS);
        match instruction {
            Instruction::Nothing | Instruction::WriteBarrier => {}
            Instruction::End => {
                self.status = ddi0424::COMPLETING;
                self.settle();
            }
            Instruction::Load => self.load(shared, bus),
            Instruction::Store => self.store(),
            Instruction::Loop(counter, rounds) => {
                if let Some(counter) = self.lc.get_mut(counter) {
                    *counter = rounds;
                }
            }
            Instruction::LoopEnd(counter, back) => {
                let counter = counter.and_then(|counter| self.lc.get_mut(counter));
                if counter.as_ref().is_none_or(|counter| **counter != 0) {
                    self.pc = before.wrapping_sub(u32::from(back));
                }
                counter.into_iter().for_each(|counter| *counter = counter.saturating_sub(1));
            }
            Instruction::Move(0, value) => self.sar = value,
            Instruction::Move(1, value)
                if self.nonsecure && value & (1 << 9) & (value >> 14) == 0 =>
            {
                self.fault(ddi0424::CH_RDWR_ERR)
            }
            // The model does not swap bytes.
            Instruction::Move(1, value) if value >> 28 & 7 != 0 => {
                self.fault(ddi0424::OPERAND_INVALID)
            }
            Instruction::Move(1, value) => self.ccr = value,
            Instruction::Move(_, value) => self.dar = value,
            Instruction::Event(event) | Instruction::WaitForEvent(event)
                if u32::from(event) >= shared.events =>
            {
                self.fault(ddi0424::OPERAND_INVALID);
            }
            Instruction::Event(event) | Instruction::WaitForEvent(event)
                if self.nonsecure && shared.nonsecure_events >> event & 1 == 0 =>
            {
                self.fault(ddi0424::CH_EVNT_ERR);
            }
            Instruction::Event(event) => {
                let delivered = self
                    .irq_delay_ns
                    .map_or(u64::MAX, |delay| self.next_at_ns.saturating_add(delay));
                events.raise(event, delivered);
            }
            Instruction::WaitForEvent(event) => {
                (self.status, self.awaited) = (ddi0424::WAITING_FOR_EVENT, event)
            }
        }
    }

    /// Loads one burst into the buffer. The first beat of an unaligned burst ends at the next
    /// multiple of a beat.
    fn load(&mut self, shared: &Shared, bus: &mut SimBus<'_>) {
        let Burst { beats, len, counts_up } = Burst::of(self.ccr, self.sar);
        if len > shared.buffer_bytes.min(BURST_BYTES) {
            return self.fault(ddi0424::MFIFO_ERR);
        }
        if self.buffer.len() + len > shared.room_bytes {
            // Only stores could make room, and each channel may be waiting for the others' stores.
            return self.fault(ddi0424::LOCKUP_ERR);
        }
        let mut bytes = [0; BURST_BYTES];
        let bytes = bytes.get_mut(..len).unwrap_or_default();
        if !self.rehearsal && bus.read(DevAddr(u64::from(self.sar)), bytes).is_err() {
            return self.fault(ddi0424::DATA_READ_ERR);
        }
        for &byte in bytes.iter() {
            let _ = self.buffer.push_back(byte);
        }
        self.sar = if counts_up { self.sar.wrapping_add(low32(len)) } else { self.sar };
        self.next_at_ns = self.next_at_ns.saturating_add(LATENCY_NS + BEAT_NS * beats);
    }

    /// Starts the write of one burst from the buffer.
    fn store(&mut self) {
        let Burst { beats, len, counts_up } = Burst::of(self.ccr >> 14, self.dar);
        if self.buffer.len() < len || len > BURST_BYTES {
            return self.fault(ddi0424::ST_DATA_UNAVAILABLE);
        }
        let mut bytes = [0; BURST_BYTES];
        for byte in bytes.iter_mut().take(len) {
            *byte = self.buffer.pop_front().unwrap_or_default();
        }
        let at_ns = self.next_at_ns.saturating_add(BEAT_NS * beats + ANSWER_NS);
        self.first_store.get_or_insert((self.dar, len));
        self.write = Some(Write { at_ns, addr: self.dar, len, bytes });
        self.dar = if counts_up { self.dar.wrapping_add(low32(len)) } else { self.dar };
    }

    /// Fetches the instruction at the program counter through the cache. Returns it and its length,
    /// or the fault.
    fn fetch(&mut self, bus: &mut SimBus<'_>) -> Result<(Instruction, u32), u32> {
        let mut code = [0; 6];
        let opcode = self.byte(0, bus)?;
        let len = len_bytes(opcode).ok_or(ddi0424::UNDEF_INSTR)?;
        for (index, byte) in (0..).zip(code.iter_mut().take(len)) {
            *byte = self.byte(index, bus)?;
        }
        Ok((decode(code).ok_or(ddi0424::OPERAND_INVALID)?, low32(len)))
    }

    /// Returns the byte `index` after the program counter.
    fn byte(&mut self, index: u32, bus: &mut SimBus<'_>) -> Result<u8, u32> {
        let at = self.pc.wrapping_add(index);
        let (addr, offset) = (at & !(low32(LINE_BYTES) - 1), at as usize % LINE_BYTES);
        let slot = self
            .lines
            .get_mut(addr as usize / LINE_BYTES % LINES)
            .ok_or(ddi0424::INSTR_FETCH_ERR)?;
        if slot.is_none_or(|line| line.addr != addr) {
            let mut bytes = [0; LINE_BYTES];
            bus.read(DevAddr(u64::from(addr)), &mut bytes).map_err(|_| ddi0424::INSTR_FETCH_ERR)?;
            *slot = Some(Line { addr, bytes });
        }
        slot.and_then(|line| line.bytes.get(offset).copied()).ok_or(ddi0424::INSTR_FETCH_ERR)
    }
}

/// How one side of CCR changes an address. The source's bits are 0 to 7, and the destination's are
/// the same, 14 bits higher.
struct Burst {
    beats: u64,
    len: usize,
    counts_up: bool,
}

impl Burst {
    fn of(side: u32, addr: u32) -> Self {
        let (size, beats) = (1_u32 << (side >> 1 & 7), (side >> 4 & 15) + 1);
        let len = size * beats - addr % size;
        Self { beats: u64::from(beats), len: len as usize, counts_up: side & 1 == 1 }
    }
}

#[allow(clippy::cast_possible_truncation, reason = "lengths here are at most 2,048")]
const fn low32(len: usize) -> u32 {
    len as u32
}
