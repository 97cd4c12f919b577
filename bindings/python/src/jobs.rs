//! Jobs in flight on one driver, and what became of them.

use crate::buffer::Buffer;
use crate::computed::Computed;
use crate::error::{Refusal, of_class, raised, raised_as, refused};
use crate::lock::Kept;
use crate::record::{End, Flight, Record, Taker};
use contigo::job::{AnyDriver, Descriptors, MAX_OPERANDS, QueueCounts};
use contigo::{Completion, Direction, Driver, Error, JobError, OperandSpec, Queue};
use contigo_objects::{JOBS, Ledger, Operands};
use std::collections::VecDeque;
use std::mem;
use std::ops::Range;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Ends that are kept for one taker at most, each with its buffers: a program that has left as many
/// as 16 full queues behind takes none.
const UNTAKEN: usize = 16 * JOBS;

/// An operand: its buffer, the bytes of it, and what the device does with them.
pub(crate) type JobOperand = (Kept<Buffer>, Range<usize>, Direction);

/// A driver with its jobs.
pub(crate) struct Jobs {
    /// Those in flight: as many as the driver takes at once, so that none waits in its queue. An
    /// end is taken out of it at once, and kept here.
    ledger: Box<Ledger<Flight>>,
    /// What computes the jobs of a simulated kernel.
    computed: Option<Arc<Computed>>,
    /// How many jobs there were.
    pushed: u64,
    /// Queued ones that ended, until their takers ask.
    ended: VecDeque<Arc<Record>>,
    /// Those to be taken back: they ended by a stop of the device, or a loop that was left has not
    /// taken them.
    left: Vec<Arc<Record>>,
    /// Why they ended, for each taker that has not seen it.
    faults: Vec<Fault>,
}

/// Why a taker's jobs ended by a stop that it did not ask for.
struct Fault {
    taker: Weak<()>,
    /// The channel's fault; `None`: another user of the device stopped it.
    why: Option<(Error, String)>,
    /// Jobs of the taker ended by it.
    has_lost: bool,
    /// `take_back` has given the jobs: the taker's next job begins anew.
    is_taken_back: bool,
}

impl Jobs {
    pub(crate) fn new(driver: AnyDriver, computed: Option<Arc<Computed>>) -> contigo::Result<Self> {
        let depth = driver.depth().clamp(1, JOBS);
        let ledger = Ledger::boxed(Queue::new(driver, depth)?);
        let (ended, left, faults) = (VecDeque::new(), Vec::new(), Vec::new());
        Ok(Self { ledger, computed, pushed: 0, ended, left, faults })
    }

    pub(crate) fn specs(&self) -> Vec<OperandSpec> {
        self.ledger.queue().driver().operands().to_vec()
    }

    /// Which memory of its own the driver has.
    pub(crate) fn descriptors(&self) -> Option<Descriptors> {
        self.ledger.queue().driver().descriptors()
    }

    pub(crate) fn depth(&self) -> usize {
        self.ledger.queue().capacity()
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.ledger.queue().len()
    }

    fn records(&self) -> impl Iterator<Item = &Arc<Record>> {
        self.ledger.jobs().filter_map(|flight| flight.record.as_ref())
    }

    /// Those in flight.
    pub(crate) fn flying(&self) -> Vec<Arc<Record>> {
        self.records().map(Arc::clone).collect()
    }

    pub(crate) fn counts(&self) -> QueueCounts {
        self.ledger.queue().counts()
    }

    pub(crate) fn arm(&mut self) -> contigo::Result<Option<i32>> {
        self.ledger.queue().arm_irq()
    }

    /// Those of `taker` that are in flight.
    pub(crate) fn in_flight_of(&self, taker: &Taker) -> usize {
        self.records().filter(|record| record.is_of(taker)).count()
    }

    /// The same, with those that have ended and wait for it.
    pub(crate) fn expected_of(&self, taker: &Taker) -> usize {
        self.in_flight_of(taker) + self.ended.iter().filter(|record| record.is_of(taker)).count()
    }

    /// Whether every job has ended, and its taker has each end.
    pub(crate) fn is_idle(&mut self) -> Result<bool, Refusal> {
        for _ in 0..JOBS {
            if self.in_flight() == 0 || !self.look(Duration::ZERO)? {
                break;
            }
        }
        Ok(self.in_flight() == 0 && self.ended.is_empty())
    }

