#![allow(unsafe_code, reason = "a core of any type lies in a fixed place, and is found by what its type left behind")]
//! A device whose channels have a driver each, of any type as one type.

use super::{AnyDriver, Parts};
use crate::types::Result;
use core::{
    cell::UnsafeCell,
    fmt,
    marker::PhantomData,
    mem::{self, MaybeUninit},
    ptr,
};

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

/// Where the core lies. It changes through shared references: so the place is a cell.
#[repr(C, align(16))]
struct Place(UnsafeCell<Bytes>);

type Bytes = [MaybeUninit<u8>; AnyCore::MAX_BYTES];

/// Finds the core in its place.
type Find<'a> = unsafe fn(*mut Bytes) -> *mut (dyn Channels + 'a);

/// **A core of any type, which it owns**, in a place of fixed size, as
/// [`AnyDriver`](crate::AnyDriver) has one. It stays where it is while drivers borrow it.
pub struct AnyCore<'a> {
    place: Place,
    find: Find<'a>,
    /// It owns what `find` finds.
    owns: PhantomData<&'a mut dyn Channels>,
}

impl<'a> AnyCore<'a> {
    /// The largest core: a PL330's, over a device of any kind, and as much again.
    pub const MAX_BYTES: usize = 1024;

    /// `core`, in a fixed place. One that is too large, or aligned to more than 16 bytes, is
    /// refused by the compiler.
    #[must_use]
    pub fn new<C: Channels + 'a>(core: C) -> Self {
        const { assert!(mem::size_of::<C>() <= Self::MAX_BYTES, "AnyCore::MAX_BYTES is the largest core") };
        const { assert!(mem::align_of::<C>() <= mem::align_of::<Place>(), "16 is the largest alignment") };
        let place = Place(UnsafeCell::new([MaybeUninit::uninit(); Self::MAX_BYTES]));
        // SAFETY: the place is large enough and aligned for a `C`, and holds nothing yet.
        unsafe { place.0.get().cast::<C>().write(core) };
        Self { place, find: find::<'a, C>, owns: PhantomData }
    }

    /// The core.
    #[must_use]
    pub fn get(&self) -> &(dyn Channels + 'a) {
        // SAFETY: `new` put a core there, `find` is of its type, and it moves with its place. It is
        // borrowed as `self` is.
        unsafe { &*(self.find)(self.place.0.get()) }
    }
}

/// # Safety
/// `place` holds a `C`. (It is called for nothing else, and only makes a pointer.)
unsafe fn find<'a, C: Channels + 'a>(place: *mut Bytes) -> *mut (dyn Channels + 'a) {
    place.cast::<C>()
}

impl Drop for AnyCore<'_> {
    fn drop(&mut self) {
        // SAFETY: `drop` runs once, and the core is not used after it.
        unsafe { ptr::drop_in_place((self.find)(self.place.0.get())) }
    }
}

// SAFETY: what is in the place is `Send` (`Channels`), and nothing else is here.
unsafe impl Send for AnyCore<'_> {}
// SAFETY: it is `Sync` too, and a shared reference gives only a shared reference to it.
unsafe impl Sync for AnyCore<'_> {}

impl fmt::Debug for AnyCore<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyCore").finish_non_exhaustive()
    }
}
