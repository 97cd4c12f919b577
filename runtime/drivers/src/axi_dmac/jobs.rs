#![allow(unsafe_code, reason = "submitting sends the core to the operands, as descriptors do")]
//! The jobs in flight: up to four, each with the core's ID, and those that its queue could not take
//! yet. How the driver writes a job, in registers or as a list of descriptors, and detects and
//! reports its end.

use super::config::{DmacFound, DmacKind};
use super::job::{Job, Together};
use super::regs;
use crate::checks::{high, low};
use crate::ring::{Layout, Ring};
use contigo_core::hw::Device;
use contigo_core::job::Completion;
use contigo_core::mem::{CpuBuf, Port};
use contigo_core::types::{Error, Refused, Result};

/// The most pieces of a job.
const PIECES_MAX: usize = 64;

/// A job with its ID.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    job: Job,
    /// The core reported its end.
    ended: bool,
    /// The bytes that it wrote.
    partial: Option<u32>,
}

/// The state of the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It was opened or stopped. Jobs that ended before are still reported.
    Stopped,
    /// It is enabled, and all submitted jobs are in its queue.
    Ready,
    /// The newest job may still be outside of the queue: its DONE bit is that of the job four
    /// before.
    Submitting,
}

/// All of them. The job in slot N has ID N: both begin at 0 when the core is enabled.
#[derive(Debug)]
pub(super) struct Jobs {
    kind: DmacKind,
    pub(super) together: Together,
    /// The first descriptor of each ID, if jobs are lists.
    lists: Option<[u64; regs::IDS]>,
    places: [Place; regs::IDS],
    /// The ID of the oldest unreported job.
    oldest: usize,
    /// Unreported jobs that were submitted to the core.
    given: usize,
    /// Jobs after them that its queue could not take, or that must not be in the core with them.
    held: usize,
    pub(super) state: State,
}

/// The error for values that the core never has.
const fn gone(status: u32) -> Error {
    Error::Fault { device: "axi_dmac", status, what: regs::GONE }
}

impl Jobs {
    pub(super) fn new(kind: DmacKind, together: Together, lists: Option<[u64; regs::IDS]>) -> Self {
        Self {
            kind,
            together,
            lists,
            places: [Place::default(); regs::IDS],
            oldest: 0,
            given: 0,
            held: 0,
            state: State::Stopped,
        }
    }

    /// The core was enabled again.
    pub(super) fn begin_anew(&mut self) {
        *self = Self { state: State::Ready, ..Self::new(self.kind, self.together, self.lists) };
    }

    const fn id(&self, steps: usize) -> usize {
        (self.oldest + steps) % regs::IDS
    }

    /// Takes a job, and submits it to the core if its queue has room.
    ///
    /// # Safety
    /// The operands were handed over.
    pub(super) unsafe fn push(
        &mut self,
        device: &impl Device,
        found: &DmacFound,
        job: Job,
    ) -> Result<()> {
        let id = self.id(self.given + self.held);
        let room = self.given + self.held < regs::IDS;
        let Some(place) = self.places.get_mut(id).filter(|_| room) else { return Err(Error::Busy) };
        *place = Place { job, ended: false, partial: None };
        self.held += 1;
        self.launch(device, found)
    }

    /// Submits the jobs that the core has room for, and that may be in it together: one at a time,
    /// because there is one set of registers.
    fn launch(&mut self, device: &impl Device, found: &DmacFound) -> Result<()> {
        if self.held == 0 || !self.is_confirmed(device)? {
            return Ok(());
        }
        let id = self.id(self.given);
        let job = self.places.get(id).map_or_else(Job::default, |place| place.job);
        let mut under_way = (0..self.given)
            .filter_map(|steps| self.places.get(self.id(steps)))
            .filter(|place| !place.ended);
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
        (self.given, self.held, self.state) = (self.given + 1, self.held - 1, State::Submitting);
        Ok(())
    }

    const fn flags(&self, found: &DmacFound) -> u32 {
        match self.kind {
            DmacKind::Receive if found.reports => regs::LAST | regs::REPORT,
            _ => regs::LAST,
        }
    }

    /// Writes the job to registers.
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

    /// Whether the newest job is in the core's queue.
    fn is_confirmed(&mut self, device: &impl Device) -> Result<bool> {
        if self.state == State::Submitting {
            let submit = regs::SUBMIT.read(device);
            if submit & regs::SUBMIT_RESERVED != 0 {
                return Err(gone(submit));
            }
            if submit == 0 {
                self.state = State::Ready;
            }
        }
        Ok(self.state != State::Submitting)
    }

    /// The oldest job's completion, if its end was already read.
    pub(super) fn tell(&mut self) -> Option<Completion> {
        let place =
            self.places.get_mut(self.oldest).filter(|place| self.given > 0 && place.ended)?;
        place.ended = false;
        let completion = match (self.kind, place.partial) {
            (DmacKind::Receive, Some(bytes)) => {
                let bytes = Some(usize::try_from(bytes).unwrap_or(usize::MAX));
                Completion { bytes, ..Completion::of(self.oldest) }
            }
            _ => Completion::of(self.oldest),
        };
        (self.oldest, self.given) = (self.id(1), self.given - 1);
        Some(completion)
    }

