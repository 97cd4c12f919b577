#![allow(unsafe_code, reason = "submitting sends the core to the operands")]
//! The jobs in flight: up to four, each with the core's ID, and those that its queue could not take
//! yet.

use super::{
    found::{DmacFound, DmacKind},
    regs,
    together::Together,
};
use crate::{
    hw::Device,
    job::Completion,
    types::{Error, Result},
};

/// A job as registers describe it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Job {
    pub(super) from: u64,
    pub(super) to: u64,
    /// Bytes of a row, and rows.
    pub(super) row_bytes: u64,
    pub(super) rows: u32,
    pub(super) from_stride: u32,
    pub(super) to_stride: u32,
}

/// A job with its ID.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    job: Job,
    /// Told by the core: it ended.
    ended: bool,
    /// It wrote so many bytes, and no more.
    partial: Option<u32>,
}

/// All of them. The job in slot N has ID N: both begin at 0 when the core is enabled.
#[derive(Debug)]
pub(super) struct Jobs {
    kind: DmacKind,
    together: Together,
    /// The first descriptor of each ID, where jobs are lists.
    lists: Option<[u64; regs::IDS]>,
    places: [Place; regs::IDS],
    /// The ID of the oldest job that was not told.
    oldest: usize,
    /// Jobs that were submitted to the core, and were not told.
    given: usize,
    /// Jobs behind them that its queue could not take, or that must not be in the core with them.
    held: usize,
    /// The newest of `given` may still be outside of the queue: its DONE bit is that of the job
    /// four before.
    unconfirmed: bool,
}

/// The core answers what it never says.
pub(super) const fn gone(status: u32) -> Error {
    Error::Fault { device: "axi_dmac", status, what: regs::GONE }
}

impl Jobs {
    pub(super) fn new(kind: DmacKind, together: Together, lists: Option<[u64; regs::IDS]>) -> Self {
        Self { kind, together, lists, places: [Place::default(); regs::IDS], oldest: 0, given: 0, held: 0, unconfirmed: false }
    }

    /// The core was enabled anew.
    pub(super) fn begin_anew(&mut self) {
        *self = Self::new(self.kind, self.together, self.lists);
    }

    pub(super) const fn together(&self) -> &Together {
        &self.together
    }

    const fn id(&self, steps: usize) -> usize {
        (self.oldest + steps) % regs::IDS
    }

    /// Takes a job, and gives it to the core where its queue has room.
    ///
    /// # Safety
    /// The operands were handed over.
    pub(super) unsafe fn push(&mut self, device: &impl Device, found: &DmacFound, job: Job) -> Result<()> {
        let id = self.id(self.given + self.held);
        let room = self.given + self.held < regs::IDS;
        let Some(place) = self.places.get_mut(id).filter(|_| room) else { return Err(Error::Busy) };
        *place = Place { job, ended: false, partial: None };
        self.held += 1;
        self.launch(device, found)
    }

    /// Gives the core what it has room for, and what may be there together: one at once, because
    /// there is one set of registers.
    pub(super) fn launch(&mut self, device: &impl Device, found: &DmacFound) -> Result<()> {
        if self.held == 0 || !self.is_confirmed(device)? {
            return Ok(());
        }
        let id = self.id(self.given);
        let job = self.places.get(id).map_or_else(Job::default, |place| place.job);
        let mut under_way = (0..self.given).filter_map(|steps| self.places.get(self.id(steps))).filter(|place| !place.ended);
        if !under_way.all(|before| self.together.allows(&before.job, &job)) {
            return Ok(());
        }
        let list = self.lists.and_then(|lists| lists.get(id).copied());
        let wide = found.address_bits > 32;
        // SAFETY: the operands were handed over, and `check` compared their lengths with the job,
        // whose descriptors say the same. Nothing starts before SUBMIT.
        unsafe {
            if let Some(list) = list {
                regs::SG_ADDR.write(device, low(list));
                if wide {
                    regs::SG_ADDR_HIGH.write(device, high(list));
                }
            } else {
                self.write_registers(device, found, &job);
            }
            regs::FLAGS.write(device, self.flags(found));
            regs::SUBMIT.write(device, 1);
        }
        (self.given, self.held, self.unconfirmed) = (self.given + 1, self.held - 1, true);
        Ok(())
    }

    const fn flags(&self, found: &DmacFound) -> u32 {
        match self.kind {
            DmacKind::Receive if found.reports => regs::LAST | regs::REPORT,
            _ => regs::LAST,
        }
    }

