//! What waits for files waits for interrupts: `AsFd`, the only thing that this crate takes from `std`. The kernel's bindings
//! (feature `linux`) link `std` anyway; a processor without an operating system has neither.

extern crate std;

pub(crate) use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use super::Wired;

impl<W, I: AsFd> AsFd for Wired<W, I> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.irq.as_fd()
    }
}
