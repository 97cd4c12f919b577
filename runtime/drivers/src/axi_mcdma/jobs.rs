#![allow(unsafe_code, reason = "descriptors and their tail start transfers")]
//! How a channel takes jobs, and how their ends are found.

use super::channel::{MAYBE_TORN, McdmaChannel};
use super::config::Way;
use super::regs;
use crate::checks::{high, low};
use crate::ring::Ring;
use contigo_core::hw::mmio::{ReadWrite, Register};
use contigo_core::hw::wait::{poll_every, poll_until};
use contigo_core::hw::{self, Device};
use contigo_core::job::Completion;
use contigo_core::mem::DevSlice;
use contigo_core::types::{DevAddr, Error, Result};
use core::mem;
use core::time::Duration;

/// So many reads of a register, 100 ns and more each, outlast the answer to a descriptor's write.
const LATE_READS: u32 = 4;

/// Returns whether a descriptor's job is done. A failed one has Completed set too.
pub(super) const fn is_good(status: u32) -> bool {
    status & (regs::COMPLETE | regs::FAILED) == regs::COMPLETE
}

impl<D: Device> McdmaChannel<D> {
    /// As [`Driver::submit`](contigo_core::Driver::submit), or
    /// [`submit_more`](contigo_core::Driver::submit_more) if `more` jobs follow.
    ///
    /// # Safety
    /// As there.
    pub(super) unsafe fn give(&mut self, slot: usize, packet: &DevSlice, more: bool) -> Result<()> {
        if !self.runs && self.owed == 0 {
            self.begin_anew(slot)?;
        }
        let index = self.ring.after(self.oldest, self.in_flight);
        let len_bytes = u32::try_from(packet.len_bytes).unwrap_or(u32::MAX) & regs::BYTES;
        let control =
            if let Way::Mm2s(_) = self.way { len_bytes | regs::SOF | regs::EOF } else { len_bytes };
        let next = self.ring.addr(self.ring.after(index, 1));
        // SAFETY: the slot is free, so its job was reported or taken back: the channel is stopped,
        // or its tail is before it.
        unsafe { self.ring.write(index, 0, &regs::descriptor(next, packet.addr.0, control))? };
        (self.in_flight, self.owed) = (self.in_flight + 1, self.owed + 1);
        if more { Ok(()) } else { self.ring_doorbell() }
    }

    /// Begins anew with the job of `slot`, on a stopped channel. Jobs that a stop took back are
    /// marked complete: a core that fetches one fails.
    fn begin_anew(&mut self, slot: usize) -> Result<()> {
        for step in 0..self.in_flight {
            let index = self.ring.after(self.oldest, step);
            // SAFETY: the channel is stopped.
            unsafe { self.ring.write(index, self.way.status_at(), &[regs::COMPLETE])? };
        }
        self.oldest = self.ring.after(self.oldest, self.in_flight);
        (self.slot, self.in_flight, self.known, self.look_again) = (slot, 0, 0, false);
        self.torn |= self.cut || self.open;
        (self.cut, self.open) = (false, false);
        Ok(())
    }

    /// Rings the doorbell for the jobs that have had none, and starts the channel if it does not
    /// run.
    ///
    /// # Errors
    /// [`Error::EndedByReset`], or why the channel does not start. No job had its doorbell then.
    pub(super) fn ring_doorbell(&mut self) -> Result<()> {
        // Zero from here on: if this panics, a stop takes them for jobs that the core may have.
        let owed = mem::take(&mut self.owed);
        if owed == 0 {
            return Ok(());
        }
        let (runs, before, rung) = (self.runs, self.epoch, self.in_flight - owed);
        let first = DevAddr(self.ring.addr(self.ring.after(self.oldest, rung)));
        let last = DevAddr(self.ring.addr(self.ring.after(self.oldest, self.in_flight - 1)));
        self.runs = true;
        let (this, device) = (&*self, &*self.device);
        let given = hw::locked(device, || {
            let epoch = device.reset_epoch();
            let was_reset = runs && epoch != this.epoch;
            if was_reset && rung > 0 {
                return Err(Error::EndedByReset { device: regs::DEVICE });
            }
            // SAFETY: the descriptors up to the last one name operands that are mapped for the
            // device, and this channel holds the lock of the shared registers.
            unsafe {
                if !runs || was_reset {
                    this.start(first)?;
                }
                // Writing both halves of a running channel's tail is not atomic: the core may reach
                // the new tail between them, and the doorbell then sends it past. So a channel at
                // work gets the lower half, and the doorbell when it pauses.
                if rung == 0 {
                    this.point(this.regs.tail, last);
                } else {
                    this.regs.tail[0].write(device, low(last.0));
                }
            }
            Ok(epoch)
        });
        self.epoch = given.inspect_err(|_| self.owed = owed)?;
        // A sibling reset the core while this channel had no job.
        self.torn |= runs && self.epoch != before;
        self.tail.give(self.config.address_bits > 32, rung == 0);
        Ok(())
    }

