#![allow(unsafe_code, reason = "descriptors send the core to the operands")]
//! Descriptors in memory, which the prefetcher fetches and writes back.
//!
//! The prefetcher reads a descriptor word by word, its control word last. If a descriptor became
//! owned during that, the prefetcher would use old words. So the driver passes it no descriptor
//! while it runs. The prefetcher runs up to the first descriptor that is not owned, which takes
//! microseconds. Jobs that come meanwhile wait. Their descriptors are in memory already, and become
//! owned when RUN has cleared itself. The jobs of a burst wait for their doorbell, and become owned
//! at once if the prefetcher is at rest. The core's FIFO holds all descriptors in flight, so the
//! prefetcher never waits for room.

use super::config::{JOBS_MAX, MsgdmaConfig, MsgdmaMode};
use super::regs::{self, At, gone};
use super::submit::{addresses, completion, control};
use crate::checks::{high, low};
use crate::ring::{Layout, Ring};
use crate::settle::Settle;
use contigo_core::hw::Device;
use contigo_core::job::Completion;
use contigo_core::mem::{CpuBuf, DevSlice, Port};
use contigo_core::types::{Refused, Result};

/// The jobs of a core with a prefetcher. The ring has one more descriptor than slots, so jobs move
/// through it. From `oldest` on, jobs are first written back, then launched, then waiting.
#[derive(Debug)]
pub(super) struct Prefetch {
    config: MsgdmaConfig,
    at: usize,
    ring: Ring,
    /// The descriptor of the oldest unreported job.
    oldest: usize,
    /// Its slot.
    slot: usize,
    /// Unreported jobs whose descriptors the prefetcher has.
    launched: usize,
    /// Jobs after them that wait until it has stopped, or for their doorbell.
    waiting: usize,
    /// The last ones of them, whose doorbell was not rung. No poll launches them: after a stop that
    /// failed, their operands may not be ready for the device.
    owed: usize,
    /// RUN was clear, and the prefetcher was not started since. The waiting jobs' descriptors are
    /// owned then; otherwise they are not.
    at_rest: bool,
    /// How many of the launched jobs, from the first, were written back.
    seen: usize,
    pub(super) settle: Settle,
    /// The last poll found an end, and more jobs are in flight: the next one may have ended too.
    more: bool,
    /// An end was reported since the interrupt was acknowledged, which may be asserted for it.
    skipped: bool,
    /// No descriptor is owned, except launched and unreported ones. `false`: any may be owned, as
    /// before the first job, after a failed write, and after a stop within a burst.
    written: bool,
}

impl Prefetch {
    /// # Errors
    /// As [`Ring::new`].
    pub(super) fn new(
        config: MsgdmaConfig,
        at: usize,
        memory: CpuBuf,
        port: &Port,
    ) -> Result<Self, Refused<CpuBuf>> {
        let len_bytes =
            4 * if config.extended { regs::EXTENDED_WORDS } else { regs::STANDARD_WORDS };
        let most = config.depth.min(JOBS_MAX) + 1;
        let layout = Layout { len_bytes, align_bytes: len_bytes, most };
        // One descriptor is never owned, so the prefetcher stops there.
        let ring = Ring::new(memory, port, config.address_bits, layout, 2)?;
        Ok(Self {
            config,
            at,
            ring,
            oldest: 0,
            slot: 0,
            launched: 0,
            waiting: 0,
            owed: 0,
            at_rest: false,
            seen: 0,
            settle: Settle::new(config.settles_us()),
            more: false,
            skipped: false,
            written: false,
        })
    }

    pub(super) const fn depth(&self) -> usize {
        self.ring.len() - 1
    }

    const fn control_at(&self) -> usize {
        if self.config.extended { regs::EXTENDED_CONTROL_AT } else { regs::STANDARD_CONTROL_AT }
    }

    /// The descriptor of the job `steps` after the oldest.
    const fn place(&self, steps: usize) -> usize {
        self.ring.after(self.oldest, steps)
    }

