//! Which jobs may be in the core together: what its Verilog loses where several are.
//!
//! All three faults were seen with 4.5 behind memory that is slow or answers when it likes. The
//! first and the last write into buffers that were given back, and the second one hangs. Without
//! the settings that say otherwise, no job meets them. The first was seen where the core writes; that it is there where it reads, too,
//! follows from the Verilog, which has the same generator on both sides.
//!
//! **One burst behind another job.** `address_generator.v` gets the length of a job's last burst
//! apart from its address. The one burst of a job may wait already when the job before leaves. Then
//! it takes the length for consumed (`bl_ready`). It uses its successor's, or waits for one without
//! end. A read uses the generator as a write does (`src_axi_mm.v`), and a send would take other
//! bytes than its own. So a job is alone where it or the other one is one burst. A packet
//! from a stream may be one burst whatever its buffer, so a receiver has one job in the core. Rows
//! and pieces of a list are such jobs to that part of the core.
//!
//! **A packet that ends late.** `request_generator.v` takes bursts back that it asked for behind a
//! packet's end. Where the packet ends in one of its buffer's last three bursts, the generator may
//! be in the next job already, which then may hang: seen up to two bursts behind a packet of 1,024
//! bytes, and never at three. The core counts bursts, and each buffer begins with one, as does each
//! packet in it. So both lengths are compared in whole bursts. A shorter buffer goes alone.
//!
//! **Rows.** `dmac_2d_transfer.v` notes for each row whether it is the last, in four places. A
//! fifth row that begins before the first has ended overwrites its note: the first ends the job, or
//! the last does not. The rows of jobs that follow each other count together. Rows that are so long
//! that the core cannot have four of them under way are safe.

use super::{
    found::{DmacFound, DmacKind},
    jobs::Job,
    rows::DmacConfig,
};
use crate::types::{Error, Result};

/// The places of `last_req`.
const ROW_IDS: u32 = 4;
/// In so many last bursts of a buffer a packet ends late.
const LATE_BURSTS: u64 = 3;
/// Bursts that were answered and have not reached the notes: one each in the response's FIFO, in
/// its manager and before the notes.
const ANSWERED: u64 = 3;

/// The limits of what the core holds apart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Together {
    kind: DmacKind,
    burst_bytes: u64,
    /// Bursts under way, at most, from a request to its note.
    under_way: u64,
    fifo_bursts: u32,
    /// Jobs of one burst may be queued.
    single_bursts: bool,
    /// The longest packet; 0 where the program does not say.
    packet_bytes: u64,
    reports: bool,
}

impl Together {
    pub(super) fn new(found: &DmacFound, config: &DmacConfig) -> Self {
        // Its IDs count to twice the FIFO, and one is free (`request_generator.v`).
        let under_way = 2 * u64::from(config.fifo_bursts) - 1 + ANSWERED;
        Self {
            kind: found.kind,
            burst_bytes: found.burst_bytes as u64,
            under_way,
            fifo_bursts: config.fifo_bursts,
            single_bursts: config.single_bursts,
            packet_bytes: config.packet_bytes.into(),
            reports: found.reports,
        }
    }

    const fn bursts(&self, job: &Job) -> u64 {
        job.row_bytes.div_ceil(self.burst_bytes)
    }

    /// When a row begins, the one four before has ended: the last burst of that one and all of the
    /// three between would be too many.
    const fn rows_are_long(&self, job: &Job) -> bool {
        1 + (ROW_IDS as u64 - 1) * self.bursts(job) > self.under_way
    }

    /// May others wait behind this buffer? Its longest packet ends before its last three bursts.
    const fn packets_end_early(&self, job: &Job) -> bool {
        self.packet_bytes > 0 && self.bursts(job) >= self.packet_bytes.div_ceil(self.burst_bytes) + LATE_BURSTS
    }

    /// Are the rows of this job held apart, and does a packet fit?
    pub(super) fn check(&self, job: &Job) -> Result<()> {
        if self.reports && job.row_bytes < self.packet_bytes {
            let have_bytes = usize::try_from(job.row_bytes).unwrap_or(usize::MAX);
            return Err(Error::BufferSize { index: 0, need_bytes: self.packet_bytes, have_bytes });
        }
        if job.rows > ROW_IDS && !self.rows_are_long(job) {
            let fix = "it loses the ends of more than four rows so short: give four rows a job, or longer ones, \
                       or say its FIFO_SIZE where that is less";
            return Err(Error::Setting { name: "fifo_bursts", value: self.fifo_bursts.into(), fix });
        }
        if job.rows > 1 && !self.single_bursts && self.bursts(job) == 1 {
            let fix = "rows of one burst get each other's lengths: give each row a job, or longer rows, \
                       or say 1 where the core's Verilog is mended";
            return Err(Error::Setting { name: "single_bursts", value: 0, fix });
        }
        Ok(())
    }

    /// May the core get `job` while `before` is under way?
    pub(super) const fn allows(&self, before: &Job, job: &Job) -> bool {
        let ids = before.rows == 1 && job.rows == 1 || self.rows_are_long(before) && self.rows_are_long(job);
        let lengths = match self.kind {
            DmacKind::Receive if self.reports => self.single_bursts && self.packets_end_early(before),
            DmacKind::Copy | DmacKind::Send | DmacKind::Receive => self.single_bursts || self.bursts(before) > 1 && self.bursts(job) > 1,
        };
        ids && lengths
    }
}
