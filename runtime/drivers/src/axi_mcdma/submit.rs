#![allow(unsafe_code, reason = "descriptors and their tail start transfers")]
//! How a channel is given a job.

use super::{channel::McdmaChannel, config::Way, regs};
use contigo_core::{
    hw::{
        self, Device,
        mmio::{ReadWrite, Register},
        wait::poll_until,
    },
    mem::DevSlice,
    types::{DevAddr, Error, Result},
};
use core::time::Duration;

impl<D: Device> McdmaChannel<D> {
    /// As [`Driver::submit`](contigo_core::Driver::submit).
    ///
    /// # Safety
    /// As there.
    #[allow(clippy::cast_possible_truncation, reason = "the lower half of an address")]
    pub(super) unsafe fn give(&mut self, slot: usize, packet: &DevSlice) -> Result<()> {
        let (runs, before) = (self.runs, self.epoch);
        if !runs {
            // Jobs that a stop took back are marked complete: a core that fetched one would fail.
            let status_at = self.way.status_at();
            for step in 0..self.in_flight {
                // SAFETY: the channel is stopped.
                unsafe {
                    self.ring.write(
                        self.ring.after(self.oldest, step),
                        status_at,
                        &[regs::COMPLETE],
                    )?
                };
            }
            (self.oldest, self.slot, self.in_flight, self.look_again) =
                (self.ring.after(self.oldest, self.in_flight), slot, 0, false);
            self.torn |= self.cut || self.open;
            (self.cut, self.open) = (false, false);
        }
        let index = self.ring.after(self.oldest, self.in_flight);
        let len_bytes = u32::try_from(packet.len_bytes).unwrap_or(u32::MAX) & regs::BYTES;
        let control =
            if let Way::Mm2s(_) = self.way { len_bytes | regs::SOF | regs::EOF } else { len_bytes };
        let next = self.ring.addr(self.ring.after(index, 1));
        // SAFETY: the slot is free, so its descriptor was told or taken back: the channel is
        // stopped, or its tail lies before.
        unsafe { self.ring.write(index, 0, &regs::descriptor(next, packet.addr.0, control))? };
        let at = DevAddr(self.ring.addr(index));
        self.runs = true;
        let (this, device) = (&*self, &*self.device);
        self.epoch = hw::locked(device, || {
            let epoch = device.reset_epoch();
            let was_reset = runs && epoch != this.epoch;
            if was_reset && this.in_flight > 0 {
                return Err(Error::EndedByReset { device: regs::DEVICE });
            }
            // SAFETY: the descriptors up to this one name operands that were handed over, and the
            // registers that channels share are this one's until the lock is dropped.
            unsafe {
                if !runs || was_reset {
                    this.start(at)?;
                }
                // The two halves of a running channel's tail are no doorbell at once: the core may
                // reach the new tail between them, and the doorbell then sends it past. So a
                // channel at work gets the lower half, and the doorbell where it pauses.
                if this.in_flight == 0 {
                    this.point(this.regs.tail, at);
                } else {
                    let [low, _] = this.regs.tail;
                    low.write(device, at.0 as u32);
                }
            }
            Ok(epoch)
        })?;
        // A sibling reset the core while this channel had no job.
        self.torn |= runs && self.epoch != before;
        self.tail.give(self.config.address_bits > 32, self.in_flight == 0);
        self.in_flight += 1;
        Ok(())
    }

    /// Writes a descriptor's address.
    ///
    /// # Safety
    /// As [`Mmio::write32`](contigo_core::Mmio::write32).
    #[allow(clippy::cast_possible_truncation, reason = "the halves of an address")]
    unsafe fn point(&self, [low, high]: [Register<ReadWrite>; 2], DevAddr(addr): DevAddr) {
        // SAFETY: the caller's promise. The lower half comes first, as in embeddedsw's
        // `XMcdma_UpdateChanTDesc`: where the core has an upper half, writing it is the doorbell.
        unsafe {
            low.write(&*self.device, addr as u32);
            if self.config.address_bits > 32 {
                high.write(&*self.device, (addr >> 32) as u32);
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
        // An error of another channel holds the direction halted until a reset.
        match self.common.error.read(device) {
            _ if runs => Ok(()),
            0 | u32::MAX => Err(regs::not_running(status)),
            error => Err(regs::fault_elsewhere(error)),
        }
    }
}
