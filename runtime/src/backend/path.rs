//! Paths of bounded length, and the file descriptors that they open.
//!
//! `std`'s `CString`, `PathBuf` and `File` allocate or need a type of `std` by name, and this crate has neither a heap nor
//! `std`. So a path is built in place, and a descriptor is a number that closes itself.
#![allow(unsafe_code, reason = "the few system calls on a descriptor; every other file here calls these")]

use crate::Error;
use core::ffi::{CStr, c_int};
use nix::{errno::Errno, libc};

/// The longest name of a device or a heap: a char device's is 64 bytes with its NUL, and so is a CMA area's (`CMA_MAX_NAME`,
/// Linux `include/linux/cma.h`), whose name its heap has.
pub(crate) const NAME_MAX_BYTES: usize = 63;

/// The longest path, with its NUL: `/sys/class/u-dma-buf/` + 63, or a temporary directory's root + as much, and room to spare.
const PATH_MAX_BYTES: usize = 256;

/// Refuses what is not the name of one file directly inside a directory.
///
/// # Errors
/// [`Error::BadName`]: empty, longer than [`NAME_MAX_BYTES`], `.`, `..`, or with a `/` or a NUL inside.
pub(crate) fn check_name(name: &str) -> Result<(), Error> {
    let length_fits = (1..=NAME_MAX_BYTES).contains(&name.len());
    if length_fits && name != "." && name != ".." && !name.bytes().any(|byte| byte == b'/' || byte == 0) {
        return Ok(());
    }
    Err(Error::BadName { len_bytes: name.len(), max_bytes: NAME_MAX_BYTES })
}

/// A path, built in place.
#[derive(Debug)]
pub(crate) struct Path {
    // INVARIANT: ends with the only NUL.
    bytes: heapless::Vec<u8, PATH_MAX_BYTES>,
}

impl Path {
    /// The parts, with a `/` between each two.
    ///
    /// # Errors
    /// [`Error::BadName`] where they do not fit, or hold a NUL.
    pub(crate) fn join(parts: &[&str]) -> Result<Self, Error> {
        let len_bytes = parts.iter().fold(parts.len().saturating_sub(1), |sum, part| sum.saturating_add(part.len()));
        let refused = Error::BadName { len_bytes, max_bytes: PATH_MAX_BYTES - 1 };
        let mut bytes = heapless::Vec::new();
        for (index, part) in parts.iter().enumerate() {
            if part.bytes().any(|byte| byte == 0) {
                return Err(refused);
            }
            if index > 0 {
                bytes.push(b'/').map_err(|_| refused)?;
            }
            bytes.extend_from_slice(part.as_bytes()).map_err(|_| refused)?;
        }
        bytes.push(0).map_err(|_| refused)?;
        Ok(Self { bytes })
    }

    /// The path as system calls take it.
    pub(crate) fn as_c_str(&self) -> &CStr {
        // The invariant makes this an Ok; the other arm names no file.
        CStr::from_bytes_with_nul(&self.bytes).unwrap_or(c"")
    }
}

/// An open file descriptor. It owns the descriptor, and closes it when it is dropped.
#[derive(Debug)]
pub(crate) struct Fd(c_int);

impl Fd {
    /// Opens `path` with `flags` and `O_CLOEXEC`; never creates a file.
    ///
    /// # Errors
    /// The errno of `openat(2)`.
    pub(crate) fn open(path: &CStr, flags: c_int) -> Result<Self, i32> {
        Self::open_from(libc::AT_FDCWD, path, flags)
    }

    /// Opens the file `name` inside this directory.
    ///
    /// # Errors
    /// The errno of `openat(2)`.
    pub(crate) fn open_at(&self, name: &CStr, flags: c_int) -> Result<Self, i32> {
        Self::open_from(self.0, name, flags)
    }

    fn open_from(directory: c_int, path: &CStr, flags: c_int) -> Result<Self, i32> {
        // SAFETY: `path` is a NUL-terminated string that outlives the call. Without O_CREAT and O_TMPFILE no mode is read.
        let fd = unsafe { libc::openat(directory, path.as_ptr(), (flags & !(libc::O_CREAT | libc::O_TMPFILE)) | libc::O_CLOEXEC) };
        if fd < 0 { Err(Errno::last_raw()) } else { Ok(Self(fd)) }
    }

    /// # Safety
    /// `raw` is open, and nobody else's.
    pub(crate) const unsafe fn from_raw(raw: c_int) -> Self {
        Self(raw)
    }

    /// The number, for calls that borrow it. It stays open as long as `self`.
    pub(crate) const fn raw(&self) -> c_int {
        self.0
    }

    /// Reads from the file's beginning. A file under `/sys` is generated anew by each such read.
    ///
    /// # Errors
    /// The errno of `pread(2)`.
    pub(crate) fn read_start(&self, buffer: &mut [u8]) -> Result<usize, i32> {
        // SAFETY: the buffer is borrowed for the call, and its own length bounds what is written into it.
        let count = unsafe { libc::pread(self.0, buffer.as_mut_ptr().cast(), buffer.len(), 0) };
        usize::try_from(count).map_err(|_| Errno::last_raw())
    }

    /// Takes the file's exclusive advisory lock, without waiting. It is held until the descriptor is closed.
    ///
    /// # Errors
    /// The errno of `flock(2)`; `EWOULDBLOCK` where another descriptor holds it, of this process or of another.
    pub(crate) fn try_lock(&self) -> Result<(), i32> {
        // SAFETY: the call takes no pointer.
        if unsafe { libc::flock(self.0, libc::LOCK_EX | libc::LOCK_NB) } == 0 { Ok(()) } else { Err(Errno::last_raw()) }
    }
}

impl Drop for Fd {
    fn drop(&mut self) {
        // SAFETY: `self` owns the descriptor, `open_from` made it, and nothing uses it after this. An error changes nothing:
        // Linux releases the descriptor before it can report one.
        unsafe { libc::close(self.0) };
    }
}
