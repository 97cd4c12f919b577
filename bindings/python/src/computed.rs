//! The jobs of a kernel that a function computes: asked for by its model, answered by a thread.

use crate::lock::{Lock, Plain};
use contigo::sim::ap_ctrl::{KernelCall, KernelError};
use contigo::sim::{AnyModel, SimBoard};
use contigo_objects::{KernelJob, Results};
use std::io::{PipeWriter, Write};
use std::time::{Duration, Instant};

/// What a function has computed: its operands and results, or why it has none.
pub(crate) type Answer = Result<(Vec<Vec<u8>>, Results), String>;

/// A function's jobs, shared by its model, its engine and the thread that calls it.
pub(crate) struct Computed {
    /// The kernel's name.
    name: String,
    /// After so long a job fails.
    limit: Duration,
    state: Lock<State>,
}

#[derive(Default)]
struct State {
    /// For the thread to take.
    job: Option<KernelJob>,
    /// The job that the model has, and since when.
    asked: Option<(u64, Instant)>,
    answer: Option<(u64, Answer)>,
    failure: Option<String>,
}

impl Plain for KernelJob {}
impl Plain for State {}
impl Plain for SimBoard {}
impl Plain for AnyModel {}
impl Plain for String {}
impl Plain for Instant {}
impl<A: Plain, B: Plain> Plain for (A, B) {}
impl<const N: usize> Plain for [u32; N] {}
impl Plain for u8 {}

impl Computed {
    pub(crate) fn new(name: String, limit: Duration) -> Self {
        Self { name, limit, state: Lock::new(State::default()) }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether a job waits for its function. Not beyond its limit: the job may be gone by a reset.
    pub(crate) fn is_busy(&self) -> bool {
        let asked = self.state.with(|state| state.asked.filter(|_| state.answer.is_none()));
        asked.is_some_and(|(_, since)| since.elapsed() < self.limit)
    }

    /// The job that the function is to compute.
    pub(crate) fn take(&self) -> Option<KernelJob> {
        self.state.with(|state| state.job.take())
    }

    /// What became of job `number`.
    pub(crate) fn answer(&self, number: u64, answer: Answer) {
        self.state.with(|state| state.answer = Some((number, answer)));
    }

    /// Why the last job was not computed, with the kernel's name.
    pub(crate) fn failure(&self) -> Option<String> {
        let failure = self.state.with(|state| state.failure.clone())?;
        Some(format!("{}: {failure}", self.name))
    }

    /// As the model calls it, again and again until the job has its answer.
    pub(crate) fn compute(
        &self,
        call: &mut KernelCall<'_, '_>,
        bell: &mut PipeWriter,
    ) -> Result<Results, KernelError> {
        let (number, limit) = (call.number(), self.limit);
        let asked = self.state.with(|state| state.asked.filter(|(asked, _)| *asked == number));
        let Some((_, since)) = asked else {
            let job = KernelJob::of(call)?;
            let rings = self.state.with(|state| {
                (state.asked, state.answer) = (Some((number, Instant::now())), None);
                state.job.replace(job).is_none()
            });
            // The reader is gone with the interpreter: then the job ends by its limit.
            let _ = if rings { bell.write(&[1]) } else { Ok(0) };
            return Err(KernelError::WouldBlock);
        };
        let answer = self.state.with(|state| {
            let answer = state.answer.take_if(|(answered, _)| *answered == number);
            match answer {
                None if since.elapsed() < limit => return None,
                Some((_, answer)) => Some(answer),
                None => Some(Err(format!("it has not returned within {} s", limit.as_secs_f64()))),
            }
            .inspect(|answer| {
                state.asked = None;
                state.failure = answer.as_ref().err().cloned();
            })
        });
        match answer {
            None => Err(KernelError::WouldBlock),
            Some(Err(_)) => Err(KernelError::Failed),
            Some(Ok((operands, results))) => {
                KernelJob::store(&operands, call)?;
                Ok(results)
            }
        }
    }
}
