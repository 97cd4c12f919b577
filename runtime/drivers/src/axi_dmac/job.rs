//! A job, by its operands and words, if the core takes it; and which jobs may be in the core
//! together.

use super::config::{DmacConfig, DmacFound, DmacKind};
use crate::checks::outside;
use contigo_core::job::exactly;
use contigo_core::mem::DevSlice;
use contigo_core::types::{Error, Result};

/// The number of places in `last_req`.
const ROW_IDS: u32 = 4;
/// A packet ends late in this many last bursts of a buffer.
const LATE_BURSTS: u64 = 3;
/// Bursts that were answered and have not reached `last_req`: one each in the response's FIFO, in
/// its manager and before `last_req`.
const ANSWERED: u64 = 3;

/// A job as registers describe it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Job {
    pub(super) from: u64,
    pub(super) to: u64,
    /// Bytes of a row, and rows.
    pub(super) row_bytes: u64,
    pub(super) rows: u32,
    pub(super) from_stride: u32,
    pub(super) to_stride: u32,
}

/// A 2D transfer, as the words of a job. A receiver from a stream takes one row: its core's report
/// of a short packet is a sum over the rows, and does not show where the bytes lie. More than four
/// rows must be long ([`DmacConfig::fifo_bursts`]), and each row more than a burst
/// ([`DmacConfig::single_bursts`]).
///
/// ```
/// use contigo::drivers::axi_dmac::DmacRows;
/// // 480 rows of 1,280 bytes, out of a frame whose rows are 2,048 apart.
/// let part = DmacRows { row_bytes: 1280, rows: 480, from_stride: 2048, to_stride: 1280 };
/// assert_eq!(part.words(), [1280, 480, 2048, 1280]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DmacRows {
    /// Bytes of a row.
    pub row_bytes: u32,
    /// How many rows.
    pub rows: u32,
    /// Bytes from row to row at the source. A stream has none.
    pub from_stride: u32,
    /// Bytes from row to row at the destination.
    pub to_stride: u32,
}

impl DmacRows {
    /// The argument words of the job.
    #[must_use]
    pub const fn words(self) -> [u32; 4] {
        [self.row_bytes, self.rows, self.from_stride, self.to_stride]
    }

    /// The bytes from its first to its last, in an operand with this stride.
    const fn span(&self, stride: u32) -> u64 {
        (self.rows as u64).saturating_sub(1) * stride as u64 + self.row_bytes as u64
    }
}

/// The job of these operands and words, if the core takes it. `longest`: the most bytes of one row.
pub(super) fn job(
    found: &DmacFound,
    longest: u64,
    operands: &[DevSlice],
    args: &[u32],
) -> Result<Job> {
    let (first, second) = match found.kind {
        DmacKind::Copy => {
            let [from, to] = exactly(operands)?;
            (from, Some(to))
        }
        DmacKind::Send | DmacKind::Receive => {
            let [only] = exactly(operands)?;
            (only, None)
        }
    };
    let refused = |name, value, max: u64, multiple_of: usize| {
        Err(Error::Argument { name, value, min: 1, max, multiple_of: multiple_of as u64 })
    };
    let rows = if args.is_empty() { None } else { Some(rows(found, args)?) };
    let (row_bytes, most) = rows
        .map_or((first.len_bytes as u64, longest), |rows| (rows.row_bytes.into(), found.max_bytes));
    if row_bytes == 0 || row_bytes > most || !row_bytes.is_multiple_of(found.length_align as u64) {
        return refused("bytes of a job, or of a row", row_bytes, most, found.length_align);
    }
    let (from, to) = match found.kind {
        DmacKind::Copy => (Some(first), second),
        DmacKind::Send => (Some(first), None),
        DmacKind::Receive => (None, Some(first)),
    };
    for (index, (operand, stride)) in
        [(from, rows.map(|rows| rows.from_stride)), (to, rows.map(|rows| rows.to_stride))]
            .into_iter()
            .enumerate()
    {
        let Some(operand) = operand else { continue };
        let need_bytes = rows.map_or(row_bytes, |rows| rows.span(stride.unwrap_or(0)));
        let index = if found.kind == DmacKind::Copy { index } else { 0 };
        if need_bytes > operand.len_bytes as u64 {
            return Err(Error::BufferSize { index, need_bytes, have_bytes: operand.len_bytes });
        }
        let stride = u64::from(stride.unwrap_or(0));
        if stride >= found.max_bytes || !stride.is_multiple_of(found.address_align as u64) {
            return refused("a stride", stride, found.max_bytes - 1, found.address_align);
        }
    }
    let addr = |operand: Option<&DevSlice>| operand.map_or(0, |operand| operand.addr.0);
    let DmacRows { rows, from_stride, to_stride, .. } =
        rows.unwrap_or(DmacRows { row_bytes: 0, rows: 1, from_stride: 0, to_stride: 0 });
    Ok(Job { from: addr(from), to: addr(to), row_bytes, rows, from_stride, to_stride })
}