    /// The core was reset: jobs begin at the first descriptor, and none is owned. Those that were
    /// launched and unreported may still be owned, and are cleared.
    pub(super) fn begin_anew(&mut self) -> Result<()> {
        let (at, owned) =
            (self.control_at(), if self.written { self.launched } else { self.ring.len() });
        // Before the writes: if one fails, a cleared owner must not count as a job's end.
        (self.launched, self.waiting, self.owed, self.seen) = (0, 0, 0, 0);
        self.settle.begin_anew();
        (self.at_rest, self.more, self.skipped, self.written) = (false, false, false, false);
        for steps in 0..owned {
            let place = self.place(steps);
            // SAFETY: the prefetcher was reset, and fetches nothing before it runs.
            unsafe { self.ring.write(place, at, &[0])? };
        }
        (self.oldest, self.slot, self.written) = (0, 0, true);
        Ok(())
    }

    /// Writes the job's descriptor. Unless `more` jobs follow, passes all that wait to the
    /// prefetcher if that has stopped.
    ///
    /// # Safety
    /// The operands were handed over.
    pub(super) unsafe fn submit(
        &mut self,
        device: &impl Device,
        slot: usize,
        len: u32,
        operands: &[DevSlice],
        more: bool,
    ) -> Result<()> {
        let place = self.place(self.launched + self.waiting);
        let next = self.ring.addr(self.ring.after(place, 1));
        let (from, to) = addresses(self.config.mode, operands);
        let sequence = u32::try_from(slot).unwrap_or(0) & 0xFFFF;
        if self.waiting == 0 {
            self.at_rest = self.has_stopped(device)?;
        }
        let control = if self.at_rest { self.owned() } else { 0 };
        let mut words = [0; regs::EXTENDED_WORDS];
        words[..4].copy_from_slice(&[low(from), low(to), len, low(next)]);
        let used = if self.config.extended {
            words[7..12].copy_from_slice(&[
                sequence,
                regs::STRIDE_ONE,
                high(from),
                high(to),
                high(next),
            ]);
            words[15] = control;
            &words[..]
        } else {
            words[7] = control;
            &words[..regs::STANDARD_WORDS]
        };
        // SAFETY: the prefetcher has stopped; or the descriptor is not owned, before and after, and
        // the prefetcher uses none of its words.
        unsafe { self.ring.write(place, 0, used) }.inspect_err(|_| self.written = false)?;
        self.waiting += 1;
        self.owed = if more { self.owed + 1 } else { 0 };
        if self.at_rest && !more {
            self.start(device, self.waiting);
        }
        Ok(())
    }

    /// Passes the waiting jobs to the prefetcher if it has stopped; otherwise a poll does.
    pub(super) fn doorbell(&mut self, device: &impl Device) -> Result<()> {
        self.owed = 0;
        self.launch(device)
    }

    /// The control word of an owned descriptor.
    const fn owned(&self) -> u32 {
        control(self.config.mode) | regs::GO | regs::OWNED
    }

    /// Whether the prefetcher has stopped, and so reads no descriptor.
    fn has_stopped(&self, device: &impl Device) -> Result<bool> {
        let status = regs::FETCH_CONTROL.read(&At(device, self.at));
        if status & regs::FETCH_RESERVED != 0 {
            Err(gone(status))
        } else {
            Ok(status & regs::RUN == 0)
        }
    }

    /// Passes the waiting jobs whose doorbell was rung to the prefetcher, if there are any and it
    /// has stopped.
    fn launch(&mut self, device: &impl Device) -> Result<()> {
        let rung = self.waiting - self.owed;
        if rung == 0 {
            return Ok(());
        }
        if !self.at_rest {
            if !self.has_stopped(device)? {
                return Ok(());
            }
            let (at, word) = (self.control_at(), self.owned());
            for steps in self.launched..self.launched + rung {
                let place = self.place(steps);
                // SAFETY: RUN is clear, so the prefetcher fetches nothing.
                unsafe { self.ring.write(place, at, &[word]) }
                    .inspect_err(|_| self.written = false)?;
            }
        }
        self.start(device, rung);
        Ok(())
    }