    /// Writes a descriptor's address.
    ///
    /// # Safety
    /// As [`Mmio::write32`](contigo_core::Mmio::write32).
    unsafe fn point(&self, [lower, upper]: [Register<ReadWrite>; 2], DevAddr(addr): DevAddr) {
        // SAFETY: the caller's promise. The lower half comes first, as in embeddedsw's
        // `XMcdma_UpdateChanTDesc`: where the core has an upper half, writing it is the doorbell.
        unsafe {
            lower.write(&*self.device, low(addr));
            if self.config.address_bits > 32 {
                upper.write(&*self.device, high(addr));
            }
        }
    }

    /// Starts the channel at `first`, under the lock, as PG288's programming sequence has it.
    ///
    /// # Safety
    /// As [`Driver::submit`](contigo_core::Driver::submit).
    unsafe fn start(&self, first: DevAddr) -> Result<()> {
        let device = &*self.device;
        let control = self.common.control.read(device);
        if control & regs::RESET != 0 {
            return Err(Error::WillNotStop { device: regs::DEVICE, status: control, waited_us: 0 });
        }
        let enabled = self.common.enable.read(device) | 1 << self.way.number();
        // SAFETY: the caller's promise; and no channel fetches before its tail is written.
        unsafe {
            self.common.enable.write(device, enabled);
            self.point(self.regs.current, first);
            self.regs.control.write(device, regs::RUN | regs::IRQS | regs::THRESHOLD_1);
            self.common.control.write(device, regs::RUN);
        }
        let mut status = 0;
        let runs =
            poll_until(device, Duration::from_micros(self.config.stop_us.into()), |device| {
                status = self.common.status.read(device);
                status & (regs::HALTED | regs::COMMON_RESERVED) == 0
            })?;
        // Another channel's error keeps the direction halted until a reset.
        match self.common.error.read(device) {
            _ if runs => Ok(()),
            0 | u32::MAX => Err(regs::not_running(status)),
            error => Err(regs::fault_elsewhere(error)),
        }
    }

    /// As [`Driver::poll`](contigo_core::Driver::poll).
    pub(super) fn wait(&mut self, timeout: Duration) -> Result<Option<Completion>> {
        if self.in_flight == 0 {
            return Ok(None);
        }
        if !self.runs {
            // Stopped: nothing changes any more, and one read is enough. A fault was reported
            // before the stop.
            return match Self::look(&mut self.ring, self.oldest, self.way.direction()) {
                Ok(status) if is_good(status) => self.ended(status).map(Some),
                _ => Ok(None),
            };
        }
        match self.look_first()? {
            None => self.wait_for_registers(timeout),
            end => Ok(end),
        }
    }

    /// Polls the oldest job's descriptor before any register, if registers showed that it may be
    /// done, or if that costs less.
    ///
    /// This acknowledges no interrupt. So the last job's end is left to the registers; and where
    /// siblings sleep in the same line, so is an end that no register showed.
    pub(super) fn look_first(&mut self) -> Result<Option<Completion>> {
        let is_shared = self.device.siblings().is_some();
        let may_be_done = self.look_again || self.ring.is_coherent();
        if self.in_flight == 1 || self.known == 0 && (is_shared || !may_be_done) {
            return Ok(None);
        }
        let status = Self::look(&mut self.ring, self.oldest, self.way.direction())?;
        if is_good(status) {
            return self.ended(status).map(Some);
        }
        (self.known, self.look_again) = (0, false);
        Ok(None)
    }

