#![allow(unsafe_code, reason = "an interrupt is acknowledged by a register")]
//! How the end of a channel's oldest job is found, in either mode.

use super::lane::{Lane, MAYBE_TORN, Seen};
use super::regs::{self, Side};
use crate::checks::low;
use contigo_core::hw::Mmio;
use contigo_core::job::Completion;
use contigo_core::types::{Error, Result};

/// After so many polls of registers that showed nothing, a descriptor is polled: if CURDESC or an
/// interrupt's bit is late, the end is found all the same.
const QUIET_LOOKS: u32 = 256;
/// So many reads of a register, 100 ns and more each, outlast the answer to a descriptor's write.
const LATE_READS: u32 = 4;

/// The next descriptor of a job.
enum Next {
    /// It is done, with this status, and with it the job.
    Job(u32),
    /// It is done, and there are more.
    Descriptor,
    Open,
    /// It has an error's bit, in this status.
    Failed(u32),
}

impl Lane {
    /// Polls once: the end of the oldest job, or nothing, or why the channel cannot go on.
    pub(super) fn look(&mut self, at: &impl Mmio) -> Result<Option<Completion>> {
        if self.in_flight == 0 {
            return Ok(None);
        }
        if !self.runs {
            return self.look_stopped();
        }
        let (status, is_idle) = if let Seen::Told(status) = self.seen {
            self.seen = Seen::Nothing;
            // Of the jobs before the doorbell, not of those since.
            (status, false)
        } else {
            let status = regs::DMASR.read(at);
            let is_idle = regs::is_idle(status);
            self.seen = Seen::Looked { idle: is_idle };
            (status, is_idle)
        };
        if status == u32::MAX {
            return Err(self.fault(at, status));
        }
        if status & regs::IRQS != 0 {
            // SAFETY: acknowledging moves no data.
            unsafe { regs::DMASR.write(at, status & regs::IRQS) };
        }
        match self.ring {
            None => self.look_at_registers(at, status),
            Some(_) => self.look_at_descriptors(at, status, is_idle),
        }
    }

    fn look_at_registers(&mut self, at: &impl Mmio, status: u32) -> Result<Option<Completion>> {
        if status & (regs::ERRORS | regs::HALTED) != 0 {
            return Err(self.fault(at, status));
        }
        if !regs::is_idle(status) {
            return Ok(None);
        }
        let end = match self.side {
            Side::Mm2s => Completion { status, ..Completion::of(self.oldest) },
            Side::S2mm => {
                let status = status | regs::FIRST | regs::LAST;
                let bytes = regs::LENGTH.read(at) as usize & self.config.longest();
                Completion {
                    status,
                    words: self.words(true),
                    bytes: Some(bytes),
                    last: Some(true),
                    ..Completion::of(self.oldest)
                }
            }
        };
        self.in_flight = 0;
        Ok(Some(end))
    }

    fn look_at_descriptors(
        &mut self,
        at: &impl Mmio,
        status: u32,
        is_idle: bool,
    ) -> Result<Option<Completion>> {
        let ended = status & regs::TOLD != 0;
        self.quiet = if ended { 0 } else { self.quiet + 1 };
        if is_idle {
            self.known = self.given;
        } else if !ended && self.quiet < QUIET_LOOKS {
            let current = self.steps_to(regs::CURDESC_LOW.read(at));
            if current.is_some_and(|steps| self.is_under_way(steps)) {
                self.tail.goes_on();
                return Ok(None);
            }
            self.known = current.unwrap_or(0);
        }
        self.quiet = 0;
        self.look_at_memory(at, status, is_idle)
    }

    /// Polls the oldest job's descriptors before any register, if an earlier poll of registers
    /// showed that they are done, or if that costs less.
    ///
    /// This acknowledges no interrupt. So the last job's end is left to [`look`](Self::look), after
    /// which nothing polls the channel; and where a sibling sleeps in the same line (`is_shared`),
    /// so is an end that no register showed.
    #[inline]
    pub(super) fn look_first(
        &mut self,
        at: &impl Mmio,
        is_shared: bool,
    ) -> Result<Option<Completion>> {
        if self.in_flight == 1 || self.known == 0 && (is_shared || !self.is_coherent()) {
            return Ok(None);
        }
        self.look_at_memory(at, 0, false)
    }