    /// Runs the prefetcher from the first waiting job on. The descriptors of the first `rung` of
    /// them are owned, and no other one is.
    fn start(&mut self, device: &impl Device, rung: usize) {
        let (fetch, addr) = (At(device, self.at), self.ring.addr(self.place(self.launched)));
        (self.launched, self.waiting, self.at_rest) =
            (self.launched + rung, self.waiting - rung, false);
        // SAFETY: the descriptors from the first up to the unowned one name operands that were
        // handed over, and that `check` accepted.
        unsafe {
            regs::FETCH_NEXT.write(&fetch, low(addr));
            regs::FETCH_NEXT_HIGH.write(&fetch, high(addr));
            regs::FETCH_CONTROL.write(&fetch, regs::RUN | regs::FETCH_IRQ_ENABLE);
        }
    }

    /// Polls for the oldest job's end. The descriptor comes first if the port snoops, or if an
    /// interrupt was for several; otherwise the register does, because a read of a descriptor is a
    /// sync.
    ///
    /// The prefetcher interrupts before its write is seen in memory. So after the last end one
    /// read of the register finds the interrupt that is left.
    pub(super) fn look(&mut self, device: &impl Device) -> Result<Option<Completion>> {
        self.launch(device)?;
        if self.more || self.ring.is_coherent() {
            let end = self.tell(device)?;
            if end.is_some() {
                self.skipped = true;
                if self.launched == 0 {
                    self.acknowledge(device)?;
                }
                return Ok(end);
            }
        }
        // An end that waits for its time was seen after its interrupt.
        let (was_skipped, was_seen) = (self.skipped, self.seen > 0);
        let is_raised = self.acknowledge(device)?;
        if !is_raised && !self.settle.waits() {
            return Ok(None);
        }
        let end = self.tell(device)?;
        if end.is_some() && self.launched == 0 && !was_seen && (was_skipped || !is_raised) {
            self.acknowledge(device)?;
        }
        Ok(end)
    }

    /// Reads the register, and acknowledges the interrupt, before a descriptor is read: a later end
    /// raises it again. Returns whether it was raised.
    fn acknowledge(&mut self, device: &impl Device) -> Result<bool> {
        let fetch = At(device, self.at);
        let status = regs::FETCH_STATUS.read(&fetch);
        if status & !regs::FETCH_IRQ != 0 {
            return Err(gone(status));
        }
        self.skipped = false;
        let is_raised = status & regs::FETCH_IRQ != 0;
        if is_raised {
            // SAFETY: acknowledging moves no data.
            unsafe { regs::FETCH_STATUS.write(&fetch, regs::FETCH_IRQ) };
        }
        Ok(is_raised)
    }

    /// Counts the descriptors that were written back; only the oldest if an end needs no settling.
    fn see(&mut self) -> Result<()> {
        let most = if self.settle.needs_time() { self.launched } else { 1 };
        while self.seen < most {
            let mut words = [0];
            self.ring.read(self.place(self.seen), self.control_at(), &mut words)?;
            if words[0] & regs::OWNED != 0 {
                break;
            }
            self.seen += 1;
        }
        Ok(())
    }

    /// The oldest job's completion, if its descriptor was written back.
    pub(super) fn tell(&mut self, device: &impl Device) -> Result<Option<Completion>> {
        self.more = false;
        if self.launched == 0 {
            return Ok(None);
        }
        self.see()?;
        self.settle.look(device, self.seen);
        if !self.settle.take() {
            return Ok(None);
        }
        let place = self.oldest;
        let mut actual = [0, 0];
        if self.config.mode == MsgdmaMode::Receive {
            self.ring.read(place, regs::ACTUAL_AT, &mut actual)?;
        }
        (self.oldest, self.launched, self.seen) =
            (self.ring.after(place, 1), self.launched - 1, self.seen - 1);
        self.more = self.launched > 0;
        let [bytes, status] = actual;
        let slot = self.slot;
        self.slot = if slot + 1 >= self.depth() { 0 } else { slot + 1 };
        Ok(Some(completion(self.config.mode, slot, bytes, status & (regs::ERRORS | regs::EARLY))))
    }

    /// The core was reset. The waiting jobs never began; their descriptors may be owned.
    pub(super) const fn stopped(&mut self) {
        self.written &= !self.at_rest;
        (self.waiting, self.owed, self.at_rest) = (0, 0, false);
        self.settle.rest();
    }

    /// Returns the memory.
    ///
    /// # Safety
    /// As [`Ring::release`].
    pub(super) unsafe fn release(&mut self) {
        // SAFETY: the caller's promise.
        unsafe { self.ring.release() };
    }
}
