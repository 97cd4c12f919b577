//! For programs whose functions answer with `std::io::Error`. Built with the feature `std` alone,
//! because such an error takes the heap.

use super::Error;
use crate::types::Refused;
use std::io;

extern crate std;

/// The error with its text as the source, under the kind of its [`errno`](Error::errno). One
/// allocation, made here.
///
/// ```
/// fn read() -> std::io::Result<()> {
///     let board = contigo::sim::SimBoard::new(1);
///     let region = contigo::Region::new(board.memory(4096)?)?;
///     region.carve(8192, contigo::Align::LINE)?;
///     Ok(())
/// }
/// let error = read().unwrap_err();
/// assert_eq!(error.kind(), std::io::ErrorKind::OutOfMemory);
/// assert_eq!(error.to_string(), "no 8192 contiguous bytes are left of 4096: free some, or plan for more");
/// ```
impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        Self::new(Self::from_raw_os_error(error.errno()).kind(), error)
    }
}

/// It keeps the error, and drops the value that came back. So a buffer returns to its pool.
impl<T> From<Refused<T>> for io::Error {
    fn from(refused: Refused<T>) -> Self {
        refused.error.into()
    }
}

/// For the wings above, which do not name std.
pub(crate) type IoError = io::Error;
