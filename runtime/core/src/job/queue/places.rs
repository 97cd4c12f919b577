#![allow(unsafe_code, reason = "operands lie in pages, and are moved in and out of them")]
//! Where the jobs of a queue lie: as many places as the program asked for, in pages from the
//! kernel or in memory that the program gave.

use super::list::{Links, List, NONE, Place};
use crate::job::{Completion, MAX_OPERANDS};
use crate::mem::Operand;
use crate::mem::region::Memory;
use crate::types::{Error, Result};
use core::alloc::Layout;
use core::ptr::NonNull;
use core::{array, mem, slice};

/// The most jobs of a queue: more than the descriptors of any ring that a driver here has (512),
/// and far fewer than an index can number.
pub(super) const MAX_JOBS: usize = 4096;

/// The most argument words of a job: as many as an `s_axilite` block of 16 pointers, 16 scalars of
/// 64 bits and their control registers can use, and as C's bindings pass.
pub(super) const MAX_WORDS: usize = 64;

/// What the memory is aligned to: a cache line.
const LINE: usize = 64;

/// A job, without its operands and words.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job {
    /// The next place of its list.
    next: Place,
    /// How many words it has.
    words: usize,
    /// Are its operands in its place?
    is_here: bool,
    /// The driver's slot for this job, once the driver has the job.
    pub(super) slot: usize,
    /// The number that `submit` returned.
    pub(super) number: u64,
    /// The caller's name for it.
    pub(super) tag: usize,
    /// How many bytes the device may write.
    pub(super) most_bytes: usize,
    /// Its end, if that was found beside another job's.
    pub(super) end: Completion,
}

impl Job {
    const NONE: Self = Self {
        next: NONE,
        words: 0,
        is_here: false,
        slot: 0,
        number: 0,
        tag: 0,
        most_bytes: 0,
        end: Completion::of(0),
    };

    pub(super) const fn new(number: u64, tag: usize, most_bytes: usize) -> Self {
        Self { number, tag, most_bytes, ..Self::NONE }
    }
}

/// Where the parts of a queue's memory begin, in bytes from the beginning of it.
#[derive(Clone, Copy)]
pub(super) struct Plan {
    count: usize,
    operands_each: usize,
    operands: usize,
    words: usize,
    layout: Layout,
}

impl Plan {
    pub(super) const fn new(count: usize, operands_each: usize) -> Result<Self> {
        if count == 0 || count > MAX_JOBS {
            return Err(argument("the count of jobs", count, 1, MAX_JOBS));
        }
        if operands_each > MAX_OPERANDS {
            return Err(argument("the count of operands", operands_each, 0, MAX_OPERANDS));
        }
        const { assert!(align_of::<Operand>() >= align_of::<u32>() && align_of::<Job>() <= LINE) };
        // No sum overflows: 4,096 times 16 times 128 bytes is 8 MiB.
        let operands = (count * size_of::<Job>()).next_multiple_of(align_of::<Operand>());
        let words = operands + count * operands_each * size_of::<Operand>();
        match Layout::from_size_align(words + count * MAX_WORDS * size_of::<u32>(), LINE) {
            Ok(layout) => Ok(Self { count, operands_each, operands, words, layout }),
            Err(_) => Err(argument("the count of jobs", count, 1, MAX_JOBS)),
        }
    }

    pub(super) const fn layout(&self) -> Layout {
        self.layout
    }
}

/// The error for a count that is out of range.
pub(super) const fn argument(name: &'static str, value: usize, min: usize, max: usize) -> Error {
    Error::Argument { name, value: value as u64, min: min as u64, max: max as u64, multiple_of: 1 }
}

