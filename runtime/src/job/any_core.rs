#![allow(unsafe_code, reason = "a core of any type is put in its place, and opening a channel is the program's promise")]
//! A device whose channels have a driver each, of any type as one type.

use super::{AnyDriver, Parts};
use crate::types::{Result, in_place::InPlace};
use core::fmt;

/// A device that several drivers share, one a channel: a [`Core`](crate::Core), and what its
/// drivers know of each other. [`AnyCore`] is what a row of the registry makes of it.
pub trait Channels: Send + Sync {
    /// Opens the driver of the channel that the settings name. `parts` has no device: the core has.
    ///
    /// # Errors
    /// [`Error::HasDriver`](crate::Error::HasDriver): another driver has the channel. Or the error
    /// of the driver's own function.
    ///
    /// # Safety
    /// The settings and the map describe the device as it is.
    unsafe fn open<'c>(&'c self, parts: Parts<'c, '_, ()>) -> Result<AnyDriver<'c>>;

    /// Resets the device by `pull`, from outside. Drivers that have jobs in flight hear of it, as
    /// [`Core::reset`](crate::Core::reset) says.
    ///
    /// # Errors
    /// [`Error::Contended`](crate::Error::Contended), or what `pull` says.
    fn reset(&self, pull: &mut dyn FnMut() -> Result<()>) -> Result<()>;
}

/// **A core of any type, which it owns**, in a place of fixed size, as
/// [`AnyDriver`](crate::AnyDriver) has one. It stays where it is while drivers borrow it.
pub struct AnyCore<'a>(InPlace<dyn Channels + 'a, { AnyCore::MAX_BYTES }>);

impl<'a> AnyCore<'a> {
    /// The largest core: a PL330's, over a device of any kind, and as much again.
    pub const MAX_BYTES: usize = 1024;

    /// `core`, in a fixed place. One that is too large, or aligned to more than 16 bytes, is
    /// refused by the compiler.
    #[must_use]
    pub fn new<C: Channels + 'a>(core: C) -> Self {
        // SAFETY: it casts to `C`, and that becomes what a `C` is.
        Self(unsafe { InPlace::new::<C>(core, |place| place.cast::<C>()) })
    }

    /// The core.
    #[must_use]
    pub fn get(&self) -> &(dyn Channels + 'a) {
        self.0.get()
    }
}

impl fmt::Debug for AnyCore<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyCore").finish_non_exhaustive()
    }
}
