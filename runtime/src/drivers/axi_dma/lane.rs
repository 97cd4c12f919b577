#![allow(unsafe_code, reason = "registers and descriptors start transfers")]
//! One channel and its jobs, in either mode: how one is given and how its end is found.

use super::{
    config::{AxiDmaConfig, DEPTH_MAX, Side},
    fault,
    halt::no_start,
    regs,
    tail::Tail,
};
use crate::{
    drivers::ring::Ring,
    hw::{Mmio, Wait, wait::poll_every},
    job::{Completion, OperandSpec},
    mem::DevSlice,
    types::{DevAddr, Result},
};
use core::time::Duration;

/// A descriptor is looked at after so many looks at registers that said nothing: where CURDESC or
/// an interrupt's bit were late, the end is found all the same.
const QUIET_LOOKS: u32 = 256;
/// Completion's word 0: the packet may lack its beginning.
pub(super) const MAYBE_TORN: u32 = 1;

/// One channel: its jobs in flight, with descriptors or one at a time in registers.
#[derive(Debug)]
pub(super) struct Lane<'p> {
    pub(super) side: Side,
    pub(super) config: AxiDmaConfig,
    /// `None`: direct register mode.
    pub(super) ring: Option<Ring<'p>>,
    pub(super) depth: usize,
    pub(super) operand: [OperandSpec; 1],
    /// Between the first job and a stop.
    pub(super) runs: bool,
    /// The oldest slot that was not told, and how many were not.
    oldest: usize,
    pub(super) in_flight: usize,
    /// How many descriptors the job in each slot has.
    counts: [u16; DEPTH_MAX],
    /// The next descriptor to write, and the first of the oldest job.
    head: usize,
    pub(super) first: usize,
    /// So many from `first` on were written for jobs that were not told.
    given: usize,
    /// How TAILDESC was written last.
    pub(super) tail: Tail,
    /// Of the oldest job: so many descriptors are done, with so many bytes, and RXSOF.
    done: usize,
    bytes: usize,
    began: u32,
    /// The address in direct register mode.
    addr: DevAddr,
    /// Lengths up to this one are known to fit the core's register.
    fits_bytes: usize,
    /// An end in registers, found when the channel was stopped.
    pub(super) ended: Option<Completion>,
    /// A receive was stopped in the middle: the next packet may lack its beginning.
    torn: bool,
    pub(super) ran_dry: u64,
    pub(super) looks: u64,
    quiet: u32,
}

impl<'p> Lane<'p> {
    /// A channel without jobs. The depth is the configuration's, or one descriptor a job.
    pub(super) fn new(side: Side, config: AxiDmaConfig, ring: Option<Ring<'p>>) -> Self {
        let descriptors = ring.as_ref().map_or(1, Ring::len);
        let depth = if ring.is_some() { config.depth.unwrap_or(DEPTH_MAX).min(descriptors).min(DEPTH_MAX) } else { 1 };
        let operand = [config.operand(side, descriptors / depth.max(1))];
        let (addr, counts, ended) = (DevAddr(0), [0; DEPTH_MAX], None);
        let (runs, oldest, in_flight, head, first, done, bytes, began) = (false, 0, 0, 0, 0, 0, 0, 0);
        let (fits_bytes, torn, ran_dry, looks, quiet) = (0, false, 0, 0, 0);
        let (given, tail) = (0, Tail::default());
        Self {
            side,
            config,
            ring,
            depth,
            operand,
            runs,
            oldest,
            in_flight,
            counts,
            head,
            first,
            given,
            tail,
            done,
            bytes,
            began,
            addr,
            fits_bytes,
            ended,
            torn,
            ran_dry,
            looks,
            quiet,
        }
    }

    /// Gives the channel one job, and starts it where it does not run.
    ///
    /// # Safety
    /// As [`Driver::submit`](crate::Driver::submit), and nobody resets the core meanwhile.
    pub(super) unsafe fn submit(&mut self, at: &(impl Mmio + Wait), slot: usize, operand: &DevSlice) -> Result<()> {
        if !self.runs {
            self.forget()?;
            (self.oldest, self.in_flight, self.ended) = (slot, 0, None);
            (self.head, self.first, self.done, self.bytes, self.began) = (0, 0, 0, 0, 0);
        }
        self.quiet = 0;
        match self.ring {
            // SAFETY: the caller's promise.
            Some(_) => unsafe { self.submit_descriptors(at, slot, operand)? },
            // SAFETY: as above.
            None => unsafe { self.submit_registers(at, operand)? },
        }
        self.in_flight += 1;
        Ok(())
    }

