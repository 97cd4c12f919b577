//! A driver of a device, opened by its name, and the ends of the jobs that it is given: those of a
//! queue or a stream, or the engine's own.

use crate::computed::Computed;
use crate::error::{Refusal, raised, refused};
use crate::job::{Core, Done, Job, open};
use crate::jobs::Jobs;
use crate::lock::Plain;
use crate::memory::word;
use crate::record::Taker;
use crate::shared::{limit, seconds};
use contigo::job::AnyDriver;
use contigo_objects::JOBS;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict, PyList, PyTuple};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

/// The ends of a queue's jobs, or of a stream's: of those that were pushed here, and of no others.
#[pyclass(frozen, module = "contigo")]
pub(crate) struct Ends {
    core: Arc<Core>,
    /// `None`: this is being dropped.
    taker: Option<Taker>,
}

impl Ends {
    fn new(core: &Arc<Core>) -> Self {
        Self { core: Arc::clone(core), taker: Some(Taker::new()) }
    }

    fn taker(&self) -> Result<&Taker, Refusal> {
        self.taker.as_ref().ok_or_else(|| refused("this queue is gone"))
    }

    /// Lets `act` use the jobs and the taker; `None` where the engine was closed.
    fn with<R: Plain + Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&mut Jobs, &Taker) -> R + Send,
    ) -> Result<Option<R>, Refusal> {
        let taker = self.taker()?;
        self.core.with(py, |jobs| act(jobs, taker))
    }

    fn next_done(&self, py: Python<'_>, timeout: f64) -> PyResult<Option<Done>> {
        let taker = self.taker()?;
        let found = self.core.get()?.wait(py, limit(timeout)?, |jobs, slice| {
            let (jobs, mut slice) = (open(jobs)?, slice);
            // Each look but the last one brings a job's end, of this taker or another.
            for _ in 0..=JOBS {
                if let Some(ended) = jobs.next_ended(taker)? {
                    return Ok(Some(Some(ended)));
                }
                let waits = jobs.in_flight_of(taker) > 0;
                if !jobs.look(if waits { slice } else { Duration::ZERO })? {
                    return Ok((!waits).then_some(None));
                }
                slice = Duration::ZERO;
            }
            Ok(None)
        })?;
        let Some(record) = found.flatten() else { return Ok(None) };
        match record.completion() {
            Some(Ok(completion)) => Ok(Some(Done::of(completion, record))),
            Some(Err(failed)) => {
                let error = PyErr::from(failed);
                let job = Bound::new(py, Job::of(&self.core, record))?;
                error.value(py).setattr("job", job)?;
                Err(error)
            }
            None => Ok(None),
        }
    }
}

impl Drop for Ends {
    /// Its jobs go on, and their ends are dropped. Those that it kept are let go of.
    #[allow(
        clippy::disallowed_methods,
        reason = "Python frees it, and has its lock; this is behind no lock of ours"
    )]
    fn drop(&mut self) {
        self.taker = None;
        if let Ok(jobs) = self.core.get() {
            // Dropped where Python's lock is held: the buffers go home.
            Python::attach(|py| drop(jobs.with(py, |jobs| jobs.as_mut().map(Jobs::unwanted))));
        }
    }
}

#[pymethods]
impl Ends {
    /// `Engine.push`.
    #[pyo3(signature = (operands, *words, more=false))]
    fn push(
        &self,
        py: Python<'_>,
        operands: &Bound<'_, PyAny>,
        words: &Bound<'_, PyTuple>,
        more: bool,
    ) -> PyResult<Job> {
        self.core.submit(py, (operands, words), more, Some(self.taker()?))
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
        let Some(done) = self.next_done(py, timeout)? else { return Ok(None) };
        let done = Py::new(py, done)?;
        taken.map_or(Ok(()), |taken| taken.append(&done))?;
        Ok(Some(done))
    }

    /// Those of `taken` that the caller did not get come from `next` again, or from `take_back`
    /// behind `leave`. The list is empty then.
    fn untake(&self, py: Python<'_>, taken: &Bound<'_, PyList>) -> PyResult<()> {
        let records = taken
            .iter()
            .map(|done| Ok(done.cast::<Done>()?.get().record()))
            .collect::<PyResult<Vec<_>>>()?;
        self.with(py, |jobs, _| jobs.untake(records))?;
        taken.del_slice(0, taken.len())
    }

    /// `Engine.take_back`.
    fn take_back(&self, py: Python<'_>) -> Result<Vec<Job>, Refusal> {
        let taker = self.taker()?;
        let records =
            self.core.get()?.with(py, |jobs| open(jobs).map(|jobs| jobs.take_back(taker)))?;
        Ok(records.into_iter().map(|record| Job::of(&self.core, record)).collect())
    }