    pub(crate) fn take_back(&mut self, taker: &Taker) -> Vec<Arc<Record>> {
        let mut back: Vec<_> = taken_out(&mut self.left, |record| record.is_of(taker));
        if back.iter().any(|record| record.is_lost()) {
            self.faults
                .iter_mut()
                .filter(|fault| taker.is(&fault.taker))
                .for_each(|fault| fault.is_taken_back = true);
        }
        back.sort_by_key(|record| record.serial);
        back
    }

    /// Takes all buffers, or none, and gives the device a job.
    pub(crate) fn push(
        &mut self,
        given: Vec<JobOperand>,
        words: &[u32],
        more: bool,
        taker: Option<&Taker>,
    ) -> Result<Arc<Record>, Refusal> {
        if given.len() > MAX_OPERANDS {
            let text = format!("{} operands: a job has {MAX_OPERANDS} at most", given.len());
            return Err(of_class("Buffer", text));
        }
        if taker.is_some_and(|taker| self.untaken_of(taker) >= UNTAKEN) {
            let text = format!(
                "{UNTAKEN} jobs of this queue have ended, and are not taken: next() and \
                 take_back() give them"
            );
            return Err(of_class("Memory", text));
        }
        // No `next` looks for the jobs of a queue that is gone.
        if self.in_flight() == self.depth()
            && self.records().any(|record| record.is_kept() && !record.is_wanted())
        {
            self.look(Duration::ZERO)?;
        }
        let queue = self.ledger.queue();
        if queue.is_stopped() && queue.len() == JOBS {
            return Err(raised(Error::QueueStopped { in_flight: JOBS }));
        }
        let serial = self.pushed + 1;
        let (at, flight, _) = self.ledger.open(serial).map_err(raised)?;
        self.pushed = serial;
        let (buffers, parts): (Vec<_>, Vec<_>) = given
            .into_iter()
            .map(|(buffer, bytes, direction)| (buffer, (bytes, direction)))
            .unzip();
        let record = Arc::new(Record::new(buffers, taker, serial));
        flight.record = Some(Arc::clone(&record));
        let mut operands = Operands::new();
        for (index, (inner, (bytes, direction))) in record.inners().zip(parts).enumerate() {
            match inner.operand(bytes, direction) {
                // There is room: see above.
                Ok(operand) => drop(operands.push(operand)),
                Err(refusal) => {
                    self.ledger.refuse(at, &mut operands);
                    let twice = record.inners().take(index).any(|other| Arc::ptr_eq(other, inner));
                    let text = "one buffer as two operands of a job: each takes its own";
                    return Err(if twice { of_class("Buffer", text) } else { refusal });
                }
            }
        }
        match self.ledger.submit(at, &mut operands, words, more) {
            Ok(()) => {
                self.faults.retain(|fault| {
                    !fault.is_taken_back || taker.is_none_or(|taker| !taker.is(&fault.taker))
                });
                // Where the doorbell of its burst failed, all jobs have ended.
                self.collect(&End::Cancelled, |_| ());
                Ok(record)
            }
            Err(refused) => {
                let (text, mut others) = (refused.to_string(), Vec::new());
                let before = self.left.len();
                if refused.buffers.is_none() {
                    self.look_behind();
                }
                // The others' jobs ended by the stop that the refusal asked for.
                self.collect(&End::Failed(refused.cause, text.clone()), |other| {
                    others.extend(other.taker.clone().filter(|_| !other.is_beside(&record)));
                });
                let stopped = self.left.len() > before;
                others
                    .into_iter()
                    .filter(|_| stopped)
                    .for_each(|taker| self.fails(taker, Some((refused.cause, text.clone()))));
                Err(raised_as(refused.error, text))
            }
        }
    }

