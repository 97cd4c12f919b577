#![allow(unsafe_code, reason = "a descriptor is lent by its number")]
//! What waits for files waits for interrupts: `AsFd`, the only thing that this crate takes from `std`. The kernel's bindings
//! (feature `linux`) link `std` anyway; a processor without an operating system has neither.

extern crate std;

pub(crate) use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use super::{UioIrq, Wired};
use crate::backend::ExportedFd;

impl AsFd for UioIrq {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is open as long as `self`, which is borrowed as long as what is returned.
        unsafe { BorrowedFd::borrow_raw(self.file().raw()) }
    }
}

impl AsFd for ExportedFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: as above.
        unsafe { BorrowedFd::borrow_raw(self.raw()) }
    }
}

impl<W, I: AsFd> AsFd for Wired<W, I> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.irq.as_fd()
    }
}
