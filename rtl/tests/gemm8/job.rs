//! One product: its place in memory and its registers.

use super::bench::{BASE, CTRL, GIE, IER, LEN_BYTES, MODE, POINTERS, Rig, SIZES, START};
use contigo::sim::Model;
use fastrand::Rng;
use std::ops::Range;

/// The largest operand that a random job has.
const SLOT_BYTES: usize = LEN_BYTES / 4;

/// One product.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) pointers: [u64; 4],
    pub(crate) sizes: [u32; 3],
    pub(crate) mode: u32,
}

impl Job {
    /// A product of these sizes somewhere in memory.
    pub(crate) fn of(sizes: [u32; 3], mode: u32, rng: &mut Rng) -> Self {
        let mut job = Self { pointers: [0; 4], sizes, mode };
        let mut places = [0, 1, 2, 3];
        rng.shuffle(&mut places);
        for (operand, place) in places.into_iter().enumerate() {
            let room = SLOT_BYTES - job.len(operand);
            let offset = place * SLOT_BYTES + 64 * rng.usize(..=room / 64);
            job.pointers[operand] = BASE + offset as u64;
        }
        job
    }

    /// Mostly small ones. One in four has rows longer than a block, one in four long sums.
    pub(crate) fn random(rng: &mut Rng) -> Self {
        let n = 16 * if rng.u8(..4) == 0 { rng.u32(17..=40) } else { rng.u32(1..=8) };
        let k = 16 * if rng.u8(..4) == 0 { rng.u32(7..=24) } else { rng.u32(1..=6) };
        let mode = rng.u32(..32) | u32::from(rng.bool()) << 8 | u32::from(rng.bool()) << 9;
        Self::of([rng.u32(1..=40), n, k], mode, rng)
    }

    pub(crate) const fn element_bytes(&self) -> usize {
        if self.mode & 1 << 9 == 0 { 1 } else { 4 }
    }

    /// The bytes of A, B, bias or C.
    pub(crate) fn len(&self, operand: usize) -> usize {
        let [m, n, k] = self.sizes.map(|size| size as usize);
        [m * k, k * n, 4 * n, m * n * self.element_bytes()][operand]
    }

    /// Where they are in memory.
    pub(crate) fn range(&self, operand: usize) -> Range<usize> {
        let start = usize::try_from(self.pointers[operand] - BASE).unwrap();
        start..start + self.len(operand)
    }

    /// Random bytes everywhere. Half of the biases are small, so that sums of all sizes come.
    pub(crate) fn memory(&self, rng: &mut Rng) -> Vec<u8> {
        let mut bytes = vec![0; LEN_BYTES];
        rng.fill(&mut bytes);
        if rng.bool() {
            for word in bytes[self.range(2)].as_chunks_mut::<4>().0 {
                *word = (i32::from_le_bytes(*word) >> rng.u32(8..24)).to_le_bytes();
            }
        }
        bytes
    }

    /// Writes its registers, all but CTRL.
    pub(crate) fn prepare<M: Model>(&self, bench: &mut Rig<M>) {
        for (offset, pointer) in POINTERS.into_iter().zip(self.pointers) {
            bench.write(offset, u32::try_from(pointer & 0xFFFF_FFFF).unwrap());
            bench.write(offset + 4, u32::try_from(pointer >> 32).unwrap());
        }
        for (offset, size) in SIZES.into_iter().zip(self.sizes) {
            bench.write(offset, size);
        }
        bench.write(MODE, self.mode);
        bench.write(GIE, 1);
        bench.write(IER, 1);
    }

    /// Writes its registers, and starts it.
    pub(crate) fn start<M: Model>(&self, bench: &mut Rig<M>) {
        self.prepare(bench);
        bench.write(CTRL, START);
    }
}