    /// As `wait`, for a running channel whose descriptors showed nothing, or were not polled.
    fn wait_for_registers(&mut self, timeout: Duration) -> Result<Option<Completion>> {
        let (index, direction, epoch, registers) =
            (self.oldest, self.way.direction(), self.epoch, self.regs);
        let (rung, was_known) = (self.in_flight - self.owed, self.known > 0);
        let (ring, known, look_again) = (&mut self.ring, &mut self.known, &mut self.look_again);
        let (mut channel, mut descriptor, mut found) = (0, 0, Ok(false));
        let (tail, [_, doorbell]) = (&mut self.tail, registers.tail);
        let upper = high(ring.addr(index));
        poll_every(&*self.device, tail.step_us(), timeout, |device| {
            channel = registers.status.read(device);
            // Read after the registers, whose values from before a reset are valid.
            if device.reset_epoch() != epoch {
                found = Err(Error::EndedByReset { device: regs::DEVICE });
            } else if channel & regs::CHANNEL_RESERVED != 0 {
                found = Err(regs::gone());
            } else {
                if channel & regs::IOC != 0 {
                    *look_again = true;
                    // SAFETY: acknowledging moves no data. An error stays set for the next poll.
                    unsafe { registers.status.write(device, regs::IOC) };
                }
                if channel & regs::IDLE != 0 {
                    *known = rung;
                }
                // Registers first: each read of a descriptor is a sync.
                let told = regs::IDLE | regs::SHORT_FALL | regs::ERROR | regs::OTHER_ERROR;
                if *look_again || channel & told != 0 {
                    found = Self::look(ring, index, direction).map(|status| {
                        descriptor = status;
                        *look_again &= is_good(status);
                        *known = if is_good(status) { *known } else { 0 };
                        is_good(status)
                            || channel & (regs::ERROR | regs::OTHER_ERROR) != 0
                            || status & regs::FAILED != 0
                    });
                }
                if tail.may_pause()
                    && rung > 0
                    && channel & regs::IDLE != 0
                    && matches!(found, Ok(false))
                    && descriptor & regs::COMPLETE == 0
                {
                    tail.rung();
                    // SAFETY: the channel pauses before the oldest job, whose descriptor is open,
                    // and whose doorbell was rung.
                    unsafe { doorbell.write(device, upper) };
                }
            }
            !matches!(found, Ok(false))
        })?;
        match found? {
            false => Ok(None),
            true if is_good(descriptor) => {
                let end = self.ended(descriptor)?;
                let is_over = channel & regs::IDLE != 0 && (was_known || channel & regs::IOC != 0);
                if self.in_flight == 0 && !is_over {
                    // Its interrupt may have come after those that were acknowledged, or come now:
                    // the core raises it once the descriptor's write was answered, and may be idle
                    // before.
                    let _ = (0..LATE_READS).any(|_| self.acknowledge());
                }
                Ok(Some(end))
            }
            true => Err(self.fault(channel, descriptor)),
        }
    }

    /// Acknowledges the interrupts of ends, where no poll of the channel follows. Returns whether
    /// there was one: the channel may be idle before.
    fn acknowledge(&self) -> bool {
        let status = self.regs.status.read(&*self.device);
        let is_raised = status & regs::IOC != 0;
        if is_raised {
            // SAFETY: acknowledging moves no data.
            unsafe { self.regs.status.write(&*self.device, regs::IOC) };
        }
        is_raised
    }

    /// The completion of the oldest job, whose descriptor has `status`.
    fn ended(&mut self, status: u32) -> Result<Completion> {
        let (index, slot) = (self.oldest, self.slot);
        let mut completion = Completion { status, ..Completion::of(slot) };
        if let Way::S2mm(_) = self.way {
            completion.bytes = Some((status & regs::BYTES) as usize);
            completion.last = Some(status & regs::LAST != 0);
            let [sideband, torn, ..] = &mut completion.words;
            if self.config.sideband {
                self.ring.read(index, regs::SIDEBAND_AT, core::slice::from_mut(sideband))?;
            }
            *torn = if core::mem::take(&mut self.torn) { MAYBE_TORN } else { 0 };
            self.open = status & regs::LAST == 0;
        }
        self.oldest = self.ring.after(index, 1);
        self.slot = if slot + 1 >= self.ring.len() { 0 } else { slot + 1 };
        self.in_flight -= 1;
        // A device that ends a job which it does not have is a liar, and no count wraps for it.
        self.owed = self.owed.min(self.in_flight);
        self.tail.moves();
        self.known = self.known.saturating_sub(1);
        self.look_again &= self.in_flight > 0;
        Ok(completion)
    }

    /// A descriptor's status.
    ///
    /// # Errors
    /// [`Error::Fault`]: the channel sent fewer bytes than the descriptor has. By PG288 it counts
    /// the bytes it moved; a sending AXI DMA does not.
    fn look(ring: &mut Ring, index: usize, direction: usize) -> Result<u32> {
        let mut words = [0; 3];
        ring.read(index, regs::CONTROL_AT, &mut words)?;
        let [control, receive, send] = words;
        if direction == 1 {
            return Ok(receive);
        }
        if is_good(send) && (send ^ control) & regs::BYTES != 0 {
            Err(regs::cut_length(send))
        } else {
            Ok(send)
        }
    }

    /// The error behind the channel's status, or behind its oldest descriptor's.
    fn fault(&mut self, channel: u32, descriptor: u32) -> Error {
        if channel & (regs::ERROR | regs::OTHER_ERROR) == regs::OTHER_ERROR
            && descriptor & regs::FAILED == 0
        {
            return regs::fault_elsewhere(self.common.error.read(&*self.device));
        }
        let mut words = [0; 2];
        let address = |[low, high]: [u32; 2]| u64::from(high) << 32 | u64::from(low);
        let buffer =
            self.ring.read(self.oldest, regs::BUFFER_AT, &mut words).map_or(0, |()| address(words));
        if descriptor & regs::FAILED != 0 {
            return regs::descriptor_fault(descriptor, buffer);
        }
        let current = self.regs.current.map(|half| half.read(&*self.device));
        let current =
            if self.config.address_bits > 32 { address(current) } else { current[0].into() };
        regs::core_fault(self.common.error.read(&*self.device), buffer, current)
    }
}
