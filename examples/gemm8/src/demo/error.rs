//! The errors that end the demo.

use contigo::{Error, JobError, types::Refused};
use core::fmt;

/// Why the digits cannot be classified.
#[derive(Clone, Debug)]
pub enum DemoError {
    /// A file that is built into this program is not what it should be.
    Data {
        /// Its name, in `data/`.
        file: &'static str,
        /// Where; 0: nothing of the kind is in it.
        line: usize,
    },
    /// The runtime refused, or the device failed.
    Runtime(Error),
}

impl fmt::Display for DemoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Data { file, line } => {
                write!(
                    f,
                    "data/{file}, line {line}: not what it should be; restore the file and build again"
                )
            }
            Self::Runtime(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for DemoError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Runtime(error) => Some(error),
            Self::Data { .. } => None,
        }
    }
}

impl From<Error> for DemoError {
    fn from(error: Error) -> Self {
        Self::Runtime(error)
    }
}

impl<T> From<Refused<T>> for DemoError {
    fn from(refused: Refused<T>) -> Self {
        Self::Runtime(refused.error)
    }
}

impl<B> From<JobError<B>> for DemoError {
    fn from(failed: JobError<B>) -> Self {
        Self::Runtime(failed.error)
    }
}
