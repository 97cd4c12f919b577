#![allow(unsafe_code, reason = "descriptors are memory that a device fetches")]
//! The jobs of scatter-gather mode, in submission order, and their descriptors.

use super::regs;
use crate::checks::{high, low, outside};
use crate::ring::{Layout, Ring};
use crate::tail::Tail;
use contigo_core::mem::{CpuBuf, Port};
use contigo_core::types::{Refused, Result};

/// The most jobs in flight.
pub(super) const DEPTH_MAX: usize = 64;
/// The most descriptors in use: the largest 8-bit count.
const DESCRIPTORS_MAX: usize = 255;

/// A job's descriptors, and its read address.
#[derive(Clone, Copy, Debug, Default)]
struct Job {
    first: usize,
    count: usize,
    from: u64,
}

/// One copy, or one side of it and a fixed address.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transfer {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) len_bytes: usize,
    /// The address advances with the bytes; a keyhole's is fixed.
    pub(super) from_moves: bool,
    pub(super) to_moves: bool,
}

/// What the oldest job's descriptors report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    Nothing,
    Complete,
    Failed,
}

/// The state of the core.
#[derive(Debug)]
enum State {
    /// It was reset: the next job starts afresh. Of the earlier jobs, this many had ended
    /// unreported.
    Reset {
        ended: usize,
    },
    Running,
    /// A reset was started, and its end was not seen.
    Resetting {
        ended: usize,
    },
}

/// The jobs in flight are `in_flight` slots from `oldest` on; `state` has what became of them.
#[derive(Debug)]
pub(super) struct Chain {
    ring: Ring,
    jobs: [Job; DEPTH_MAX],
    depth: usize,
    /// The most descriptors of a job.
    share: usize,
    piece_bytes: usize,
    /// The slot of the oldest unreported job.
    oldest: usize,
    in_flight: usize,
    /// How many of them, the newest, had no doorbell yet.
    owed: usize,
    /// How many, from the oldest on, registers showed to be done. A hint: their status may be late.
    known: usize,
    /// Ends were reported since registers were read: an interrupt may be theirs.
    skipped: bool,
    /// The next free descriptor.
    next: usize,
    state: State,
    /// How many descriptors, from `next` on, were written for a job that was not submitted.
    spilled: usize,
    /// The first descriptor of the jobs that a stop took back, and their number.
    stale: (usize, usize),
    /// The core has more than 32 address bits.
    is_wide: bool,
    /// How TAILDESC was written last.
    pub(super) tail: Tail,
}

impl Chain {
    /// Descriptors in `memory`, for `depth` jobs of pieces of at most `piece_bytes`.
    ///
    /// # Errors
    /// The memory comes back, as from [`Ring::new`].
    pub(super) fn new(
        memory: CpuBuf,
        port: &Port,
        addr_bits: u32,
        depth: Option<usize>,
        piece_bytes: usize,
        is_wide: bool,
    ) -> Result<Self, Refused<CpuBuf>> {
        let layout = Layout {
            len_bytes: regs::DESCRIPTOR_BYTES,
            align_bytes: regs::DESCRIPTOR_ALIGN,
            most: DESCRIPTORS_MAX,
        };
        // One more than jobs have, so that a job's last descriptor is never the one that TAILDESC
        // already names.
        let ring =
            Ring::new(memory, port, addr_bits, layout, depth.unwrap_or(1).saturating_add(1))?;
        // SAFETY: the core was reset, and does not have the address of this memory.
        let ring = unsafe { ring.cleared(regs::STATUS_AT, regs::COMPLETE)? };
        let usable = ring.len() - 1;
        let depth = depth.unwrap_or(usable).clamp(1, DEPTH_MAX);
        let jobs = [Job::default(); DEPTH_MAX];
        Ok(Self {
            ring,
            jobs,
            depth,
            share: (usable / depth).max(1),
            piece_bytes,
            oldest: 0,
            in_flight: 0,
            owed: 0,
            known: 0,
            skipped: false,
            next: 0,
            state: State::Reset { ended: 0 },
            spilled: 0,
            stale: (0, 0),
            is_wide,
            tail: Tail::default(),
        })
    }

    pub(super) const fn depth(&self) -> usize {
        self.depth
    }

    /// The most bytes of one job.
    pub(super) const fn longest(&self) -> usize {
        self.share.saturating_mul(self.piece_bytes)
    }

