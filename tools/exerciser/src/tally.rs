//! The jobs: requested, tried, and their results.

use contigo::{Align, Error};
use core::fmt;
use core::ops::Range;
use std::time::Instant;

/// When a run ends.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    pub(super) jobs: u64,
    pub(super) until: Option<Instant>,
}

impl Budget {
    /// After so many jobs.
    #[must_use]
    pub const fn jobs(jobs: u64) -> Self {
        Self { jobs, until: None }
    }

    /// At `until`, and after `jobs` jobs at the latest. The clock is looked at between jobs, now
    /// and then.
    #[must_use]
    pub const fn until(until: Instant, jobs: u64) -> Self {
        Self { jobs, until: Some(until) }
    }
}

/// One copy, exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// Its number, from 1.
    pub number: u64,
    /// The slot that was read, 1 to 64, and its first byte.
    pub from: (usize, usize),
    /// The slot that was written, 1 to 64, and its first byte.
    pub to: (usize, usize),
    /// How many bytes.
    pub len_bytes: usize,
    /// Did the source stay the device's from an earlier job?
    pub from_device_owned: bool,
    /// Did the destination?
    pub to_device_owned: bool,
    /// Do both stay the device's afterwards?
    pub kept: bool,
}

impl Job {
    /// Before anything is decided.
    pub(super) const fn none(number: u64) -> Self {
        Self {
            number,
            from: (0, 0),
            to: (0, 0),
            len_bytes: 0,
            from_device_owned: false,
            to_device_owned: false,
            kept: false,
        }
    }

    /// Which bytes of its source slot are read.
    #[must_use]
    pub const fn source(&self) -> Range<usize> {
        self.from.1..self.from.1 + self.len_bytes
    }

    /// Which bytes of its destination slot are written.
    #[must_use]
    pub const fn destination(&self) -> Range<usize> {
        self.to.1..self.to.1 + self.len_bytes
    }
}

/// How often each case was tried. A job can be several of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tried {
    /// One byte.
    pub one_byte: u64,
    /// An odd number of bytes, more than one.
    pub odd_length: u64,
    /// Source or destination at an odd address.
    pub odd_address: u64,
    /// Source and destination at different places within a line of 64 bytes.
    pub unequal_alignment: u64,
    /// A destination that begins or ends within a line of 64 bytes, and touches more than one.
    pub across_a_line: u64,
    /// A destination across a multiple of 4 KiB, where no AXI burst may go.
    pub across_a_page: u64,
    /// All of a slot.
    pub full_slot: u64,
    /// A source that the CPU had just written.
    pub fresh_source: u64,
    /// A destination that the CPU had just written: its lines were dirty.
    pub dirty_destination: u64,
    /// A source that had stayed the device's.
    pub chained_source: u64,
    /// A destination that had stayed the device's.
    pub chained_destination: u64,
    /// A buffer that went back to its pool and was taken again.
    pub recycled: u64,
}

impl Tried {
    /// Of two runs together.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            one_byte: self.one_byte + other.one_byte,
            odd_length: self.odd_length + other.odd_length,
            odd_address: self.odd_address + other.odd_address,
            unequal_alignment: self.unequal_alignment + other.unequal_alignment,
            across_a_line: self.across_a_line + other.across_a_line,
            across_a_page: self.across_a_page + other.across_a_page,
            full_slot: self.full_slot + other.full_slot,
            fresh_source: self.fresh_source + other.fresh_source,
            dirty_destination: self.dirty_destination + other.dirty_destination,
            chained_source: self.chained_source + other.chained_source,
            chained_destination: self.chained_destination + other.chained_destination,
            recycled: self.recycled + other.recycled,
        }
    }

    /// Each case with its name, in the order of the fields.
    #[must_use]
    pub const fn cases(&self) -> [(&'static str, u64); 12] {
        [
            ("one byte", self.one_byte),
            ("odd length", self.odd_length),
            ("odd address", self.odd_address),
            ("unequal alignment", self.unequal_alignment),
            ("across a cache line", self.across_a_line),
            ("across 4 KiB", self.across_a_page),
            ("a full slot", self.full_slot),
            ("source just written by the CPU", self.fresh_source),
            ("destination just written by the CPU", self.dirty_destination),
            ("source still the device's", self.chained_source),
            ("destination still the device's", self.chained_destination),
            ("buffer back to its pool", self.recycled),
        ]
    }
}

