//! A kernel that a function of Python's computes, on a simulated board.
//!
//! The model runs under locks, where nothing of Python's may be called. So it copies a job's
//! operands out, rings a pipe, and is busy; a thread of the package's (contigo/simulation.py) reads
//! the pipe, calls the function, and answers. The model finds the answer when its driver looks
//! next.

use crate::computed::Computed;
use crate::error::{Refusal, of_class, raised, refused};
use crate::lock::Lock;
use contigo::design::kernel;
use contigo::names::OpenDevice;
use contigo::sim::ap_ctrl::{ApCtrlModel, KernelCall};
use contigo::sim::{AnyModel, Faults, SimBoard};
use contigo_objects::{KernelJob, Results};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyByteArray;
use std::io::{PipeReader, pipe};
use std::os::fd::AsRawFd;
use std::sync::Arc;

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
        let device = OpenDevice::of_model(&board, self.computed.name(), model).map_err(raised)?;
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
        let computed = Arc::new(Computed::new(map.name.to_string(), limit));
        let of_model = Arc::clone(&computed);
        let model = ApCtrlModel::new(map, move |call: &mut KernelCall<'_, '_>| {
            of_model.compute(call, &mut rings)
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
        let KernelJob { number, scalars, operands } = self.computed.take()?;
        let operands = operands.iter().map(|bytes| PyByteArray::new(py, bytes)).collect();
        Some((number, scalars, operands))
    }

    /// The operands of job `number` as they are now, and the words of its results.
    fn answer(&self, number: u64, operands: Vec<Bound<'_, PyByteArray>>, results: Results) {
        let operands: Vec<Vec<u8>> = operands.iter().map(|bytes| bytes.to_vec()).collect();
        self.computed.answer(number, Ok((operands, results)));
    }

    /// Why job `number` has no results.
    fn fail(&self, number: u64, why: String) {
        self.computed.answer(number, Err(why));
    }
}
