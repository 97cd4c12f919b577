//! The runtime's errors as Python's exceptions: the same words and numbers, in the classes of
//! `contigo/errors.py`.

use crate::lock::{Plain, held};
use contigo::Error;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::borrow::Cow;

/// ENOENT and ENODEV, EPERM and EACCES: a failed call is of the class that Python gives its errno.
const NOT_FOUND: [i32; 2] = [2, 19];
const NOT_PERMITTED: [i32; 2] = [1, 13];
const TIMED_OUT: i32 = 110;

/// Why something was refused. It has nothing of Python's, so that it may be made under a lock; `?`
/// makes the exception of it when the lock is free (lock.rs).
pub(crate) enum Refusal {
    /// The runtime's, in these words.
    Runtime(Error, String),
    /// Of Python's own side: the class of `contigo/errors.py`, without "Error".
    Ours(&'static str, Cow<'static, str>),
    /// Python's own ValueError.
    Value(String),
}

impl Plain for Refusal {}

/// The exception that a Python programmer expects.
pub(crate) fn raised(error: impl Into<Error>) -> Refusal {
    let error = error.into();
    raised_as(error, error.to_string())
}

/// The same, with other words for it.
pub(crate) const fn raised_as(error: Error, text: String) -> Refusal {
    Refusal::Runtime(error, text)
}

/// A refusal of Python's own side.
pub(crate) fn refused(text: impl Into<Cow<'static, str>>) -> Refusal {
    of_class("Contigo", text)
}

/// The same, of a class of `contigo/errors.py`.
pub(crate) fn of_class(class: &'static str, text: impl Into<Cow<'static, str>>) -> Refusal {
    Refusal::Ours(class, text.into())
}

impl From<Refusal> for PyErr {
    #[allow(
        clippy::disallowed_methods,
        reason = "the one place where a thread asks for Python's lock"
    )]
    fn from(refusal: Refusal) -> Self {
        debug_assert!(!held(), "an exception is made under a lock");
        Python::attach(|py| refusal.exception(py).unwrap_or_else(|failed| failed))
    }
}

impl Refusal {
    fn exception(self, py: Python<'_>) -> PyResult<PyErr> {
        let (error, text) = match self {
            Self::Value(text) => return Ok(PyValueError::new_err(text)),
            Self::Ours(class, text) => {
                return Ok(PyErr::from_value(class_of(py, class)?.call1((text,))?));
            }
            Self::Runtime(error, text) => (error, text),
        };
        let class = match (error.row().class, error.errno()) {
            ("OS", errno) if NOT_FOUND.contains(&errno) => "NotFound",
            ("OS", errno) if NOT_PERMITTED.contains(&errno) => "Permission",
            ("OS", TIMED_OUT) => "Timeout",
            (class, _) => class,
        };
        let class = class_of(py, class)?;
        // A failed call has its errno where Python looks for it.
        let exception = if error.row().class == "OS" {
            class.call1((error.errno(), text))?
        } else {
            class.call1((text,))?
        };
        exception.setattr("code", error.row().name)?;
        exception.setattr("kind", error.kind().name())?;
        exception.setattr("errno", error.errno())?;
        Ok(PyErr::from_value(exception))
    }
}

fn class_of<'py>(py: Python<'py>, class: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("contigo.errors")?.getattr(format!("{class}Error"))
}