    /// `Engine.stop`. Takers of other jobs hear of it.
    fn stop(&self, py: Python<'_>) -> Result<(), Refusal> {
        let taker = self.taker()?;
        self.core.stop(py, |record| !record.is_of(taker))
    }

    /// A loop was left: what it has not taken comes from `take_back`.
    fn leave(&self, py: Python<'_>) -> Result<(), Refusal> {
        self.with(py, |jobs, taker| jobs.leave(taker)).map(drop)
    }

    /// Drops the jobs that have come out, and faults not yet raised: a stream's. Refused where the
    /// device would not stop.
    fn forget(&self, py: Python<'_>) -> Result<(), Refusal> {
        // Dropped where Python's lock is held: the buffers go home.
        self.with(py, |jobs, taker| jobs.forget(taker))?.transpose().map(drop)
    }

    /// Whether the function of a simulated kernel computes a job now: its time does not count.
    fn computes(&self, py: Python<'_>) -> Result<bool, Refusal> {
        Ok(self.core.with(py, |jobs| jobs.computes())?.unwrap_or(false))
    }

    /// How many of its jobs are in flight.
    #[getter]
    fn in_flight(&self, py: Python<'_>) -> Result<usize, Refusal> {
        Ok(self.with(py, |jobs, taker| jobs.in_flight_of(taker))?.unwrap_or(0))
    }

    /// The same, with those that another's look has brought out, and that wait here.
    #[getter]
    fn expected(&self, py: Python<'_>) -> Result<usize, Refusal> {
        Ok(self.with(py, |jobs, taker| jobs.expected_of(taker))?.unwrap_or(0))
    }
}

/// A driver of a device, opened by `device.driver(name)`. It takes as many jobs at once as the
/// device does, `depth`.
///
/// `close()`, the end of a `with`, and the end of its last handle stop the device. All buffers of
/// its jobs are the CPU's then. Those of a device that will not stop are lost, and never used
/// again.
#[pyclass(frozen, weakref, module = "contigo")]
pub(crate) struct Engine {
    core: Arc<Core>,
    name: Cow<'static, str>,
    /// Of its own `push` and `next`.
    own: Ends,
}

impl Engine {
    pub(crate) fn new(
        name: impl Into<Cow<'static, str>>,
        driver: AnyDriver,
        computed: Option<Arc<Computed>>,
    ) -> Result<Self, Refusal> {
        let core = Core::new(driver, computed)?;
        let own = Ends::new(&core);
        Ok(Self { core, name: name.into(), own })
    }
}

#[pymethods]
impl Engine {
    /// Gives the device a job: `operands`, a list of buffers or of parts of them (`buf.reads()`),
    /// as many as the driver has, and its argument words, 32 bits each. No array may look at a
    /// buffer. A device that has all the jobs it takes is an error. With `more`, other jobs follow
    /// at once, and a driver with descriptors rings one doorbell for all of them: at the next job
    /// without it, or the next wait.
    #[pyo3(signature = (operands, *words, more=false))]
    fn start(
        &self,
        py: Python<'_>,
        operands: &Bound<'_, PyAny>,
        words: &Bound<'_, PyTuple>,
        more: bool,
    ) -> PyResult<Job> {
        self.core.submit(py, (operands, words), more, None)
    }

    /// The same, and `next` gives its end.
    #[pyo3(signature = (operands, *words, more=false))]
    fn push(
        &self,
        py: Python<'_>,
        operands: &Bound<'_, PyAny>,
        words: &Bound<'_, PyTuple>,
        more: bool,
    ) -> PyResult<Job> {
        self.own.push(py, operands, words, more)
    }

