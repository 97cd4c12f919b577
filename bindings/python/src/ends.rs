//! Whose jobs' ends a queue or a stream gives: its own.

use crate::{
    engine::{Done, Engine, Job},
    error::{Refusal, refused},
    jobs::{Jobs, Record},
    shared::seconds,
};
use pyo3::{
    prelude::*,
    types::{PyList, PyTuple},
};
use std::{
    ptr,
    sync::{Arc, Weak},
};

/// Who takes the ends of queued jobs: a queue, a stream, or the engine itself. None takes those of
/// another, and what is kept for one goes with it.
pub(crate) struct Taker(Arc<()>);

impl Taker {
    pub(crate) fn new() -> Self {
        Self(Arc::new(()))
    }

    /// As a record names it.
    pub(crate) fn name(&self) -> Weak<()> {
        Arc::downgrade(&self.0)
    }

    pub(crate) fn is(&self, taker: &Weak<()>) -> bool {
        ptr::eq(taker.as_ptr(), Arc::as_ptr(&self.0))
    }
}

/// The ends of a queue's jobs, or of a stream's: of those that were pushed here, and of no others.
#[pyclass(frozen, module = "contigo")]
pub(crate) struct Ends {
    engine: Py<Engine>,
    /// `None`: this is being dropped.
    taker: Option<Taker>,
}

impl Ends {
    pub(crate) fn new(engine: Py<Engine>) -> Self {
        Self { engine, taker: Some(Taker::new()) }
    }

    fn parts(&self) -> Result<(&Engine, &Taker), Refusal> {
        let taker = self.taker.as_ref().ok_or_else(|| refused("this queue is gone"))?;
        Ok((self.engine.get(), taker))
    }
}

impl Drop for Ends {
    /// Its jobs go on, and no one gets their ends. Those that it kept are let go of.
    #[allow(
        clippy::disallowed_methods,
        reason = "Python frees it, and has its lock; this is behind no lock of ours"
    )]
    fn drop(&mut self) {
        self.taker = None;
        if let Ok(core) = self.engine.get().core().get() {
            // Dropped where Python's lock is held: the buffers go home.
            Python::attach(|py| drop(core.with(py, |jobs| jobs.as_mut().map(Jobs::unwanted))));
        }
    }
}

#[pymethods]
impl Ends {
    /// `Engine.push`.
    #[pyo3(signature = (operands, *words))]
    fn push(
        &self,
        py: Python<'_>,
        operands: &Bound<'_, PyAny>,
        words: &Bound<'_, PyTuple>,
    ) -> PyResult<Job> {
        let (engine, taker) = self.parts()?;
        engine.submit(py, operands, words, Some(taker))
    }

    /// `Engine.next`. What it returns is in the list `taken` then: Ctrl-C may come before the
    /// caller has it.
    #[pyo3(signature = (timeout, taken=None))]
    fn next(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = seconds)] timeout: f64,
        taken: Option<&Bound<'_, PyList>>,
    ) -> PyResult<Option<Py<Done>>> {
        let (engine, taker) = self.parts()?;
        let Some(done) = engine.next_of(py, taker, timeout)? else { return Ok(None) };
        let done = Py::new(py, done)?;
        taken.map_or(Ok(()), |taken| taken.append(&done))?;
        Ok(Some(done))
    }

    /// Those of `taken` that the caller did not get come from `next` again, or from `take_back`
    /// behind `leave`. The list is empty then.
    fn untake(&self, py: Python<'_>, taken: &Bound<'_, PyList>) -> PyResult<()> {
        let (engine, _) = self.parts()?;
        let records = taken
            .iter()
            .map(|done| Ok(done.cast::<Done>()?.get().record()))
            .collect::<PyResult<Vec<_>>>()?;
        engine.core().get()?.with(py, |jobs| jobs.as_mut().map(|jobs| jobs.untake(records)));
        taken.del_slice(0, taken.len())
    }

    /// `Engine.take_back`.
    fn take_back(&self, py: Python<'_>) -> PyResult<Vec<Job>> {
        let (engine, taker) = self.parts()?;
        engine.take_back_of(py, taker)
    }

    /// `Engine.stop`. Takers of other jobs hear of it.
    fn stop(&self, py: Python<'_>) -> Result<(), Refusal> {
        let (engine, taker) = self.parts()?;
        let tell = |record: &Record| !record.is_of(taker);
        engine
            .core()
            .get()?
            .detached(py, |jobs| jobs.as_mut().map_or(Ok(()), |jobs| jobs.stop(tell)))
    }

    /// A loop was left: what it has not taken comes from `take_back`.
    fn leave(&self, py: Python<'_>) -> Result<(), Refusal> {
        let (engine, taker) = self.parts()?;
        engine.core().get()?.with(py, |jobs| jobs.as_mut().map(|jobs| jobs.leave(taker)));
        Ok(())
    }

    /// Drops the jobs that have come out, and faults not yet raised: a stream's. Refused where the
    /// device would not stop.
    fn forget(&self, py: Python<'_>) -> Result<(), Refusal> {
        let (engine, taker) = self.parts()?;
        // Dropped where Python's lock is held: the buffers go home.
        engine
            .core()
            .get()?
            .with(py, |jobs| jobs.as_mut().map(|jobs| jobs.forget(taker)))
            .transpose()
            .map(drop)
    }

    /// How many of its jobs are in flight.
    #[getter]
    fn in_flight(&self, py: Python<'_>) -> PyResult<usize> {
        let (engine, taker) = self.parts()?;
        Ok(engine
            .core()
            .get()?
            .with(py, |jobs| jobs.as_ref().map_or(0, |jobs| jobs.in_flight_of(taker))))
    }

    /// The same, with those that another's look has brought out, and that wait here.
    #[getter]
    fn expected(&self, py: Python<'_>) -> PyResult<usize> {
        let (engine, taker) = self.parts()?;
        Ok(engine
            .core()
            .get()?
            .with(py, |jobs| jobs.as_ref().map_or(0, |jobs| jobs.expected_of(taker))))
    }
}
