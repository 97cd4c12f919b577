//! The system calls of the backends, whose answers a test may replace: one trait, one implementor.
//!
//! A call here takes and returns what the system call does. Which ioctl has which structure, and
//! what an errno means, is in each backend.
#![allow(unsafe_code, reason = "ioctl(2) with a pointer, uname(2) and getrlimit(2)")]

use super::fd::Fd;
use super::map;
use crate::types::Error;
use core::ffi::{CStr, c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr;
use memmap2::MmapRaw;
use nix::errno::Errno;
use nix::libc;
use nix::sys::ioctl::ioctl_num_type;

/// The system calls of the backends. What is written out here calls the running kernel; a test's
/// kernel replaces the calls on its own files. Errors are errno values.
///
/// # Implementation safety
/// A file behaves as the documentation of its path says (`/dev/contigo/`, `/dev/dma_heap/`,
/// `/dev/vfio/`, `/dev/iommu`, `/proc/self/pagemap`, u-dma-buf's), as far as the backend relies on
/// it: the module that makes the ioctls lists that. [`map`](Self::map) returns a new mapping of
/// `len_bytes`, readable and writable, not at address 0, and not inherited by a child.
pub unsafe trait SystemCalls: Send + Sync {
    /// openat(2), with `O_CLOEXEC`; never creates a file.
    ///
    /// # Errors
    /// The errno.
    fn open(&self, path: &CStr, flags: c_int) -> Result<Fd, i32> {
        Fd::open(path, flags)
    }

    /// ioctl(2): the call's value.
    ///
    /// # Safety
    /// `argument` is what `request` asks for: a number, or a pointer to what the kernel reads and
    /// writes, valid for the call.
    ///
    /// # Errors
    /// The errno.
    unsafe fn ioctl(
        &self,
        file: &Fd,
        request: ioctl_num_type,
        argument: *mut c_void,
    ) -> Result<c_int, i32> {
        // SAFETY: the descriptor is open while `file` is borrowed; the argument is the caller's
        // promise.
        let value = unsafe { libc::ioctl(file.raw(), request, argument) };
        if value < 0 { Err(Errno::last_raw()) } else { Ok(value) }
    }

    /// The file of a descriptor that an ioctl of this kernel has made.
    ///
    /// # Safety
    /// The descriptor is new, and no other value owns it.
    unsafe fn made(&self, raw: c_int) -> Fd {
        // SAFETY: the caller's promise.
        unsafe { Fd::from_raw(raw) }
    }

    /// fcntl(2), `F_DUPFD_CLOEXEC`.
    ///
    /// # Errors
    /// The errno.
    fn duplicate(&self, raw: c_int) -> Result<Fd, i32> {
        Fd::duplicate(raw)
    }

    /// eventfd(2), whose reads do not block.
    ///
    /// # Errors
    /// The errno.
    fn eventfd(&self) -> Result<Fd, i32> {
        Fd::eventfd()
    }

    /// ppoll(2) for `POLLIN`, at most for `timeout_us`. A signal ends the wait early.
    ///
    /// # Errors
    /// The errno; EIO where the file reports an error.
    fn wait_readable(&self, file: &Fd, timeout_us: u32) -> Result<bool, i32> {
        file.wait_readable(timeout_us)
    }

    /// pread(2): how many bytes were read.
    ///
    /// # Errors
    /// The errno.
    fn read_at(&self, file: &Fd, offset_bytes: u64, bytes: &mut [u8]) -> Result<usize, i32> {
        file.read_at(offset_bytes, bytes)
    }

    /// pwrite(2): how many bytes were written.
    ///
    /// # Errors
    /// The errno.
    fn write_at(&self, file: &Fd, offset_bytes: u64, bytes: &[u8]) -> Result<usize, i32> {
        file.write_at(offset_bytes, bytes)
    }

    /// mmap(2), shared, readable and writable, and not inherited by a child. `call` is for errors.
    ///
    /// # Errors
    /// [`Error::Os`].
    fn map(
        &self,
        file: &Fd,
        offset_bytes: u64,
        len_bytes: usize,
        call: &'static str,
    ) -> Result<MmapRaw, Error> {
        map::file(file.raw(), offset_bytes, len_bytes, call)
    }

    /// uname(2): the release's major and minor numbers.
    fn release(&self) -> (u32, u32) {
        let mut names = MaybeUninit::<libc::utsname>::zeroed();
        // SAFETY: uname(2) fills in the struct that it is given.
        if unsafe { libc::uname(names.as_mut_ptr()) } != 0 {
            return (0, 0);
        }
        // SAFETY: zeroed and then filled in: arrays of characters, for which any bytes are a value.
        let names = unsafe { names.assume_init() };
        version(names.release.iter().map(|letter| u8::from_ne_bytes(letter.to_ne_bytes())))
    }

    /// getrlimit(2), `RLIMIT_MEMLOCK`: how many bytes an unprivileged process may pin; `None`: no
    /// limit.
    fn pin_limit_bytes(&self) -> Option<u64> {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: getrlimit(2) fills in the struct that it is given.
        let status = unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &raw mut limit) };
        #[allow(clippy::useless_conversion, reason = "rlim_t has 32 bits on armv7")]
        (status == 0 && limit.rlim_cur != libc::RLIM_INFINITY).then(|| limit.rlim_cur.into())
    }
}