    /// Whether a job has ended. It has its buffers and its end then. So have all others, where the
    /// device had to be stopped.
    pub(crate) fn look(&mut self, timeout: Duration) -> Result<bool, Refusal> {
        match self.ledger.look(timeout, |_| true) {
            Ok(ended) => {
                self.collect(&End::Cancelled, |_| ());
                Ok(ended)
            }
            Err(failed) => {
                let (text, mut takers) = (self.text(&failed), Vec::new());
                self.collect(&End::Failed(failed.cause, text.clone()), |record| {
                    takers.extend(record.taker.clone())
                });
                // It would not stop. The jobs that ended all the same have come out.
                if self.ledger.queue().is_stopped() {
                    return Err(raised_as(failed.error, text));
                }
                // Also where all of them ended well before the stop: then no job says it.
                takers
                    .into_iter()
                    .for_each(|taker| self.fails(taker, Some((failed.error, text.clone()))));
                Ok(true)
            }
        }
    }

    /// The text of `failed`, with what the function of a simulated kernel raised.
    fn text(&self, failed: &JobError<()>) -> String {
        let raised = match failed.cause {
            Error::NotComputed { .. } => self.computed.as_ref().and_then(|from| from.failure()),
            _ => None,
        };
        raised.unwrap_or_else(|| failed.to_string())
    }

    /// Whether a function computes a job now.
    pub(crate) fn computes(&self) -> bool {
        self.computed.as_ref().is_some_and(|computed| computed.is_busy())
    }