    /// The descriptors of the jobs that a stop took back: the core would find them complete.
    fn forget(&mut self) -> Result<()> {
        let Some(ring) = &mut self.ring else { return Ok(()) };
        for step in 0..core::mem::take(&mut self.given).min(ring.len()) {
            // SAFETY: the channel is halted.
            unsafe { ring.write(ring.after(self.first, step), regs::STATUS_AT, &[regs::COMPLETE])? };
        }
        Ok(())
    }

    /// # Safety
    /// As [`submit`](Self::submit).
    unsafe fn submit_registers(&mut self, at: &(impl Mmio + Wait), operand: &DevSlice) -> Result<()> {
        let len_bytes = u32::try_from(operand.len_bytes).unwrap_or(0);
        self.addr = operand.addr;
        if !self.runs {
            // SAFETY: RS alone moves no data: LENGTH does.
            unsafe { self.start(at)? };
        }
        let (low, high) = halves(operand.addr.0);
        // SAFETY: the operand was handed over, and the engine and `operand` found its length fit.
        // The transfer before it has ended.
        unsafe {
            regs::ADDRESS.write(at, low);
            if self.config.address_bits > 32 {
                regs::ADDRESS_HIGH.write(at, high);
            }
            regs::LENGTH.write(at, len_bytes);
        }
        // S2MM's register changes by itself.
        if self.side == Side::Mm2s && operand.len_bytes > self.fits_bytes {
            let found = regs::LENGTH.read(at);
            if found != len_bytes {
                return Err(fault::cut_length(self.side, found));
            }
            self.fits_bytes = operand.len_bytes;
        }
        Ok(())
    }

    /// # Safety
    /// As [`submit`](Self::submit).
    unsafe fn submit_descriptors(&mut self, at: &(impl Mmio + Wait), slot: usize, operand: &DevSlice) -> Result<()> {
        let Some(ring) = &mut self.ring else { return Ok(()) };
        let pieces = self.config.pieces(operand.len_bytes);
        let (begins, mut last) = (ring.addr(self.head), self.head);
        for piece in 0..pieces {
            let from = piece * self.config.piece();
            let len_bytes = if piece + 1 == pieces { operand.len_bytes - from } else { self.config.piece() };
            let flags = match self.side {
                Side::S2mm => 0,
                Side::Mm2s => (if piece == 0 { regs::TX_FIRST } else { 0 }) | if piece + 1 == pieces { regs::TX_LAST } else { 0 },
            };
            last = ring.after(self.head, piece);
            let control = u32::try_from(len_bytes).unwrap_or(0) & regs::BYTES_MASK | flags;
            let words = regs::descriptor(ring.addr(ring.after(last, 1)), DevAddr(operand.addr.0 + from as u64), control);
            // SAFETY: each job in flight has `len / depth` descriptors at most, and there are fewer
            // than `depth`. So these are free: the channel stopped at an earlier one's tail, or is
            // halted.
            unsafe { ring.write(last, 0, &words)? };
        }
        self.head = ring.after(last, 1);
        self.given += pieces;
        let tail = ring.addr(last);
        if let Some(count) = self.counts.get_mut(slot) {
            *count = u16::try_from(pieces).unwrap_or(u16::MAX);
        }
        if !self.runs {
            // SAFETY: the channel is halted. The descriptors from here to the tail name operands
            // that were handed over.
            unsafe {
                regs::CURDESC.write(at, DevAddr(begins));
                self.start(at)?;
            }
        } else if self.side == Side::S2mm && is_idle(regs::DMASR.read(at)) {
            self.ran_dry += 1;
        }
        // SAFETY: as above.
        unsafe { self.write_tail(at, tail) };
        Ok(())
    }

    /// Lets the channel run, and waits until it does.
    ///
    /// # Safety
    /// In scatter-gather mode CURDESC is a descriptor of the driver's.
    unsafe fn start(&mut self, at: &(impl Mmio + Wait)) -> Result<()> {
        // From here on it is to be stopped, whatever comes.
        self.runs = true;
        let coalescing =
            u32::from(self.config.irq_packets) << regs::THRESHOLD_SHIFT | u32::from(self.config.irq_delay) << regs::DELAY_SHIFT;
        // SAFETY: the caller's promise.
        unsafe { regs::DMACR.write(at, regs::RUN | regs::IRQ_ENABLE | coalescing) };
        let (mut status, limit) = (0, Duration::from_micros(self.config.stop_us.into()));
        let runs = poll_every(at, 1, limit, |at| {
            status = regs::DMASR.read(at);
            status & (regs::HALTED | regs::RESERVED) == 0
        });
        if matches!(runs, Ok(true)) { Ok(()) } else { Err(no_start(self.side, status)) }
    }

