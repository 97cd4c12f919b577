//! File descriptors. `std`'s `File` needs a type of `std` by name, which this crate does not have.
//! So a descriptor is a number that closes itself.
#![allow(
    unsafe_code,
    reason = "the few system calls on a descriptor; every other file here calls these"
)]

use crate::types::Error;
use crate::types::platform::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use core::ffi::{CStr, c_int};
use core::mem::ManuallyDrop;
use nix::errno::Errno;
use nix::libc;

/// An open file descriptor. It owns the descriptor, and closes it when it is dropped.
#[derive(Debug)]
pub struct Fd {
    raw: c_int,
    /// For a fake's file: the owner, which closes the descriptor instead of this value.
    #[cfg(feature = "testkit")]
    owner: Option<super::seam::Owner>,
}

impl Fd {
    /// Opens `path` with `flags` and `O_CLOEXEC`; never creates a file.
    ///
    /// # Errors
    /// The errno of `openat(2)`.
    pub fn open(path: &CStr, flags: c_int) -> Result<Self, i32> {
        Self::open_from(libc::AT_FDCWD, path, flags)
    }

    /// Opens the file `name` inside this directory.
    ///
    /// # Errors
    /// The errno of `openat(2)`.
    pub(crate) fn open_at(&self, name: &CStr, flags: c_int) -> Result<Self, i32> {
        Self::open_from(self.raw, name, flags)
    }

    fn open_from(directory: c_int, path: &CStr, flags: c_int) -> Result<Self, i32> {
        // SAFETY: `path` is a NUL-terminated string that outlives the call. Without O_CREAT and
        // O_TMPFILE no mode is read.
        let fd = unsafe {
            libc::openat(
                directory,
                path.as_ptr(),
                (flags & !(libc::O_CREAT | libc::O_TMPFILE)) | libc::O_CLOEXEC,
            )
        };
        if fd < 0 { Err(Errno::last_raw()) } else { Ok(Self::new(fd)) }
    }

    /// Duplicates `raw`: a new descriptor of the same open file.
    ///
    /// # Errors
    /// The errno of `fcntl(2)`.
    pub(crate) fn duplicate(raw: c_int) -> Result<Self, i32> {
        // SAFETY: the call takes no pointer; where it succeeds, no other value owns the new
        // descriptor.
        let fd = unsafe { libc::fcntl(raw, libc::F_DUPFD_CLOEXEC, 0) };
        if fd < 0 { Err(Errno::last_raw()) } else { Ok(Self::new(fd)) }
    }

    /// Converts to the type in which other crates take a descriptor.
    ///
    /// # Errors
    /// The errno of `fcntl(2)`, for a fake's file, which has an owner that closes it.
    pub(crate) fn into_owned(self) -> Result<OwnedFd, i32> {
        #[cfg(feature = "testkit")]
        if self.owner.is_some() {
            return Self::duplicate(self.raw)?.into_owned();
        }
        // SAFETY: `self` owns the descriptor, and does not close it any more.
        Ok(unsafe { OwnedFd::from_raw_fd(ManuallyDrop::new(self).raw) })
    }

    /// # Safety
    /// `raw` is open, and no other value owns it.
    pub(crate) const unsafe fn from_raw(raw: c_int) -> Self {
        Self::new(raw)
    }

    const fn new(raw: c_int) -> Self {
        Self {
            raw,
            #[cfg(feature = "testkit")]
            owner: None,
        }
    }

    /// The number, for calls that borrow it. It stays open as long as `self`.
    #[must_use]
    pub const fn raw(&self) -> c_int {
        self.raw
    }

    /// Reads from the file's beginning. A file under `/sys` is generated anew by each such read.
    ///
    /// # Errors
    /// The errno of `pread(2)`.
    pub(crate) fn read_start(&self, buffer: &mut [u8]) -> Result<usize, i32> {
        self.read_at(0, buffer)
    }

    /// Reads at `offset_bytes`: how many bytes were read.
    ///
    /// # Errors
    /// The errno of `pread(2)`; EOVERFLOW for an offset that no file has.
    pub(crate) fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> Result<usize, i32> {
        let at = i64::try_from(offset_bytes).map_err(|_| libc::EOVERFLOW)?;
        // SAFETY: the buffer is borrowed for the call, and its own length bounds what is written
        // into it.
        let count =
            unsafe { libc::pread64(self.raw, buffer.as_mut_ptr().cast(), buffer.len(), at) };
        usize::try_from(count).map_err(|_| Errno::last_raw())
    }

