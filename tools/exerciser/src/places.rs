//! The slots and guards, who owns each, and what every byte of them must be.

use super::ground::{Ground, PLACES, SLOTS, refresh};
use super::tally::{Blame, FirstWrong, Job, Tally};
use contigo::{Align, CpuBuf, DevBuf, Direction, Error, Operand, Pool, Port, Result};
use core::mem;
use core::ops::Range;
use fastrand::Rng;
use std::vec::Vec;

/// A slot went with a job that failed.
const LOST: Error = Error::NoSlots { slots: SLOTS };

/// The port and the address bits for which a buffer is refreshed and taken back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    pub(super) port: Port,
    pub(super) addr_bits: u32,
}

/// One slot, on the side of its owner.
#[derive(Debug)]
pub(super) enum Held {
    Cpu(CpuBuf),
    /// Still the device's, and these bytes of it: no other may go into a job.
    Dev(DevBuf, Range<usize>),
    /// In a job under way, or lost with one that failed.
    Out,
}

impl Held {
    pub(super) const fn is_dev(&self) -> bool {
        matches!(self, Self::Dev(..))
    }
}

/// The guard before the slots is place 0, the slots are 1 to 64 in the order of their addresses,
/// the guard after them is 65.
#[derive(Debug)]
pub(super) struct Places {
    pool: Pool,
    pub(super) slot_bytes: usize,
    held: Vec<Held>,
    /// The expected value of every byte of them.
    shadow: Vec<u8>,
    /// For each place, the hull of what jobs wrote since it was last compared.
    written: Vec<Range<usize>>,
}

impl Places {
    /// All of `ground`, filled with random bytes.
    pub(super) fn new(ground: Ground, rng: &mut Rng) -> Result<Self> {
        let Ground { pool, guards: [before, after], slot_bytes } = ground;
        let mut bufs = Vec::with_capacity(PLACES);
        bufs.push(before);
        for _ in 0..SLOTS {
            bufs.push(pool.take()?);
        }
        bufs.push(after);
        bufs.sort_by_key(CpuBuf::offset_bytes);

        let (held, shadow) =
            (bufs.into_iter().map(Held::Cpu).collect(), std::vec![0; PLACES * slot_bytes]);
        let mut places = Self { pool, slot_bytes, held, shadow, written: std::vec![0..0; PLACES] };
        places.refill(rng)?;
        Ok(places)
    }

    /// Random bytes in all of them. The CPU owns all of them.
    pub(super) fn refill(&mut self, rng: &mut Rng) -> Result<()> {
        rng.fill(&mut self.shadow);
        for (held, bytes) in self.held.iter_mut().zip(self.shadow.chunks_exact(self.slot_bytes)) {
            let Held::Cpu(buf) = held else { return Err(LOST) };
            buf.view_at_mut::<u8>(..self.slot_bytes)?.copy_from_slice(bytes);
        }
        Ok(())
    }

    pub(super) fn is_dev(&self, place: usize) -> bool {
        self.held.get(place).is_some_and(Held::is_dev)
    }

    pub(super) fn device_owned(&self) -> usize {
        self.held.iter().filter(|held| held.is_dev()).count()
    }

    pub(super) fn room(&self, place: usize) -> Range<usize> {
        match self.held.get(place) {
            Some(Held::Dev(_, room)) => room.clone(),
            _ => 0..self.slot_bytes,
        }
    }

    /// Bytes `part` of a slot on their way into a job, and the bytes that the device will have of
    /// the slot: those that were handed over first.
    pub(super) fn operand(
        &mut self,
        place: usize,
        part: &Range<usize>,
        direction: Direction,
    ) -> Result<(Operand, Range<usize>)> {
        let reads = direction == Direction::ToDevice;
        match self.take(place) {
            Held::Cpu(buf) if reads => Ok((buf.to_device(part.clone()), part.clone())),
            Held::Cpu(buf) => Ok((buf.from_device(part.clone()), part.clone())),
            Held::Dev(buf, room) => {
                let within = part.start - room.start..part.end - room.start;
                Ok((if reads { buf.to_device(within) } else { buf.from_device(within) }, room))
            }
            Held::Out => Err(LOST),
        }
    }

    pub(super) fn put(&mut self, place: usize, held: Held) {
        if let Some(at) = self.held.get_mut(place) {
            *at = held;
        }
    }

    pub(super) fn copy_in_the_shadow(&mut self, job: &Job) {
        let (from, to) =
            (job.from.0 * self.slot_bytes + job.from.1, job.to.0 * self.slot_bytes + job.to.1);
        self.shadow.copy_within(from..from + job.len_bytes, to);
        let part = job.destination();
        if let Some(written) = self.written.get_mut(job.to.0) {
            *written = if written.start == written.end {
                part
            } else {
                written.start.min(part.start)..written.end.max(part.end)
            };
        }
    }

    /// Fresh random bytes over `part` of a slot and some around it, by the CPU.
    pub(super) fn write_fresh(
        &mut self,
        rng: &mut Rng,
        place: usize,
        part: &Range<usize>,
    ) -> Result<()> {
        /// Two lines on either side: neighbours of the part in its own lines, and in the next ones.
        const AROUND_BYTES: usize = 2 * Align::LINE.bytes();
        let start = part.start - rng.usize(0..=part.start.min(AROUND_BYTES));
        let end = part.end + rng.usize(0..=(self.slot_bytes - part.end).min(AROUND_BYTES));
        let base = place * self.slot_bytes;
        if let (Some(Held::Cpu(buf)), Some(shadow)) =
            (self.held.get_mut(place), self.shadow.get_mut(base + start..base + end))
        {
            rng.fill(shadow);
            buf.view_at_mut::<u8>(start..end)?.copy_from_slice(shadow);
        }
        Ok(())
    }

