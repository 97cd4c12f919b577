#![allow(
    unsafe_code,
    reason = "a refusal is shared between threads, and what it gives back is not"
)]
//! A refusal that returns the caller's value.

use crate::types::Error;
use core::fmt;

/// A refusal: the error, and the caller's value, unchanged.
///
/// `?` turns it into its [`Error`] and drops the value, which returns a buffer to its pool.
pub struct Refused<T> {
    /// The reason.
    pub error: Error,
    returned: T,
}

// SAFETY: no function gives a `&T` of a `&Refused<T>`, so threads that share one share only its
// error. `anyhow::Error` requires `Sync`, and a driver that is refused need not be `Sync`.
unsafe impl<T: Send> Sync for Refused<T> {}

impl<T> Refused<T> {
    /// A refusal that hands `returned` back.
    pub const fn new(error: Error, returned: T) -> Self {
        Self { error, returned }
    }

    /// Returns the value that the caller passed.
    pub fn into_returned(self) -> T {
        self.returned
    }

    /// Returns the reason, and the value that the caller passed.
    pub fn into_parts(self) -> (Error, T) {
        (self.error, self.returned)
    }
}

/// Drops the value that came back.
///
/// ```
/// use contigo::{Error, types::Refused};
/// let refused = Refused::new(Error::Busy, "a buffer");
/// assert_eq!(Error::from(refused), Error::Busy);
/// ```
impl<T> From<Refused<T>> for Error {
    fn from(refused: Refused<T>) -> Self {
        refused.error
    }
}

impl<T> fmt::Debug for Refused<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refused").field("error", &self.error).finish_non_exhaustive()
    }
}

impl<T> fmt::Display for Refused<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl<T> core::error::Error for Refused<T> {
    /// The [`Error`], for a caller that has a `dyn Error`.
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        Some(&self.error)
    }
}

/// Keeps the error and drops the value that came back, which returns a buffer to its pool.
///
/// ```
/// use contigo::{Error, types::Refused};
/// let refused = Refused::new(Error::Busy, "a buffer");
/// let error: std::io::Error = refused.into();
/// assert_eq!(error.to_string(), Error::Busy.to_string());
/// ```
#[cfg(all(feature = "std", not(target_os = "none")))]
impl<T> From<Refused<T>> for crate::types::IoError {
    fn from(refused: Refused<T>) -> Self {
        refused.error.into()
    }
}
