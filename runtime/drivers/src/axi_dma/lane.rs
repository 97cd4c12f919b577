#![allow(unsafe_code, reason = "registers and descriptors start transfers")]
//! One channel: its jobs in flight, how a job is submitted in either mode, and which jobs a stop
//! leaves.

use super::config::{AxiDmaConfig, DEPTH_MAX};
use super::regs::{self, Side};
use crate::checks::{high, low};
use crate::ring::Ring;
use crate::tail::Tail;
use contigo_core::hw::wait::poll_every;
use contigo_core::hw::{Mmio, Wait};
use contigo_core::job::{Completion, OperandSpec};
use contigo_core::mem::DevSlice;
use contigo_core::types::{DevAddr, Error, Result};
use core::time::Duration;

/// Completion's word 0: the packet may lack its beginning.
pub(super) const MAYBE_TORN: u32 = 1;

/// What DMASR showed since the last job was submitted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Seen {
    /// Nothing, or an end that was reported. An earlier Idle may be from the time before the job.
    #[default]
    Nothing,
    /// It showed an end when the job was submitted. It shows nothing after the doorbell yet.
    Told(u32),
    /// A poll read it: whether the channel is idle.
    Looked { idle: bool },
}

/// A doorbell that is to be rung for one or more jobs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owed {
    /// The address of their last descriptor.
    pub(super) tail: u64,
    /// The descriptor before their first one, of a receive that ran.
    pub(super) before: Option<usize>,
    /// The channel had no job before them.
    pub(super) is_free: bool,
}

/// One channel: its jobs in flight, with descriptors or one at a time in registers.
///
/// It is stopped, or it runs from its first job on. While it runs, the `in_flight` jobs from slot
/// `oldest` on are still to be reported; after a stop, those of them that had ended.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) side: Side,
    pub(super) config: AxiDmaConfig,
    /// `None`: direct register mode.
    pub(super) ring: Option<Ring>,
    pub(super) depth: usize,
    pub(super) operand: [OperandSpec; 1],
    /// Between the first job and a stop.
    pub(super) runs: bool,
    /// The oldest slot that was not reported, and how many were not.
    pub(super) oldest: usize,
    pub(super) in_flight: usize,
    /// How many descriptors the job in each slot has.
    pub(super) counts: [u16; DEPTH_MAX],
    /// The next descriptor to write, and the first of the oldest job.
    pub(super) head: usize,
    pub(super) first: usize,
    /// How many descriptors, from `first` on, were written for jobs that were not reported.
    pub(super) given: usize,
    /// How many descriptors, from `first` on, registers showed to be done. A hint: their status may
    /// be late.
    pub(super) known: usize,
    pub(super) owed: Option<Owed>,
    /// How TAILDESC was last written.
    pub(super) tail: Tail,
    /// Of the oldest job: how many descriptors are done, with how many bytes, and RXSOF.
    pub(super) done: usize,
    pub(super) bytes: usize,
    pub(super) began: u32,
    /// The address in direct register mode.
    pub(super) addr: DevAddr,
    /// The core's LENGTH is known to hold lengths up to this one.
    pub(super) fits_bytes: usize,
    /// An end in registers, found when the channel was stopped.
    pub(super) ended: Option<Completion>,
    /// A receive was stopped, or reset, in the middle, so the first packet after the next start may
    /// lack its beginning. Packets that ended before are whole.
    pub(super) cut: bool,
    /// The packet that was last reported continues: the next buffer begins with its rest.
    pub(super) open: bool,
    /// The first packet of this run may lack its beginning, and was not reported yet.
    pub(super) torn: bool,
    pub(super) seen: Seen,
    pub(super) underruns: u64,
    pub(super) looks: u64,
    pub(super) quiet: u32,
}

impl Lane {
    /// A channel without jobs. The depth is the configuration's, or one job per descriptor.
    pub(super) fn new(side: Side, config: AxiDmaConfig, ring: Option<Ring>) -> Self {
        let descriptors = ring.as_ref().map_or(1, Ring::len);
        let depth = if ring.is_some() {
            config.depth.unwrap_or(DEPTH_MAX).min(descriptors).min(DEPTH_MAX)
        } else {
            1
        };
        Self {
            side,
            config,
            ring,
            depth,
            operand: [config.operand(side, descriptors / depth.max(1))],
            runs: false,
            oldest: 0,
            in_flight: 0,
            counts: [0; DEPTH_MAX],
            head: 0,
            first: 0,
            given: 0,
            known: 0,
            owed: None,
            tail: Tail::default(),
            done: 0,
            bytes: 0,
            began: 0,
            addr: DevAddr(0),
            fits_bytes: 0,
            ended: None,
            cut: false,
            open: false,
            torn: false,
            seen: Seen::Nothing,
            underruns: 0,
            looks: 0,
            quiet: 0,
        }
    }