    /// Gives a slot back to its pool and takes it again: it is the only free one.
    pub(super) fn recycle(&mut self, place: usize) -> Result<()> {
        match self.take(place) {
            Held::Cpu(buf) => {
                let offset_bytes = buf.offset_bytes();
                drop(buf);
                let again = self.pool.take()?;
                if again.offset_bytes() != offset_bytes {
                    return Err(Error::NotOurs {
                        addr: again.offset_bytes() as u64,
                        len_bytes: self.slot_bytes,
                    });
                }
                self.put(place, Held::Cpu(again));
            }
            other => self.put(place, other),
        }
        Ok(())
    }

    /// A slot that stayed the device's becomes the CPU's again, and is compared.
    pub(super) fn take_back(
        &mut self,
        place: usize,
        way: Way,
        blame: &mut Blamed<'_>,
    ) -> Result<()> {
        match self.take(place) {
            Held::Dev(buf, _) => {
                self.put(place, Held::Cpu(buf.into_cpu()?));
                self.settle(place, way, blame)
            }
            other => {
                self.put(place, other);
                Ok(())
            }
        }
    }

    /// Compares a place of the CPU's with its shadow. First as a program sees it, which is wrong
    /// where a job's sync was missing or too short; then, behind a port that does not snoop, as
    /// memory has it. From here on it is clean in the caches: a device's writes into it show at the
    /// next comparison.
    pub(super) fn settle(&mut self, place: usize, way: Way, blame: &mut Blamed<'_>) -> Result<()> {
        match self.take(place) {
            Held::Cpu(buf) => {
                let written = self.written.get_mut(place).map(mem::take).unwrap_or_default();
                self.compare(place, &buf, &written, blame)?;
                if way.port.coherent {
                    self.put(place, Held::Cpu(buf));
                } else {
                    let buf = refresh(buf, &way.port, way.addr_bits)?;
                    self.compare(place, &buf, &written, blame)?;
                    self.put(place, Held::Cpu(buf));
                }
            }
            other => self.put(place, other),
        }
        Ok(())
    }

    fn compare(
        &mut self,
        place: usize,
        buf: &CpuBuf,
        written: &Range<usize>,
        blamed: &mut Blamed<'_>,
    ) -> Result<()> {
        let found = buf.view_at::<u8>(..self.slot_bytes)?;
        let base = place * self.slot_bytes;
        let Some(expected) = self.shadow.get_mut(base..base + self.slot_bytes) else {
            return Ok(());
        };
        blamed.tally.compared += found.len() as u64;
        if found == expected {
            return Ok(());
        }
        for (offset, (&found, expected)) in found
            .iter()
            .zip(expected)
            .enumerate()
            .filter(|(_, (found, expected))| *found != *expected)
        {
            let blame = if written.contains(&offset) { Blame::Mismatch } else { Blame::CanaryHit };
            blamed.wrong(FirstWrong {
                seed: blamed.seed,
                job: blamed.job,
                slot: place,
                offset,
                expected: *expected,
                found,
                blame,
            });
            // Counted once; otherwise it would be counted again in every copy made of it.
            *expected = found;
        }
        Ok(())
    }

    fn take(&mut self, place: usize) -> Held {
        self.held.get_mut(place).map_or(Held::Out, |held| mem::replace(held, Held::Out))
    }
}

/// Where wrong bytes are counted, and the job that is blamed for them.
#[derive(Debug)]
pub(super) struct Blamed<'t> {
    pub(super) tally: &'t mut Tally,
    pub(super) seed: u64,
    pub(super) job: Job,
}

impl Blamed<'_> {
    fn wrong(&mut self, byte: FirstWrong) {
        match byte.blame {
            Blame::Mismatch => self.tally.mismatches += 1,
            Blame::CanaryHit => self.tally.canary_hits += 1,
        }
        self.tally.first_wrong.get_or_insert(byte);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use contigo::Region;
    use contigo::sim::SimBoard;

    #[test]
    fn fresh_bytes_are_fresh_and_in_both_places() -> Result<()> {
        let board = SimBoard::new(1);
        let region = Region::new(board.memory(80 * 1024)?)?;
        let mut rng = Rng::with_seed(1);
        let mut places = Places::new(Ground::new(&region)?, &mut rng)?;
        let before = places.shadow.clone();
        places.write_fresh(&mut rng, 5, &(300..700))?;
        let same = (5 * 1024 + 300..5 * 1024 + 700)
            .filter(|&at| before.get(at) == places.shadow.get(at))
            .count();
        assert!(same < 20, "{same} of 400 bytes are what they were");
        let Some(Held::Cpu(buf)) = places.held.get(5) else { return Err(LOST) };
        assert_eq!(
            Some(buf.view::<u8>()?),
            places.shadow.get(5 * 1024..6 * 1024),
            "all of the slot, as its shadow has it"
        );
        Ok(())
    }
}