    /// Acknowledges the interrupts of ends, where no poll of the channel follows. An error's stays
    /// for the poll that reports it. Returns whether no more of them is to come: it found one, or
    /// the channel is idle.
    pub(super) fn acknowledge(&mut self, at: &impl Mmio) -> bool {
        let status = regs::DMASR.read(at);
        let ends = status & regs::END_IRQS;
        if ends != 0 {
            // SAFETY: acknowledging moves no data.
            unsafe { regs::DMASR.write(at, ends) };
            // They may be those of jobs in flight: the next poll looks at memory.
            self.quiet = QUIET_LOOKS;
        }
        ends != 0 || regs::is_idle(status)
    }

    /// Polls the oldest job's descriptors. `status`: DMASR, if it was read. `acknowledged`: it
    /// showed that all jobs are done, and their interrupts were acknowledged.
    #[inline(always)]
    pub(super) fn look_at_memory(
        &mut self,
        at: &impl Mmio,
        status: u32,
        acknowledged: bool,
    ) -> Result<Option<Completion>> {
        loop {
            match self.next_done()? {
                Next::Job(ended) => {
                    let end = self.take_end(ended);
                    if self.in_flight == 0 && !acknowledged {
                        // Its interrupt may have come after those that were acknowledged, or come
                        // now: the core raises it once the descriptor's write was answered.
                        let _ = (0..LATE_READS).any(|_| self.acknowledge(at));
                    }
                    if self.may_pause() {
                        // The next poll reports an error.
                        let _ = self.resume(at);
                    }
                    return Ok(Some(end));
                }
                Next::Descriptor => {}
                found => {
                    if let Some(error) = self.no_end(at, status, &found) {
                        return Err(error);
                    }
                    self.known = 0;
                    if self.may_pause() {
                        self.resume(at)?;
                    }
                    return Ok(None);
                }
            }
        }
    }

    /// Why the channel cannot go on, if the next descriptor shows no end.
    fn no_end(&mut self, at: &impl Mmio, status: u32, found: &Next) -> Option<Error> {
        match found {
            // Perhaps after the channel's status was read, and perhaps before it shows the error.
            Next::Failed(failed) => {
                let status = regs::DMASR.read(at) | regs::errors_of(*failed);
                Some(self.fault(at, status))
            }
            // The packets before the error were reported.
            _ if status & (regs::HALTED | regs::ERRORS) != 0 => Some(self.fault(at, status)),
            // CURDESC moved on before the status was written.
            _ => None,
        }
    }

    /// Polls a stopped channel: nothing changes any more, so one poll finds everything.
    pub(super) fn look_stopped(&mut self) -> Result<Option<Completion>> {
        if self.ring.is_none() {
            self.in_flight = 0;
            return Ok(self.ended.take());
        }
        while self.in_flight > 0 {
            match self.next_done() {
                Ok(Next::Job(ended)) => return Ok(Some(self.take_end(ended))),
                Ok(Next::Descriptor) => {}
                // A fault was reported before the stop.
                Err(_) | Ok(Next::Failed(_) | Next::Open) => self.in_flight = 0,
            }
        }
        Ok(None)
    }

    /// How many descriptors lie between the oldest job's first and the one that CURDESC names.
    fn steps_to(&self, current: u32) -> Option<usize> {
        let ring = self.ring.as_ref()?;
        (0..self.given).find(|&steps| low(ring.addr(ring.after(self.first, steps))) == current)
    }

    /// Returns whether the oldest job waits for the end of the descriptor `steps` after its first.
    fn is_under_way(&self, steps: usize) -> bool {
        match self.side {
            Side::Mm2s => steps < self.pieces(),
            Side::S2mm => steps == self.done,
        }
    }

