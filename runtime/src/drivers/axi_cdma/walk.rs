#![allow(unsafe_code, reason = "BTT and TAILDESC are doorbells")]
//! How a job is started, and how its end is seen: registers first, descriptors after.

use super::{
    chain::{Look, Transfer},
    driver::{AxiCdma, Mode},
    keyhole::Keyhole,
    regs,
};
use crate::{
    hw::{
        Device,
        wait::{poll_every, poll_until},
    },
    job::Completion,
    types::{DevAddr, Error, Result},
};
use core::time::Duration;

impl<D: Device> AxiCdma<D> {
    /// Gives the core one job.
    ///
    /// # Safety
    /// The bytes of `transfer` belong to the device, as in
    /// [`Driver::submit`](crate::Driver::submit).
    pub(super) unsafe fn begin(&mut self, slot: usize, transfer: &Transfer) -> Result<()> {
        let keyhole = self.keyhole.map_or(0, Keyhole::control);
        let starts = !core::mem::replace(&mut self.runs, true);
        let device = &self.device;
        match &mut self.mode {
            Mode::Simple { at_work, ended } => {
                (*at_work, *ended) = (Some(transfer.from), false);
                let len_bytes = u32::try_from(transfer.len_bytes).unwrap_or(0);
                // SAFETY: the core is idle: it was reset, by `stop` or where it was opened, or the
                // last job's end was seen. The bytes are the caller's promise.
                unsafe {
                    if starts {
                        regs::CDMACR.write(device, regs::IOC | regs::ERROR | 1 << regs::THRESHOLD_SHIFT | keyhole);
                    }
                    regs::SA.write(device, DevAddr(transfer.from));
                    regs::DA.write(device, DevAddr(transfer.to));
                    regs::BTT.write(device, len_bytes);
                }
                // Versions before 4.1 drop the upper bits. The copy is shorter then, and is
                // stopped.
                if len_bytes >> regs::LENGTH_BITS_ANY != 0 && regs::BTT.read(device) != len_bytes {
                    return Err(Error::Unsupported {
                        what: "BTT of this AXI CDMA holds fewer bits than length_bits says",
                        fix: "set length_bits=23",
                    });
                }
            }
            Mode::Sg(chain) => {
                let coalescing = self.config.irq_threshold << regs::THRESHOLD_SHIFT | self.config.irq_delay << regs::DELAY_SHIFT;
                let delay = if self.config.irq_delay > 0 { regs::DELAY } else { 0 };
                let control = regs::SG_MODE | keyhole | regs::IOC | regs::ERROR | coalescing;
                if starts {
                    chain.begin_anew()?;
                }
                let tail = chain.push(slot, transfer)?;
                let is_free = chain.give();
                // SAFETY: the descriptors up to `tail` name bytes of jobs in flight, and the core
                // goes no further. At the start it is idle, with `SGMode` at 0 after its reset, so
                // that the engine takes CURDESC. `Dly_IrqEn` is kept only where `SGMode` is set
                // before.
                unsafe {
                    if starts {
                        regs::CDMACR.write(device, control);
                        regs::CURDESC.write(device, DevAddr(chain.first_addr()));
                        regs::CDMACR.write(device, control | delay);
                    }
                    if is_free {
                        regs::TAILDESC.write(device, DevAddr(tail));
                    } else {
                        regs::TAILDESC_LOW.write(device, low(tail));
                    }
                }
            }
        }
        Ok(())
    }

    /// Has the oldest job ended?
    pub(super) fn look(&mut self, timeout: Duration) -> Result<Option<Completion>> {
        match &self.mode {
            Mode::Simple { at_work: None, .. } => Ok(None),
            Mode::Sg(chain) if chain.is_empty() => Ok(None),
            Mode::Sg(chain) if chain.was_reset() => self.look_after_stop(),
            _ if !self.runs => self.look_after_stop(),
            Mode::Simple { .. } => self.look_at_registers(timeout),
            Mode::Sg(_) => self.look_at_chain(timeout),
        }
    }

