//! A driver of a device, by its name, and the jobs that it is given.

use crate::{
    buffer::Buffer,
    ends::{Ends, Taker},
    error::{Refusal, of_class, raised, refused},
    handover::word,
    jobs::{End, Jobs, Record},
    mine::Mine,
    operand::given,
    shared::{Shared, limit, seconds},
};
use contigo::{Completion, OperandSpec, job::AnyDriver};
use contigo_objects::JOBS;
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::{PyDict, PyList, PyTuple},
};
use std::{borrow::Cow, ptr, sync::Arc, time::Duration};

/// `None`: it was closed.
pub(crate) type Core = Arc<Mine<Shared<Option<Jobs>>>>;

/// A driver of a device, opened by `device.driver(name)`. It takes as many jobs at once as the
/// device does, `depth`.
///
/// `close()`, the end of a `with`, and the end of its last handle stop the device. All buffers of
/// its jobs are the CPU's then. Those of a device that will not stop are lost, and never given to
/// anybody else.
#[pyclass(frozen, weakref, module = "contigo")]
pub(crate) struct Engine {
    core: Core,
    name: Cow<'static, str>,
    specs: Vec<OperandSpec>,
    depth: usize,
    /// Who calls its own `next`.
    taker: Taker,
}

impl Engine {
    pub(crate) fn new(
        name: impl Into<Cow<'static, str>>,
        driver: AnyDriver,
    ) -> Result<Self, Refusal> {
        let jobs = Jobs::new(driver).map_err(raised)?;
        let (specs, depth) = (jobs.specs(), jobs.depth());
        Ok(Self {
            core: Arc::new(Mine::new(Shared::new(Some(jobs)))),
            name: name.into(),
            specs,
            depth,
            taker: Taker::new(),
        })
    }

    pub(crate) fn submit(
        &self,
        py: Python<'_>,
        operands: &Bound<'_, PyAny>,
        words: &Bound<'_, PyTuple>,
        taker: Option<&Taker>,
    ) -> PyResult<Job> {
        let core = self.core.get()?;
        let mut all = Vec::with_capacity(self.specs.len());
        for (index, object) in operands.try_iter()?.enumerate() {
            all.push(given(&object?, index, &self.specs)?);
        }
        let words = words
            .iter()
            .enumerate()
            .map(|(index, word)| argument(index, &word))
            .collect::<PyResult<Vec<u32>>>()?;
        let record = core.with(py, |jobs| open(jobs)?.push(all, &words, taker))?;
        Ok(Job { core: Arc::clone(&self.core), record })
    }

    pub(crate) const fn core(&self) -> &Core {
        &self.core
    }

    fn job(&self, record: Arc<Record>) -> Job {
        Job { core: Arc::clone(&self.core), record }
    }

    pub(crate) fn next_of(
        &self,
        py: Python<'_>,
        taker: &Taker,
        timeout: f64,
    ) -> PyResult<Option<Done>> {
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
            Some(Ok(completion)) => Ok(Some(Done { completion, record })),
            Some(Err(failed)) => {
                let error = PyErr::from(failed);
                error.value(py).setattr("job", Bound::new(py, self.job(record))?)?;
                Err(error)
            }
            None => Ok(None),
        }
    }

    pub(crate) fn take_back_of(&self, py: Python<'_>, taker: &Taker) -> PyResult<Vec<Job>> {
        let records =
            self.core.get()?.with(py, |jobs| open(jobs).map(|jobs| jobs.take_back(taker)))?;
        Ok(records.into_iter().map(|record| self.job(record)).collect())
    }
}