/// The places. Operands that are here when this is dropped are leaked, not dropped: only the queue
/// knows whether the device has stopped.
pub(super) struct Places {
    /// Held for its drop, which unmaps what the pointers point to.
    _memory: Memory,
    /// INVARIANT: `count` `Job`s, all initialized.
    jobs: NonNull<Job>,
    /// INVARIANT: room for `count` times `operands_each` operands. Those of a job that `is_here`
    /// are initialized.
    operands: NonNull<Operand>,
    /// INVARIANT: `count` times `MAX_WORDS` words, all initialized.
    words: NonNull<u32>,
    count: usize,
    operands_each: usize,
}

// SAFETY: it owns what it points to, and `Operand` is `Send`.
unsafe impl Send for Places {}
// SAFETY: nothing changes through a shared reference, and `Operand` is `Sync`.
unsafe impl Sync for Places {}

const _: () = {
    const fn is_send_and_sync<T: Send + Sync>() {}
    is_send_and_sync::<Operand>();
};

impl Places {
    /// Places in `memory`, all of them free.
    ///
    /// # Safety
    /// `memory` was made for the layout of `plan`, and has nothing in it.
    pub(super) unsafe fn write(plan: &Plan, memory: Memory) -> Self {
        let Plan { count, operands_each, .. } = *plan;
        // SAFETY: the plan put each part inside its layout, aligned for its type, and no two
        // overlap. The memory is zeroed: words are initialized, and the jobs are written below.
        let (jobs, operands, words) =
            unsafe { (memory.at::<Job>(0), memory.at(plan.operands), memory.at(plan.words)) };
        for at in 0..count {
            // SAFETY: the plan has room for `count` of them.
            unsafe { jobs.add(at).write(Job::NONE) }
        }
        Self { _memory: memory, jobs, operands, words, count, operands_each }
    }

    pub(super) const fn count(&self) -> usize {
        self.count
    }

    pub(super) const fn operands_each(&self) -> usize {
        self.operands_each
    }

    const fn jobs(&self) -> &[Job] {
        // SAFETY: the invariant of `jobs`; borrowed as `self` is.
        unsafe { slice::from_raw_parts(self.jobs.as_ptr(), self.count) }
    }

    const fn jobs_mut(&mut self) -> &mut [Job] {
        // SAFETY: as in `jobs`, and `self` is borrowed exclusively.
        unsafe { slice::from_raw_parts_mut(self.jobs.as_ptr(), self.count) }
    }

    pub(super) fn job(&self, place: Place) -> Option<&Job> {
        self.jobs().get(usize::from(place))
    }

    pub(super) fn job_mut(&mut self, place: Place) -> Option<&mut Job> {
        self.jobs_mut().get_mut(usize::from(place))
    }

    /// The first operand of `place`. The others of its job follow it.
    fn operands_at(&self, place: Place) -> Option<NonNull<Operand>> {
        // SAFETY: `place` is below `count`, so the pointer is inside the pages.
        (usize::from(place) < self.count)
            .then(|| unsafe { self.operands.add(usize::from(place) * self.operands_each) })
    }

    /// Moves `job` and its operands, exactly as many as a job has, from the list into `place`,
    /// which must be empty. Returns false if it is not, or if there are more or fewer operands.
    #[inline]
    pub(super) fn put<const N: usize>(
        &mut self,
        place: Place,
        job: Job,
        from: &mut heapless::Vec<Operand, N>,
    ) -> bool {
        let Some(first) = self.operands_at(place) else { return false };
        let len = from.len();
        if len != self.operands_each || self.job(place).is_none_or(|job| job.is_here) {
            return false;
        }
        // SAFETY: `from` has `len` operands, and has none of them from here on. The place has room
        // for as many, and none to drop (`is_here`). One by one, because a compiler moves an
        // operand inline, and a list by a call.
        unsafe {
            from.set_len(0);
            (0..len).for_each(|at| first.add(at).write(from.as_ptr().add(at).read()));
        }
        if let Some(there) = self.job_mut(place) {
            // The rest is written before it is read.
            (there.number, there.tag, there.most_bytes) = (job.number, job.tag, job.most_bytes);
            there.is_here = true;
        }
        true
    }

