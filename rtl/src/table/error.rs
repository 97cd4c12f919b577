//! The reason why a row has no figures.

use crate::core::NoCore;
use contigo::{Error, JobError, types::Refused};
use contigo_gemm8::demo::DemoError;
use std::{fmt, io};

/// The reason why a row has no figures.
#[derive(Debug)]
pub enum TableError {
    /// The core is not here.
    NoCore(NoCore),
    /// A job failed, or could not begin, though nothing was made to go wrong.
    Runtime(Error),
    /// The digits of the demo are not what they should be.
    Digits(DemoError),
    /// A file that belongs to the core cannot be read.
    File(io::Error),
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCore(why) => write!(f, "{why}"),
            Self::Runtime(error) => write!(f, "{error}"),
            Self::Digits(error) => write!(f, "{error}"),
            Self::File(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for TableError {}

impl From<NoCore> for TableError {
    fn from(why: NoCore) -> Self {
        Self::NoCore(why)
    }
}

impl From<Error> for TableError {
    fn from(error: Error) -> Self {
        Self::Runtime(error)
    }
}

impl<T> From<Refused<T>> for TableError {
    fn from(refused: Refused<T>) -> Self {
        Self::Runtime(refused.error)
    }
}

impl<B> From<JobError<B>> for TableError {
    fn from(failed: JobError<B>) -> Self {
        Self::Runtime(failed.cause)
    }
}

impl From<DemoError> for TableError {
    fn from(error: DemoError) -> Self {
        Self::Digits(error)
    }
}

impl From<io::Error> for TableError {
    fn from(error: io::Error) -> Self {
        Self::File(error)
    }
}