    /// Writes at `offset_bytes`: how many bytes were written.
    ///
    /// # Errors
    /// The errno of `pwrite(2)`; EOVERFLOW for an offset that no file has.
    pub(crate) fn write_at(&self, offset_bytes: u64, bytes: &[u8]) -> Result<usize, i32> {
        let at = i64::try_from(offset_bytes).map_err(|_| libc::EOVERFLOW)?;
        // SAFETY: the bytes are borrowed for the call, which only reads them, and their own length
        // bounds that.
        let count = unsafe { libc::pwrite64(self.raw, bytes.as_ptr().cast(), bytes.len(), at) };
        usize::try_from(count).map_err(|_| Errno::last_raw())
    }

    /// Reads the target of the link `name` inside this directory, as much as fits in `buffer`.
    ///
    /// # Errors
    /// The errno of `readlinkat(2)`.
    pub fn read_link<'b>(&self, name: &CStr, buffer: &'b mut [u8]) -> Result<&'b [u8], i32> {
        // SAFETY: `name` is NUL-terminated and outlives the call; the buffer's own length bounds
        // what is written into it.
        let count = unsafe {
            libc::readlinkat(self.raw, name.as_ptr(), buffer.as_mut_ptr().cast(), buffer.len())
        };
        usize::try_from(count)
            .map(|count| buffer.get(..count).unwrap_or(&[]))
            .map_err(|_| Errno::last_raw())
    }

    /// Reads 4 bytes from where the file stands: a UIO device's interrupt count.
    ///
    /// # Errors
    /// The errno of `read(2)`; EIO where fewer come.
    pub(crate) fn read_u32(&self) -> Result<u32, i32> {
        self.read_whole().map(u32::from_ne_bytes)
    }

    /// A new eventfd, whose reads do not block.
    ///
    /// # Errors
    /// The errno of `eventfd(2)`.
    pub(crate) fn eventfd() -> Result<Self, i32> {
        // SAFETY: the call takes two numbers; no other value owns a descriptor that it returns.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 { Err(Errno::last_raw()) } else { Ok(Self::new(fd)) }
    }

    /// Takes the count of an eventfd.
    ///
    /// # Errors
    /// The errno of `read(2)`; EAGAIN where the count is 0.
    pub(crate) fn take_count(&self) -> Result<u64, i32> {
        self.read_whole().map(u64::from_ne_bytes)
    }

    fn read_whole<const N: usize>(&self) -> Result<[u8; N], i32> {
        let mut bytes = [0; N];
        // SAFETY: the call writes at most the buffer's bytes, whose number it is given.
        let count = unsafe { libc::read(self.raw, bytes.as_mut_ptr().cast(), N) };
        match usize::try_from(count) {
            Ok(count) if count == N => Ok(bytes),
            Ok(_) => Err(libc::EIO),
            Err(_) => Err(Errno::last_raw()),
        }
    }

    /// Writes `bytes` where the file stands, in one call.
    ///
    /// # Errors
    /// The errno of `write(2)`; EIO where fewer were taken.
    pub(crate) fn write(&self, bytes: &[u8]) -> Result<(), i32> {
        // SAFETY: the bytes are borrowed for the call, which only reads them, and their own length
        // bounds that.
        let count = unsafe { libc::write(self.raw, bytes.as_ptr().cast(), bytes.len()) };
        match usize::try_from(count) {
            Ok(count) if count == bytes.len() => Ok(()),
            Ok(_) => Err(libc::EIO),
            Err(_) => Err(Errno::last_raw()),
        }
    }

    /// Reads 2 bytes at `offset_bytes`: a word of a PCI function's configuration space, which is
    /// little-endian.
    ///
    /// # Errors
    /// The errno of `pread(2)`; EIO where fewer come.
    pub(crate) fn read_u16_at(&self, offset_bytes: u16) -> Result<u16, i32> {
        let mut bytes = [0; 2];
        match self.read_at(offset_bytes.into(), &mut bytes)? {
            2 => Ok(u16::from_le_bytes(bytes)),
            _ => Err(libc::EIO),
        }
    }

    /// Writes 2 bytes at `offset_bytes`.
    ///
    /// # Errors
    /// The errno of `pwrite(2)`; EIO where fewer were taken.
    pub(crate) fn write_u16_at(&self, offset_bytes: u16, value: u16) -> Result<(), i32> {
        match self.write_at(offset_bytes.into(), &value.to_le_bytes())? {
            2 => Ok(()),
            _ => Err(libc::EIO),
        }
    }

    /// Another descriptor of the same open file: it shares its position, its flags and its lock,
    /// which is held until the last of them is closed.
    ///
    /// # Errors
    /// The errno of `fcntl(2)`.
    pub(crate) fn try_clone(&self) -> Result<Self, i32> {
        Self::duplicate(self.raw)
    }

    /// Fills `buffer` with the next entries of this directory, as the kernel lays them out, and
    /// returns their length in bytes; 0 where there are no more.
    ///
    /// # Errors
    /// The errno of `getdents64(2)`.
    pub(crate) fn next_entries(&self, buffer: &mut [u8]) -> Result<usize, i32> {
        // SAFETY: the buffer is borrowed for the call, and its own length bounds what is written
        // into it.
        let count = unsafe {
            libc::syscall(libc::SYS_getdents64, self.raw, buffer.as_mut_ptr(), buffer.len())
        };
        usize::try_from(count).map_err(|_| Errno::last_raw())
    }

    /// Waits until there is something to read, at most for `timeout_us`. A signal ends the wait
    /// early.
    ///
    /// # Errors
    /// The errno of `ppoll(2)`; EIO where the file says that it is broken. A UIO device without an
    /// interrupt, or one that is gone, reports that together with other events (`uio_poll` in Linux
    /// `drivers/uio/uio.c`).
    pub(crate) fn wait_readable(&self, timeout_us: u32) -> Result<bool, i32> {
        let mut file = libc::pollfd { fd: self.raw, events: libc::POLLIN, revents: 0 };
        // Both parts fit the smallest types that any Linux has for them: at most 4,294 s and less
        // than 10^9 ns.
        #[allow(
            clippy::cast_possible_wrap,
            clippy::cast_lossless,
            reason = "the fields' types differ from one target to another"
        )]
        let timeout = libc::timespec {
            tv_sec: (timeout_us / 1_000_000) as _,
            tv_nsec: (timeout_us % 1_000_000 * 1_000) as _,
        };
        // SAFETY: one `pollfd`, borrowed for the call; the time is only read; no signal mask is
        // given.
        let count = unsafe { libc::ppoll(&raw mut file, 1, &raw const timeout, core::ptr::null()) };
        match count {
            count if count < 0 && Errno::last() == Errno::EINTR => Ok(false),
            count if count < 0 => Err(Errno::last_raw()),
            0 => Ok(false),
            _ if file.revents & (libc::POLLERR | libc::POLLNVAL) != 0 => Err(libc::EIO),
            _ => Ok(file.revents & libc::POLLIN != 0),
        }
    }

    /// Takes the file's exclusive advisory lock, without waiting. It is held until the descriptor
    /// is closed.
    ///
    /// # Errors
    /// The errno of `flock(2)`; `EWOULDBLOCK` where another descriptor holds it, of this process or
    /// of another.
    pub(crate) fn try_lock(&self) -> Result<(), i32> {
        // SAFETY: the call takes no pointer.
        if unsafe { libc::flock(self.raw, libc::LOCK_EX | libc::LOCK_NB) } == 0 {
            Ok(())
        } else {
            Err(Errno::last_raw())
        }
    }
}