    /// One look: the end of the oldest job, or nothing, or why the channel cannot go on.
    pub(super) fn look(&mut self, at: &impl Mmio) -> Result<Option<Completion>> {
        if self.in_flight == 0 {
            return Ok(None);
        }
        if !self.runs {
            return self.look_stopped();
        }
        let status = regs::DMASR.read(at);
        if status == u32::MAX {
            return Err(self.fault(at, status));
        }
        if status & regs::IRQS != 0 {
            // SAFETY: acknowledging moves no data.
            unsafe { regs::DMASR.write(at, status & regs::IRQS) };
        }
        match self.ring {
            None => self.look_at_registers(at, status),
            Some(_) => self.look_at_descriptors(at, status),
        }
    }

    fn look_at_registers(&mut self, at: &impl Mmio, status: u32) -> Result<Option<Completion>> {
        if status & (regs::ERRORS | regs::HALTED) != 0 {
            return Err(self.fault(at, status));
        }
        if !is_idle(status) {
            return Ok(None);
        }
        let end = match self.side {
            Side::Mm2s => Completion { status, ..Completion::of(self.oldest) },
            Side::S2mm => {
                let status = status | regs::FIRST | regs::LAST;
                let bytes = regs::LENGTH.read(at) as usize & self.config.longest();
                Completion { status, words: self.words(), ..Completion::of(self.oldest).with_bytes(bytes).with_last(true) }
            }
        };
        self.in_flight = 0;
        Ok(Some(end))
    }

    fn look_at_descriptors(&mut self, at: &impl Mmio, status: u32) -> Result<Option<Completion>> {
        let ended = status & (regs::IDLE | regs::HALTED | regs::ERRORS | regs::IRQS) != 0;
        self.quiet = if ended { 0 } else { self.quiet + 1 };
        // The registers first: each look at a descriptor is a sync.
        if !ended && self.quiet < QUIET_LOOKS && self.is_under_way(regs::CURDESC_LOW.read(at)) {
            self.tail.goes_on = true;
            return Ok(None);
        }
        self.quiet = 0;
        self.look_at_memory(at, status)
    }

    /// The oldest job's descriptors, where registers say that they may be done. `status`: DMASR.
    pub(super) fn look_at_memory(&mut self, at: &impl Mmio, status: u32) -> Result<Option<Completion>> {
        let found = self.look_for_end(at, status)?;
        // After an end that was found, an error shows at the next look.
        let resumed = self.resume(at);
        if found.is_none() { resumed.map(|()| None) } else { Ok(found) }
    }

    fn look_for_end(&mut self, at: &impl Mmio, status: u32) -> Result<Option<Completion>> {
        loop {
            match self.next_done()? {
                Next::Job(end) => return Ok(Some(end)),
                Next::Descriptor => {}
                // Maybe after the channel's status was read.
                Next::Failed => return Err(self.fault(at, regs::DMASR.read(at))),
                // The packets before the error were told.
                Next::Open if status & (regs::HALTED | regs::ERRORS) != 0 => return Err(self.fault(at, status)),
                // CURDESC moved on before the status was written.
                Next::Open => return Ok(None),
            }
        }
    }

    /// A stopped channel: nothing changes any more, and one look says all.
    pub(super) fn look_stopped(&mut self) -> Result<Option<Completion>> {
        if self.ring.is_none() {
            self.in_flight = 0;
            return Ok(self.ended.take());
        }
        while self.in_flight > 0 {
            match self.next_done()? {
                Next::Job(end) => return Ok(Some(end)),
                Next::Descriptor => {}
                Next::Failed | Next::Open => self.in_flight = 0,
            }
        }
        Ok(None)
    }

    /// Is CURDESC a descriptor whose end the oldest job waits for?
    fn is_under_way(&self, current: u32) -> bool {
        let Some(ring) = &self.ring else { return false };
        let is_at = |piece| halves(ring.addr(ring.after(self.first, piece))).0 == current;
        match self.side {
            Side::Mm2s => (self.done..self.pieces()).any(is_at),
            Side::S2mm => is_at(self.done),
        }
    }

