#![allow(unsafe_code, reason = "descriptors are memory that a device fetches")]
//! The jobs of one channel, in submission order: reported, ended, in the list that the channel
//! walks, waiting for the next list.

use super::descriptors::{self, List, PAIR_BYTES, PAIRS_MAX, PAIRS_MIN, Pieces};
use super::regs;
use crate::checks::outside;
use contigo_core::mem::{DevSlice, DriverBuf};
use contigo_core::types::{DevAddr, Error, Result};

/// The most jobs in flight: slots are numbered by 3 bits.
const DEPTH_MAX: usize = 8;

/// One copy.
#[derive(Clone, Copy, Debug)]
struct Job {
    from: DevAddr,
    to: DevAddr,
    size: u32,
}

/// The state of the channel.
#[derive(Debug)]
enum State {
    /// It was opened or stopped. Jobs that ended before are still reported.
    Stopped,
    /// A job was submitted since, or refused after the channel had been set up for it.
    Started,
    /// The fault that ended the list at work. Nothing is started until the channel is stopped.
    Failed(Error),
}

#[derive(Debug)]
pub(super) struct Jobs {
    /// `None`: simple mode.
    pub(super) memory: Option<DriverBuf>,
    /// The most pieces of a job.
    pairs: usize,
    /// The most jobs in flight: a power of two.
    pub(super) depth: usize,
    jobs: [Job; DEPTH_MAX],
    /// The slot of the oldest unreported job. From there on come the jobs that ended, those that
    /// the channel works on, and those that wait.
    oldest: usize,
    ended: usize,
    running: usize,
    waiting: usize,
    state: State,
}

impl Jobs {
    /// One transfer at a time, or lists in `memory`, which has room for [`PAIRS_MIN`] pairs. Each
    /// slot has its own share of it.
    pub(super) fn new(memory: Option<DriverBuf>) -> Self {
        let all = memory.as_ref().map_or(0, |memory| memory.len_bytes() / PAIR_BYTES);
        let mut depth = 1;
        // At most 3 doublings.
        while depth < DEPTH_MAX && all >= 2 * depth * PAIRS_MIN {
            depth *= 2;
        }
        let pairs = (all >> depth.ilog2()).min(PAIRS_MAX);
        let none = Job { from: DevAddr(0), to: DevAddr(0), size: 0 };
        Self {
            memory,
            pairs,
            depth,
            jobs: [none; DEPTH_MAX],
            oldest: 0,
            ended: 0,
            running: 0,
            waiting: 0,
            state: State::Stopped,
        }
    }

    /// The most bytes of one copy.
    pub(super) fn longest(&self) -> u64 {
        if self.memory.is_some() { descriptors::longest(self.pairs) } else { regs::SIZE_MAX.into() }
    }

    /// The slot of the job number `index`, from the oldest on.
    const fn slot(&self, index: usize) -> usize {
        (self.oldest + index) & (self.depth - 1)
    }

    fn job(&self, index: usize) -> Option<Job> {
        self.jobs.get(self.slot(index)).copied()
    }

    /// How many bytes the list at work copies.
    pub(super) fn running_bytes(&self) -> u32 {
        let sizes = (self.ended..self.ended + self.running)
            .filter_map(|index| self.job(index))
            .map(|job| job.size);
        sizes.fold(0, u32::saturating_add)
    }

    /// Returns whether a list is at work, whose end was not seen.
    pub(super) const fn are_running(&self) -> bool {
        self.running > 0 && matches!(self.state, State::Started)
    }