fn open(jobs: &mut Option<Jobs>) -> Result<&mut Jobs, Refusal> {
    jobs.as_mut().ok_or_else(|| refused("this engine was closed"))
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

#[pymethods]
impl Engine {
    /// Gives the device a job: `operands`, a list of buffers or of parts of them (`buf.reads()`),
    /// as many as the driver has, and its argument words, 32 bits each. No array may look at a
    /// buffer. A device that has all the jobs it takes is an error.
    #[pyo3(signature = (operands, *words))]
    fn start(
        &self,
        py: Python<'_>,
        operands: &Bound<'_, PyAny>,
        words: &Bound<'_, PyTuple>,
    ) -> PyResult<Job> {
        self.submit(py, operands, words, None)
    }

    /// The same for who calls `next`.
    #[pyo3(signature = (operands, *words))]
    fn push(
        &self,
        py: Python<'_>,
        operands: &Bound<'_, PyAny>,
        words: &Bound<'_, PyTuple>,
    ) -> PyResult<Job> {
        self.submit(py, operands, words, Some(&self.taker))
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
        self.next_of(py, &self.taker, timeout)
    }

    /// Stops the device, whatever it is doing. Jobs that had ended stay good, the others are
    /// cancelled, and the buffers of all are the CPU's. A queue or a stream that had some of these
    /// raises once, in the thread of its loop. The next job starts the device again.
    fn stop(&self, py: Python<'_>) -> Result<(), Refusal> {
        let tell = |record: &Record| !record.is_of(&self.taker);
        self.core.get()?.detached(py, |jobs| jobs.as_mut().map_or(Ok(()), |jobs| jobs.stop(tell)))
    }

    /// For one more who takes the ends of its own jobs: a queue, or a stream.
    fn _ends(slf: Py<Self>) -> Ends {
        Ends::new(slf)
    }

    /// How often the device was stopped in all; None: this engine was closed.
    #[getter]
    fn _stops(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        Ok(self.core.get()?.with(py, |jobs| jobs.as_ref().map(|jobs| jobs.counts().stopped)))
    }

    /// The jobs that are in flight, in no order, also those of which the program has no `Job`.
    #[getter]
    fn jobs(&self, py: Python<'_>) -> PyResult<Vec<Job>> {
        let records =
            self.core.get()?.with(py, |jobs| jobs.as_ref().map_or_else(Vec::new, Jobs::flying));
        Ok(records.into_iter().map(|record| self.job(record)).collect())
    }

    /// The jobs that had not ended when the device was stopped, the oldest first; each once.
    fn take_back(&self, py: Python<'_>) -> PyResult<Vec<Job>> {
        self.take_back_of(py, &self.taker)
    }

    /// Readies the interrupt: the file descriptor that poll(2) finds readable when a job ends.
    /// None: this device has none here, and a program looks again and again. Then look (`next(0)`),
    /// and only then sleep.
    fn arm(&self, py: Python<'_>) -> Result<Option<i32>, Refusal> {
        self.core.get()?.with(py, |jobs| open(jobs)?.arm().map_err(raised))
    }

    /// Closes it where it is open, has no job, and each end was taken: was it so?
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
        self.depth
    }

    /// How many jobs are in flight.
    #[getter]
    fn in_flight(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.core.get()?.with(py, |jobs| jobs.as_ref().map_or(0, Jobs::in_flight)))
    }

    /// The operands of a job, a dict for each: `direction` ("reads", "writes", "both"), and
    /// `align`, `min` and `max`, all three in bytes.
    #[getter]
    fn operands<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for spec in &self.specs {
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
    /// device: `stopped`, how often it was; `ran_dry`, how often it was left without a job.
    #[getter]
    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counts = self.core.get()?.with(py, |jobs| open(jobs).map(|jobs| jobs.counts()))?;
        Ok(
            crate::shared::fields!(py, counts => pushed, completed, failed, cancelled, stopped, ran_dry),
        )
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
        let in_flight =
            self.core.get().map(|core| core.with(py, |jobs| jobs.as_ref().map(Jobs::in_flight)));
        let state = match in_flight {
            Ok(Some(in_flight)) => format!("{in_flight} of {} jobs in flight", self.depth),
            Ok(None) => "closed".into(),
            Err(_) => "another process's".into(),
        };
        format!("contigo.Engine('{}', operands={}, {state})", self.name, self.specs.len())
    }
}

/// A job that a device was given. Its buffers are the device's until it ended, or the device was
/// stopped; a job that was dropped goes on, and its buffers come back all the same.
#[pyclass(frozen, module = "contigo")]
pub(crate) struct Job {
    core: Core,
    record: Arc<Record>,
}

impl Job {
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
            self.core.get()?.with(py, |jobs| jobs.as_mut().map(|jobs| jobs.seen(&self.record)));
        }
        let record = Arc::clone(&self.record);
        self.record
            .completion()
            .map(|end| end.map(|completion| Done { completion, record }))
            .transpose()
    }

    fn stop(&self, py: Python<'_>) -> Result<(), Refusal> {
        let tell = |other: &Record| !ptr::eq(other, &*self.record);
        self.core.get()?.detached(py, |jobs| jobs.as_mut().map_or(Ok(()), |jobs| jobs.stop(tell)))
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
                let look = "give it more time, or look why nothing came (interrupt, clock, reset, the other side of a stream)";
                Err(of_class(
                    "Timeout",
                    format!(
                        "the job did not end within {timeout} s; the device was stopped: {look}"
                    ),
                )
                .into())
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

    /// Has it ended, well or not? Looks, and does not wait.
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

    /// `await job`: its end, as `wait` returns or raises it, while other tasks run. An hour at most;
    /// `asyncio.wait_for` gives it less, and once it waits stops the device then, as `wait` does.
    fn __await__<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py()
            .import("contigo.queues")?
            .getattr("_ended")?
            .call1((slf,))?
            .call_method0("__await__")
    }

    /// As `Engine.arm`; None where the engine was closed, too: this job has ended then.
    fn _arm(&self, py: Python<'_>) -> Result<Option<i32>, Refusal> {
        self.core
            .get()?
            .with(py, |jobs| jobs.as_mut().map_or(Ok(None), |jobs| jobs.arm().map_err(raised)))
    }

    /// Its buffers, in their order.
    #[getter]
    fn buffers(&self, py: Python<'_>) -> Vec<Py<Buffer>> {
        self.record.buffers.iter().map(|buffer| buffer.clone_ref(py)).collect()
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
    pub(crate) fn record(&self) -> Arc<Record> {
        Arc::clone(&self.record)
    }
}

#[pymethods]
impl Done {
    /// The job's buffers, in their order.
    #[getter]
    fn buffers(&self, py: Python<'_>) -> Vec<Py<Buffer>> {
        self.record.buffers.iter().map(|buffer| buffer.clone_ref(py)).collect()
    }

    /// How many bytes the device wrote, from the beginning of the operand that it writes. None: it
    /// does not tell.
    #[getter]
    fn nbytes(&self) -> Option<usize> {
        self.completion.bytes
    }

    /// Has the operand that it received into the packet's end? False: the packet was longer, and
    /// its rest comes in the next job. None: the device receives no packets.
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
