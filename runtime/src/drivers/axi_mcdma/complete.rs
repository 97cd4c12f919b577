#![allow(unsafe_code, reason = "an interrupt is acknowledged by a register")]
//! How the end of a channel's oldest job is found.

use super::{
    channel::{MAYBE_TORN, McdmaChannel},
    config::Way,
    fault, regs,
};
use crate::{
    drivers::ring::Ring,
    hw::{Device, wait::poll_every},
    job::Completion,
    types::{Error, Result},
};
use core::time::Duration;

/// Does a descriptor say that its job is done? One that failed says Completed too.
const fn is_good(status: u32) -> bool {
    status & (regs::COMPLETE | regs::FAILED) == regs::COMPLETE
}

impl<D: Device> McdmaChannel<D> {
    /// As [`Driver::poll`](crate::Driver::poll).
    #[allow(clippy::cast_possible_truncation, reason = "the upper half of an address")]
    pub(super) fn wait(&mut self, timeout: Duration) -> Result<Option<Completion>> {
        if self.in_flight == 0 {
            return Ok(None);
        }
        let (index, direction, epoch, registers) = (self.oldest, self.way.direction(), self.epoch, self.regs);
        if !self.runs {
            // Stopped: nothing changes any more, and one look says all.
            // A fault was told before the stop.
            return match Self::look(&mut self.ring, index, direction) {
                Ok(status) if is_good(status) => self.ended(status).map(Some),
                _ => Ok(None),
            };
        }
        let (ring, look_again) = (&mut self.ring, &mut self.look_again);
        let (mut channel, mut descriptor, mut found) = (0, 0, Ok(false));
        let (tail, [_, high]) = (&mut self.tail, registers.tail);
        let upper = (ring.addr(index) >> 32) as u32;
        poll_every(&*self.device, tail.step_us(), timeout, |device| {
            channel = registers.status.read(device);
            // After the registers: what they said before a reset counts.
            if device.reset_epoch() != epoch {
                found = Err(Error::EndedByReset { device: fault::DEVICE });
            } else if channel & regs::CHANNEL_RESERVED != 0 {
                found = Err(fault::gone());
            } else {
                if channel & regs::IOC != 0 {
                    *look_again = true;
                    // SAFETY: acknowledging moves no data. An error stays, for the next look.
                    unsafe { registers.status.write(device, regs::IOC) };
                }
                // The register first: each look at a descriptor is a sync.
                let told = regs::IDLE | regs::SHORT_FALL | regs::ERROR | regs::OTHER_ERROR;
                if *look_again || channel & told != 0 {
                    found = Self::look(ring, index, direction).map(|status| {
                        descriptor = status;
                        *look_again &= is_good(status);
                        is_good(status) || channel & (regs::ERROR | regs::OTHER_ERROR) != 0 || status & regs::FAILED != 0
                    });
                }
                if tail.may_pause() && channel & regs::IDLE != 0 && matches!(found, Ok(false)) && descriptor & regs::COMPLETE == 0 {
                    tail.rung();
                    // SAFETY: the channel pauses before the oldest job, whose descriptor is open.
                    unsafe { high.write(device, upper) };
                }
            }
            !matches!(found, Ok(false))
        })?;
        match found? {
            false => Ok(None),
            true if is_good(descriptor) => self.ended(descriptor).map(Some),
            true => Err(self.fault(channel, descriptor)),
        }
    }

    /// The oldest job's descriptor, in which it says `status`: the job has ended.
    fn ended(&mut self, status: u32) -> Result<Completion> {
        let (index, slot) = (self.oldest, self.slot);
        let mut completion = Completion { status, ..Completion::of(slot) };
        if let Way::S2mm(_) = self.way {
            completion = completion.with_bytes((status & regs::BYTES) as usize).with_last(status & regs::LAST != 0);
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
        self.tail.moves();
        self.look_again &= self.in_flight > 0;
        Ok(completion)
    }

    /// A descriptor's status.
    ///
    /// # Errors
    /// [`Error::Fault`]: it says that it sent fewer bytes than it was given. PG288 has it count what it
    /// moved; an AXI DMA that sends does not.
    fn look(ring: &mut Ring, index: usize, direction: usize) -> Result<u32> {
        let mut words = [0; 3];
        ring.read(index, regs::CONTROL_AT, &mut words)?;
        let [control, receive, send] = words;
        if direction == 1 {
            return Ok(receive);
        }
        if is_good(send) && (send ^ control) & regs::BYTES != 0 { Err(fault::cut_length(send)) } else { Ok(send) }
    }

    /// The error behind the channel's status, or behind its oldest descriptor's.
    fn fault(&mut self, channel: u32, descriptor: u32) -> Error {
        if channel & (regs::ERROR | regs::OTHER_ERROR) == regs::OTHER_ERROR && descriptor & regs::FAILED == 0 {
            return fault::of_another(self.common.error.read(&*self.device));
        }
        let mut words = [0; 2];
        let address = |[low, high]: [u32; 2]| u64::from(high) << 32 | u64::from(low);
        let buffer = self.ring.read(self.oldest, regs::BUFFER_AT, &mut words).map_or(0, |()| address(words));
        if descriptor & regs::FAILED != 0 {
            return fault::of_descriptor(descriptor, buffer);
        }
        let current = self.regs.current.map(|half| half.read(&*self.device));
        let current = if self.config.address_bits > 32 { address(current) } else { current[0].into() };
        fault::of_core(self.common.error.read(&*self.device), buffer, current)
    }
}
