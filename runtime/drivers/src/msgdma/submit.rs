#![allow(unsafe_code, reason = "the control word of a descriptor sends the core to the operands")]
//! Jobs through the descriptor port, and their ends: by the response port, or all together.

use super::config::{DEPTH_MIN, JOBS_MAX, MsgdmaConfig, MsgdmaMode};
use super::regs::{self, At, gone};
use crate::checks::{high, low};
use crate::settle::Settle;
use contigo_core::hw::Device;
use contigo_core::job::Completion;
use contigo_core::mem::DevSlice;
use contigo_core::types::{Error, Result};
use heapless::Deque;

/// A job's end that was read from the core, and not reported.
#[derive(Clone, Copy, Debug)]
struct Ended {
    bytes: u32,
    status: u32,
}

/// The jobs of a core with a descriptor port: a queue whose head has the jobs that ended, followed
/// by those that the core still has.
#[derive(Debug)]
pub(super) struct Slave {
    config: MsgdmaConfig,
    /// The slot of the oldest unreported job.
    oldest: usize,
    /// Unreported jobs, including those in `ended`.
    in_flight: usize,
    /// Responses waiting in the core, by its last report.
    waiting: usize,
    ended: Deque<Ended, JOBS_MAX>,
    pub(super) settle: Settle,
}

/// The addresses that a job reads and writes. A stream has none.
pub(super) const fn addresses(mode: MsgdmaMode, operands: &[DevSlice]) -> (u64, u64) {
    match (mode, operands) {
        (MsgdmaMode::Copy, [from, to, ..]) => (from.addr.0, to.addr.0),
        (MsgdmaMode::Send, [from, ..]) => (from.addr.0, 0),
        (MsgdmaMode::Receive, [to, ..]) => (0, to.addr.0),
        _ => (0, 0),
    }
}

/// The control word of a job's descriptor, without the go bit.
pub(super) const fn control(mode: MsgdmaMode) -> u32 {
    regs::IRQ_ON_END
        | match mode {
            MsgdmaMode::Copy => regs::WAIT_FOR_WRITES,
            // No `IRQ_ON_ERROR`: these bits would be sent.
            MsgdmaMode::Send => regs::GENERATE_SOP | regs::GENERATE_EOP,
            MsgdmaMode::Receive => {
                regs::END_ON_EOP | regs::IRQ_ON_EARLY | regs::IRQ_ON_ERROR | regs::WAIT_FOR_WRITES
            }
        }
}

/// The completion of the job in `slot`, by its response.
pub(super) fn completion(mode: MsgdmaMode, slot: usize, bytes: u32, status: u32) -> Completion {
    let ended = Completion::of(slot);
    match mode {
        MsgdmaMode::Receive => {
            let bytes = Some(usize::try_from(bytes).unwrap_or(usize::MAX));
            Completion { status, failed: regs::describe(status), bytes, ..ended }
        }
        MsgdmaMode::Copy | MsgdmaMode::Send => ended,
    }
}

impl Slave {
    pub(super) const fn new(config: MsgdmaConfig) -> Self {
        Self {
            config,
            oldest: 0,
            in_flight: 0,
            waiting: 0,
            ended: Deque::new(),
            settle: Settle::new(config.settles_us()),
        }
    }

    pub(super) fn depth(&self) -> usize {
        self.config.depth.min(JOBS_MAX)
    }

    /// The core was reset, and `slot` gets the first job after that.
    pub(super) fn begin_anew(&mut self, slot: usize) {
        (self.oldest, self.in_flight, self.waiting) = (slot, 0, 0);
        self.ended.clear();
        self.settle.begin_anew();
    }

    /// Writes a descriptor, its control word last.
    ///
    /// # Safety
    /// The operands were handed over.
    pub(super) unsafe fn submit(
        &mut self,
        device: &impl Device,
        slot: usize,
        len: u32,
        operands: &[DevSlice],
    ) -> Result<()> {
        let csr = At(device, self.config.csr_at);
        // Every core holds this many; a write to a full FIFO would stall the processor.
        if self.in_flight >= DEPTH_MIN {
            let status = regs::STATUS.read(&csr);
            if status & regs::RESERVED != 0 {
                return Err(gone(status));
            }
            if status & regs::FULL != 0 {
                let fix = "it is more than the core's `Descriptor FIFO Depth`: say what Platform \
                    Designer says";
                return Err(Error::Setting { name: "depth", value: self.config.depth as u64, fix });
            }
        }
        let desc = At(device, self.config.desc_at);
        let (from, to) = addresses(self.config.mode, operands);
        let control = control(self.config.mode) | regs::GO;
        let sequence = u32::try_from(slot).unwrap_or(0) & 0xFFFF;
        // SAFETY: the operands were handed over, and `check` found the second one of a copy large
        // enough. Nothing starts before the control word.
        unsafe {
            regs::READ_ADDR.write(&desc, low(from));
            regs::WRITE_ADDR.write(&desc, low(to));
            regs::LENGTH.write(&desc, len);
            if self.config.extended {
                regs::BURST_SEQUENCE.write(&desc, sequence);
                regs::STRIDE.write(&desc, regs::STRIDE_ONE);
                regs::READ_ADDR_HIGH.write(&desc, high(from));
                regs::WRITE_ADDR_HIGH.write(&desc, high(to));
                regs::EXTENDED_CONTROL.write(&desc, control);
            } else {
                regs::STANDARD_CONTROL.write(&desc, control);
            }
        }
        self.in_flight += 1;
        Ok(())
    }

