//! A job of an engine as Python has it: what it is given, and its end.

use crate::buffer::{Buffer, Operand};
use crate::computed::Computed;
use crate::error::{Refusal, of_class, raised, refused};
use crate::jobs::{JobOperand, Jobs};
use crate::local::ProcessLocal;
use crate::lock::{Kept, Plain};
use crate::record::{End, Record, Taker};
use crate::shared::{Shared, limit, seconds};
use contigo::job::AnyDriver;
use contigo::{Completion, Direction, OperandSpec};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

/// A driver and its jobs: shared by the engine, its queues and its jobs. The device is stopped with
/// the last of them.
pub(crate) struct Core {
    /// `None`: it was closed.
    jobs: ProcessLocal<Shared<Option<Jobs>>>,
    pub(crate) specs: Vec<OperandSpec>,
    pub(crate) depth: usize,
}

impl Core {
    pub(crate) fn new(
        driver: AnyDriver,
        computed: Option<Arc<Computed>>,
    ) -> Result<Arc<Self>, Refusal> {
        let jobs = Jobs::new(driver, computed.clone()).map_err(raised)?;
        let (specs, depth) = (jobs.specs(), jobs.depth());
        let jobs = ProcessLocal::new(Shared::new(Some(jobs)).computed(computed));
        Ok(Arc::new(Self { jobs, specs, depth }))
    }

    /// The jobs: `ForkedError` in a child.
    pub(crate) fn get(&self) -> Result<&Shared<Option<Jobs>>, Refusal> {
        self.jobs.get()
    }

    /// Lets `act` use the jobs; `None` where the engine was closed.
    pub(crate) fn with<R: Plain + Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&mut Jobs) -> R + Send,
    ) -> Result<Option<R>, Refusal> {
        Ok(self.get()?.with(py, |jobs| jobs.as_mut().map(act)))
    }

    /// Gives the device a job.
    pub(crate) fn submit(
        self: &Arc<Self>,
        py: Python<'_>,
        (operands, words): (&Bound<'_, PyAny>, &Bound<'_, PyTuple>),
        more: bool,
        taker: Option<&Taker>,
    ) -> PyResult<Job> {
        let jobs = self.get()?;
        let mut all = Vec::with_capacity(self.specs.len());
        for (index, object) in operands.try_iter()?.enumerate() {
            all.push(operand(&object?, index, &self.specs)?);
        }
        let words = words.iter().enumerate().map(|(index, word)| argument(index, &word));
        let words = words.collect::<PyResult<Vec<u32>>>()?;
        let record = jobs.with(py, |jobs| open(jobs)?.push(all, &words, more, taker))?;
        Ok(Job::of(self, record))
    }

    /// Stops the device. The takers of jobs for which `tell` is true hear of it.
    pub(crate) fn stop(
        &self,
        py: Python<'_>,
        tell: impl Fn(&Record) -> bool + Send,
    ) -> Result<(), Refusal> {
        self.get()?.detached(py, |jobs| jobs.as_mut().map_or(Ok(()), |jobs| jobs.stop(tell)))
    }
}

pub(crate) fn open(jobs: &mut Option<Jobs>) -> Result<&mut Jobs, Refusal> {
    jobs.as_mut().ok_or_else(|| refused("this engine was closed"))
}

/// Reads the operand number `index` of `specs` that a job is given: a buffer, or a part of one.
fn operand(object: &Bound<'_, PyAny>, index: usize, specs: &[OperandSpec]) -> PyResult<JobOperand> {
    if let Ok(buffer) = object.cast::<Buffer>() {
        // One operand too many is refused with all of them.
        let direction = specs.get(index).map_or(Direction::Bidirectional, |spec| spec.direction);
        return Ok((Kept::new(buffer.clone().unbind()), 0..buffer.get().len_bytes(), direction));
    }
    let operand = object.cast::<Operand>().map_err(|_| {
        let kind = object.get_type().name().map_or_else(|_| "it".into(), |name| name.to_string());
        PyTypeError::new_err(format!(
            "operand {index}: {kind} is no buffer of DMA memory: region.allocate(shape, dtype) \
             makes one, and buf.reads(), buf.writes() name a part of one"
        ))
    })?;
    let Operand { buffer, bytes, direction } = operand.get();
    Ok((Kept::new(buffer.clone_ref(object.py())), bytes.clone(), *direction))
}