    /// Discards every job if the core was reset: the next one has slot 0 and the first descriptor.
    /// Marks the descriptors of jobs that a stop took back complete: a core that fetched one would
    /// report an error, and touch no memory that has another owner by now.
    ///
    /// Returns `false` if it was not reset.
    pub(super) fn begin_anew(&mut self) -> Result<bool> {
        if !matches!(self.state, State::Reset { .. }) {
            return Ok(false);
        }
        self.state = State::Running;
        self.forget();
        let (first, count) = self.stale;
        for step in 0..count {
            // SAFETY: the core was reset, and fetches nothing before a doorbell.
            unsafe {
                self.ring.write(self.ring.after(first, step), regs::STATUS_AT, &[regs::COMPLETE])?
            };
        }
        self.stale = (0, 0);
        (self.oldest, self.next) = (0, 0);
        Ok(true)
    }

    /// The address of the last descriptor of the jobs whose doorbell is owed, and whether to write
    /// both halves of TAILDESC. It is rung now. `None`: there are none, or they were stopped.
    pub(super) fn rings(&mut self) -> Option<(u64, bool)> {
        let owed = core::mem::take(&mut self.owed);
        if owed == 0 {
            return None;
        }
        let newest = (self.oldest + self.in_flight - 1) % self.depth;
        let is_free = self.tail.give(self.is_wide, self.in_flight == owed);
        Some((self.ring.addr(self.last(newest)), is_free))
    }

    /// How many jobs, from the oldest on, had their doorbell.
    pub(super) const fn rung(&self) -> usize {
        self.in_flight - self.owed
    }

    /// The oldest job's slot, if it ended, and its descriptor is polled before any register: that
    /// costs less, or registers showed that it is done. A failed one is left to the registers,
    /// which have the cause, and so is the last one where they showed its end before.
    pub(super) fn look_first(&mut self) -> Result<Option<usize>> {
        let is_first = self.ring.is_coherent() || self.known > 0 && self.in_flight > 1;
        if !is_first || self.look()? != Look::Complete {
            return Ok(None);
        }
        self.skipped = true;
        Ok(Some(self.tell()))
    }

    /// Registers were read, and their interrupts acknowledged. Returns whether an interrupt can be
    /// the oldest job's alone, and whether registers showed before that this job is done.
    pub(super) const fn acknowledged(&mut self) -> (bool, bool) {
        (!core::mem::replace(&mut self.skipped, false), self.known > 0)
    }

    /// Registers show that so many jobs, from the oldest on, are done.
    pub(super) const fn knows(&mut self, jobs: usize) {
        self.known = jobs;
    }

    /// The upper half of every descriptor's address.
    pub(super) fn upper_half(&self) -> u32 {
        high(self.ring.addr(0))
    }

    /// The address of the first descriptor.
    pub(super) fn first_addr(&self) -> u64 {
        self.ring.addr(0)
    }

    /// Adds a job, whose doorbell is owed: writes its descriptors.
    ///
    /// # Errors
    /// [`Error::Argument`]: it is not the next slot, or too long. The error of the memory's sync.
    pub(super) fn push(&mut self, slot: usize, transfer: &Transfer) -> Result<()> {
        let next = (self.oldest + self.in_flight) % self.depth;
        if slot != next || self.in_flight == self.depth {
            return Err(outside("slot", slot as u64, next as u64, next as u64));
        }
        let (value, max) = (transfer.len_bytes as u64, self.longest() as u64);
        let first = self.next;
        let (mut at, mut count, mut done) = (first, 0, 0);
        while done < transfer.len_bytes {
            // If this fails, those written so far name bytes of a job that never began.
            if count == self.share {
                return Err(outside("bytes to copy", value, 1, max));
            }
            let left = transfer.len_bytes - done;
            let piece = left.min(self.piece_bytes);
            let moved =
                |addr: u64, moves: bool| if moves { addr.wrapping_add(done as u64) } else { addr };
            let following = self.ring.after(at, 1);
            let words = regs::descriptor(
                self.ring.addr(following),
                moved(transfer.from, transfer.from_moves),
                moved(transfer.to, transfer.to_moves),
                u32::try_from(piece).unwrap_or(0),
            );
            self.spilled = self.spilled.max(count + 1);
            // SAFETY: the jobs in flight have at most `depth * share` descriptors, which are fewer
            // than there are, and these follow them. The core paused at an earlier one, or will.
            unsafe { self.ring.write(at, 0, &words)? };
            (at, count, done) = (following, count + 1, done + piece);
        }
        if let Some(job) = self.jobs.get_mut(slot) {
            *job = Job { first, count, from: transfer.from };
        }
        (self.next, self.in_flight, self.spilled) = (at, self.in_flight + 1, self.spilled - count);
        self.owed += 1;
        Ok(())
    }