/// The running kernel.
#[derive(Clone, Copy, Debug)]
pub struct Running;

// SAFETY: it is the kernel that the documentation is about.
unsafe impl SystemCalls for Running {}

/// The kernel to call: the running one; with the feature `testkit` also a test's.
#[cfg(not(feature = "testkit"))]
pub(crate) type Kernel = Running;
#[cfg(feature = "testkit")]
pub(crate) type Kernel = super::seam::Asked;

#[cfg(not(feature = "testkit"))]
pub(crate) const RUNNING: Kernel = Running;
#[cfg(feature = "testkit")]
pub(crate) const RUNNING: Kernel = Kernel::Running(&Running);

/// A structure that is the argument of one ioctl.
///
/// # Implementation safety
/// For every value that the module of its list makes, [`REQUEST`](Self::REQUEST) reads and writes
/// no memory of this process except for that value: where fields say how many bytes there are
/// (VFIO's `argsz`, `flags`, `count`), that module alone sets them. Any bytes that the kernel
/// writes are a value of it.
pub(crate) unsafe trait Argument {
    /// The request's number.
    const REQUEST: ioctl_num_type;
}

/// Lists which structure is the argument of which ioctl.
///
/// # Safety
/// As [`Argument`], by the header that the file mirrors.
macro_rules! arguments {
    ($($structure:ident: $request:expr),+ $(,)?) => { $(
        // SAFETY: the list's own comment, as `Argument` asks.
        unsafe impl $crate::linux::os::Argument for $structure {
            const REQUEST: nix::sys::ioctl::ioctl_num_type = $request;
        }
        // The number has the structure's size, except for those of `_IO` (`asm-generic/ioctl.h`).
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the number has 32 bits"
        )]
        const _: () = {
            let bytes = ($request as u32 >> 16 & 0x3FFF) as usize;
            assert!(bytes == 0 || bytes == size_of::<$structure>());
        };
    )+ };
}
pub(crate) use arguments;

/// One ioctl with its structure: the call's value.
///
/// # Errors
/// The errno.
pub(crate) fn ask<A: Argument>(kernel: &Kernel, file: &Fd, argument: &mut A) -> Result<c_int, i32> {
    // SAFETY: the request reads and writes one `A` (`Argument`), borrowed exclusively for the call.
    unsafe { kernel.ioctl(file, A::REQUEST, ptr::from_mut(argument).cast()) }
}

/// The first two numbers of a kernel's release, `6.12.117+deb12-arm64`.
fn version(release: impl Iterator<Item = u8>) -> (u32, u32) {
    let mut numbers = [0_u32; 2];
    let mut slots = numbers.iter_mut();
    let mut slot = slots.next();
    for letter in release {
        match (letter, &mut slot) {
            (b'0'..=b'9', Some(number)) => {
                **number = number.saturating_mul(10).saturating_add(u32::from(letter - b'0'))
            }
            (b'.', Some(_)) => slot = slots.next(),
            _ => break,
        }
    }
    (numbers[0], numbers[1])
}

#[cfg(test)]
mod tests {
    use super::{Running, SystemCalls as _, version};

    #[test]
    fn a_release_is_its_first_two_numbers() {
        for (release, numbers) in [
            ("6.12.117+deb12-arm64", (6, 12)),
            ("5.19.0", (5, 19)),
            ("5.15-xilinx", (5, 15)),
            ("7", (7, 0)),
            ("", (0, 0)),
            ("x6.1", (0, 0)),
            ("99999999999.1", (u32::MAX, 1)),
        ] {
            assert_eq!(version(release.bytes()), numbers, "{release}");
        }
        assert!(Running.release() >= (3, 0), "this kernel's");
    }
}
