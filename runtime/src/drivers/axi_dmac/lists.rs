#![allow(unsafe_code, reason = "descriptors send the core to the operands")]
//! Lists of descriptors: a job that is longer than a length register holds, as pieces.

use super::{
    found::DmacFound,
    jobs::{Job, high, low},
    regs,
};
use crate::{
    drivers::ring::{Layout, Ring},
    mem::{CpuBuf, Port},
    types::{Error, Refused, Result},
};

/// The most pieces of a job.
const PIECES_MAX: usize = 64;

/// The descriptors of four jobs, each with an equal part.
#[derive(Debug)]
pub(super) struct Lists {
    ring: Ring,
    pieces: usize,
    /// The longest piece: whole bursts, so that the next one begins where a burst may.
    piece_bytes: u64,
    burst_bytes: u64,
}

impl Lists {
    /// # Errors
    /// As [`Ring::new`].
    pub(super) fn new(memory: CpuBuf, port: &Port, found: &DmacFound) -> Result<Self, Refused<CpuBuf>> {
        let layout = Layout { len_bytes: regs::DESCRIPTOR_BYTES, align_bytes: regs::DESCRIPTOR_BYTES, most: PIECES_MAX * regs::IDS };
        let ring = Ring::new(memory, port, found.address_bits, layout, regs::IDS)?;
        let burst = found.address_align as u64;
        let piece_bytes = found.max_bytes / burst * burst;
        // A piece is two bursts at least, also one that gave its last burst away.
        let pieces = if piece_bytes < 3 * burst { 1 } else { ring.len() / regs::IDS };
        Ok(Self { ring, pieces, piece_bytes, burst_bytes: burst })
    }

    /// The longest job.
    pub(super) fn longest(&self) -> u64 {
        self.piece_bytes.saturating_mul(self.pieces as u64)
    }

    /// Where each job's descriptors begin.
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
                // The last piece would be one burst behind another piece (`together.rs`).
                Some(1..) if left - self.piece_bytes <= self.burst_bytes => self.piece_bytes - self.burst_bytes,
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
        Err(Error::Unexpected { name: "the length of a job, which `check` compared,", value: job.row_bytes })
    }

    /// Gives the memory back.
    ///
    /// # Safety
    /// As [`Ring::release`].
    pub(super) unsafe fn release(&mut self) {
        // SAFETY: the caller's promise.
        unsafe { self.ring.release() };
    }
}
