#![allow(
    unsafe_code,
    reason = "an engine is made where it will be; which node stops the device is the C program's \
              promise"
)]
//! One engine: the jobs of any driver, and what it stands on.

use super::contigo_operand;
use crate::fault::{Fault, Misuse};
use crate::handles::CONTIGO_MAX_ENGINES;
use crate::object::buf::{BUFS, Buf};
use crate::object::device::Opened;
use crate::object::region::Region;
use contigo::job::{AnyDriver, MAX_OPERANDS, QueueCounts};
use contigo::names::AnyModule;
use contigo::{CpuBuf, DevBuf, Direction, Driver, Error, JobError, Queue};
use contigo_objects::{Claimed, JOBS, Job, JobHold, Kind, Lease, Ledger, Operands, Refusal, Table};
use core::ffi::c_int;
use core::mem::{self, MaybeUninit};
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use heapless::Vec;

const COUNT: usize = CONTIGO_MAX_ENGINES as usize;

/// Engines.
pub(crate) static ENGINES: Table<Engine, { Kind::Engine as u8 }, COUNT> = Table::new();

/// How many jobs were started on each entry of `ENGINES`, in all of its lives: no handle names two.
static STARTED: [AtomicU64; COUNT] = [const { AtomicU64::new(0) }; COUNT];

/// One engine. The fields are dropped in this order.
pub(crate) struct Engine {
    ledger: Ledger<Holds>,
    parents: Parents,
}

/// The entries of a job's buffers. Nothing but the job reaches them.
#[derive(Default)]
pub(crate) struct Holds(Vec<JobHold<Buf>, MAX_OPERANDS>);

impl Job for Holds {
    #[inline]
    fn put(&mut self, index: usize, buf: Result<CpuBuf, DevBuf>) {
        match self.0.get_mut(index) {
            Some(hold) => hold.value().state.put(buf),
            // There is one for each. Leak, never free.
            None => mem::forget(buf),
        }
    }

    fn refused(&mut self) {
        while let Some(hold) = self.0.pop() {
            hold.back();
        }
    }
}

impl Holds {
    /// The buffers of a job that has ended are their handles' again, with `to_cpu` on the CPU's
    /// side. One whose caches could not be maintained is still a device's.
    #[inline]
    pub(super) fn back(&mut self, to_cpu: bool) -> Result<(), Fault> {
        let mut result = Ok(());
        while let Some(mut hold) = self.0.pop() {
            let Buf { state, views, .. } = hold.value();
            if to_cpu
                && state.device().is_ok()
                && let Err(refusal) = state.take_back(views, None)
            {
                result = Err(refusal.into());
            }
            hold.back();
        }
        result
    }
}

/// The objects that a driver is of, which are not closed while there is its engine.
#[derive(Default)]
pub(super) struct Parents {
    pub(super) device: Option<Lease<Opened>>,
    pub(super) _gate: Option<Lease<Opened>>,
    pub(super) _module: Option<Lease<AnyModule>>,
    pub(super) _region: Option<Lease<Region>>,
}

impl Engine {
    /// Puts an engine over `driver` into its entry. `driver` is dropped before `parents`.
    pub(super) fn put(
        mut claimed: Claimed<Self>,
        driver: AnyDriver,
        parents: Parents,
    ) -> Result<u64, Fault> {
        // As many jobs as the device takes, and as a ticket can be had for.
        let jobs = driver.depth().clamp(1, JOBS);
        let queue = Queue::new(driver, jobs)?;
        let make = |place: &mut MaybeUninit<Self>| {
            let engine = place.as_mut_ptr();
            // SAFETY: every field is written once, inside `place`, which is borrowed alone.
            unsafe {
                Ledger::<Holds>::new_in(&mut *(&raw mut (*engine).ledger).cast(), queue);
                (&raw mut (*engine).parents).write(parents);
            }
        };
        // SAFETY: `make` wrote every field.
        unsafe { claimed.locked.make(make) };
        Ok(claimed.raw())
    }

    /// Starts a job on the engine in entry `index`. The answer is its ticket and its number, of a
    /// job that was refused too where the device would not stop, which has its buffers then.
    #[inline]
    pub(super) fn start(
        &mut self,
        index: usize,
        given: &[contigo_operand],
        args: &[u32],
        more: bool,
        job: &mut Option<(usize, u64)>,
    ) -> Result<(), Fault> {
        let count = self.driver().operands().len() as u64;
        if given.len() as u64 != count {
            return Err(Fault::range("the count of operands", given.len() as u64, count, count));
        }
        let started = STARTED.get(index).map_or(0, |started| {
            // Only here, with the engine's entry locked.
            let number = started.load(Ordering::Relaxed) + 1;
            started.store(number, Ordering::Relaxed);
            number
        });
        // Before the doorbell: whatever happens then, the job is known.
        let (at, Holds(holds), specs) = self.ledger.open(started)?;
        let mut operands = Operands::new();
        for (index, (part, spec)) in given.iter().zip(specs).enumerate() {
            if let Err(fault) = hold(part, spec.direction, holds, &mut operands) {
                self.ledger.refuse(at, &mut operands);
                return Err(same_buffer(given, index).unwrap_or(fault));
            }
        }
        holds.iter().for_each(JobHold::begin);
        *job = Some((at, started));
        self.ledger.submit(at, &mut operands, args, more).map_err(|refused| {
            if refused.buffers.is_some() {
                *job = None;
            }
            job_fault(&refused)
        })
    }

