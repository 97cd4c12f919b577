//! The operands of a job, and the buffers that come back when it is refused.

use crate::machine::{Held, Lent, Machine, Part, place, random_range};
use crate::oracle;
use contigo::{Direction, Error, JobError, Operand};
use contigo_gemm8::{Gemm, Output};
use contigo_testkit::conformance::Verdict;
use contigo_testkit::conformance::rig::kept;
use contigo_testkit::ensure;
use fastrand::Rng;
use std::ops::Range;

impl Machine {
    /// Four buffers, the CPU's or a device's, mostly large enough, and mostly the right part of
    /// them.
    pub(crate) fn operands(&mut self, gemm: &Gemm) -> Option<([Operand; 4], [Part; 4])> {
        let need = oracle::operand_bytes(gemm);
        // The largest first: it is the hardest to place.
        let mut order = [0, 1, 2, 3];
        order.sort_by_key(|&index| std::cmp::Reverse(need[index]));
        let held = self.held.iter().map(|held| held.buf.len_bytes());
        let mut lens: Vec<_> = held.chain(self.lent.iter().map(|lent| lent.given.len())).collect();
        lens.sort_by_key(|&len| std::cmp::Reverse(len));
        let fits =
            lens.len() >= 4 && lens.iter().zip(order).all(|(&len, index)| len >= need[index]);
        if !fits && (lens.len() < 4 || self.rng.u8(..16) > 0) {
            return None;
        }
        let mut chosen = [const { None }; 4];
        for index in order {
            let need_bytes = need[index];
            let direction = match self.rng.u8(..60) {
                0 => Direction::Bidirectional,
                1 => Direction::ToDevice,
                _ if index == 3 => Direction::FromDevice,
                _ => Direction::ToDevice,
            };
            chosen[index] = Some(self.operand(need_bytes, direction));
        }
        let (operands, parts): (Vec<_>, Vec<_>) = chosen.into_iter().flatten().unzip();
        Some((operands.try_into().ok()?, parts.try_into().ok()?))
    }

    /// Are there four buffers for a job?
    pub(crate) fn could_start(&self) -> bool {
        self.held.len() + self.lent.len() >= 4
    }

    pub(crate) fn operand(&mut self, need_bytes: usize, direction: Direction) -> (Operand, Part) {
        let large = |len: usize| len >= need_bytes;
        let lent: Vec<_> =
            (0..self.lent.len()).filter(|&index| large(self.lent[index].given.len())).collect();
        let held: Vec<_> =
            (0..self.held.len()).filter(|&index| large(self.held[index].buf.len_bytes())).collect();
        let from_lent = if lent.is_empty() {
            held.is_empty() && self.held.is_empty()
        } else {
            self.rng.bool() || held.is_empty()
        };
        if from_lent {
            let index = self.one_of(lent.len()).map_or(0, |index| lent[index]);
            let Lent { buf, claim, extent, shown, given, coherent } = self.lent.swap_remove(index);
            let range = self.part(given.start, given.len(), need_bytes);
            let operand = match direction {
                Direction::ToDevice => buf.to_device(range.clone()),
                Direction::FromDevice => buf.from_device(range.clone()),
                Direction::Bidirectional => buf.in_out(range.clone()),
            };
            let (of, held_coherent) = (given, Some(coherent));
            (operand, Part { claim, extent, of, range, direction, held_coherent, shown })
        } else {
            let index = self.one_of(held.len()).map_or(0, |index| held[index]);
            let Held { buf, claim, extent } = self.held.swap_remove(index);
            let of = place(&buf);
            let range = self.part(of.start, of.len(), need_bytes);
            let operand = match direction {
                Direction::ToDevice => buf.to_device(range.clone()),
                Direction::FromDevice => buf.from_device(range.clone()),
                Direction::Bidirectional => buf.in_out(range.clone()),
            };
            let (shown, held_coherent) = (of.clone(), None);
            (operand, Part { claim, extent, of, range, direction, held_coherent, shown })
        }
    }

    /// A part of `len` bytes from `at` in the block: mostly where gemm8 takes it, of about the
    /// right size.
    fn part(&mut self, at: usize, len: usize, need_bytes: usize) -> Range<usize> {
        match self.rng.u8(..40) {
            0 => random_range(&mut self.rng, len + 10),
            1 => 0..need_bytes,
            2 => 0..0,
            _ => {
                // The bus addresses here are the offsets, as far as an alignment of 64 goes.
                let first = at.next_multiple_of(64) - at;
                let room = len.saturating_sub(first + need_bytes);
                let start = first + 64 * self.rng.usize(..=room / 64);
                let spare = len.saturating_sub(start + need_bytes);
                let more = [0, spare, self.rng.usize(..=spare)][self.rng.usize(..3)];
                start..start + need_bytes + more
            }
        }
    }

    /// The error is the right one, and every buffer is back as it was.
    pub(crate) fn refused(
        &mut self,
        refused: JobError<[Operand; 4]>,
        expected: Option<Error>,
        parts: [Part; 4],
    ) -> Verdict {
        self.tally(match refused.error {
            Error::Busy => "refused: busy",
            Error::QueueFull { .. } => "refused: full",
            Error::QueueStopped { .. } => "refused: stopped",
            Error::WrongDirection { .. } => "refused: direction",
            Error::OutOfRange { .. } => "refused: range",
            Error::SharedLine { .. } => "refused: shared line",
            Error::Argument { .. } => "refused: argument",
            Error::BufferSize { .. } => "refused: size",
            Error::BufferAlign { .. } => "refused: alignment",
            _ => "refused: otherwise",
        });
        let right = Some(refused.error) == expected && refused.cause == refused.error;
        ensure!(right, "{refused:?} instead of {expected:?}");
        let operands = kept(refused.buffers)?;
        operands.into_iter().zip(parts).try_for_each(|(operand, part)| self.untaken(operand, part))
    }
}

/// A small product, now and then one that gemm8 does not take.
pub(crate) fn some_gemm(rng: &mut Rng) -> Gemm {
    let shift = if rng.u8(..40) == 0 { 32 } else { rng.u32(..32) };
    let output = if rng.bool() {
        Output::Int8 { relu: rng.bool(), shift }
    } else {
        Output::Int32 { relu: rng.bool() }
    };
    let odd = rng.u8(..60);
    Gemm {
        m: if odd == 0 { 0 } else { rng.u32(1..=4) },
        n: if odd == 1 { 24 } else { 16 * rng.u32(1..=3) },
        k: if odd == 2 { 5000 } else { 16 * rng.u32(1..=2) },
        output,
    }
}