    /// The oldest job's completion, if its end was already read.
    pub(super) fn tell(&mut self) -> Option<Completion> {
        if !self.settle.take() {
            return None;
        }
        let Ended { bytes, status } = self.ended.pop_front()?;
        let slot = self.oldest;
        self.oldest = if slot + 1 >= self.depth() { 0 } else { slot + 1 };
        self.in_flight = self.in_flight.saturating_sub(1);
        Some(completion(self.config.mode, slot, bytes, status))
    }

    /// Polls for ends that may be reported.
    pub(super) fn look(&mut self, device: &impl Device) -> Result<bool> {
        if self.settle.needs_time() {
            self.acknowledge(device)?;
        }
        self.look_for_ends(device)?;
        Ok(self.settle.look(device, self.ended.len()))
    }

    /// The level line falls before the ends are counted, so it rises again for those that come
    /// later. Where no end needs time, a poll that finds none acknowledges it.
    fn acknowledge(&self, device: &impl Device) -> Result<()> {
        let csr = At(device, self.config.csr_at);
        let status = regs::STATUS.read(&csr);
        if status & regs::RESERVED != 0 {
            return Err(gone(status));
        }
        if status & regs::IRQ != 0 {
            // SAFETY: acknowledging moves no data.
            unsafe { regs::STATUS.write(&csr, regs::IRQ) };
        }
        Ok(())
    }

    /// Polls for ends: one response, or an idle core.
    fn look_for_ends(&mut self, device: &impl Device) -> Result<bool> {
        if self.in_flight == self.ended.len() {
            return Ok(!self.ended.is_empty());
        }
        match self.config.resp_at {
            Some(resp_at) => self.look_at_responses(device, resp_at),
            None => self.look_whether_idle(device),
        }
    }

    fn look_at_responses(&mut self, device: &impl Device, resp_at: usize) -> Result<bool> {
        let csr = At(device, self.config.csr_at);
        if self.waiting == 0 {
            self.waiting = self.count(regs::RESPONSES.read(&csr))?;
        }
        if self.waiting == 0 {
            // A level line: it falls here, and the count below includes what came meanwhile.
            // SAFETY: acknowledging moves no data.
            unsafe { regs::STATUS.write(&csr, regs::IRQ) };
            self.waiting = self.count(regs::RESPONSES.read(&csr))?;
        }
        if self.waiting == 0 {
            return Ok(false);
        }
        let resp = At(device, resp_at);
        let bytes = regs::RESPONSE_LENGTH.read(&resp);
        let status = regs::RESPONSE_STATUS.read_and_clear(&resp);
        if status == u32::MAX {
            return Err(gone(status));
        }
        self.waiting -= 1;
        // There is room: no more ends than jobs in flight.
        Ok(self.ended.push_back(Ended { bytes, status }).is_ok())
    }

    /// How many responses wait. More than the jobs in flight is an error.
    fn count(&self, responses: u32) -> Result<usize> {
        let most = self.in_flight - self.ended.len();
        usize::try_from(responses)
            .ok()
            .filter(|&responses| responses <= most)
            .ok_or(gone(responses))
    }

    /// Without a response port only an idle core shows that jobs ended, all of them.
    fn look_whether_idle(&mut self, device: &impl Device) -> Result<bool> {
        let csr = At(device, self.config.csr_at);
        // Twice, because BUSY rises two clocks after a descriptor arrives.
        for _ in 0..2 {
            let status = regs::STATUS.read(&csr);
            if status & regs::RESERVED != 0 {
                return Err(gone(status));
            }
            if status & (regs::BUSY | regs::EMPTY) != regs::EMPTY {
                if status & regs::IRQ != 0 {
                    // SAFETY: acknowledging moves no data.
                    unsafe { regs::STATUS.write(&csr, regs::IRQ) };
                }
                return Ok(false);
            }
        }
        while self.ended.len() < self.in_flight
            && self.ended.push_back(Ended { bytes: 0, status: 0 }).is_ok()
        {}
        Ok(true)
    }

    /// The masters have stopped: saves the waiting responses before a reset clears them.
    pub(super) fn drain(&mut self, device: &impl Device) {
        if self.config.resp_at.is_some() {
            for _ in 0..JOBS_MAX {
                if self.in_flight == self.ended.len()
                    || !matches!(self.look_for_ends(device), Ok(true))
                {
                    break;
                }
            }
        }
    }

    /// After a stop only ends that were already read are reported.
    pub(super) fn stopped(&mut self, device: &impl Device) {
        (self.in_flight, self.waiting) = (self.ended.len(), 0);
        self.settle.rest();
        let _ = self.settle.look(device, self.ended.len());
    }
}
