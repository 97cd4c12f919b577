//! Jobs by their handles: which engine, which ticket, and whether it is still that job.

use super::contigo_operand;
use super::queue::{ENGINES, Engine};
use crate::fault::{Fault, Misuse};
use crate::handles::CONTIGO_MAX_ENGINES;
use contigo::{Completion, Error};
use contigo_objects::{End, GENERATION_MAX, Handle, INDEX_BITS, JOBS, Kind, Refusal};
use std::time::Duration;

const _: () = assert!(
    CONTIGO_MAX_ENGINES as usize * JOBS <= 1 << INDEX_BITS,
    "a job's index is its engine's and its ticket's"
);

/// How to end a job.
#[derive(Clone, Copy)]
pub(crate) struct Wait {
    pub(crate) timeout_us: u32,
    /// Where the time is over, stop the device with a timeout; else let the job go on.
    pub(crate) stop: bool,
    /// The buffers are the CPU's then.
    pub(crate) to_cpu: bool,
}

const fn job(engine: usize, at: usize, number: u64) -> u64 {
    Handle { index: engine * JOBS + at, generation: number }.raw(Kind::Job)
}

/// The end of a job, as far as it came.
#[derive(Default)]
pub(crate) struct Outcome {
    /// Its end was taken: the result is about that job.
    pub(crate) ended: bool,
    /// The device's report, where it told of the end.
    pub(crate) said: Option<Completion>,
}

/// Starts a job; `handle` is its number where the device has its buffers.
#[inline]
pub(crate) fn start(
    engine: u64,
    operands: &[contigo_operand],
    args: &[u32],
    more: bool,
    handle: &mut u64,
) -> Result<(), Fault> {
    let (Handle { index, generation }, slot) = ENGINES.find(engine)?;
    let mut locked = slot.lock(Kind::Engine, generation)?;
    let mut started = None;
    let engine = locked.value().ok_or(Refusal::Stale { kind: Kind::Engine })?;
    let result = engine.start(index, operands, args, more, &mut started);
    if let Some((at, number)) = started {
        debug_assert!(number <= GENERATION_MAX, "2^48 jobs");
        *handle = job(index, at, number);
    }
    result
}

/// A time to wait, within the runtime's limit.
fn timeout(timeout_us: u32) -> Result<Duration, Error> {
    let timeout = Duration::from_micros(timeout_us.into());
    contigo::types::timeout_us(timeout).map(|_| timeout)
}

/// Ends a job, or leaves it as it is where it goes on.
#[inline]
pub(crate) fn end(raw: u64, how: Wait, outcome: &mut Outcome) -> Result<(), Fault> {
    let (timeout_us, timeout) = (how.timeout_us, timeout(how.timeout_us)?);
    let Handle { index, generation } = Handle::of(raw, Kind::Job)?;
    let stale = Refusal::Stale { kind: Kind::Job };
    let mut locked = ENGINES.slot(index / JOBS).ok_or(stale)?.lock_current(Kind::Job)?;
    let (engine, at) = (locked.value().ok_or(stale)?, index % JOBS);
    if generation == 0 || engine.ledger().number(at) != generation {
        return Err(stale.into());
    }
    if !engine.wait(at, timeout, how.to_cpu)? {
        if !how.stop {
            return Ok(());
        }
        engine.stop_for(at, Error::Timeout { timeout_us })?;
    }
    taken(engine, at, how.to_cpu, outcome)
}

/// The next job that ended, in that order, with its handle; where none has, they go on.
#[inline]
pub(crate) fn next(
    engine: u64,
    timeout_us: u32,
    handle: &mut u64,
    outcome: &mut Outcome,
) -> Result<(), Fault> {
    let timeout = timeout(timeout_us)?;
    let (Handle { index, generation }, slot) = ENGINES.find(engine)?;
    let mut locked = slot.lock(Kind::Engine, generation)?;
    let engine = locked.value().ok_or(Refusal::Stale { kind: Kind::Engine })?;
    let Some(at) = engine.first_ended(timeout)? else { return Ok(()) };
    *handle = job(index, at, engine.ledger().number(at));
    taken(engine, at, true, outcome)
}

/// How the job of ticket `at` ended; its buffers have their owners again.
#[inline]
fn taken(engine: &mut Engine, at: usize, to_cpu: bool, outcome: &mut Outcome) -> Result<(), Fault> {
    outcome.ended = true;
    let taken = engine.ledger().take(at, |holds, end| holds.back(to_cpu).map(|()| end));
    match taken.ok_or(Refusal::Stale { kind: Kind::Job })?? {
        End::Reported(completion) => {
            outcome.said = Some(completion);
            match completion {
                Completion { failed: None, .. } => Ok(()),
                Completion { failed: Some(what), status, .. } => {
                    Err(Error::Fault { device: engine.name(), status, what }.into())
                }
            }
        }
        End::Fault(error) => Err(error.into()),
        End::Cancelled => Err(Misuse::Cancelled.into()),
    }
}