/// The kind of a wrong byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// Inside what a job wrote: the engine copied something else, or the caches show something
    /// else.
    Mismatch,
    /// Outside of it: a byte changed that no job was to write.
    CanaryHit,
}

/// The first byte that was wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstWrong {
    /// The seed that meets it again.
    pub seed: u64,
    /// The job after which it was seen. Where its slot had stayed the device's, an earlier one may
    /// have done it.
    pub job: Job,
    /// Which slot it is in: 1 to 64; 0 and 65 are the guards before and after them.
    pub slot: usize,
    /// Which byte of the slot.
    pub offset: usize,
    /// The expected byte.
    pub expected: u8,
    /// What is there.
    pub found: u8,
    /// Its kind.
    pub blame: Blame,
}

/// The results of the jobs so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Copies that came to their end.
    pub jobs: u64,
    /// Bytes that they copied.
    pub bytes: u64,
    /// Bytes that are wrong where a job wrote.
    pub mismatches: u64,
    /// Bytes that changed where no job wrote.
    pub canary_hits: u64,
    /// Bytes that were compared.
    pub compared: u64,
    /// How often each case was tried.
    pub tried: Tried,
    /// The first byte that was wrong.
    pub first_wrong: Option<FirstWrong>,
}

impl Tally {
    /// One job more, in slots of `slot_bytes`.
    pub(super) fn count(&mut self, job: &Job, slot_bytes: usize) {
        let (line, page) = (Align::LINE.bytes(), Align::PAGE.bytes());
        let first = job.to.0 * slot_bytes + job.to.1;
        let last = first + job.len_bytes - 1;
        let whole_lines = first.is_multiple_of(line) && (last + 1).is_multiple_of(line);
        let odd = |number: usize| number % 2 == 1;
        let tried = &mut self.tried;
        for (count, is) in [
            (&mut tried.one_byte, job.len_bytes == 1),
            (&mut tried.odd_length, job.len_bytes > 1 && odd(job.len_bytes)),
            (&mut tried.odd_address, odd(job.from.1) || odd(job.to.1)),
            (&mut tried.unequal_alignment, job.from.1 % line != job.to.1 % line),
            (&mut tried.across_a_line, first / line != last / line && !whole_lines),
            (&mut tried.across_a_page, first / page != last / page),
            (&mut tried.full_slot, job.len_bytes == slot_bytes),
            (&mut tried.chained_source, job.from_device_owned),
            (&mut tried.chained_destination, job.to_device_owned),
        ] {
            *count += u64::from(is);
        }
        self.jobs += 1;
        self.bytes += job.len_bytes as u64;
    }
}

/// A job that was refused or failed: the run ended there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// The seed that meets it again.
    pub seed: u64,
    /// The job.
    pub job: Job,
    /// Why. The runtime has stopped the device, unless it says that it would not stop.
    pub error: Error,
    /// How many polls found no end of the job, where polls alone were made for it; else 0.
    pub polls: u32,
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, to) = (self.from, self.to);
        write!(
            f,
            "job {}, {} bytes from slot {} + {} to slot {} + {}",
            self.number, self.len_bytes, from.0, from.1, to.0, to.1
        )?;
        match (self.from_device_owned, self.to_device_owned) {
            (false, false) => Ok(()),
            (true, false) => f.write_str(" (source device-owned)"),
            (false, true) => f.write_str(" (destination device-owned)"),
            (true, true) => f.write_str(" (both device-owned)"),
        }
    }
}

impl fmt::Display for FirstWrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, job, slot, offset, expected, found, blame } = self;
        let blame = match blame {
            Blame::Mismatch => "where a job wrote",
            Blame::CanaryHit => "where no job wrote",
        };
        write!(
            f,
            "seed {seed}, {job}: after it slot {slot} + {offset} is {found:#04x}, not \
             {expected:#04x}, {blame}"
        )
    }
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, job, error, polls } = self;
        write!(f, "seed {seed}, {job}: ")?;
        match polls {
            0 => write!(f, "{error}"),
            // There is no time limit to raise.
            _ => write!(
                f,
                "{polls} polls found no end of the job: look why nothing came (clock, reset, the \
                 driver's poll)"
            ),
        }
    }
}

impl std::error::Error for Stopped {}
