//! For programs whose functions answer with `std::io::Error`, or with this crate's beside calls of
//! the standard library. Built with the feature `std` alone, because such an error takes the heap.

use super::Error;
use std::io;

extern crate std;

/// The error with its text as the source, under the kind of its [`errno`](Error::errno). One
/// allocation, made here.
///
/// ```
/// fn read() -> std::io::Result<()> {
///     let board = contigo::sim::SimBoard::new(1);
///     let region = contigo::Region::new(board.memory(4096)?)?;
///     region.alloc(8192, contigo::Align::LINE)?;
///     Ok(())
/// }
/// let error = read().unwrap_err();
/// assert_eq!(error.kind(), std::io::ErrorKind::OutOfMemory);
/// assert_eq!(error.to_string(), "no 8192 contiguous bytes are left of 4096: free some, or plan for more");
/// ```
impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        with_text(error, error)
    }
}

/// An error of the standard library is a system call's, with its errno or the nearest one; its
/// text is lost. An error of this crate that went through `std::io` comes back as it was.
///
/// ```
/// fn read(file: &str) -> contigo::Result<Vec<u8>> {
///     Ok(std::fs::read(file)?)
/// }
/// let error = read("no/such/file").unwrap_err();
/// assert_eq!(error, contigo::Error::Os { call: "a call of std::io", errno: 2 });
/// let there: std::io::Error = contigo::Error::Busy.into();
/// assert_eq!(contigo::Error::from(there), contigo::Error::Busy);
/// ```
impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        let own = error.get_ref().and_then(|inner| inner.downcast_ref::<Self>());
        let errno = || error.raw_os_error().unwrap_or_else(|| nearest(error.kind()));
        own.copied().unwrap_or_else(|| Self::Os { call: "a call of std::io", errno: errno() })
    }
}

/// The errno of an error that no system call made.
const fn nearest(kind: io::ErrorKind) -> i32 {
    use io::ErrorKind::{
        AlreadyExists, InvalidData, InvalidInput, NotFound, OutOfMemory, PermissionDenied,
        TimedOut, Unsupported, WouldBlock,
    };
    match kind {
        NotFound => 2,
        WouldBlock => 11,
        OutOfMemory => 12,
        PermissionDenied => 13,
        AlreadyExists => 17,
        InvalidData | InvalidInput => 22,
        Unsupported => 95,
        TimedOut => 110,
        _ => 5,
    }
}

/// `told`, whose text stays, under the kind of `error`'s errno.
pub fn with_text(error: Error, told: impl core::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::new(io::Error::from_raw_os_error(error.errno()).kind(), told)
}

/// For the other crates of the runtime, which do not name std.
pub type IoError = io::Error;
