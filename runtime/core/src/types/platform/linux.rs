#![allow(unsafe_code, reason = "futex(2) has no safe name")]
//! Linux.
//!
//! A program waits for an interrupt as it waits for a file. Without the feature `std`, the types of
//! a descriptor are all that this crate takes from `std`. The kernel's bindings (feature `linux`)
//! link `std` anyway.

mod process;

extern crate std;

pub use self::process::same_process;
use crate::types::atomic::AtomicU32;
use crate::types::{Error, Result};
use core::ptr::NonNull;
use core::time::Duration;
use memmap2::{Advice, MmapMut};
use nix::errno::Errno;
use nix::libc::{self, c_int, c_long};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, ClockNanosleepFlags, clock_nanosleep};
pub use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Can [`Anonymous::zeroed`] succeed?
pub const HAS_MEMORY: bool = true;

/// Zeroed memory of the process.
#[derive(Debug)]
pub struct Anonymous(MmapMut);

impl Anonymous {
    /// # Errors
    /// [`Error::Os`]: mmap(2) has no more.
    pub fn zeroed(len_bytes: usize) -> Result<Self> {
        let mapped = MmapMut::map_anon(len_bytes);
        mapped
            .map(Self)
            .map_err(|error| Error::Os { call: "mmap", errno: error.raw_os_error().unwrap_or(0) })
    }

    /// Keeps these pages from children of fork(2): what lies in them has one owner, the parent.
    ///
    /// # Errors
    /// [`Error::Os`]: madvise(2) refused.
    pub(crate) fn unforked(self) -> Result<Self> {
        // Miri has neither the advice, nor processes.
        if !cfg!(miri) {
            let advised = self.0.advise(Advice::DontFork);
            advised.map_err(|error| Error::Os {
                call: "madvise(MADV_DONTFORK)",
                errno: error.raw_os_error().unwrap_or(0),
            })?;
        }
        Ok(self)
    }

    /// The first byte.
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.0.as_mut_ptr()
    }

    /// The first byte, of a page.
    pub(crate) fn start(&mut self) -> NonNull<u8> {
        NonNull::from(&mut *self.0).cast()
    }
}

/// Sleeps for so long, or less after a signal.
pub(crate) fn sleep(time: Duration) {
    let _ = clock_nanosleep(
        ClockId::CLOCK_MONOTONIC,
        ClockNanosleepFlags::empty(),
        &TimeSpec::from_duration(time),
    );
}

/// Sleeps while `word` holds `is`, until [`wake_all`], and at most for `timeout_us`; or less, as
/// after a signal.
pub(crate) fn sleep_while(word: &AtomicU32, is: u32, timeout_us: u32) {
    /// Where the kernel has no such call (a 32-bit one built without `CONFIG_COMPAT_32BIT_TIME`).
    const INSTEAD: Duration = Duration::from_micros(50);
    // This call reads two words as wide as the processor's, on every Linux. libc's `timespec` is
    // wider on 32-bit processors with times of 64 bits.
    #[allow(
        clippy::cast_possible_wrap,
        clippy::cast_lossless,
        reason = "both are below 2^31, whatever the width of c_long is"
    )]
    let time = [(timeout_us / 1_000_000) as c_long, (timeout_us % 1_000_000 * 1_000) as c_long];
    let time = time.as_ptr().cast::<libc::timespec>();
    // SAFETY: the call reads the word and the time, both of which live until it returns, and writes
    // nothing.
    let slept = unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            is,
            time,
        )
    };
    if slept != 0 && Errno::last() == Errno::ENOSYS {
        sleep(INSTEAD);
    }
}

/// Wakes all that sleep in [`sleep_while`] on `word`.
pub(crate) fn wake_all(word: &AtomicU32) {
    // SAFETY: the call writes nothing; the word's address is a name.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
            c_int::MAX,
        )
    };
}

pub use crate::forward_as_fd;