    /// The next pushed job that ended; None where none did in `timeout` seconds, or none is in
    /// flight. Nothing is stopped. A job that failed raises, with the attribute `job`; the others
    /// go on. Where the device had to be stopped, this raises once, and the jobs that had not ended
    /// come from `take_back`.
    #[pyo3(signature = (timeout=1.0))]
    fn next(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = seconds)] timeout: f64,
    ) -> PyResult<Option<Done>> {
        self.own.next_done(py, timeout)
    }

    /// Stops the device, whatever it is doing. Jobs that had ended stay good, the others are
    /// cancelled, and the buffers of all are the CPU's. A queue or a stream that had some of these
    /// raises once, in the thread of its loop. The next job starts the device again.
    fn stop(&self, py: Python<'_>) -> Result<(), Refusal> {
        self.own.stop(py)
    }

    /// The ends of one more taker: a queue, or a stream.
    fn _ends(&self) -> Ends {
        Ends::new(&self.core)
    }

    /// How often the device was stopped in all; None: this engine was closed.
    #[getter]
    fn _stops(&self, py: Python<'_>) -> Result<Option<u64>, Refusal> {
        self.core.with(py, |jobs| jobs.counts().stopped)
    }

    /// The jobs that are in flight, in no order, also those of which the program has no `Job`.
    #[getter]
    fn jobs(&self, py: Python<'_>) -> Result<Vec<Job>, Refusal> {
        let records = self.core.with(py, |jobs| jobs.flying())?.unwrap_or_default();
        Ok(records.into_iter().map(|record| Job::of(&self.core, record)).collect())
    }

    /// The jobs that had not ended when the device was stopped, the oldest first; each once.
    fn take_back(&self, py: Python<'_>) -> Result<Vec<Job>, Refusal> {
        self.own.take_back(py)
    }

    /// Readies the interrupt: the file descriptor that poll(2) finds readable when a job ends.
    /// None: this device has none here, and a program looks again and again. Then look (`next(0)`),
    /// and only then sleep.
    fn arm(&self, py: Python<'_>) -> Result<Option<i32>, Refusal> {
        self.core.get()?.with(py, |jobs| open(jobs)?.arm().map_err(raised))
    }

    /// Closes it where it is open, has no job, and each end was taken; whether that was so.
    fn _close_if_idle(&self, py: Python<'_>) -> Result<bool, Refusal> {
        self.core.get()?.detached(py, |jobs| {
            let Some(open) = jobs.as_mut() else { return Ok(false) };
            if !open.is_idle()? {
                return Ok(false);
            }
            open.stop(|_| false)?;
            *jobs = None;
            Ok(true)
        })
    }

    /// Stops the device and lets go of it. A device that will not stop stays open.
    fn close(&self, py: Python<'_>) -> Result<(), Refusal> {
        self.core.get()?.detached(py, |jobs| {
            jobs.as_mut().map_or(Ok(()), |jobs| jobs.stop(|_| false))?;
            *jobs = None;
            Ok(())
        })
    }

    /// The driver's name.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// How many jobs the device takes at once.
    #[getter]
    fn depth(&self) -> usize {
        self.core.depth
    }

    /// Whether each descriptor is a sync: "snooped" (the port snoops) or "coherent" (the CPU does
    /// not cache them), no; "synced", yes, and why there is no coherent memory, where the kernel
    /// says it. None: the driver has no memory of its own, or is closed.
    #[getter]
    fn descriptors(&self, py: Python<'_>) -> Result<Option<String>, Refusal> {
        let descriptors = self.core.with(py, |jobs| jobs.descriptors())?.flatten();
        Ok(descriptors.map(|descriptors| descriptors.to_string()))
    }

    /// How many jobs are in flight.
    #[getter]
    fn in_flight(&self, py: Python<'_>) -> Result<usize, Refusal> {
        Ok(self.core.with(py, |jobs| jobs.in_flight())?.unwrap_or(0))
    }

    /// The operands of a job, a dict for each: `direction` ("reads", "writes", "both"), and
    /// `align`, `min` and `max`, all three in bytes.
    #[getter]
    fn operands<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for spec in &self.core.specs {
            let dict = PyDict::new(py);
            dict.set_item("direction", word(spec.direction))?;
            dict.set_item("align", spec.align_bytes)?;
            dict.set_item("min", spec.min_bytes)?;
            dict.set_item("max", spec.max_bytes)?;
            list.append(dict)?;
        }
        Ok(list)
    }

    /// The counts of the jobs: `pushed`, `completed`, `failed` (alone), `cancelled`; and of the
    /// device: `stopped`, how often it was; `underruns`, how often it was left without a job.
    #[getter]
    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counts = self.core.get()?.with(py, |jobs| open(jobs).map(|jobs| jobs.counts()))?;
        let counts = [
            ("pushed", counts.pushed),
            ("completed", counts.completed),
            ("failed", counts.failed),
            ("cancelled", counts.cancelled),
            ("stopped", counts.stopped),
            ("underruns", counts.underruns),
        ];
        counts.into_py_dict(py)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<bool> {
        self.close(py)?;
        Ok(false)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let Core { specs, depth, .. } = &*self.core;
        let state = match self.core.with(py, |jobs| jobs.in_flight()) {
            Ok(Some(in_flight)) => format!("{in_flight} of {depth} jobs in flight"),
            Ok(None) => "closed".into(),
            Err(_) => "another process's".into(),
        };
        format!("contigo.Engine('{}', operands={}, {state})", self.name, specs.len())
    }
}