/// A word of 32 bits; a negative number as C has it.
fn argument(index: usize, word: &Bound<'_, PyAny>) -> PyResult<u32> {
    let text = || {
        format!(
            "argument word {index} is {word}: it is an integer of 32 bits, from -2**31 to 2**32 - 1"
        )
    };
    match word.extract::<i64>() {
        Err(error) if error.is_instance_of::<PyTypeError>(word.py()) => {
            Err(PyTypeError::new_err(text()))
        }
        Err(_) => Err(PyValueError::new_err(text())),
        Ok(value) => {
            let word =
                u32::try_from(value).or_else(|_| i32::try_from(value).map(i32::cast_unsigned));
            word.map_err(|_| PyValueError::new_err(text()))
        }
    }
}

/// A job that a device was given. Its buffers are the device's until it ended, or the device was
/// stopped; a job that was dropped goes on, and its buffers come back all the same.
#[pyclass(frozen, module = "contigo")]
pub(crate) struct Job {
    core: Arc<Core>,
    record: Arc<Record>,
}

impl Job {
    pub(crate) fn of(core: &Arc<Core>, record: Arc<Record>) -> Self {
        Self { core: Arc::clone(core), record }
    }

    /// Waits, and stops nothing. The record says how it ended.
    fn ended(&self, py: Python<'_>, timeout: Duration) -> PyResult<bool> {
        let core = self.core.get()?;
        if self.record.end().is_none() {
            core.wait(py, timeout, |jobs, slice| {
                if self.record.end().is_none() {
                    open(jobs)?.look(slice)?;
                }
                Ok(self.record.end().map(drop))
            })?;
        }
        Ok(self.record.end().is_some())
    }

    /// Its end, where it has ended.
    fn result(&self, py: Python<'_>) -> Result<Option<Done>, Refusal> {
        if self.record.is_kept() {
            self.core.with(py, |jobs| jobs.seen(&self.record))?;
        }
        let record = Arc::clone(&self.record);
        self.record
            .completion()
            .map(|end| end.map(|completion| Done { completion, record }))
            .transpose()
    }

    fn stop(&self, py: Python<'_>) -> Result<(), Refusal> {
        self.core.stop(py, |other| !ptr::eq(other, &*self.record))
    }
}

#[pymethods]
impl Job {
    /// Waits for its end, at most `timeout` seconds: 0 to 3,600, and never without a limit. After
    /// that, and after Ctrl-C, the device is stopped, with all other jobs of its engine, and this
    /// raises `TimeoutError`. Queues and streams that had jobs of these raise once. Other threads
    /// go on meanwhile.
    #[pyo3(signature = (timeout=1.0))]
    fn wait(&self, py: Python<'_>, #[pyo3(from_py_with = seconds)] timeout: f64) -> PyResult<Done> {
        let ended = self.ended(py, limit(timeout)?);
        if !matches!(ended, Ok(true)) {
            self.stop(py)?;
        }
        match (ended?, self.record.end()) {
            (false, Some(End::Cancelled) | None) => {
                let text = format!(
                    "the job did not end within {timeout} s; the device was stopped: give it more \
                     time, or look why nothing came (interrupt, clock, reset, the other side of a \
                     stream)"
                );
                Err(of_class("Timeout", text).into())
            }
            _ => Ok(self.result(py)?.ok_or_else(|| refused("the job has not ended"))?),
        }
    }

