#![allow(unsafe_code, reason = "submitting sends the core to the operands, as descriptors do")]
//! The jobs in flight: up to four, each with the core's ID, and those that its queue could not take
//! yet. Which of them may be in the core together, and how one is written for it: in registers, or
//! as a list of descriptors.

use super::{
    config::{DmacConfig, DmacFound, DmacKind},
    regs,
};
use crate::ring::{Layout, Ring};
use contigo_core::{
    hw::Device,
    mem::{CpuBuf, Port},
    types::{Error, Refused, Result},
};

/// The places of `last_req`.
const ROW_IDS: u32 = 4;
/// In so many last bursts of a buffer a packet ends late.
const LATE_BURSTS: u64 = 3;
/// Bursts that were answered and have not reached the notes: one each in the response's FIFO, in
/// its manager and before the notes.
const ANSWERED: u64 = 3;
/// The most pieces of a job.
const PIECES_MAX: usize = 64;

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

/// A job with its ID.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place {
    job: Job,
    /// Told by the core: it ended.
    pub(super) ended: bool,
    /// It wrote so many bytes, and no more.
    pub(super) partial: Option<u32>,
}

/// Where the core stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It was opened or stopped. Jobs that ended before are told still.
    Stopped,
    /// It is enabled, and all jobs that it was given are in its queue.
    Ready,
    /// The newest of them may still be outside of the queue: its DONE bit is that of the job four
    /// before.
    Submitting,
}

/// All of them. The job in slot N has ID N: both begin at 0 when the core is enabled.
#[derive(Debug)]
pub(super) struct Jobs {
    pub(super) kind: DmacKind,
    pub(super) together: Together,
    /// The first descriptor of each ID, where jobs are lists.
    lists: Option<[u64; regs::IDS]>,
    pub(super) places: [Place; regs::IDS],
    /// The ID of the oldest job that was not told.
    pub(super) oldest: usize,
    /// Jobs that were submitted to the core, and were not told.
    pub(super) given: usize,
    /// Jobs behind them that its queue could not take, or that must not be in the core with them.
    pub(super) held: usize,
    pub(super) state: State,
}

/// The core answers what it never says.
pub(super) const fn gone(status: u32) -> Error {
    Error::Fault { device: "axi_dmac", status, what: regs::GONE }
}

impl Jobs {
    pub(super) fn new(kind: DmacKind, together: Together, lists: Option<[u64; regs::IDS]>) -> Self {
        Self {
            kind,
            together,
            lists,
            places: [Place::default(); regs::IDS],
            oldest: 0,
            given: 0,
            held: 0,
            state: State::Stopped,
        }
    }

    /// The core was enabled anew.
    pub(super) fn begin_anew(&mut self) {
        *self = Self { state: State::Ready, ..Self::new(self.kind, self.together, self.lists) };
    }

    pub(super) const fn id(&self, steps: usize) -> usize {
        (self.oldest + steps) % regs::IDS
    }

    /// Takes a job, and gives it to the core where its queue has room.
    ///
    /// # Safety
    /// The operands were handed over.
    pub(super) unsafe fn push(
        &mut self,
        device: &impl Device,
        found: &DmacFound,
        job: Job,
    ) -> Result<()> {
        let id = self.id(self.given + self.held);
        let room = self.given + self.held < regs::IDS;
        let Some(place) = self.places.get_mut(id).filter(|_| room) else { return Err(Error::Busy) };
        *place = Place { job, ended: false, partial: None };
        self.held += 1;
        self.launch(device, found)
    }

    /// Gives the core what it has room for, and what may be there together: one at once, because
    /// there is one set of registers.
    pub(super) fn launch(&mut self, device: &impl Device, found: &DmacFound) -> Result<()> {
        if self.held == 0 || !self.is_confirmed(device)? {
            return Ok(());
        }
        let id = self.id(self.given);
        let job = self.places.get(id).map_or_else(Job::default, |place| place.job);
        let mut under_way = (0..self.given)
            .filter_map(|steps| self.places.get(self.id(steps)))
            .filter(|place| !place.ended);
        if !under_way.all(|before| self.together.allows(&before.job, &job)) {
            return Ok(());
        }
        let list = self.lists.and_then(|lists| lists.get(id).copied());
        let wide = found.address_bits > 32;
        // SAFETY: the operands were handed over, and `check` compared their lengths with the job,
        // whose descriptors say the same. Nothing starts before SUBMIT.
        unsafe {
            if let Some(list) = list {
                regs::SG_ADDR.write(device, low(list));
                if wide {
                    regs::SG_ADDR_HIGH.write(device, high(list));
                }
            } else {
                self.write_registers(device, found, &job);
            }
            regs::FLAGS.write(device, self.flags(found));
            regs::SUBMIT.write(device, 1);
        }
        (self.given, self.held, self.state) = (self.given + 1, self.held - 1, State::Submitting);
        Ok(())
    }

    const fn flags(&self, found: &DmacFound) -> u32 {
        match self.kind {
            DmacKind::Receive if found.reports => regs::LAST | regs::REPORT,
            _ => regs::LAST,
        }
    }

