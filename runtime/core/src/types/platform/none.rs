//! No operating system, or one whose memory this build does not use.

use crate::types::atomic::{AtomicU32, Ordering};
use crate::types::{Error, Result};
use core::ptr::NonNull;
use core::time::Duration;

/// Can [`Anonymous::zeroed`] succeed?
pub const HAS_MEMORY: bool = false;

/// Memory of a process, of which there is none here.
#[derive(Debug)]
pub enum Anonymous {}

impl Anonymous {
    /// # Errors
    /// [`Error::Unsupported`], always.
    pub const fn zeroed(_len_bytes: usize) -> Result<Self> {
        let fix = "build with the feature linux, or use SimBoard::memory_over";
        Err(Error::Unsupported { what: "there is no kernel here that gives memory", fix })
    }

    /// # Errors
    /// None: there is no such value.
    pub(crate) const fn unforked(self) -> Result<Self> {
        match self {}
    }

    /// The first byte.
    pub const fn as_mut_ptr(&mut self) -> *mut u8 {
        match *self {}
    }

    pub(crate) const fn start(&mut self) -> NonNull<u8> {
        match *self {}
    }
}

/// A pause: this build has no scheduler to call.
pub(crate) fn sleep(_time: Duration) {
    core::hint::spin_loop();
}

/// A pause while `word` holds `is`: no call wakes a sleeper.
pub(crate) fn sleep_while(word: &AtomicU32, is: u32, _timeout_us: u32) {
    if word.load(Ordering::Acquire) == is {
        core::hint::spin_loop();
    }
}

/// There are no other processes.
pub(crate) const fn same_process() -> Result<()> {
    Ok(())
}

/// No thread sleeps.
pub(crate) const fn wake_all(_word: &AtomicU32) {}

/// A file, of which there is none here.
#[derive(Debug)]
pub enum OwnedFd {}

/// A file that is lent, of which there is none here.
#[derive(Debug)]
pub struct BorrowedFd<'file>(core::convert::Infallible, core::marker::PhantomData<&'file ()>);

/// What has a file. Nothing has one here.
pub trait AsFd {
    /// The file.
    fn as_fd(&self) -> BorrowedFd<'_>;
}

pub use crate::forward_as_fd;
