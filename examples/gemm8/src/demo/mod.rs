//! Real handwritten digits through the engine: two jobs for each image, chained on the device, and
//! every score compared with a reference that shares no code with it.

mod digits;
mod network;
mod reference;
mod run;

pub use digits::{Digit, HELD_OUT, INK, PIXELS, SIDE, held_out};
pub use network::{SCORES, answer};
pub use reference::Reference;
#[cfg(any(feature = "cuda", feature = "opencl", feature = "vulkan"))]
pub use run::stream_on_gpu;
pub use run::{Measured, Outcome, REGION_BYTES, Task, stream, stream_through};

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
                    "data/{file}, line {line}: not what it should be; restore the file and build \
                     again"
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