    /// The next descriptor of the oldest job: of a packet that is sent only the last one counts.
    fn next_done(&mut self) -> Result<Next> {
        let pieces = self.pieces();
        if self.side == Side::Mm2s {
            // A field that is too short cuts the first of several pieces, which are the longest.
            self.done = if self.fits_bytes == 0 && self.done == 0 { 0 } else { pieces - 1 };
        }
        let Some(ring) = &mut self.ring else { return Ok(Next::Open) };
        let mut words = [0; 2];
        self.looks += 1;
        ring.read(ring.after(self.first, self.done), regs::CONTROL_AT, &mut words)?;
        let [control, status] = words;
        if status & regs::FAILED != 0 {
            return Ok(Next::Failed);
        }
        if status & regs::COMPLETE == 0 {
            return Ok(Next::Open);
        }
        if self.done == 0 {
            self.began = status & regs::FIRST;
        }
        let bytes = (status & regs::BYTES_MASK) as usize;
        let is_last_piece = self.done + 1 == pieces;
        let (over, end) = match self.side {
            Side::Mm2s => {
                if (control ^ status) & regs::BYTES_MASK != 0 {
                    return Err(fault::cut_length(self.side, status));
                }
                self.fits_bytes = if pieces > 1 { bytes } else { self.fits_bytes };
                (is_last_piece, Completion::of(self.oldest))
            }
            Side::S2mm => {
                if status & regs::LAST != 0 && !is_last_piece {
                    return Err(fault::early_end(status));
                }
                // Without a packet's end all of it was filled, and no more ever. A core with a
                // narrower length register filled less, and the next bytes went elsewhere.
                let room = (control & regs::BYTES_MASK) as usize;
                if bytes > room || bytes < room && status & regs::LAST == 0 {
                    return Err(fault::cut_length(self.side, status));
                }
                self.bytes += bytes;
                (is_last_piece, Completion::of(self.oldest).with_bytes(self.bytes).with_last(status & regs::LAST != 0))
            }
        };
        if !over {
            self.done += 1;
            return Ok(Next::Descriptor);
        }
        let end = Completion { status: status & !regs::FIRST | self.began, words: self.words(), ..end };
        let Some(ring) = &self.ring else { return Ok(Next::Open) };
        self.first = ring.after(self.first, pieces);
        self.given = self.given.saturating_sub(pieces);
        (self.tail.moved, self.tail.goes_on) = (true, false);
        (self.done, self.bytes, self.began) = (0, 0, 0);
        self.oldest = if self.oldest + 1 >= self.depth { 0 } else { self.oldest + 1 };
        self.in_flight -= 1;
        Ok(Next::Job(end))
    }

    /// How many descriptors the oldest job has.
    fn pieces(&self) -> usize {
        self.counts.get(self.oldest).map_or(1, |&count| usize::from(count).max(1))
    }

    fn words(&mut self) -> [u32; 4] {
        [if core::mem::take(&mut self.torn) { MAYBE_TORN } else { 0 }, 0, 0, 0]
    }

    /// The error that DMASR tells. An error's descriptor is CURDESC's.
    fn fault(&mut self, at: &impl Mmio, status: u32) -> crate::types::Error {
        let Some(ring) = &mut self.ring else {
            return fault::decode(self.side, status, Some(self.addr.0), None);
        };
        if status == u32::MAX {
            return fault::decode(self.side, status, None, None);
        }
        let high = if self.config.address_bits > 32 { u64::from(regs::CURDESC_HIGH.read(at)) << 32 } else { 0 };
        let descriptor = high | u64::from(regs::CURDESC_LOW.read(at));
        let mut words = [0; 2];
        let index = (0..ring.len()).find(|&index| ring.addr(index) == descriptor);
        let buffer = index.and_then(|index| ring.read(index, regs::BUFFER_AT, &mut words).ok());
        let [low, high] = words;
        fault::decode(self.side, status, buffer.map(|()| u64::from(high) << 32 | u64::from(low)), Some(descriptor))
    }

    /// The channel is about to be stopped: an end that only registers tell is kept.
    pub(super) fn keep_end(&mut self, at: &impl Mmio) {
        if self.ring.is_none() && self.runs && self.in_flight > 0 {
            self.ended = self.look(at).ok().flatten();
        }
    }

    /// Has it jobs that have not ended? All that it was given are done where it is idle.
    pub(super) fn is_busy(&self, at: &impl Mmio) -> bool {
        self.runs && self.in_flight > 0 && !is_idle(regs::DMASR.read(at))
    }

    /// The channel has stopped.
    pub(super) fn stopped(&mut self) {
        if self.runs && self.ring.is_none() {
            // Its end was kept, and is told once more.
            self.in_flight = usize::from(self.ended.is_some());
        }
        self.runs = false;
    }

    /// Its jobs were stopped in the middle.
    pub(super) const fn cut(&mut self) {
        self.torn = matches!(self.side, Side::S2mm);
    }

    /// The core was reset by somebody else while it had no jobs.
    pub(super) const fn was_reset(&mut self) {
        self.runs = false;
    }
}

/// The next descriptor of a job.
enum Next {
    /// It is done, and with it the job.
    Job(Completion),
    /// It is done, and there are more.
    Descriptor,
    Open,
    Failed,
}

/// Done with all that it was given; all ones are no status.
pub(super) const fn is_idle(status: u32) -> bool {
    status & (regs::IDLE | regs::RESERVED) == regs::IDLE
}

#[allow(clippy::cast_possible_truncation, reason = "the halves of an address")]
pub(super) const fn halves(addr: u64) -> (u32, u32) {
    (addr as u32, (addr >> 32) as u32)
}