    /// The operands of the job at `place`; none if there is no job.
    #[inline]
    pub(super) fn operands(&self, place: Place) -> &[Operand] {
        match (self.operands_at(place), self.job(place)) {
            // SAFETY: the invariant of `operands`; borrowed as `self` is.
            (Some(first), Some(job)) if job.is_here => unsafe {
                slice::from_raw_parts(first.as_ptr(), self.operands_each)
            },
            _ => &[],
        }
    }

    /// As `operands`.
    #[inline]
    pub(super) fn operands_mut(&mut self, place: Place) -> &mut [Operand] {
        match (self.operands_at(place), self.job(place)) {
            // SAFETY: as in `operands`, and `self` is borrowed exclusively.
            (Some(first), Some(job)) if job.is_here => unsafe {
                slice::from_raw_parts_mut(first.as_ptr(), self.operands_each)
            },
            _ => &mut [],
        }
    }

    /// Gives each operand of the jobs in `list` to `act`.
    pub(super) fn each_operand(&mut self, list: List, act: impl Fn(&mut Operand)) {
        let mut next = list.first();
        for _ in 0..list.len() {
            let Some(place) = next else { return };
            self.operands_mut(place).iter_mut().for_each(&act);
            next = Some(self.next(place));
        }
    }

    /// Takes the operands at `place` out: calls `each` once for each of them, with its index. If
    /// `each` panics, the others are leaked.
    #[inline]
    pub(super) fn take(&mut self, place: Place, mut each: impl FnMut(usize, Operand)) {
        let Some(first) = self.operands_at(place) else { return };
        let Some(job) = self.job_mut(place) else { return };
        if mem::take(&mut job.is_here) {
            // SAFETY: they were initialized (`is_here`), and count as taken from here on: each is
            // read once.
            (0..self.operands_each)
                .for_each(|index| each(index, unsafe { first.add(index).read() }));
        }
    }

    /// Takes the operands at `place` out, and returns the job's number with what `each` makes of
    /// them. `None`: there is no job, or jobs do not have `N` operands.
    #[inline]
    pub(super) fn take_array<const N: usize, B>(
        &mut self,
        place: Place,
        each: impl Fn(Operand) -> B,
    ) -> Option<(u64, [B; N])> {
        let (first, each_has) = (self.operands_at(place)?, self.operands_each);
        let job = self.job_mut(place).filter(|job| job.is_here && each_has == N)?;
        job.is_here = false;
        let number = job.number;
        // SAFETY: as in `take`.
        Some((number, array::from_fn(|index| each(unsafe { first.add(index).read() }))))
    }

    /// Keeps the words of a job that waits. There are at most [`MAX_WORDS`].
    pub(super) fn keep_words(&mut self, place: Place, words: &[u32]) {
        let len = words.len().min(MAX_WORDS);
        let Some(job) = self.job_mut(place) else { return };
        job.words = len;
        // SAFETY: the invariant of `words`; `job_mut` found that `place` is below `count`. They are
        // in pages of our own, and the source is not, because `self` is borrowed exclusively.
        unsafe {
            self.words
                .add(usize::from(place) * MAX_WORDS)
                .as_ptr()
                .copy_from_nonoverlapping(words.as_ptr(), len)
        }
    }

    /// The words of a job that waits.
    pub(super) fn words(&self, place: Place) -> &[u32] {
        let Some(job) = self.job(place) else { return &[] };
        // SAFETY: the invariant of `words`, and `keep_words` keeps at most `MAX_WORDS`; borrowed as
        // `self` is.
        unsafe {
            slice::from_raw_parts(
                self.words.add(usize::from(place) * MAX_WORDS).as_ptr(),
                job.words,
            )
        }
    }
}

impl Links for Places {
    #[inline]
    fn next(&self, of: Place) -> Place {
        self.job(of).map_or(NONE, |job| job.next)
    }

    #[inline]
    fn set_next(&mut self, of: Place, next: Place) {
        if let Some(job) = self.job_mut(of) {
            job.next = next;
        }
    }
}