    /// Adds a waiting job in `slot`, and writes the descriptors of the one that waits before it.
    /// After a stop, this discards ended jobs that were not reported.
    ///
    /// # Errors
    /// [`Error::Argument`] for another slot than the next one, and for a size that does not fit.
    /// The error of the descriptors' sync.
    pub(super) fn push(
        &mut self,
        slot: usize,
        from: DevSlice,
        to: DevSlice,
        coherent: bool,
    ) -> Result<()> {
        if matches!(self.state, State::Stopped) {
            (self.state, self.ended) = (State::Started, 0);
        }
        let count = self.ended + self.running + self.waiting;
        if count == 0 {
            self.oldest = slot & (self.depth - 1);
        }
        let next = self.slot(count) as u64;
        if count == self.depth || slot as u64 != next {
            return Err(outside("slot", slot as u64, next, next));
        }
        let (value, max) = (from.len_bytes as u64, self.longest());
        let too_long = outside("bytes to copy", value, 1, max);
        let size = u32::try_from(value).ok().filter(|_| value <= max).ok_or(too_long)?;
        if let Some(job) = self.jobs.get_mut(slot) {
            *job = Job { from: from.addr, to: to.addr, size };
        }
        // Others follow it now. The newest ends a list, which `launch` will write.
        if self.waiting > 0 {
            self.write(count - 1, false, coherent)?;
        }
        self.waiting += 1;
        Ok(())
    }

    /// Turns the waiting jobs into the list at work, as many as TOTAL_BYTE can count. The channel
    /// is idle. `None` if no job waits, or none may start.
    ///
    /// # Errors
    /// The error of the descriptors' sync.
    pub(super) fn launch(&mut self, coherent: bool) -> Result<Option<Launch>> {
        if self.running > 0 || self.waiting == 0 || !matches!(self.state, State::Started) {
            return Ok(None);
        }
        let mut bytes = 0_u32;
        for index in self.ended..self.ended + self.waiting {
            let Some(sum) = self.job(index).and_then(|job| bytes.checked_add(job.size)) else {
                break;
            };
            (bytes, self.running) = (sum, self.running + 1);
        }
        self.waiting -= self.running;
        let (Some(last), Some(Job { from, to, .. })) =
            (self.running.checked_sub(1), self.job(self.ended))
        else {
            return Ok(None);
        };
        self.write(self.ended + last, true, coherent)?;
        let list =
            self.memory.as_ref().map(|memory| memory.addr_at(self.place(self.slot(self.ended))));
        Ok(Some(Launch { from, to, bytes, list }))
    }

    /// Where the descriptors of `slot` begin.
    const fn place(&self, slot: usize) -> usize {
        slot * self.pairs * PAIR_BYTES
    }

    /// Writes the descriptors of job number `index`, either as the end of a list or followed by the
    /// next slot's.
    fn write(&mut self, index: usize, last: bool, coherent: bool) -> Result<()> {
        let (slot, next) = (self.slot(index), self.slot(index + 1));
        let (here, then) = (self.place(slot), self.place(next));
        let (Some(memory), Some(Job { from, to, size })) =
            (&mut self.memory, self.jobs.get(slot).copied())
        else {
            return Ok(());
        };
        // `push` compared the size with `longest`.
        let Some(pieces) = Pieces::new(from, to, size.into(), self.pairs) else { return Ok(()) };
        let then = (!last).then(|| memory.addr_at(then));
        let list = List::new(pieces, memory.addr_at(here), then, coherent);
        // SAFETY: the job waits, or is about to be started on a channel that is idle. No list at
        // work leads here, because its last job names itself as its next.
        unsafe { memory.write(here, list.words()) }
    }

    /// The list at work ended well.
    pub(super) const fn all_ended(&mut self) {
        (self.ended, self.running) = (self.ended + self.running, 0);
    }

    /// The list at work ended with `fault`, after at least `done_bytes` bytes of it: the jobs that
    /// these cover ended well, except the last of the list.
    pub(super) fn failed(&mut self, fault: Error, done_bytes: u32) {
        let mut left_bytes = done_bytes;
        // At most 7.
        while self.running > 1 {
            let Some(left) = self.job(self.ended).and_then(|job| left_bytes.checked_sub(job.size))
            else {
                break;
            };
            (left_bytes, self.ended, self.running) = (left, self.ended + 1, self.running - 1);
        }
        self.state = State::Failed(fault);
    }

    /// The fault that ended the list at work, once the jobs before it were reported.
    pub(super) const fn fault(&self) -> Option<Error> {
        match self.state {
            State::Failed(fault) if self.ended == 0 => Some(fault),
            _ => None,
        }
    }

