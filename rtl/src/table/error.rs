//! The reason why a row has no figures.

use crate::core::NoCore;
use contigo::types::Refused;
use contigo::{Error, JobError};
use contigo_gemm8::demo::DemoError;
use std::io;

/// The reason why a row has no figures.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// The core is not here.
    #[error("{0}")]
    NoCore(#[from] NoCore),
    /// A job failed, or could not begin, though nothing was made to go wrong.
    #[error("{0}")]
    Runtime(Error),
    /// The digits of the demo are not what they should be.
    #[error("{0}")]
    Digits(DemoError),
    /// A file that belongs to the core cannot be read.
    #[error("{0}")]
    File(#[from] io::Error),
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
