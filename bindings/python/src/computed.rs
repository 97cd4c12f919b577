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
    answer: Option<Answer>,
    /// Why the last job that was not computed was not.
    failure: Option<String>,
    /// The kernel is being stopped.
    is_stopping: bool,
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

    /// What became of job `number`, unless the model has given it up.
    pub(crate) fn answer(&self, number: u64, answer: Answer) {
        self.state.with(|state| {
            if state.asked.is_some_and(|(asked, _)| asked == number) {
                state.answer = Some(answer);
            }
        });
    }

    /// Lets `stop` stop the kernel, which a job whose function has not returned would not do: it
    /// fails. So does one that the kernel has accepted behind it.
    pub(crate) fn while_stopping<R>(&self, stop: impl FnOnce() -> R) -> R {
        self.state.with(|state| state.is_stopping = true);
        let stopped = stop();
        self.state.with(|state| state.is_stopping = false);
        stopped
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
        let computed = self.computed(call, bell);
        let why = match &computed {
            Ok(_) | Err(KernelError::WouldBlock | KernelError::Failed) => return computed,
            Err(KernelError::Bus(error)) => {
                format!("no memory is at the address {:#x} of its operands", error.addr.0)
            }
            Err(KernelError::Outside { index, at, len }) => {
                format!("bytes {at} to {} of operand {index} are not its own", at + *len as u64)
            }
        };
        self.state.with(|state| state.failure = Some(why));
        computed
    }

    fn computed(
        &self,
        call: &mut KernelCall<'_, '_>,
        bell: &mut PipeWriter,
    ) -> Result<Results, KernelError> {
        let (number, limit) = (call.number(), self.limit);
        let answer = self.state.with(|state| match state.asked {
            _ if state.is_stopping => Asked::Answered(Err("it was stopped".to_owned())),
            Some((asked, since)) if asked == number => match state.answer.take() {
                Some(answer) => Asked::Answered(answer),
                None if since.elapsed() < limit => Asked::Waits,
                None => Asked::Answered(Err(format!(
                    "its function has not returned within {} s",
                    limit.as_secs_f64()
                ))),
            },
            _ => Asked::New,
        });
        match answer {
            Asked::Waits => Err(KernelError::WouldBlock),
            Asked::New => {
                let job = KernelJob::of(call)?;
                let rings = self.state.with(|state| {
                    (state.asked, state.answer) = (Some((number, Instant::now())), None);
                    state.job.replace(job).is_none()
                });
                // The reader is gone with the interpreter: then the job ends by its limit.
                let _ = if rings { bell.write(&[1]) } else { Ok(0) };
                Err(KernelError::WouldBlock)
            }
            Asked::Answered(answer) => {
                self.state.with(|state| (state.asked, state.answer) = (None, None));
                match answer {
                    Ok((operands, results)) => {
                        KernelJob::store(&operands, call)?;
                        Ok(results)
                    }
                    Err(why) => {
                        self.state.with(|state| state.failure = Some(why));
                        Err(KernelError::Failed)
                    }
                }
            }
        }
    }
}

/// What became of a job that the model has.
enum Asked {
    New,
    Waits,
    Answered(Answer),
}

impl Plain for Asked {}
