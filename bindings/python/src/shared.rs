//! A value that threads of Python share, and that one of them waits on.

use crate::computed::Computed;
use crate::error::{Refusal, raised};
use crate::lock::{Lock, Plain};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How long one poll lasts at most: then other threads have their turn, and Python sees Ctrl-C.
const SLICE: Duration = Duration::from_millis(20);

/// How long a thread that waits for a device sleeps where another thread wants the lock.
const GIVES_WAY: Duration = Duration::from_micros(100);

/// A value behind a lock. No thread waits for the lock, or for a device, with Python's own lock.
pub(crate) struct Shared<T> {
    value: Lock<T>,
    /// How many threads want it now.
    wanted: AtomicUsize,
    /// The kernel may block its users for milliseconds, so none of them keeps Python's own lock.
    may_stall: bool,
    /// A simulated device's function: its time does not count.
    computed: Option<Arc<Computed>>,
}

impl<T: Send> Shared<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self::stalling(value, false)
    }

    /// The same of a value that the kernel may hold a thread for: registers, while it resets the
    /// device.
    pub(crate) const fn stalling(value: T, may_stall: bool) -> Self {
        Self { value: Lock::new(value), wanted: AtomicUsize::new(0), may_stall, computed: None }
    }

    /// The same of a simulated device that a function computes.
    pub(crate) fn computed(self, computed: Option<Arc<Computed>>) -> Self {
        Self { computed, ..self }
    }

    fn waits<R: Plain>(&self, act: impl FnOnce(&mut T) -> R + Send) -> R {
        self.wanted.fetch_add(1, Ordering::Relaxed);
        self.value.with(|value| {
            self.wanted.fetch_sub(1, Ordering::Relaxed);
            act(value)
        })
    }

    /// Lets `act` use it, for something short, which calls nothing of Python's (lock.rs).
    pub(crate) fn with<R: Plain + Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&mut T) -> R + Send,
    ) -> R {
        if self.may_stall {
            return self.detached(py, act);
        }
        match self.value.try_with(act) {
            Ok(result) => result,
            Err(act) => self.detached(py, act),
        }
    }

    /// The same for what takes longer: other threads of Python go on.
    pub(crate) fn detached<R: Plain + Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&mut T) -> R + Send,
    ) -> R {
        py.detach(|| self.waits(act))
    }

    /// Looks until `look` finds something, for `timeout` at most; `None` when that is over. A
    /// simulated device's own time counts too, where it goes faster than the clock, and the time of
    /// its function does not.
    ///
    /// # Errors
    /// Those of `look`, or of Python's signals: KeyboardInterrupt.
    pub(crate) fn wait<R: Plain + Send>(
        &self,
        py: Python<'_>,
        timeout: Duration,
        mut look: impl FnMut(&mut T, Duration) -> Result<Option<R>, Refusal> + Send,
    ) -> PyResult<Option<R>> {
        let found = self.with(py, |value| look(value, Duration::ZERO))?;
        if found.is_some() || timeout.is_zero() {
            return Ok(found);
        }
        let (mut begun, mut waited) = (Instant::now(), Duration::ZERO);
        loop {
            if self.computed.as_ref().is_some_and(|computed| computed.is_busy()) {
                py.detach(|| thread::sleep(GIVES_WAY));
                (begun, waited) = (Instant::now(), Duration::ZERO);
            }
            let left = timeout.saturating_sub(waited.max(begun.elapsed()));
            let slice = left.min(SLICE);
            let found = py.detach(|| {
                if self.wanted.load(Ordering::Relaxed) > 0 {
                    thread::sleep(GIVES_WAY);
                }
                self.waits(|value| look(value, slice))
            })?;
            if found.is_some() || left.is_zero() {
                return Ok(found);
            }
            waited += slice;
            py.check_signals()?;
        }
    }
}

/// A limit in seconds, as Python gives it: 0 is one poll, and an hour is the most.
pub(crate) fn limit(timeout_s: f64) -> Result<Duration, Refusal> {
    let limit = Duration::try_from_secs_f64(timeout_s)
        .map_err(|_| Refusal::Value(format!("timeout={timeout_s}: {LIMIT}")))?;
    contigo::types::timeout_us(limit).map_err(raised)?;
    Ok(limit)
}

const LIMIT: &str = "seconds, from 0 to 3600; every wait has a limit";

/// An argument that is a limit: a number, and never `None`, which means no limit elsewhere.
pub(crate) fn seconds(timeout: &Bound<'_, PyAny>) -> PyResult<f64> {
    timeout.extract().map_err(|error: PyErr| {
        if error.is_instance_of::<PyTypeError>(timeout.py()) {
            PyTypeError::new_err(format!("timeout={timeout}: {LIMIT}"))
        } else {
            error
        }
    })
}

/// The same number, where it can be a limit: for an event loop's waits.
#[pyfunction]
pub(crate) fn _seconds(#[pyo3(from_py_with = seconds)] timeout: f64) -> Result<f64, Refusal> {
    limit(timeout).map(|_| timeout)
}