    /// The job in registers.
    ///
    /// # Safety
    /// No transfer waits to be queued.
    unsafe fn write_registers(&self, device: &impl Device, found: &DmacFound, job: &Job) {
        let wide = found.address_bits > 32;
        // SAFETY: the registers are read when a transfer is submitted.
        unsafe {
            if self.kind != DmacKind::Send {
                regs::DEST_ADDR.write(device, low(job.to));
                if wide {
                    regs::DEST_ADDR_HIGH.write(device, high(job.to));
                }
            }
            if self.kind != DmacKind::Receive {
                regs::SRC_ADDR.write(device, low(job.from));
                if wide {
                    regs::SRC_ADDR_HIGH.write(device, high(job.from));
                }
            }
            regs::X_LENGTH.write(device, low(job.row_bytes.wrapping_sub(1)));
            if found.rows {
                regs::Y_LENGTH.write(device, job.rows.wrapping_sub(1));
                regs::DEST_STRIDE.write(device, job.to_stride);
                regs::SRC_STRIDE.write(device, job.from_stride);
            }
        }
    }

    /// Is the newest job in the core's queue?
    fn is_confirmed(&mut self, device: &impl Device) -> Result<bool> {
        if self.unconfirmed {
            let submit = regs::SUBMIT.read(device);
            if submit & regs::SUBMIT_RESERVED != 0 {
                return Err(gone(submit));
            }
            self.unconfirmed = submit != 0;
        }
        Ok(!self.unconfirmed)
    }

    /// The oldest job's end, where it was read before.
    pub(super) fn tell(&mut self) -> Option<Completion> {
        let place = self.places.get_mut(self.oldest).filter(|place| self.given > 0 && place.ended)?;
        place.ended = false;
        let completion = match (self.kind, place.partial) {
            (DmacKind::Receive, Some(bytes)) => Completion::of(self.oldest).with_bytes(usize::try_from(bytes).unwrap_or(usize::MAX)),
            _ => Completion::of(self.oldest),
        };
        (self.oldest, self.given) = (self.id(1), self.given - 1);
        Some(completion)
    }

    /// Looks for ends, and gives the core what was held back for them.
    pub(super) fn look(&mut self, device: &impl Device, found: &DmacFound) -> Result<()> {
        self.look_for_ends(device)?;
        self.launch(device, found)
    }

    /// Looks for ends, and starts nothing.
    pub(super) fn look_for_ends(&mut self, device: &impl Device) -> Result<()> {
        if self.given == 0 {
            return Ok(());
        }
        // The newest first: a job that is confirmed after DONE was read could be an old one there.
        let confirmed = self.is_confirmed(device)?;
        let mut done = self.done(device)?;
        let ids = if confirmed { self.given } else { self.given - 1 };
        if !self.any_ended(done, ids) {
            // The line is a level: it falls here, and what came meanwhile is seen.
            // SAFETY: acknowledging moves no data.
            unsafe { regs::IRQ_PENDING.write(device, regs::IRQ_ENDED) };
            done = self.done(device)?;
        }
        let ended = done;
        // A report is there with its DONE bit, or before. There are as many as IDs, at most.
        for _ in 0..regs::IDS {
            if done & regs::PARTIAL == 0 {
                break;
            }
            let bytes = regs::PARTIAL_LENGTH.read(device);
            let id = regs::PARTIAL_ID.read_and_clear(device);
            if bytes == u32::MAX || id as usize >= regs::IDS {
                return Err(gone(id));
            }
            if let Some(place) = self.places.get_mut(id as usize) {
                place.partial = Some(bytes);
            }
            done = self.done(device)?;
        }
        // After the reports: a core that goes away between the two has ended nothing.
        for steps in 0..ids {
            let id = self.id(steps);
            if let Some(place) = self.places.get_mut(id) {
                place.ended |= ended >> id & 1 != 0;
            }
        }
        Ok(())
    }

    fn done(&self, device: &impl Device) -> Result<u32> {
        let done = regs::DONE.read(device);
        if done & regs::DONE_RESERVED != 0 { Err(gone(done)) } else { Ok(done) }
    }

    fn any_ended(&self, done: u32, ids: usize) -> bool {
        done & regs::PARTIAL != 0 || (0..ids).any(|steps| done >> self.id(steps) & 1 != 0)
    }

    /// The core has stopped: only ends that were read are told.
    pub(super) fn stopped(&mut self) {
        let ended = (0..self.given).take_while(|&steps| self.places.get(self.id(steps)).is_some_and(|place| place.ended)).count();
        (self.given, self.held, self.unconfirmed) = (ended, 0, false);
    }
}

#[allow(clippy::cast_possible_truncation, reason = "the low word is the low 32 bits")]
pub(super) const fn low(addr: u64) -> u32 {
    addr as u32
}

pub(super) const fn high(addr: u64) -> u32 {
    low(addr >> 32)
}
