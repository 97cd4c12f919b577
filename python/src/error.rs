//! The runtime's errors as Python's exceptions: the same words and numbers, in the classes of
//! `contigo/errors.py`.

use contigo::Error;
use pyo3::prelude::*;

/// ENOENT and ENODEV, EPERM and EACCES: a failed call is of the class that Python gives its errno.
const NOT_FOUND: [i32; 2] = [2, 19];
const NOT_PERMITTED: [i32; 2] = [1, 13];
const TIMED_OUT: i32 = 110;

/// The exception that a Python programmer expects.
pub(crate) fn raised(error: impl Into<Error>) -> PyErr {
    let error = error.into();
    raised_as(error, error.to_string())
}

/// The same, with other words for it.
pub(crate) fn raised_as(error: Error, text: String) -> PyErr {
    let class = match (error.row().class, error.errno()) {
        ("OS", errno) if NOT_FOUND.contains(&errno) => "NotFound",
        ("OS", errno) if NOT_PERMITTED.contains(&errno) => "Permission",
        ("OS", TIMED_OUT) => "Timeout",
        (class, _) => class,
    };
    let make = |py: Python<'_>| {
        let class = class_of(py, class)?;
        // A failed call has its errno where Python looks for it.
        let exception = if error.row().class == "OS" { class.call1((error.errno(), text))? } else { class.call1((text,))? };
        exception.setattr("code", error.row().name)?;
        exception.setattr("kind", error.kind().name())?;
        exception.setattr("errno", error.errno())?;
        Ok(PyErr::from_value(exception))
    };
    Python::attach(|py| make(py).unwrap_or_else(|failed: PyErr| failed))
}

/// A refusal of Python's own side.
pub(crate) fn refused(text: impl Into<String>) -> PyErr {
    of_class("Contigo", text)
}

/// The same, of a class of `contigo/errors.py`.
pub(crate) fn of_class(class: &str, text: impl Into<String>) -> PyErr {
    let make = |py: Python<'_>| Ok(PyErr::from_value(class_of(py, class)?.call1((text.into(),))?));
    Python::attach(|py| make(py).unwrap_or_else(|failed: PyErr| failed))
}

fn class_of<'py>(py: Python<'py>, class: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("contigo.errors")?.getattr(format!("{class}Error"))
}
