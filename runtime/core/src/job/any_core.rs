#![allow(
    unsafe_code,
    reason = "a core of any type becomes a trait object, and opening a channel is the program's \
     promise"
)]
//! One type for every device whose channels have a driver each.

use super::{AnyDriver, Parts};
use crate::types::Result;
use crate::types::shared::Shared;
use core::fmt;

/// A device that several drivers share, one a channel: a [`Core`](crate::job::Core), and what its
/// drivers know of each other. A row of the registry makes an [`AnyCore`] of it.
pub trait Channels: Send + Sync {
    /// Opens the driver of the channel that the settings name. `parts` has no device, because the
    /// driver has a handle to the core's.
    ///
    /// # Errors
    /// [`Error::HasDriver`](crate::Error::HasDriver): another driver has the channel. Or the error
    /// of the driver's own function.
    ///
    /// # Safety
    /// The settings and the map describe the device as it is.
    unsafe fn open(&self, parts: Parts<'_, ()>) -> Result<AnyDriver>;

    /// Resets the device from outside by calling `pull`. Drivers that have jobs in flight learn of
    /// it, as [`Core::reset`](crate::job::Core::reset) says.
    ///
    /// # Errors
    /// [`Error::Contended`](crate::Error::Contended), or what `pull` returns.
    fn reset(&self, pull: &mut dyn FnMut() -> Result<()>) -> Result<()>;
}

/// **A core of any type**, in pages from the kernel. Clones are the same core.
#[derive(Clone)]
pub struct AnyCore(Shared<dyn Channels>);

impl AnyCore {
    /// Wraps `core`, of any size.
    ///
    /// # Errors
    /// As [`AnyDriver::new`].
    pub fn new<C: Channels + 'static>(core: C) -> Result<Self> {
        // SAFETY: the closure only returns the pointer, unsized.
        unsafe { Shared::<dyn Channels>::unsized_by(core, |inner| inner) }.map(Self)
    }

    /// The core.
    #[must_use]
    pub fn get(&self) -> &dyn Channels {
        &*self.0
    }
}

impl fmt::Debug for AnyCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyCore").finish_non_exhaustive()
    }
}
