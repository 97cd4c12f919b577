//! Linux.
//!
//! What waits for files waits for interrupts: `AsFd` is the only thing that this crate takes from
//! `std`. The kernel's bindings (feature `linux`) link `std` anyway.

extern crate std;

use crate::types::{Error, Result};
use core::time::Duration;
use memmap2::MmapMut;
use nix::{
    sys::time::TimeSpec,
    time::{ClockId, ClockNanosleepFlags, clock_nanosleep},
};
pub(crate) use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// Can [`Anonymous::zeroed`] succeed?
pub(crate) const HAS_MEMORY: bool = true;

/// Zeroed memory of the process.
#[derive(Debug)]
pub(crate) struct Anonymous(MmapMut);

impl Anonymous {
    /// # Errors
    /// [`Error::Os`]: mmap(2) has no more.
    pub(crate) fn zeroed(len_bytes: usize) -> Result<Self> {
        let mapped = MmapMut::map_anon(len_bytes);
        mapped.map(Self).map_err(|error| Error::Os { call: "mmap", errno: error.raw_os_error().unwrap_or(0) })
    }

    pub(crate) fn as_mut_ptr(&mut self) -> *mut u8 {
        self.0.as_mut_ptr()
    }
}

/// Sleeps for so long, or less after a signal.
pub(crate) fn sleep(time: Duration) {
    let _ = clock_nanosleep(ClockId::CLOCK_MONOTONIC, ClockNanosleepFlags::empty(), &TimeSpec::from_duration(time));
}

/// `AsFd` of a value whose field waits for the interrupt.
macro_rules! forward_as_fd {
    ({$($generics:tt)*} $type:ty, $field:ident: $waits:ident) => {
        impl<$($generics)*> $crate::types::platform::AsFd for $type
        where
            $waits: $crate::types::platform::AsFd,
        {
            /// Where the device's interrupt shows.
            fn as_fd(&self) -> $crate::types::platform::BorrowedFd<'_> {
                self.$field.as_fd()
            }
        }
    };
}
pub(crate) use forward_as_fd;