/// Duplicates `raw`, the descriptor of a dma-buf.
///
/// # Errors
/// [`Error::Os`].
pub(crate) fn exported(raw: c_int) -> Result<OwnedFd, Error> {
    Fd::duplicate(raw)
        .and_then(Fd::into_owned)
        .map_err(|errno| Error::Os { call: "fcntl(F_DUPFD_CLOEXEC)", errno })
}

impl AsFd for Fd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is open as long as `self`, which is borrowed as long as what is
        // returned.
        unsafe { BorrowedFd::borrow_raw(self.raw) }
    }
}

impl Drop for Fd {
    fn drop(&mut self) {
        #[cfg(feature = "testkit")]
        if self.owner.is_some() {
            return;
        }
        // SAFETY: `self` owns the descriptor, `open_from` made it, and nothing uses it after this.
        // An error changes nothing: Linux releases the descriptor before it can report one.
        unsafe { libc::close(self.raw) };
    }
}

#[cfg(feature = "testkit")]
impl Fd {
    /// A fake's file. `owner` is dropped where a real descriptor would be closed, and closes `raw`
    /// itself.
    ///
    /// # Safety
    /// `raw` is open as long as `owner` lives.
    #[must_use]
    pub unsafe fn owned_by(raw: c_int, owner: impl core::any::Any + Send + Sync) -> Self {
        // SAFETY: it is open, by the caller's promise; with an owner this value does not close it.
        let mut file = unsafe { Self::from_raw(raw) };
        file.owner = Some(super::seam::Owner::new(owner));
        file
    }

    /// The owner that was given to [`owned_by`](Self::owned_by), where it is a `T`.
    #[must_use]
    pub fn owner<T: core::any::Any>(&self) -> Option<&T> {
        self.owner.as_ref()?.get()
    }
}