    /// The job in registers.
    ///
    /// # Safety
    /// No transfer waits to be queued.
    unsafe fn write_registers(&self, device: &impl Device, found: &DmacFound, job: &Job) {
        let wide = found.address_bits > 32;
        // SAFETY: the registers are read when a transfer is submitted.
        unsafe {
            if self.kind != DmacKind::Send {
                regs::DEST_ADDR.write(device, low(job.to));
                if wide {
                    regs::DEST_ADDR_HIGH.write(device, high(job.to));
                }
            }
            if self.kind != DmacKind::Receive {
                regs::SRC_ADDR.write(device, low(job.from));
                if wide {
                    regs::SRC_ADDR_HIGH.write(device, high(job.from));
                }
            }
            regs::X_LENGTH.write(device, low(job.row_bytes.wrapping_sub(1)));
            if found.rows {
                regs::Y_LENGTH.write(device, job.rows.wrapping_sub(1));
                regs::DEST_STRIDE.write(device, job.to_stride);
                regs::SRC_STRIDE.write(device, job.from_stride);
            }
        }
    }

    /// Is the newest job in the core's queue?
    pub(super) fn is_confirmed(&mut self, device: &impl Device) -> Result<bool> {
        if self.state == State::Submitting {
            let submit = regs::SUBMIT.read(device);
            if submit & regs::SUBMIT_RESERVED != 0 {
                return Err(gone(submit));
            }
            if submit == 0 {
                self.state = State::Ready;
            }
        }
        Ok(self.state != State::Submitting)
    }
}

/// Which jobs may be in the core together, by the limits of what it holds apart: what its Verilog
/// loses where several are.
///
/// All three faults were seen with 4.5 behind memory that is slow or answers when it likes. The
/// first and the last write into buffers that were given back, and the second one hangs. Without
/// the settings that say otherwise, no job meets them. The first was seen where the core writes;
/// that it is there where it reads, too, follows from the Verilog, which has the same generator on
/// both sides.
///
/// **One burst behind another job.** `address_generator.v` gets the length of a job's last burst
/// apart from its address. The one burst of a job may wait already when the job before leaves. Then
/// it takes the length for consumed (`bl_ready`). It uses its successor's, or waits for one without
/// end. A read uses the generator as a write does (`src_axi_mm.v`), and a send would take other
/// bytes than its own. So a job is alone where it or the other one is one burst. A packet
/// from a stream may be one burst whatever its buffer, so a receiver has one job in the core. Rows
/// and pieces of a list are such jobs to that part of the core.
///
/// **A packet that ends late.** `request_generator.v` takes bursts back that it asked for behind a
/// packet's end. Where the packet ends in one of its buffer's last three bursts, the generator may
/// be in the next job already, which then may hang: seen up to two bursts behind a packet of 1,024
/// bytes, and never at three. The core counts bursts, and each buffer begins with one, as does each
/// packet in it. So both lengths are compared in whole bursts. A shorter buffer goes alone.
///
/// **Rows.** `dmac_2d_transfer.v` notes for each row whether it is the last, in four places. A
/// fifth row that begins before the first has ended overwrites its note: the first ends the job, or
/// the last does not. The rows of jobs that follow each other count together. Rows that are so long
/// that the core cannot have four of them under way are safe.
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
        self.packet_bytes > 0
            && self.bursts(job) >= self.packet_bytes.div_ceil(self.burst_bytes) + LATE_BURSTS
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
            return Err(Error::Setting {
                name: "fifo_bursts",
                value: self.fifo_bursts.into(),
                fix,
            });
        }
        if job.rows > 1 && !self.single_bursts && self.bursts(job) == 1 {
            let fix = "rows of one burst get each other's lengths: give each row a job, or longer rows, \
                       or say 1 where the core's Verilog is mended";
            return Err(Error::Setting { name: "single_bursts", value: 0, fix });
        }
        Ok(())
    }

    /// May the core get `job` while `before` is under way?
    const fn allows(&self, before: &Job, job: &Job) -> bool {
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

/// Lists of descriptors: a job that is longer than a length register holds, as pieces. Each of four
/// jobs has an equal part of them.
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
    pub(super) fn new(
        memory: CpuBuf,
        port: &Port,
        found: &DmacFound,
    ) -> Result<Self, Refused<CpuBuf>> {
        let layout = Layout {
            len_bytes: regs::DESCRIPTOR_BYTES,
            align_bytes: regs::DESCRIPTOR_BYTES,
            most: PIECES_MAX * regs::IDS,
        };
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
                // The last piece would be one burst behind another piece (`Together`).
                Some(1..) if left - self.piece_bytes <= self.burst_bytes => {
                    self.piece_bytes - self.burst_bytes
                }
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
        Err(Error::Unexpected {
            name: "the length of a job, which `check` compared,",
            value: job.row_bytes,
        })
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

#[allow(clippy::cast_possible_truncation, reason = "the low word is the low 32 bits")]
const fn low(addr: u64) -> u32 {
    addr as u32
}

const fn high(addr: u64) -> u32 {
    low(addr >> 32)
}
