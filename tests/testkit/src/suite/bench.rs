//! The board of a run, and what is known of the jobs in flight.

use super::{Kind, Subject, Way};
use crate::conformance::{Failure, Verdict};
use crate::ensure;
use contigo::sim::stream::packet;
use contigo::sim::{Faults, Model, SimBoard, SimDevice};
use contigo::{Align, Completion, CpuBuf, DevBuf, Driver, Operand, Pool, Region};
use fastrand::Rng;
use std::ops::Range;

/// A buffer for an operand.
pub const SLOT_BYTES: usize = 4096;

/// A board with a core, and memory for its jobs and its driver.
pub(super) struct Bench<M: Model> {
    pub(super) board: SimBoard,
    pub(super) device: SimDevice<M>,
    /// The memory of the pool's `slots`.
    pub(super) region: Region,
    pub(super) pool: Pool,
    /// The driver's.
    pub(super) own: Region,
}

impl<M: Model> Bench<M> {
    pub(super) fn new(
        subject: &impl Subject<Model = M>,
        model: M,
        (seed, faults): (u64, Faults),
        way: Way,
        slots: usize,
    ) -> Verdict<Self> {
        let board = SimBoard::with(seed, faults);
        let region = Region::new(board.memory(slots * SLOT_BYTES)?)?;
        let own_bytes = subject.memory_bytes().max(1).next_multiple_of(4096);
        let own = Region::new(match way {
            Way::Uncached => board.memory_coherent(own_bytes)?,
            Way::Plain | Way::Coherent => board.memory(own_bytes)?,
        })?;
        let pool = region.pool(slots, SLOT_BYTES)?;
        let device = SimDevice::with_model(&board, way.port(&board), model);
        Ok(Self { board, device, region, pool, own })
    }

    /// Opens the driver, with its own memory where it has some.
    pub(super) fn open<R>(
        &self,
        subject: &impl Subject<Model = M>,
        act: impl FnOnce(&mut (dyn Driver + '_)) -> Verdict<R>,
    ) -> Verdict<R> {
        let memory = match subject.memory_bytes() {
            0 => None,
            bytes => Some(self.own.alloc(bytes, Align::PAGE)?),
        };
        subject.open(self.device.window()?, memory, act)?
    }
}

/// A job in flight: its operands as they were before it.
pub(super) struct Job {
    tag: usize,
    /// In the slot: the bytes that the device reads, and those that it writes, which may be fewer
    /// than it was given.
    from: Range<usize>,
    to: Range<usize>,
    /// The whole slot, of each operand.
    before: Vec<Vec<u8>>,
}

/// Makes a random job: its operands, and what is known of it.
pub(super) fn draw(
    subject: &impl Subject,
    pool: &Pool,
    rng: &mut Rng,
    tag: usize,
) -> Result<(heapless::Vec<Operand, 2>, Vec<u32>, Job), Failure> {
    let limits = subject.limits();
    let kind = subject.kind();
    let unit = limits.len_align_bytes.max(1);
    let most = limits.len_max_bytes.min(SLOT_BYTES);
    let len = match (kind, rng.u8(..4)) {
        (Kind::Receive, _) => subject.packet_bytes().next_multiple_of(unit).min(SLOT_BYTES),
        (_, 0) => unit * rng.usize(1..=(most.min(200) / unit).max(1)),
        (_, 1) => most / unit * unit,
        _ => unit * rng.usize(1..=most / unit),
    };
    // A length that is taken from the wrong operand shows only where they differ.
    let room = match kind {
        Kind::Copy if rng.bool() => unit * rng.usize(0..=most.saturating_sub(len) / unit),
        _ => 0,
    };
    let place = |rng: &mut Rng, len: usize| {
        let align = limits.offset_align_bytes.max(1);
        rng.usize(0..=(SLOT_BYTES - len) / align) * align
    };
    let (from, to) = (place(rng, len), place(rng, len + room));
    let (from, to, given) = (from..from + len, to..to + len, to..to + len + room);
    let mut buffer = || -> Result<(CpuBuf, Vec<u8>), Failure> {
        let mut buf = pool.take()?;
        let mut bytes = vec![0; SLOT_BYTES];
        rng.fill(&mut bytes);
        buf.copy_from_slice(&bytes)?;
        Ok((buf, bytes))
    };
    let (mut operands, mut before) = (heapless::Vec::new(), Vec::new());
    if kind != Kind::Receive {
        let (buf, bytes) = buffer()?;
        before.push(bytes);
        drop(operands.push(buf.to_device(from.clone())));
    }
    if kind != Kind::Send {
        let (buf, bytes) = buffer()?;
        before.push(bytes);
        drop(operands.push(buf.from_device(given)));
    }
    Ok((operands, subject.words(len), Job { tag, from, to, before }))
}

impl Job {
    pub(super) const fn tag(&self) -> usize {
        self.tag
    }

    /// The bytes that are sent.
    pub(super) fn sent(&self) -> &[u8] {
        self.before.first().and_then(|bytes| bytes.get(self.from.clone())).unwrap_or_default()
    }

    /// Compares the operands of a job that ended, well or badly, and the words of its completion.
    /// `packet`: the least number of the next packet.
    pub(super) fn compare(
        self,
        subject: &impl Subject,
        ended: Option<&Completion>,
        buffers: Vec<DevBuf>,
        packet: &mut u32,
    ) -> Verdict {
        ensure!(buffers.len() == self.before.len(), "{} buffers came back", buffers.len());
        let (kind, good) = (subject.kind(), ended.filter(|completion| completion.failed.is_none()));
        if let Some(Completion { words, .. }) = good.filter(|_| kind != Kind::Receive)
            && let Some(expected) = subject.words_expected(self.sent())
        {
            let len = self.sent().len();
            ensure!(
                *words == expected,
                "a job of {len} bytes ended with the words {words:x?}, not {expected:x?}"
            );
        }
        for (index, (buf, before)) in buffers.into_iter().zip(&self.before).enumerate() {
            let writes = kind == Kind::Receive || index == 1;
            let buf = buf.into_cpu()?.whole();
            let seen = buf.view::<u8>()?;
            let changed = if writes { self.to.clone() } else { 0..0 };
            for beside in [0..changed.start, changed.end..SLOT_BYTES] {
                ensure!(
                    seen.get(beside.clone()) == before.get(beside.clone()),
                    "operand {index}: bytes {beside:?} beside {changed:?} changed"
                );
            }
            if let Some(completion) = good.filter(|_| writes) {
                let got = completion.bytes.unwrap_or(changed.len());
                let part = seen.get(changed.start..changed.start + got).unwrap_or_default();
                if kind == Kind::Receive {
                    received(part, packet)?;
                    continue;
                }
                let (sent, len) = (self.sent(), self.sent().len());
                let told = got == len || completion.bytes.is_none();
                ensure!(told, "{got} bytes of {len} are told");
                ensure!(part.get(..len) == Some(sent), "the copy of {len} bytes is wrong");
            }
        }
        Ok(())
    }
}

/// Is it a packet of the source, or the beginning of one that was cut, and a later one?
fn received(seen: &[u8], expected: &mut u32) -> Verdict {
    let (Some(number), Some(whole)) =
        (packet::number(seen), seen.get(4..).and_then(packet::number))
    else {
        return Ok(());
    };
    ensure!(number >= *expected, "packet {number} after packet {expected}");
    let right = seen.len() <= whole as usize && packet::begins(number, whole as usize, seen);
    ensure!(right, "packet {number} has wrong bytes");
    *expected = number + 1;
    Ok(())
}