    /// Waits for the end of the job of ticket `at`, at most for `timeout`; `false`: it has not
    /// ended. With `to_cpu` its buffers are the CPU's then.
    #[inline]
    pub(super) fn wait(
        &mut self,
        at: usize,
        timeout: Duration,
        to_cpu: bool,
    ) -> Result<bool, Fault> {
        self.ledger.wait(at, timeout, to_cpu).map_err(|failed| job_fault(&failed))
    }

    /// The first job that ended, or the next one to end, whose buffers are the CPU's then; `None`:
    /// none has.
    #[inline]
    pub(super) fn first_ended(&mut self, timeout: Duration) -> Result<Option<usize>, Fault> {
        self.ledger.first_ended(timeout).map_err(|failed| job_fault(&failed))
    }

    /// Stops the device, which ends every job. That of ticket `waited` ends with `cause`, unless it
    /// ended well while the device was being stopped.
    pub(super) fn stop_for(&mut self, waited: usize, cause: Error) -> Result<(), Fault> {
        self.ledger.stop(Some((waited, cause))).map_err(|error| Fault::Job {
            error,
            cause,
            operand: None,
        })
    }

    /// Stops the device, which ends every job.
    pub(crate) fn stop(&mut self) -> Result<(), Fault> {
        Ok(self.ledger.stop(None)?)
    }

    pub(super) const fn ledger(&mut self) -> &mut Ledger<Holds> {
        &mut self.ledger
    }

    /// Its driver's name, for messages.
    pub(super) fn name(&self) -> &'static str {
        self.driver().name()
    }

    /// Its driver.
    pub(crate) const fn driver(&self) -> &AnyDriver {
        self.ledger.queue().driver()
    }

    /// What became of its jobs; how many can be in flight, are in flight, and have ended but are
    /// not taken yet; is it stopped?
    pub(crate) fn counts(&self) -> (QueueCounts, usize, usize, usize, bool) {
        (
            self.ledger.queue().counts(),
            self.ledger.queue().capacity(),
            self.ledger.queue().len(),
            self.ledger.ended(),
            self.ledger.queue().is_stopped(),
        )
    }

    /// Readies the interrupt for an event loop, and says its descriptor.
    pub(crate) fn arm_irq(&self) -> Result<c_int, Fault> {
        self.ledger.queue().arm_irq()?.ok_or_else(|| Misuse::NoInterrupt.into())
    }

    /// Leaves what stops the device with the kernel.
    ///
    /// # Safety
    /// As `Queue::arm`.
    pub(crate) unsafe fn arm(&self, window: u32) -> Result<(), Fault> {
        let dev_node = self
            .parents
            .device
            .as_ref()
            .and_then(|held| held.dev_node())
            .ok_or(Misuse::NoDevNode)?;
        // SAFETY: the caller's promise; `close` drops the queue before what holds the device.
        unsafe { self.ledger.queue().arm(dev_node, window)? };
        Ok(())
    }

    /// Closes an engine. Refused while it has jobs, and where its device does not stop: it may use
    /// what would be given back.
    pub(crate) fn close(raw: u64) -> Result<(), Fault> {
        let mut locked = ENGINES.lock(raw)?;
        let engine = locked.value().ok_or(Refusal::Stale { kind: Kind::Engine })?;
        match engine.ledger.used() {
            0 => engine.stop()?,
            jobs => return Err(Refusal::HasJobs { jobs }.into()),
        }
        locked.clear();
        Ok(())
    }
}

/// A hold on one buffer's entry, and its operand. Both lists have room for as many as operands.
#[inline]
fn hold(
    part: &contigo_operand,
    direction: Direction,
    holds: &mut Vec<JobHold<Buf>, MAX_OPERANDS>,
    operands: &mut Operands,
) -> Result<(), Fault> {
    let mut hold = BUFS.hold(part.buf)?;
    let Buf { state, views, .. } = hold.value();
    // A sum past the end of all memory is past the end of the buffer, which is checked.
    let bytes = part.offset_bytes..part.offset_bytes.saturating_add(part.len_bytes);
    match state.operand(views, bytes, direction) {
        Ok(operand) => {
            drop(operands.push(operand));
            drop(holds.push(hold));
            Ok(())
        }
        Err(refusal) => {
            hold.back();
            Err(refusal.into())
        }
    }
}

/// Is operand `second` refused because an operand before it has the same buffer?
#[cold]
fn same_buffer(given: &[contigo_operand], second: usize) -> Option<Fault> {
    let buf = given.get(second)?.buf;
    let first = given.iter().position(|part| part.buf == buf).filter(|first| *first < second)?;
    Some(Misuse::SameBuffer { first, second }.into())
}

fn job_fault<B>(failed: &JobError<B>) -> Fault {
    Fault::Job { error: failed.error, cause: failed.cause, operand: failed.operand }
}