    /// Waits for its end, at most `timeout` seconds, as in `wait`: None where it goes on.
    #[pyo3(signature = (timeout=0.0))]
    fn wait_for(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = seconds)] timeout: f64,
    ) -> PyResult<Option<Done>> {
        Ok(if self.ended(py, limit(timeout)?)? { self.result(py)? } else { None })
    }

    /// Whether it has ended, well or not. Looks, and does not wait.
    fn done(&self, py: Python<'_>) -> PyResult<bool> {
        self.ended(py, Duration::ZERO)
    }

    /// Stops the device, with all jobs of its engine, unless this one has ended. Its buffers are
    /// the CPU's. Queues and streams that had other jobs of these raise once.
    fn cancel(&self, py: Python<'_>) -> PyResult<()> {
        if !self.ended(py, Duration::ZERO)? {
            self.stop(py)?;
        }
        Ok(())
    }

    /// `await job`: its end, as `wait` returns or raises it, while other tasks run. An hour at
    /// most; `asyncio.wait_for` gives it less, and once it waits stops the device then, as `wait`
    /// does.
    fn __await__<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py()
            .import("contigo.queues")?
            .getattr("_ended")?
            .call1((slf,))?
            .call_method0("__await__")
    }

    /// As `Ends.computes`.
    fn _computes(&self, py: Python<'_>) -> Result<bool, Refusal> {
        Ok(self.core.with(py, |jobs| jobs.computes())?.unwrap_or(false))
    }

    /// As `Engine.arm`; None where the engine was closed, too: this job has ended then.
    fn _arm(&self, py: Python<'_>) -> Result<Option<i32>, Refusal> {
        let armed = self.core.with(py, |jobs| jobs.arm().map_err(raised))?;
        armed.unwrap_or(Ok(None))
    }

    /// Its buffers, in their order.
    #[getter]
    fn buffers(&self, py: Python<'_>) -> Vec<Py<Buffer>> {
        self.record.handles(py)
    }

    fn __repr__(&self) -> &'static str {
        match self.record.end() {
            None => "contigo.Job(in flight)",
            Some(End::Done(_)) => "contigo.Job(done)",
            Some(End::Failed(..)) => "contigo.Job(failed)",
            Some(End::Cancelled) => "contigo.Job(cancelled)",
        }
    }
}

/// A job that ended well. Its buffers are the CPU's.
#[pyclass(frozen, module = "contigo")]
pub(crate) struct Done {
    completion: Completion,
    record: Arc<Record>,
}

impl Done {
    pub(crate) fn of(completion: Completion, record: Arc<Record>) -> Self {
        Self { completion, record }
    }

    pub(crate) fn record(&self) -> Arc<Record> {
        Arc::clone(&self.record)
    }
}

#[pymethods]
impl Done {
    /// The job's buffers, in their order.
    #[getter]
    fn buffers(&self, py: Python<'_>) -> Vec<Py<Buffer>> {
        self.record.handles(py)
    }

    /// How many bytes the device wrote, from the beginning of the operand that it writes. None: it
    /// does not tell.
    #[getter]
    fn nbytes(&self) -> Option<usize> {
        self.completion.bytes
    }

    /// Whether the operand that it received into has the packet's end. False: the packet was
    /// longer, and its rest comes in the next job. None: the device receives no packets.
    #[getter]
    fn last(&self) -> Option<bool> {
        self.completion.last
    }

    /// The device's status of this job, as the driver's documentation has it.
    #[getter]
    fn status(&self) -> u32 {
        self.completion.status
    }

    /// The rest that the device says, four words: a kernel's return value, a packet's user words.
    #[getter]
    fn words<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.completion.words)
    }

    fn __repr__(&self) -> String {
        let Completion { bytes, status, words, .. } = self.completion;
        let bytes = bytes.map_or_else(|| "None".into(), |bytes| bytes.to_string());
        format!("contigo.Done(nbytes={bytes}, status={status:#x}, words={words:?})")
    }
}
