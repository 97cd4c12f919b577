//! A dma-buf's descriptor, given out.

use crate::linux::os::fd::Fd;
use crate::types::Error;
use crate::types::platform::{AsFd, BorrowedFd};

/// A descriptor of a dma-buf that holds a region's memory, for another importer: V4L2, DRM, an
/// NPU's driver. It owns the descriptor and closes it when it is dropped; the pages live as long as
/// the last descriptor of them.
///
/// An importer may write into all of the memory. The contract of
/// [`Region::export`](crate::Region::export) says what must hold then.
#[derive(Debug)]
pub struct ExportedFd(Fd);

impl ExportedFd {
    /// A duplicate of `fd`, which is open.
    pub(crate) fn of(fd: i32) -> Result<Self, Error> {
        Fd::duplicate(fd).map(Self).map_err(|errno| Error::Os { call: "fcntl(F_DUPFD_CLOEXEC)", errno })
    }

    /// A descriptor that the kernel has just made.
    pub(crate) const fn from_fd(fd: Fd) -> Self {
        Self(fd)
    }
}

impl AsFd for ExportedFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
