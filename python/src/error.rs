//! The runtime's errors as Python's exceptions: the same words and numbers.

use contigo::Error;
use pyo3::{
    create_exception,
    exceptions::{
        PyBufferError, PyFileNotFoundError, PyMemoryError, PyOSError, PyPermissionError, PyRuntimeError, PyTimeoutError, PyValueError,
    },
    prelude::*,
};

create_exception!(contigo, ContigoError, PyRuntimeError, "What the runtime refuses, with its numbers.");
create_exception!(contigo, ForkedError, ContigoError, "This process is a child of fork: the memory and the devices are its parent's.");

/// The exception that a Python programmer expects.
pub(crate) fn raised(error: impl Into<Error>) -> PyErr {
    let error = error.into();
    raised_as(error, error.to_string())
}

/// The same, with other words for it.
pub(crate) fn raised_as(error: Error, text: String) -> PyErr {
    match error {
        Error::Exhausted { .. } | Error::NoSlots { .. } | Error::TooMany { .. } => PyMemoryError::new_err(text),
        Error::NotFound { .. } => PyFileNotFoundError::new_err(text),
        Error::Denied { .. } | Error::PagemapHidden { .. } => PyPermissionError::new_err(text),
        // Python makes the subclass of the number: FileNotFoundError, PermissionError, ….
        Error::Os { errno, .. } => PyOSError::new_err((errno, text)),
        Error::Timeout { .. } => PyTimeoutError::new_err(text),
        Error::Tensor { .. } | Error::TensorOut => PyBufferError::new_err(text),
        Error::Argument { .. }
        | Error::NotPowerOfTwo { .. }
        | Error::OutOfRange { .. }
        | Error::BadName { .. }
        | Error::OperandTooLong { .. } => PyValueError::new_err(text),
        Error::Forked { .. } => ForkedError::new_err(text),
        _ => ContigoError::new_err(text),
    }
}