    fn name(&self) -> &'static str {
        self.ledger.queue().driver().name()
    }

    /// Looks for the jobs that ended before the device would not stop.
    fn look_behind(&mut self) {
        for _ in 0..JOBS {
            if !matches!(self.ledger.look(Duration::ZERO, |_| true), Ok(true)) {
                break;
            }
        }
    }

    /// Takes the ends out of the ledger. `lost` is the end of a job that the device did not report,
    /// unless the ledger has the fault that ended it. Then its taker hears of that.
    fn collect(&mut self, lost: &End, mut each: impl FnMut(&Record)) {
        let device = self.name();
        let mut faults = Vec::new();
        while let Some((flight, end)) =
            self.ledger.take_first(|flight, end| (mem::take(flight), end))
        {
            let Flight { record: Some(record), unsynced } = flight else { continue };
            each(&record);
            let (end, is_lost) = match end {
                contigo_objects::End::Reported(Completion {
                    failed: Some(what), status, ..
                }) => {
                    let error = Error::Fault { device, status, what };
                    (End::Failed(error, error.to_string()), false)
                }
                contigo_objects::End::Reported(completion) => (End::Done(completion), false),
                contigo_objects::End::Fault(error) if matches!(lost, End::Cancelled) => {
                    faults.extend(record.taker.clone().map(|taker| (taker, error)));
                    (End::Failed(error, error.to_string()), true)
                }
                contigo_objects::End::Fault(_) | contigo_objects::End::Cancelled => {
                    (lost.clone(), true)
                }
            };
            record.ends(end, unsynced);
            match (record.is_wanted(), is_lost) {
                (true, true) => self.left.push(record),
                (true, false) => self.ended.push_back(record),
                (false, _) => {}
            }
        }
        for (taker, error) in faults {
            self.fails(taker, Some((error, error.to_string())));
        }
    }

    /// Notes for `taker` why its jobs ended.
    fn fails(&mut self, taker: Weak<()>, why: Option<(Error, String)>) {
        if taker.strong_count() == 0 {
            return;
        }
        let has_lost = self.left.iter().any(|record| {
            record.is_lost() && record.taker.as_ref().is_some_and(|own| own.ptr_eq(&taker))
        });
        match self.faults.iter_mut().find(|fault| fault.taker.ptr_eq(&taker)) {
            // Its jobs were taken back, and this one's were not.
            Some(fault) if fault.is_taken_back => {
                (fault.why, fault.has_lost, fault.is_taken_back) = (why, has_lost, false)
            }
            Some(_) => {}
            None => self.faults.push(Fault { taker, why, has_lost, is_taken_back: false }),
        }
    }

    /// The next of its queued jobs that ended before. Behind the last one, why the others ended.
    pub(crate) fn next_ended(&mut self, taker: &Taker) -> Result<Option<Arc<Record>>, Refusal> {
        if let Some(at) = self.ended.iter().position(|record| record.is_of(taker)) {
            return Ok(self.ended.remove(at));
        }
        let Some(at) = self.faults.iter().position(|fault| taker.is(&fault.taker)) else {
            return Ok(None);
        };
        Err(match self.faults.swap_remove(at).why {
            Some((error, text)) => raised_as(error, text),
            None => refused(
                "cancelled: another queue, stream or job of this engine, or its stop(), stopped \
                 the device; take_back() has the jobs",
            ),
        })
    }

    /// Its own `wait` has returned its end. Its taker's loop does not raise what ended it, unless
    /// other jobs ended by that too.
    pub(crate) fn seen(&mut self, record: &Arc<Record>) {
        let before = self.left.len();
        self.ended.retain(|other| !Arc::ptr_eq(other, record));
        self.left.retain(|other| !Arc::ptr_eq(other, record));
        let was_left = self.left.len() < before;
        if was_left
            && record.is_lost()
            && !self.left.iter().any(|other| other.is_beside(record) && other.is_lost())
        {
            self.faults.retain(|fault| {
                !fault.has_lost
                    || record.taker.as_ref().is_none_or(|taker| !taker.ptr_eq(&fault.taker))
            });
        }
    }

    /// Gives ends back that did not reach their taker. They come first.
    pub(crate) fn untake(&mut self, records: Vec<Arc<Record>>) {
        records.into_iter().rev().for_each(|record| self.ended.push_front(record));
    }

    /// Those that have ended, and that `taker` has not taken.
    fn untaken_of(&self, taker: &Taker) -> usize {
        self.ended.iter().chain(&self.left).filter(|record| record.is_of(taker)).count()
    }

    /// Stops the device: jobs that had ended end well, the others are cancelled. Takers of those
    /// for which `tell` is true are notified.
    pub(crate) fn stop(&mut self, tell: impl Fn(&Record) -> bool) -> Result<(), Refusal> {
        let before = self.left.len();
        let stopped = match self.computed.clone() {
            Some(computed) => computed.while_stopping(|| self.ledger.stop(None)),
            None => self.ledger.stop(None),
        };
        if stopped.is_err() {
            self.look_behind();
        }
        self.collect(&End::Cancelled, |_| ());
        let cancelled: Vec<_> = self
            .left
            .iter()
            .skip(before)
            .filter(|record| tell(record))
            .filter_map(|record| record.taker.clone())
            .collect();
        cancelled.into_iter().for_each(|taker| self.fails(taker, None));
        stopped.map_err(raised)
    }

    /// A loop was left: what it has not taken is to be taken back.
    pub(crate) fn leave(&mut self, taker: &Taker) {
        self.faults.retain(|fault| !taker.is(&fault.taker));
        self.left.extend(taken_out(&mut self.ended, |record| record.is_of(taker)));
    }

    /// All of its jobs that have come out, which are forgotten here. Refused where the device would
    /// not stop: its ends are still to be given.
    pub(crate) fn forget(&mut self, taker: &Taker) -> Result<Vec<Arc<Record>>, Refusal> {
        if self.ledger.queue().is_stopped() {
            return Err(raised(Error::QueueStopped { in_flight: self.in_flight() }));
        }
        self.leave(taker);
        Ok(self.take_back(taker))
    }

    /// The records that were kept for a taker that is gone.
    pub(crate) fn unwanted(&mut self) -> Vec<Arc<Record>> {
        self.faults.retain(|fault| fault.taker.strong_count() > 0);
        let mut gone: Vec<_> = taken_out(&mut self.ended, |record| !record.is_wanted());
        gone.extend(taken_out(&mut self.left, |record| !record.is_wanted()));
        gone
    }
}

/// Takes out the records for which `which` is true; the others stay.
fn taken_out<From: Default + Extend<Arc<Record>> + IntoIterator<Item = Arc<Record>>>(
    from: &mut From,
    which: impl Fn(&Record) -> bool,
) -> Vec<Arc<Record>> {
    let (out, rest): (Vec<_>, Vec<_>) =
        mem::take(from).into_iter().partition(|record| which(record));
    from.extend(rest);
    out
}

impl Drop for Jobs {
    /// All buffers go where they came from. Of a device that does not stop, none.
    fn drop(&mut self) {
        let _ = self.stop(|_| false);
    }
}