    /// Submits one job to the channel, and starts the channel if it does not run. Rings the
    /// doorbell, unless `more` jobs follow and there are descriptors.
    ///
    /// # Safety
    /// As [`Driver::submit`](contigo_core::Driver::submit), and no other code resets the core
    /// meanwhile.
    #[inline]
    pub(super) unsafe fn submit(
        &mut self,
        at: &(impl Mmio + Wait),
        slot: usize,
        operand: &DevSlice,
        more: bool,
    ) -> Result<()> {
        if !self.runs {
            self.begin(slot)?;
        }
        self.quiet = 0;
        match self.ring {
            // SAFETY: the caller's promise.
            Some(_) => unsafe { self.submit_descriptors(at, slot, operand, more)? },
            // SAFETY: as above.
            None => unsafe { self.submit_registers(at, operand)? },
        }
        self.in_flight += 1;
        Ok(())
    }

    /// Begins anew, with the job of `slot`.
    #[cold]
    fn begin(&mut self, slot: usize) -> Result<()> {
        self.forget()?;
        self.torn |= self.cut || self.open;
        (self.cut, self.open) = (false, false);
        (self.oldest, self.in_flight, self.ended, self.seen) = (slot, 0, None, Seen::Nothing);
        (self.head, self.first, self.known, self.owed) = (0, 0, 0, None);
        (self.done, self.bytes, self.began) = (0, 0, 0);
        Ok(())
    }

    /// Clears the descriptors of jobs that a stop took back: the core would find them complete.
    fn forget(&mut self) -> Result<()> {
        let Some(ring) = &mut self.ring else { return Ok(()) };
        for step in 0..self.given.min(ring.len()) {
            // SAFETY: the channel is halted.
            unsafe {
                ring.write(ring.after(self.first, step), regs::STATUS_AT, &[regs::COMPLETE])?
            };
        }
        self.given = 0;
        Ok(())
    }

    /// # Safety
    /// As [`submit`](Self::submit).
    #[inline(never)]
    unsafe fn submit_registers(
        &mut self,
        at: &(impl Mmio + Wait),
        operand: &DevSlice,
    ) -> Result<()> {
        let len_bytes = u32::try_from(operand.len_bytes).unwrap_or(0);
        (self.addr, self.seen) = (operand.addr, Seen::Nothing);
        if !self.runs {
            // SAFETY: RS alone moves no data: LENGTH does.
            unsafe { self.start(at)? };
        }
        // SAFETY: the operand was handed over, and the queue and `operand` checked that its length
        // fits. The transfer before it has ended.
        unsafe {
            regs::ADDRESS.write(at, low(operand.addr.0));
            if self.config.address_bits > 32 {
                regs::ADDRESS_HIGH.write(at, high(operand.addr.0));
            }
            regs::LENGTH.write(at, len_bytes);
        }
        self.find_cut(at, len_bytes)
    }

    /// Checks whether LENGTH dropped bits of what was written. For S2MM, only a cut to 0 is found
    /// here, when nothing starts: the register counts the bytes as they come. A length cut to less
    /// is too short for its packet, which is DMAIntErr.
    fn find_cut(&mut self, at: &impl Mmio, len_bytes: u32) -> Result<()> {
        let may_be_cut =
            self.side == Side::Mm2s || len_bytes.is_multiple_of(1 << regs::LENGTH_BITS_LEAST);
        if !may_be_cut || len_bytes as usize <= self.fits_bytes {
            return Ok(());
        }
        match regs::LENGTH.read(at) {
            found if found == len_bytes => self.fits_bytes = len_bytes as usize,
            found @ u32::MAX => return Err(regs::decode(self.side, found, None, None)),
            found if found == 0 || self.side == Side::Mm2s => {
                let status = regs::DMASR.read(at);
                // A channel that its sibling's error halted accepts no length.
                let is_held = regs::is_halted(status) && status & regs::ERRORS == 0;
                return Err(if is_held {
                    regs::decode(self.side, status, None, None)
                } else {
                    self.cut_length(len_bytes, found)
                });
            }
            _ => {}
        }
        Ok(())
    }

    /// The core's length register dropped bits. `given` and `found`: a length, or a descriptor's
    /// control and status.
    pub(super) fn cut_length(&self, given: u32, found: u32) -> Error {
        let bytes = |word: u32| u64::from(word & regs::BYTES_MASK);
        Error::LengthCut {
            device: self.side.name(),
            length_bits: self.config.length_bits,
            need_bytes: bytes(given),
            done_bytes: bytes(found),
        }
    }

