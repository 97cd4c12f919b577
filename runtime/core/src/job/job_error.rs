//! The error of a job that was refused or failed.

use crate::types::Error;
use core::fmt;

/// Why a job was refused or failed, and its buffers.
///
/// | from | buffers | then |
/// |---|---|---|
/// | [`Queue::run`](crate::Queue::run), refused | there | nothing was started |
/// | `run`, after the doorbell | there | the device has been stopped, or this job failed alone |
/// | `run`, after the doorbell | `None` | the device would not stop: they are in the queue |
/// | [`Queue`](crate::Queue) | there | this job was refused, or failed alone: the others go on |
/// | `Queue` | `None` | the channel failed: the buffers are in the queue, to be taken back |
/// | `Queue`, [`Error::Argument`] | `None` | nothing was polled: all jobs go on |
///
/// `?` turns it into its [`Error`] and drops the buffers, which returns them to their pools.
pub struct JobError<B> {
    /// The error. If the device would not stop, it is [`Error::WillNotStop`], or what the driver
    /// says.
    pub error: Error,
    /// The error from before the device would not stop; otherwise the same as `error`.
    pub cause: Error,
    /// The index of the operand that was refused, if one was.
    pub operand: Option<usize>,
    /// The job's buffers, in their order. `None`: see the table.
    pub buffers: Option<B>,
}

impl<B> JobError<B> {
    pub(crate) const fn gave_back(error: Error, buffers: B) -> Self {
        Self { error, cause: error, operand: None, buffers: Some(buffers) }
    }

    pub(crate) const fn without_buffers(error: Error, cause: Error) -> Self {
        Self { error, cause, operand: None, buffers: None }
    }
}

/// Drops the buffers.
///
/// ```
/// use contigo::{Error, JobError};
/// let failed = JobError { error: Error::Busy, cause: Error::Busy, operand: None, buffers: Some("a buffer") };
/// assert_eq!(Error::from(failed), Error::Busy);
/// ```
impl<B> From<JobError<B>> for Error {
    fn from(failed: JobError<B>) -> Self {
        failed.error
    }
}

/// Keeps the error, and drops the buffers, which returns them to their pools.
///
/// ```
/// use contigo::{Error, JobError};
/// let failed = JobError { error: Error::Busy, cause: Error::Busy, operand: None, buffers: Some("a buffer") };
/// assert_eq!(std::io::Error::from(failed).to_string(), Error::Busy.to_string());
/// ```
#[cfg(all(feature = "std", not(target_os = "none")))]
impl<B> From<JobError<B>> for crate::types::IoError {
    fn from(failed: JobError<B>) -> Self {
        failed.error.into()
    }
}

impl<B> fmt::Debug for JobError<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("JobError");
        if let Some(index) = self.operand {
            shown.field("operand", &index);
        }
        shown.field("error", &self.error);
        if self.cause != self.error {
            shown.field("cause", &self.cause);
        }
        shown.field("buffers_returned", &self.buffers.is_some()).finish()
    }
}

impl<B> fmt::Display for JobError<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let says_which = matches!(
            self.error,
            Error::WrongDirection { .. }
                | Error::BufferSize { .. }
                | Error::BufferAlign { .. }
                | Error::OperandTooLong { .. }
                | Error::ReadsBeside { .. }
        );
        if let Some(index) = self.operand
            && !says_which
        {
            write!(f, "operand {index}: ")?;
        }
        self.error.fmt(f)?;
        if self.cause == self.error { Ok(()) } else { write!(f, "; before that: {}", self.cause) }
    }
}

impl<B> core::error::Error for JobError<B> {
    /// The [`Error`], for a caller that has a `dyn Error`.
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        Some(&self.error)
    }
}