    /// The core was reset: what had ended by then, and after that nothing.
    fn look_after_stop(&mut self) -> Result<Option<Completion>> {
        match &mut self.mode {
            Mode::Simple { at_work, ended } => {
                *at_work = None;
                Ok(core::mem::take(ended).then_some(Completion::of(0)))
            }
            Mode::Sg(chain) => {
                let ended = chain.tell_ended();
                if ended.is_none() {
                    chain.forget();
                }
                Ok(ended.map(Completion::of))
            }
        }
    }

    fn look_at_registers(&mut self, timeout: Duration) -> Result<Option<Completion>> {
        let Mode::Simple { at_work, .. } = &mut self.mode else { return Ok(None) };
        let (mut status, mut ended) = (0, false);
        poll_until(&self.device, timeout, |device| {
            status = regs::CDMASR.read(device);
            ended = regs::ended_well(status);
            ended || status == u32::MAX || status & regs::ERRORS != 0
        })?;
        if ended {
            // SAFETY: acknowledging moves no data.
            unsafe { regs::CDMASR.write(&self.device, status & regs::IRQS) };
            *at_work = None;
            return Ok(Some(Completion::of(0)));
        }
        if status == u32::MAX || status & regs::ERRORS != 0 {
            return Err(fault(status, at_work.unwrap_or(u64::MAX)));
        }
        Ok(None)
    }

    fn look_at_chain(&mut self, timeout: Duration) -> Result<Option<Completion>> {
        let Mode::Sg(chain) = &mut self.mode else { return Ok(None) };
        let mut found = Ok(None);
        // No interrupt tells that the core pauses with jobs left.
        poll_every(&self.device, chain.tail.step_us(), timeout, |device| {
            let status = regs::CDMASR.read(device);
            if status == u32::MAX {
                found = Err(fault(status, chain.first_addr()));
                return true;
            }
            if status & regs::IRQS != 0 {
                // Before the descriptor is looked at: a later end raises it again.
                // SAFETY: acknowledging moves no data.
                unsafe { regs::CDMASR.write(device, status & regs::IRQS) };
            }
            let failed = status & regs::ERRORS != 0;
            if !failed && status & regs::IDLE == 0 && chain.is_at_oldest(regs::CURDESC_LOW.read(device)) {
                chain.tail.goes_on();
                return false;
            }
            found = match chain.look() {
                Ok(Look::Complete) => Ok(Some(Completion::of(chain.tell()))),
                Ok(Look::Failed) => Err(Self::fault_at(device, regs::CDMASR.read(device), chain.reads_from())),
                // The jobs before the error were told.
                Ok(Look::Nothing) if failed => Err(Self::fault_at(device, status, chain.reads_from())),
                Ok(Look::Nothing) => {
                    let pauses = status & regs::IDLE != 0 && chain.tail.may_pause();
                    if pauses && chain.is_before_oldest(regs::CURDESC_LOW.read(device)) {
                        chain.tail.rung();
                        // SAFETY: the core pauses before the oldest job, whose descriptor is open.
                        // Those up to the tail name bytes of jobs in flight.
                        unsafe { regs::TAILDESC_HIGH.write(device, chain.upper_half()) };
                    }
                    // Or CURDESC moved on before the status was written.
                    Ok(None)
                }
                Err(error) => Err(error),
            };
            !matches!(found, Ok(None))
        })?;
        found
    }

    /// The fault of a job: with the descriptor where its fetch failed, else with where it reads.
    fn fault_at(device: &D, status: u32, from: u64) -> Error {
        let addr = if status & regs::SG_ERRORS != 0 {
            u64::from(regs::CURDESC_HIGH.read(device)) << 32 | u64::from(regs::CURDESC_LOW.read(device))
        } else {
            from
        };
        fault(status, addr)
    }
}

#[allow(clippy::cast_possible_truncation, reason = "half of an address")]
const fn low(addr: u64) -> u32 {
    addr as u32
}

const fn fault(status: u32, addr: u64) -> Error {
    Error::FaultAt { device: "axi_cdma", status, what: regs::describe(status), addr }
}
