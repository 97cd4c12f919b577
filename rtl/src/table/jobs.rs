//! Random jobs through any driver: each output is compared, and some jobs are stopped.

use super::{Setting, TableError, Tally};
use crate::RtlModel;
use contigo::sim::{SimBoard, SimDevice};
use contigo::{CpuBuf, Driver, Error, Operand, Pool, Queue, Region};
use fastrand::Rng;
use std::time::Duration;

/// After so many jobs one more is stopped.
pub const STOP_EVERY: u64 = 4;
/// Virtual time that a job may take. The longest here takes 2 ms, in hostile memory.
pub(super) const TIMEOUT_US: u32 = 100_000;
/// A write that comes after a stop has come by then. Memory answers within 400 cycles of 5 ns, and
/// a core has at most 16 bursts under way, one after another.
pub(super) const QUIET_US: u32 = 50;

/// The bytes of an operand.
#[derive(Clone, Debug)]
pub enum Bytes {
    /// The core reads them.
    Given(Vec<u8>),
    /// The core writes them, and so they must be.
    Expected(Vec<u8>),
    /// The core writes so many, and they are not compared.
    Any(usize),
}

/// A job of `N` operands.
#[derive(Clone, Debug)]
pub struct Job<const N: usize> {
    /// The driver's argument words.
    pub words: Vec<u32>,
    /// The bytes of each operand.
    pub operands: [Bytes; N],
}

/// How many jobs, of which size.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Jobs that run to their end.
    pub jobs: u64,
    /// After so many of them one more is stopped; 0: none is.
    pub stop_every: u64,
    /// The longest operand.
    pub slot_bytes: usize,
}

/// Runs random jobs through `driver` of the core `device` on `board`. `draw` makes them, and `look`
/// sees the buffers of each that ended.
///
/// # Errors
/// [`TableError::Runtime`]: a job failed, and nothing was made to go wrong. Those of `draw`.
pub fn run<D: Driver, const N: usize>(
    setting: &Setting,
    (board, device): (&SimBoard, &SimDevice<RtlModel>),
    driver: D,
    plan: &Plan,
    mut draw: impl FnMut(&mut Rng, u64) -> Result<Job<N>, TableError>,
    mut look: impl FnMut(&[CpuBuf; N]) -> Result<(), TableError>,
) -> Result<Tally, TableError> {
    let (mut tally, mut rng) = (Tally::default(), Rng::with_seed(setting.seed));
    let region = Region::new(board.memory(N * plan.slot_bytes)?)?;
    let pool = region.pool(N, plan.slot_bytes)?;
    let mut queue = Queue::new(driver, 1)?;
    let mut took_us = 0;
    for number in 0..plan.jobs {
        let job = draw(&mut rng, number)?;
        if plan.stop_every > 0 && number % plan.stop_every == plan.stop_every - 1 {
            queue.submit(operands(&pool, &job.operands, &mut rng)?, &job.words)?;
            device.run_for(rng.u32(..=took_us))?;
            queue.clear()?;
            device.run_for(QUIET_US)?;
            tally.stops += 1;
        }
        let since_ns = board.now_ns();
        let buffers = once(&mut queue, operands(&pool, &job.operands, &mut rng)?, &job.words)?;
        took_us = u32::try_from((board.now_ns() - since_ns) / 1_000).unwrap_or(u32::MAX);
        look(&buffers)?;
        tally.jobs += 1;
        tally.mismatches += u64::from(!are_right(&buffers, &job.operands)?);
    }
    // An access after the last job is one to bytes that no job owns.
    device.run_for(QUIET_US)?;
    tally.judge(board, device)?;
    Ok(tally)
}

/// One job, to its end.
pub(super) fn once<D: Driver, const N: usize>(
    queue: &mut Queue<D>,
    operands: [Operand; N],
    words: &[u32],
) -> Result<[CpuBuf; N], TableError> {
    Ok(queue.run(operands, words, Duration::from_micros(TIMEOUT_US.into()))?.buffers)
}

/// Buffers of `pool` as a job's operands. Outputs hold random bytes, so that nothing is right by
/// what was there before.
pub(super) fn operands<const N: usize>(
    pool: &Pool,
    bytes: &[Bytes; N],
    rng: &mut Rng,
) -> Result<[Operand; N], TableError> {
    let mut taken = Vec::with_capacity(N);
    for bytes in bytes {
        let mut buf = pool.take()?;
        let len = match bytes {
            Bytes::Given(bytes) => {
                buf.copy_from_slice(bytes)?;
                taken.push(buf.to_device(..bytes.len()));
                continue;
            }
            Bytes::Expected(bytes) => bytes.len(),
            Bytes::Any(len) => *len,
        };
        rng.fill(buf.view_at_mut(..len)?);
        taken.push(buf.from_device(..len));
    }
    let count = taken.len();
    taken.try_into().map_err(|_| Error::NoSlots { slots: count }.into())
}

fn are_right<const N: usize>(
    buffers: &[CpuBuf; N],
    operands: &[Bytes; N],
) -> Result<bool, TableError> {
    for (buf, bytes) in buffers.iter().zip(operands) {
        if let Bytes::Expected(bytes) = bytes
            && buf.view_at::<u8>(..bytes.len())? != bytes.as_slice()
        {
            return Ok(false);
        }
    }
    Ok(true)
}
