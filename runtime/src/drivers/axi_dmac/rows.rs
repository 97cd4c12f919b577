//! A job as its operands and words say it, and what no register tells.

use super::{
    found::{DmacFound, DmacKind},
    jobs::Job,
};
use crate::{
    job::{Settings, exactly},
    mem::DevSlice,
    types::{Error, Result},
};

/// `FIFO_SIZE`, as `axi_dmac_ip.tcl` offers it.
const FIFO_MIN: u32 = 2;
const FIFO_MAX: u32 = 32;
/// `MAX_BYTES_PER_BURST`: two beats of a byte, and what AXI allows a burst.
const BURST_MIN: usize = 2;
const BURST_MAX: usize = 4096;

/// The settings of an AXI DMAC: what its registers do not tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DmacConfig {
    /// `MAX_BYTES_PER_BURST`, for versions before 4.5, which do not tell it.
    pub burst_bytes: usize,
    /// `FIFO_SIZE`, in bursts: 2, 4, 8, 16 or 32. More than four rows in one job must be so long
    /// that the core cannot have four of them under way. In bursts they are longer than two thirds
    /// of this and a third of a burst. Shorter rows lose their ends (`dmac_2d_transfer.v`), so that
    /// the job is told while it is written.
    pub fifo_bursts: u32,
    /// The core queues jobs of one burst well. No released one does, up to 4.5 at least:
    /// its `address_generator.v` gives them other jobs' lengths. Say it of a core in which a
    /// burst's length is taken with its address alone.
    pub single_bursts: bool,
    /// The longest packet of the stream, in bytes; 0 where the program does not say. Each buffer
    /// must hold it then, and the core of a receiver with `single_bursts` gets several buffers at
    /// once, where each has three bursts more than such a packet. A packet that ends in one of the
    /// last three bursts may hang the buffer behind, so a shorter buffer has the core to itself.
    pub packet_bytes: u32,
    /// The limit of a stop, in microseconds.
    pub stop_us: u32,
}

impl Default for DmacConfig {
    /// Bursts of 128 bytes, as the core begins, the largest FIFO, which is right for all, no more
    /// than the core was seen to do, and 10 ms.
    fn default() -> Self {
        Self { burst_bytes: 128, fifo_bursts: 32, single_bursts: false, packet_bytes: 0, stop_us: 10_000 }
    }
}

impl DmacConfig {
    /// # Errors
    /// [`Error::Setting`]: a FIFO or a burst that no core has.
    pub(super) const fn check(&self) -> Result<()> {
        let Self { fifo_bursts, burst_bytes, .. } = *self;
        if !fifo_bursts.is_power_of_two() || fifo_bursts < FIFO_MIN || fifo_bursts > FIFO_MAX {
            let fix = "FIFO_SIZE is a power of two from 2 to 32: say what the core is built with";
            return Err(Error::Setting { name: "fifo_bursts", value: fifo_bursts as u64, fix });
        }
        if !burst_bytes.is_power_of_two() || burst_bytes < BURST_MIN || burst_bytes > BURST_MAX {
            let fix = "MAX_BYTES_PER_BURST is a power of two from 2 to 4096: say what the core is built with";
            return Err(Error::Setting { name: "burst_bytes", value: burst_bytes as u64, fix });
        }
        Ok(())
    }

    /// The names that [`from_settings`](Self::from_settings) knows.
    pub const SETTINGS: &'static [&'static str] = &["burst_bytes", "fifo_bursts", "single_bursts", "packet_bytes", "stop_us"];

    /// As settings have it, each with its default.
    ///
    /// # Errors
    /// As [`Settings::number`]; [`Error::Setting`] for a FIFO or a burst that no core has.
    #[allow(clippy::cast_possible_truncation, reason = "each number has its limit")]
    pub fn from_settings(settings: &Settings<'_>) -> Result<Self> {
        let default = Self::default();
        let burst_bytes =
            settings.number("burst_bytes", BURST_MIN as u64, BURST_MAX as u64)?.map_or(default.burst_bytes, |bytes| bytes as usize);
        let fifo_bursts = settings.value("fifo_bursts", FIFO_MIN, FIFO_MAX, default.fifo_bursts)?;
        let single_bursts = settings.flag("single_bursts", default.single_bursts)?;
        let packet_bytes = settings.value("packet_bytes", 0, u32::MAX, default.packet_bytes)?;
        let stop_us = settings.number("stop_us", 1, 1_000_000)?.map_or(default.stop_us, |us| us as u32);
        let config = Self { burst_bytes, fifo_bursts, single_bursts, packet_bytes, stop_us };
        config.check().map(|()| config)
    }
}

/// A 2D transfer, as the words of a job. A receiver from a stream takes one row: its core's report
/// of a short packet is a sum over the rows, and tells nobody where the bytes lie. More than four
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
    /// From the beginning of a row to that of the next, at the source. A stream has none.
    pub from_stride: u32,
    /// The same at the destination.
    pub to_stride: u32,
}

impl DmacRows {
    /// The argument words of the job.
    #[must_use]
    pub const fn words(self) -> [u32; 4] {
        [self.row_bytes, self.rows, self.from_stride, self.to_stride]
    }

    /// From its first byte to its last, in an operand with this stride.
    const fn span(&self, stride: u32) -> u64 {
        (self.rows as u64).saturating_sub(1) * stride as u64 + self.row_bytes as u64
    }
}

/// The job of these operands and words, where the core takes it. `longest`: the most bytes of one
/// row.
pub(super) fn job(found: &DmacFound, longest: u64, operands: &[DevSlice], args: &[u32]) -> Result<Job> {
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
    let refused =
        |name, value, max: u64, multiple_of: usize| Err(Error::Argument { name, value, min: 1, max, multiple_of: multiple_of as u64 });
    let rows = if args.is_empty() { None } else { Some(rows(found, args)?) };
    let (row_bytes, most) = rows.map_or((first.len_bytes as u64, longest), |rows| (rows.row_bytes.into(), found.max_bytes));
    if row_bytes == 0 || row_bytes > most || !row_bytes.is_multiple_of(found.length_align as u64) {
        return refused("bytes of a job, or of a row", row_bytes, most, found.length_align);
    }
    let (from, to) = match found.kind {
        DmacKind::Copy => (Some(first), second),
        DmacKind::Send => (Some(first), None),
        DmacKind::Receive => (None, Some(first)),
    };
    for (index, (operand, stride)) in
        [(from, rows.map(|rows| rows.from_stride)), (to, rows.map(|rows| rows.to_stride))].into_iter().enumerate()
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
    let DmacRows { rows, from_stride, to_stride, .. } = rows.unwrap_or(DmacRows { row_bytes: 0, rows: 1, from_stride: 0, to_stride: 0 });
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
        // The flag that asks for reports holds for all jobs in flight, so no job goes without.
        let what = "an AXI DMAC that receives from a stream reports a sum over the rows, which tells no place";
        return Err(Error::Unsupported { what, fix: "give one job a row" });
    }
    if rows == 0 || u64::from(rows) > found.max_bytes {
        return Err(Error::Argument { name: "rows", value: rows.into(), min: 1, max: found.max_bytes, multiple_of: 1 });
    }
    Ok(DmacRows { row_bytes, rows, from_stride, to_stride })
}