/// The rows of a job with words.
fn rows(found: &DmacFound, args: &[u32]) -> Result<DmacRows> {
    let &[row_bytes, rows, from_stride, to_stride] = exactly(args)?;
    if !found.rows {
        let fix = "build it with DMA_2D_TRANSFER = 1, or give one job a row";
        return Err(Error::Unsupported { what: "this AXI DMAC has no 2D transfers", fix });
    }
    if rows > 1 && found.kind == DmacKind::Receive && found.reports {
        // The flag that asks for reports applies to all jobs in flight, so every job sets it.
        let what = "an AXI DMAC that receives from a stream reports a sum over the rows, which \
            tells no place";
        return Err(Error::Unsupported { what, fix: "give one job a row" });
    }
    if rows == 0 || u64::from(rows) > found.max_bytes {
        return Err(outside("rows", rows.into(), 1, found.max_bytes));
    }
    Ok(DmacRows { row_bytes, rows, from_stride, to_stride })
}

/// Which jobs may be in the core together, by the faults of its Verilog with several jobs.
///
/// All three faults were seen with 4.5 and memory that is slow or answers at random times. The
/// first and the last write to buffers that were returned, and the second one hangs. By default no
/// job meets them; settings can allow more. The first was seen on the writing side; the reading
/// side has it too by the Verilog, which has the same generator on both.
///
/// **One burst behind another job.** `address_generator.v` gets the length of a job's last burst
/// apart from its address. A job's single burst may already wait when the job before leaves. The
/// generator then treats its length as consumed (`bl_ready`). It uses its successor's, or waits for
/// one for ever. A read uses the generator as a write does (`src_axi_mm.v`), and a send would take
/// bytes that are not its own. So two jobs are never queued together if either is one burst. A
/// packet from a stream may be one burst whatever its buffer, so a receiver has one job in the
/// core. Rows and pieces of a list are such jobs to that part of the core.
///
/// **A packet that ends late.** `request_generator.v` takes back bursts that it requested beyond a
/// packet's end. If the packet ends in one of its buffer's last three bursts, the generator may
/// already be in the next job, which may then hang: seen up to two bursts after a packet of 1,024
/// bytes, and never at three. The core counts bursts, and each buffer and each packet in it begins
/// with one. So both lengths are compared in whole bursts. A shorter buffer goes alone.
///
/// **Rows.** `dmac_2d_transfer.v` notes for each row whether it is the last, in four places. A
/// fifth row that begins before the first has ended overwrites its note: then the first ends the
/// job, or the last does not. Rows of consecutive jobs count together. Rows are safe if they are
/// too long for the core to have four of them under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Together {
    kind: DmacKind,
    burst_bytes: u64,
    /// The most bursts under way, from a request to its note.
    under_way: u64,
    fifo_bursts: u32,
    /// Jobs of one burst may be queued.
    single_bursts: bool,
    /// The longest packet; 0 if unknown.
    packet_bytes: u64,
    reports: bool,
}

impl Together {
    pub(super) fn new(found: &DmacFound, config: &DmacConfig) -> Self {
        // Its IDs count to twice the FIFO, less a free one (`request_generator.v`).
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

    /// When a row begins, the fourth row before it has ended: that row's last burst and all of the
    /// three rows between would exceed the limit.
    const fn rows_are_long(&self, job: &Job) -> bool {
        1 + (ROW_IDS as u64 - 1) * self.bursts(job) > self.under_way
    }

    /// Whether others may wait behind this buffer: its longest packet ends before its last three
    /// bursts.
    const fn packets_end_early(&self, job: &Job) -> bool {
        self.packet_bytes > 0
            && self.bursts(job) >= self.packet_bytes.div_ceil(self.burst_bytes) + LATE_BURSTS
    }

    /// Whether the core keeps this job's rows apart, and a packet fits.
    pub(super) fn check(&self, job: &Job) -> Result<()> {
        if self.reports && job.row_bytes < self.packet_bytes {
            let have_bytes = usize::try_from(job.row_bytes).unwrap_or(usize::MAX);
            return Err(Error::BufferSize { index: 0, need_bytes: self.packet_bytes, have_bytes });
        }
        if job.rows > ROW_IDS && !self.rows_are_long(job) {
            let fix = "it loses the ends of more than four rows so short: give four rows a job, or \
                       longer ones, or say its FIFO_SIZE where that is less";
            return Err(Error::Setting {
                name: "fifo_bursts",
                value: self.fifo_bursts.into(),
                fix,
            });
        }
        if job.rows > 1 && !self.single_bursts && self.bursts(job) == 1 {
            let fix = "rows of one burst get each other's lengths: give each row a job, or longer \
             rows, or say 1 where the core's Verilog is mended";
            return Err(Error::Setting { name: "single_bursts", value: 0, fix });
        }
        Ok(())
    }

    /// Whether the core may get `job` while `before` is under way.
    pub(super) const fn allows(&self, before: &Job, job: &Job) -> bool {
        let ids = before.rows == 1 && job.rows == 1
            || self.rows_are_long(before) && self.rows_are_long(job);
        let lengths = match self.kind {
            DmacKind::Receive if self.reports => {
                self.single_bursts && self.packets_end_early(before)
            }
            DmacKind::Copy | DmacKind::Send | DmacKind::Receive => {
                self.single_bursts || self.bursts(before) > 1 && self.bursts(job) > 1
            }
        };
        ids && lengths
    }
}