    /// Polls for ends, and submits the jobs that were held back for them.
    pub(super) fn look(&mut self, device: &impl Device, found: &DmacFound) -> Result<()> {
        self.look_for_ends(device)?;
        self.launch(device, found)
    }

    /// Polls for ends, and starts nothing.
    pub(super) fn look_for_ends(&mut self, device: &impl Device) -> Result<()> {
        if self.given == 0 {
            return Ok(());
        }
        // The newest first: if confirmed only after DONE was read, its bit could be an old job's.
        let confirmed = self.is_confirmed(device)?;
        let mut done = self.done(device)?;
        let ids = if confirmed { self.given } else { self.given - 1 };
        if !self.any_ended(done, ids) {
            // A level line: it falls here, and ends that came meanwhile are read below.
            // SAFETY: acknowledging moves no data.
            unsafe { regs::IRQ_PENDING.write(device, regs::IRQ_ENDED) };
            done = self.done(device)?;
        }
        let ended = done;
        // A report comes with its DONE bit, or before. There are at most as many as IDs.
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
        // After the reports: a core that vanishes between the two has ended nothing.
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

    /// The core has stopped: only ends that were already read are reported.
    pub(super) fn stopped(&mut self) {
        let ended = (0..self.given)
            .take_while(|&steps| self.places.get(self.id(steps)).is_some_and(|place| place.ended))
            .count();
        (self.given, self.held, self.state) = (ended, 0, State::Stopped);
    }
}

/// Lists of descriptors: the pieces of a job that is too long for a length register. Each of four
/// jobs has an equal share.
#[derive(Debug)]
pub(super) struct Lists {
    ring: Ring,
    pieces: usize,
    /// The longest piece: whole bursts, so the next piece begins at a burst boundary.
    piece_bytes: u64,
    burst_bytes: u64,
}

impl Lists {
    /// # Errors
    /// As [`Ring::new`].
    pub(super) fn new(
        memory: CpuBuf,
        port: &Port,
        found: &DmacFound,
    ) -> Result<Self, Refused<CpuBuf>> {
        let layout = Layout {
            len_bytes: regs::DESCRIPTOR_BYTES,
            align_bytes: regs::DESCRIPTOR_BYTES,
            most: PIECES_MAX * regs::IDS,
        };
        let ring = Ring::new(memory, port, found.address_bits, layout, regs::IDS)?;
        let burst = found.address_align as u64;
        let piece_bytes = found.max_bytes / burst * burst;
        // A piece is at least two bursts, even if it gave its last burst away.
        let pieces = if piece_bytes < 3 * burst { 1 } else { ring.len() / regs::IDS };
        Ok(Self { ring, pieces, piece_bytes, burst_bytes: burst })
    }

    /// The longest job.
    pub(super) fn longest(&self) -> u64 {
        self.piece_bytes.saturating_mul(self.pieces as u64)
    }

    /// The address of each job's first descriptor.
    pub(super) fn firsts(&self) -> [u64; regs::IDS] {
        core::array::from_fn(|id| self.ring.addr(id * self.pieces))
    }

    /// Writes the descriptors of the job with this ID.
    ///
    /// # Safety
    /// The core fetches none of them now, and the operands were handed over.
    pub(super) unsafe fn write(&mut self, id: usize, job: &Job) -> Result<()> {
        let mut done = 0;
        for piece in 0..self.pieces {
            let index = id * self.pieces + piece;
            // A job of rows is one piece.
            let left = job.row_bytes.saturating_sub(done);
            let bytes = match left.checked_sub(self.piece_bytes) {
                _ if job.rows > 1 => left,
                // The last piece would be a single burst after another piece (`Together`).
                Some(1..) if left - self.piece_bytes <= self.burst_bytes => {
                    self.piece_bytes - self.burst_bytes
                }
                _ => left.min(self.piece_bytes),
            };
            let is_last = bytes == left;
            let flags = if is_last { regs::DESCRIPTOR_LAST | regs::DESCRIPTOR_END } else { 0 };
            let next = if is_last { 0 } else { self.ring.addr(index + 1) };
            let (from, to) = (job.from.wrapping_add(done), job.to.wrapping_add(done));
            let number = u32::try_from(index).unwrap_or(0);
            let words: [u32; regs::DESCRIPTOR_WORDS] = [
                flags,
                number,
                low(to),
                high(to),
                low(from),
                high(from),
                low(next),
                high(next),
                job.rows.wrapping_sub(1),
                low(bytes.wrapping_sub(1)),
                job.from_stride,
                job.to_stride,
            ];
            // SAFETY: the caller's promise.
            unsafe { self.ring.write(index, 0, &words)? };
            done += bytes;
            if is_last {
                return Ok(());
            }
        }
        Err(Error::Unexpected {
            name: "the length of a job, which `check` compared,",
            value: job.row_bytes,
        })
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