    /// The slot of the next job that ended.
    pub(super) const fn tell(&mut self) -> Option<usize> {
        if self.ended == 0 {
            return None;
        }
        let slot = self.oldest;
        (self.oldest, self.ended) = (self.slot(1), self.ended - 1);
        Some(slot)
    }

    /// The channel is stopped: jobs that ended are still reported, and the others are discarded.
    pub(super) const fn stopped(&mut self) {
        (self.running, self.waiting, self.state) = (0, 0, State::Stopped);
    }
}

/// A job or a list, as written to the registers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Launch {
    /// The first job, for simple mode.
    pub(super) from: DevAddr,
    pub(super) to: DevAddr,
    pub(super) bytes: u32,
    /// Where the list begins, in linked mode.
    pub(super) list: Option<DevAddr>,
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics has failed, which is its purpose")]
mod tests {
    use super::*;

    fn slice(addr: u64, len_bytes: usize) -> DevSlice {
        DevSlice { addr: DevAddr(addr), offset_bytes: 0, len_bytes }
    }

    #[test]
    fn list_fits_what_total_byte_counts() {
        let mut jobs = Jobs { depth: DEPTH_MAX, ..Jobs::new(None) };
        let most = regs::SIZE_MAX as usize;
        for slot in 0..DEPTH_MAX {
            jobs.push(slot, slice(slot as u64, most), slice(0, most), false).unwrap();
        }
        let full = jobs.push(0, slice(0, 1), slice(0, 1), false);
        assert_eq!(
            full,
            Err(Error::Argument { name: "slot", value: 0, min: 0, max: 0, multiple_of: 1 })
        );
        // Four are 4 GiB less 4 bytes.
        for first in [0, 4] {
            let launch = jobs.launch(false).unwrap().unwrap();
            assert_eq!(
                (launch.from, launch.bytes, jobs.running_bytes()),
                (DevAddr(first), 4 * regs::SIZE_MAX, 4 * regs::SIZE_MAX)
            );
            assert!(jobs.launch(false).unwrap().is_none(), "one list at a time");
            jobs.all_ended();
        }
        assert!(jobs.launch(false).unwrap().is_none());
        assert_eq!(
            [0; DEPTH_MAX + 1].map(|_| jobs.tell()),
            [0, 1, 2, 3, 4, 5, 6, 7, 8].map(|slot| Some(slot).filter(|slot| *slot < 8))
        );
        let skipped = (
            jobs.push(5, slice(0, 1), slice(0, 1), false),
            jobs.push(7, slice(0, 1), slice(0, 1), false),
        );
        assert_eq!(skipped.0, Ok(()), "an empty ring begins anywhere");
        assert_eq!(
            skipped.1,
            Err(Error::Argument { name: "slot", value: 7, min: 6, max: 6, multiple_of: 1 })
        );
    }

    #[test]
    fn failed_list_tells_done_starts_no_more() {
        let fault = Error::Busy;
        // How many bytes are certain, and how many of the list's three 10-byte jobs ended.
        for (done_bytes, ended) in
            [(0, 0), (9, 0), (10, 1), (19, 1), (20, 2), (30, 2), (u32::MAX, 2)]
        {
            let mut jobs = Jobs { depth: DEPTH_MAX, ..Jobs::new(None) };
            for slot in 0..3 {
                jobs.push(slot, slice(0, 10), slice(0, 10), false).unwrap();
            }
            jobs.launch(false).unwrap().unwrap();
            jobs.push(3, slice(0, 10), slice(0, 10), false).unwrap();
            jobs.failed(fault, done_bytes);
            assert!(jobs.launch(false).unwrap().is_none() && !jobs.are_running());
            for slot in 0..ended {
                assert_eq!((jobs.fault(), jobs.tell()), (None, Some(slot)), "{done_bytes}");
            }
            assert_eq!((jobs.fault(), jobs.tell()), (Some(fault), None), "{done_bytes}");
            jobs.stopped();
            assert_eq!((jobs.fault(), jobs.tell(), jobs.running_bytes()), (None, None, 0));
        }
    }
}