    /// The oldest job's next descriptor: of a packet that is sent, only the last one counts.
    #[inline(always)]
    fn next_done(&mut self) -> Result<Next> {
        let pieces = self.pieces();
        if self.side == Side::Mm2s {
            self.done = pieces - 1;
        }
        let Some(ring) = &mut self.ring else { return Ok(Next::Open) };
        let mut words = [0; 2];
        self.looks += 1;
        ring.read(ring.after(self.first, self.done), regs::CONTROL_AT, &mut words)?;
        let [control, status] = words;
        if status & (regs::FAILED | regs::COMPLETE) != regs::COMPLETE {
            return Ok(if status & regs::FAILED != 0 { Next::Failed(status) } else { Next::Open });
        }
        if self.done == 0 {
            self.began = status & regs::FIRST;
        }
        let (is_last_piece, is_end) = (self.done + 1 == pieces, status & regs::LAST != 0);
        if self.side == Side::S2mm {
            let bytes = (status & regs::BYTES_MASK) as usize;
            // Without a packet's end the whole buffer was filled, and never more. A core with a
            // narrower length register filled less, and the next bytes went elsewhere.
            let room = (control & regs::BYTES_MASK) as usize;
            if is_end && !is_last_piece || bytes != room && (bytes > room || !is_end) {
                return Err(self.wrong_end(control, status, is_last_piece));
            }
            self.bytes += bytes;
        }
        if !is_last_piece {
            self.done += 1;
            return Ok(Next::Descriptor);
        }
        Ok(Next::Job(status))
    }

    /// The end of the oldest job, whose last descriptor has this status.
    #[inline]
    fn take_end(&mut self, status: u32) -> Completion {
        let (receives, is_end) = (self.side == Side::S2mm, status & regs::LAST != 0);
        let end = Completion {
            slot: self.oldest,
            // What is sent has the control's length as its count, even if the core sent less.
            bytes: receives.then_some(self.bytes),
            status: status & !regs::FIRST | self.began,
            words: self.words(is_end),
            failed: None,
            last: receives.then_some(is_end),
        };
        let pieces = self.pieces();
        if let Some(ring) = &self.ring {
            self.first = ring.after(self.first, pieces);
        }
        self.given = self.given.saturating_sub(pieces);
        self.known = self.known.saturating_sub(pieces);
        self.tail.moves();
        (self.done, self.bytes, self.began) = (0, 0, 0);
        self.oldest = if self.oldest + 1 >= self.depth { 0 } else { self.oldest + 1 };
        self.in_flight -= 1;
        end
    }

    /// The error of a received descriptor whose count cannot be.
    #[cold]
    fn wrong_end(&self, control: u32, status: u32, is_last_piece: bool) -> Error {
        if status & regs::LAST != 0 && !is_last_piece {
            regs::early_end(status)
        } else {
            self.cut_length(control, status)
        }
    }

    /// How many descriptors the oldest job has.
    #[inline]
    fn pieces(&self) -> usize {
        self.counts.get(self.oldest).map_or(1, |&count| usize::from(count).max(1))
    }

    /// The completion's words for an end whose last byte is a packet's, or is not.
    #[inline]
    fn words(&mut self, last: bool) -> [u32; 4] {
        self.open = matches!(self.side, Side::S2mm) && !last;
        [if core::mem::take(&mut self.torn) { MAYBE_TORN } else { 0 }, 0, 0, 0]
    }

    /// The error in DMASR. Its descriptor is the first one with an error bit, or else CURDESC's: an
    /// error in a fetch.
    #[cold]
    fn fault(&mut self, at: &impl Mmio, status: u32) -> Error {
        let Some(ring) = &mut self.ring else {
            return regs::decode(self.side, status, Some(self.addr.0), None);
        };
        if status == u32::MAX {
            return regs::decode(self.side, status, None, None);
        }
        let failed = (0..self.given.min(ring.len())).find_map(|step| {
            let (index, mut status) = (ring.after(self.first, step), [0]);
            let is_read = ring.read(index, regs::STATUS_AT, &mut status).is_ok();
            (is_read && status[0] & regs::FAILED != 0).then_some(index)
        });
        let high = if self.config.address_bits > 32 {
            u64::from(regs::CURDESC_HIGH.read(at)) << 32
        } else {
            0
        };
        let current = high | u64::from(regs::CURDESC_LOW.read(at));
        let descriptor = failed.map_or(current, |index| ring.addr(index));
        let mut words = [0; 5];
        let index = failed.or_else(|| (0..ring.len()).find(|&index| ring.addr(index) == current));
        let buffer = index.and_then(|index| ring.read(index, regs::BUFFER_AT, &mut words).ok());
        let [low, high, _, _, control] = words;
        // Here only a length of 0 is DMAIntErr: the core dropped all of its bits.
        if status & regs::ERRORS == regs::INTERNAL_ERROR && control & regs::BYTES_MASK != 0 {
            return self.cut_length(control, 0);
        }
        regs::decode(
            self.side,
            status,
            buffer.map(|()| u64::from(high) << 32 | u64::from(low)),
            Some(descriptor),
        )
    }
}