    /// # Safety
    /// As [`submit`](Self::submit).
    #[inline]
    unsafe fn submit_descriptors(
        &mut self,
        at: &(impl Mmio + Wait),
        slot: usize,
        operand: &DevSlice,
        more: bool,
    ) -> Result<()> {
        let receives = self.runs && self.side == Side::S2mm;
        let Some(ring) = &mut self.ring else { return Ok(()) };
        let (before, is_free) = match self.owed {
            Some(Owed { before, is_free, .. }) => (before, is_free),
            None => (receives.then(|| ring.after(self.head, ring.len() - 1)), self.in_flight == 0),
        };
        let pieces = self.config.pieces(operand.len_bytes);
        let most_bytes = if pieces == 1 { operand.len_bytes } else { self.config.piece() };
        let (begins, mut last) = (self.head, self.head);
        for piece in 0..pieces {
            let from = piece * most_bytes;
            let is_last = piece + 1 == pieces;
            let len_bytes = if is_last { operand.len_bytes - from } else { most_bytes };
            let flags = match self.side {
                Side::S2mm => 0,
                Side::Mm2s => {
                    (if piece == 0 { regs::TX_FIRST } else { 0 })
                        | if is_last { regs::TX_LAST } else { 0 }
                }
            };
            (last, self.head) = (self.head, ring.after(self.head, 1));
            let control = low(len_bytes as u64) & regs::BYTES_MASK | flags;
            let words = regs::descriptor(
                ring.addr(self.head),
                DevAddr(operand.addr.0 + from as u64),
                control,
            );
            // Even if the write fails half-way.
            self.given += 1;
            // SAFETY: each job in flight has `len / depth` descriptors at most, and there are fewer
            // than `depth`. So these are free: the channel stopped at an earlier one's tail, or is
            // halted.
            unsafe { ring.write(last, 0, &words)? };
        }
        let tail = ring.addr(last);
        if let Some(count) = self.counts.get_mut(slot) {
            *count = u16::try_from(pieces).unwrap_or(u16::MAX);
        }
        if !self.runs {
            // SAFETY: the channel is halted. The descriptors from here to the tail name operands
            // that were handed over.
            unsafe {
                regs::CURDESC.write(at, DevAddr(ring.addr(begins)));
                self.start(at)?;
            }
        }
        self.owed = Some(Owed { tail, before, is_free });
        if !more {
            self.doorbell(at);
        }
        Ok(())
    }

    /// Does a poll of a descriptor cost less than one of a register, because the port snoops?
    #[inline]
    pub(super) fn is_coherent(&self) -> bool {
        self.ring.as_ref().is_some_and(Ring::is_coherent)
    }

    /// Lets the channel run, and waits until it does.
    ///
    /// # Safety
    /// In scatter-gather mode CURDESC is a descriptor of the driver's.
    #[cold]
    unsafe fn start(&mut self, at: &(impl Mmio + Wait)) -> Result<()> {
        // From here on it must be stopped, whatever happens.
        self.runs = true;
        let coalescing = u32::from(self.config.irq_packets) << regs::THRESHOLD_SHIFT
            | u32::from(self.config.irq_delay) << regs::DELAY_SHIFT;
        // SAFETY: the caller's promise.
        unsafe { regs::DMACR.write(at, regs::RUN | regs::IRQ_ENABLE | coalescing) };
        let (mut status, limit) = (0, Duration::from_micros(self.config.stop_us.into()));
        let runs = poll_every(at, 1, limit, |at| {
            status = regs::DMASR.read(at);
            status & (regs::HALTED | regs::RESERVED) == 0
        });
        if matches!(runs, Ok(true)) { Ok(()) } else { Err(regs::no_start(self.side, status)) }
    }

    /// Before the channel is stopped: keeps an end that only registers show.
    pub(super) fn keep_end(&mut self, at: &impl Mmio) {
        if self.ring.is_none() && self.runs && self.in_flight > 0 {
            self.ended = self.look(at).ok().flatten();
        }
    }

    /// Returns whether it has jobs and is not idle. If it is idle, all jobs are done whose doorbell
    /// was rung, unless that was just now.
    pub(super) fn is_busy(&self, at: &impl Mmio) -> bool {
        self.runs && self.in_flight > 0 && !regs::is_idle(regs::DMASR.read(at))
    }

    /// Returns whether a job may be under way. The core reports Idle late after a doorbell: it
    /// counts after a poll that came after the last doorbell, or if the last descriptor is done.
    pub(super) fn may_be_busy(&mut self, at: &impl Mmio) -> bool {
        if self.is_busy(at) {
            return true;
        }
        let last = self.ring.as_ref().map_or(0, |ring| ring.after(self.head, ring.len() - 1));
        let is_sure =
            matches!(self.seen, Seen::Looked { .. }) || self.is_coherent() && self.is_done(last);
        self.runs && self.in_flight > 0 && !is_sure
    }

    /// The channel has stopped.
    pub(super) fn stopped(&mut self) {
        if self.runs && self.ring.is_none() {
            // Its end was kept, and `poll` returns it.
            self.in_flight = usize::from(self.ended.is_some());
        }
        self.runs = false;
    }

    /// Its jobs were stopped in the middle.
    pub(super) const fn cut(&mut self) {
        self.cut = matches!(self.side, Side::S2mm);
    }

    /// The sibling reset the core while this channel had no jobs. A receive may have taken the
    /// beginning of the next packet, which is then lost.
    pub(super) const fn was_reset(&mut self) {
        if self.runs {
            self.cut();
        }
        self.runs = false;
    }
}
