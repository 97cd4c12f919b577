//! A kernel that a function of Python's computes, on a simulated board.
//!
//! The model runs under locks, where nothing of Python's may be called. So it copies a job's
//! operands out, rings a pipe, and is busy; a thread of the package's (contigo/simulation.py) reads
//! the pipe, calls the function, and answers. The model finds the answer when its driver looks
//! next.

use crate::error::{Refusal, of_class, raised, refused};
use crate::lock::{Lock, Plain};
use contigo::design::kernel;
use contigo::names::OpenDevice;
use contigo::sim::ap_ctrl::{ApCtrlModel, KernelCall, KernelError};
use contigo::sim::{AnyModel, Faults, SimBoard};
use contigo_objects::{KernelJob, Results};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyByteArray;
use std::io::{PipeReader, PipeWriter, Write, pipe};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a function has computed: its operands and results, or why it has none.
type Answer = Result<(Vec<Vec<u8>>, Results), String>;

/// A function's jobs, shared by its model, its engine and the thread that calls it.
pub(crate) struct Computed {
    /// The kernel's name.
    name: String,
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
    /// Whether a job waits for its function.
    pub(crate) fn is_busy(&self) -> bool {
        self.state.with(|state| state.asked.is_some() && state.answer.is_none())
    }

    /// Why the last job was not computed, with the kernel's name.
    pub(crate) fn failure(&self) -> Option<String> {
        let failure = self.state.with(|state| state.failure.clone())?;
        Some(format!("{}: {failure}", self.name))
    }

    /// As the model calls it, again and again until the job has its answer.
    fn compute(
        &self,
        call: &mut KernelCall<'_, '_>,
        bell: &mut PipeWriter,
        limit: Duration,
    ) -> Result<Results, KernelError> {
        let number = call.number();
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

/// A simulated kernel before its device is opened, and its jobs for the thread that computes them.
#[pyclass(frozen, module = "contigo")]
pub(crate) struct Simulation {
    computed: Arc<Computed>,
    bell: PipeReader,
    core: Lock<Option<(SimBoard, AnyModel)>>,
}

impl Simulation {
    /// Its device: once.
    pub(crate) fn open(&self) -> Result<(OpenDevice, Arc<Computed>), Refusal> {
        let (board, model) = self
            .core
            .with(Option::take)
            .ok_or_else(|| refused("this simulated kernel has its device already"))?;
        let device = OpenDevice::of_model(&board, &self.computed.name, model).map_err(raised)?;
        Ok((device, Arc::clone(&self.computed)))
    }
}

#[pymethods]
impl Simulation {
    /// Of the kernel that `map` describes, as JSON. A job whose function has not returned within
    /// `limit` seconds fails.
    #[new]
    fn new(map: &str, seed: u64, limit: f64) -> PyResult<Self> {
        let wrong = |error: String| PyValueError::new_err(error);
        let described =
            kernel::any(map.as_bytes(), "").map_err(|error| wrong(error.to_string()))?;
        let map = described.build().map_err(|error| wrong(error.to_string()))?;
        let limit = crate::shared::limit(limit)?;
        let (bell, mut rings) =
            pipe().map_err(|error| of_class("OS", format!("a pipe: {error}")))?;
        let state = Lock::new(State::default());
        let computed = Arc::new(Computed { name: map.name.to_string(), state });
        let of_model = Arc::clone(&computed);
        let model = ApCtrlModel::new(map, move |call: &mut KernelCall<'_, '_>| {
            of_model.compute(call, &mut rings, limit)
        });
        let board = SimBoard::try_with(seed, Faults::NONE).map_err(raised)?;
        let model = AnyModel::new(model.map_err(raised)?);
        Ok(Self { computed, bell, core: Lock::new(Some((board, model))) })
    }

    /// Readable where there is a job; at its end where the device is closed.
    fn fileno(&self) -> i32 {
        self.bell.as_raw_fd()
    }

    /// The next job: its number, its scalars, and the bytes of its operands.
    #[allow(clippy::type_complexity, reason = "a tuple of Python's")]
    fn take<'py>(&self, py: Python<'py>) -> Option<(u64, Vec<u64>, Vec<Bound<'py, PyByteArray>>)> {
        let KernelJob { number, scalars, operands } =
            self.computed.state.with(|state| state.job.take())?;
        let operands = operands.iter().map(|bytes| PyByteArray::new(py, bytes)).collect();
        Some((number, scalars, operands))
    }

    /// The operands of job `number` as they are now, and the words of its results.
    fn answer(&self, number: u64, operands: Vec<Bound<'_, PyByteArray>>, results: Results) {
        let operands: Vec<Vec<u8>> = operands.iter().map(|bytes| bytes.to_vec()).collect();
        self.computed.state.with(|state| state.answer = Some((number, Ok((operands, results)))));
    }

    /// Why job `number` has no results.
    fn fail(&self, number: u64, why: String) {
        self.computed.state.with(|state| state.answer = Some((number, Err(why))));
    }
}