    fn job(&self, slot: usize) -> Job {
        self.jobs.get(slot).copied().unwrap_or_default()
    }

    /// A job's last descriptor.
    fn last(&self, slot: usize) -> usize {
        let job = self.job(slot);
        self.ring.after(job.first, job.count.saturating_sub(1))
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.in_flight == 0
    }

    /// The read address of the oldest job.
    pub(super) fn reads_from(&self) -> u64 {
        self.job(self.oldest).from
    }

    /// How many jobs lie before the one whose descriptor CURDESC's lower half, `lower`, names. The
    /// job at 0 has not ended, and those before it are done.
    pub(super) fn steps_to(&self, lower: u32) -> Option<usize> {
        (0..self.rung()).find(|steps| {
            let job = self.job((self.oldest + steps) % self.depth);
            (0..job.count).any(|at| low(self.ring.addr(self.ring.after(job.first, at))) == lower)
        })
    }

    /// Whether `lower`, the lower half of CURDESC, is the descriptor before the oldest job. If so,
    /// an idle core pauses there; if not, it has done that job, whose status is under way.
    pub(super) fn is_before_oldest(&self, lower: u32) -> bool {
        let before = self.ring.after(self.job(self.oldest).first, self.ring.len() - 1);
        low(self.ring.addr(before)) == lower
    }

    /// Reads the oldest job's last descriptor. This is a sync on a port that does not snoop.
    pub(super) fn look(&mut self) -> Result<Look> {
        self.look_at(0)
    }

    /// Reads the last descriptor of the job `steps` after the oldest.
    fn look_at(&mut self, steps: usize) -> Result<Look> {
        let mut status = [0];
        let slot = (self.oldest + steps) % self.depth;
        self.ring.read(self.last(slot), regs::STATUS_AT, &mut status)?;
        Ok(match status[0] {
            status if status & regs::FAILED != 0 => Look::Failed,
            status if status & regs::COMPLETE != 0 => Look::Complete,
            _ => Look::Nothing,
        })
    }

    /// Ends the oldest job, and returns its slot.
    pub(super) fn tell(&mut self) -> usize {
        let slot = self.oldest;
        self.tail.moves();
        (self.oldest, self.in_flight) = ((slot + 1) % self.depth, self.in_flight.saturating_sub(1));
        self.known = self.known.saturating_sub(1);
        // A core that ends a job which it does not have is a liar, and no count wraps for it.
        self.owed = self.owed.min(self.in_flight);
        slot
    }

    /// Counts the jobs that have ended, before a reset. Afterwards a descriptor shows nothing,
    /// because the core also writes Cmplt for a copy that its reset cut (`axi_cdma_sg_cntlr.vhd`).
    /// A job whose descriptor cannot be read has not ended.
    pub(super) fn resets(&mut self) {
        self.owed = 0;
        if self.is_running() {
            let jobs = 0..self.in_flight;
            let ended =
                jobs.take_while(|steps| matches!(self.look_at(*steps), Ok(Look::Complete))).count();
            self.state = State::Resetting { ended };
        }
    }

    pub(super) const fn was_reset(&mut self) {
        if let State::Resetting { ended } = self.state {
            self.state = State::Reset { ended };
        }
    }

    /// Whether no reset was begun since the core started.
    pub(super) const fn is_running(&self) -> bool {
        matches!(self.state, State::Running)
    }

    /// The slot of the next job that had ended before the reset. If there is none, discards the
    /// others.
    pub(super) fn tell_ended(&mut self) -> Option<usize> {
        if let State::Reset { ended: left @ 1.. } | State::Resetting { ended: left @ 1.. } =
            &mut self.state
        {
            *left -= 1;
            return Some(self.tell());
        }
        self.forget();
        None
    }

    /// Discards the jobs that have not ended: the core was reset.
    fn forget(&mut self) {
        let mut count = self.spilled;
        let mut first = self.next;
        if self.in_flight > 0 {
            first = self.job(self.oldest).first;
            count += if self.next > first {
                self.next - first
            } else {
                self.next + self.ring.len() - first
            };
        }
        if count > 0 {
            self.stale = (first, count);
        }
        (self.in_flight, self.known, self.spilled) = (0, 0, 0);
    }

    /// Returns the memory to its pool.
    ///
    /// # Safety
    /// The core is stopped.
    pub(super) unsafe fn release(&mut self) {
        // SAFETY: the caller's promise.
        unsafe { self.ring.release() }
    }
}
