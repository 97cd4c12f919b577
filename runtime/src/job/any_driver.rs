#![allow(unsafe_code, reason = "a driver of any type lies in a fixed place, and is found by what its type left behind")]
//! A driver of any type as one type.

use super::{Driver, StopProgram};
#[cfg(all(feature = "linux", target_os = "linux"))]
use crate::types::{Error, Result};
use core::{
    cell::UnsafeCell,
    fmt,
    marker::PhantomData,
    mem::{self, MaybeUninit},
    ptr,
};

/// Where the driver lies. A driver may have cells, which change through a shared reference: so the
/// place is one.
#[repr(C, align(16))]
struct Place(UnsafeCell<Bytes>);

type Bytes = [MaybeUninit<u8>; AnyDriver::MAX_BYTES];

/// Finds the driver in its place.
type Find<'a> = unsafe fn(*mut Bytes) -> *mut (dyn Driver + Send + 'a);

/// **A driver of any type, which it owns**, in a place of fixed size: so that C, Python and the
/// tool have one type for all drivers, with no heap.
///
/// ```
/// use contigo::{AnyDriver, Driver, Queue, drivers::zdma::{SimZdma, Zdma}, sim::SimBoard};
/// let board = SimBoard::new(1);
/// let channel = SimZdma::new(&board, board.port());
/// let driver = AnyDriver::new(Zdma::simple_simulated(channel.window()?)?);
/// assert_eq!((driver.name(), driver.operands().len()), ("zdma", 2));
/// let queue: Queue<'_, _, 4, 2> = Queue::new(driver)?;
/// # let _ = queue;
/// # Ok::<(), contigo::Error>(())
/// ```
pub struct AnyDriver<'a> {
    place: Place,
    find: Find<'a>,
    /// It owns what `find` finds.
    owns: PhantomData<&'a mut (dyn Driver + Send)>,
    /// INVARIANT: dropped after the driver, which borrows from what it keeps.
    seat: Option<Seat<'a>>,
}

/// Something that counts the drivers which stand on it.
pub(crate) trait Counted: Sync {
    /// One driver less.
    fn leave(&self);
}

/// One driver's place in a count, until it is dropped.
pub(crate) struct Seat<'a>(&'a dyn Counted);

impl<'a> Seat<'a> {
    /// `counted` has counted one driver more.
    #[cfg(all(feature = "linux", target_os = "linux"))]
    pub(crate) const fn new(counted: &'a dyn Counted) -> Self {
        Self(counted)
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

impl<'a> AnyDriver<'a> {
    /// The largest driver: that of an HLS kernel holds the map of 16 pointers and 16 scalars.
    pub const MAX_BYTES: usize = 4096;

    /// `driver`, in a fixed place. A driver that is too large, or aligned to more than 16 bytes, is
    /// refused by the compiler.
    #[must_use]
    pub fn new<D: Driver + Send + 'a>(driver: D) -> Self {
        const { assert!(mem::size_of::<D>() <= Self::MAX_BYTES, "AnyDriver::MAX_BYTES is the largest driver") };
        const { assert!(mem::align_of::<D>() <= mem::align_of::<Place>(), "16 is the largest alignment") };
        let place = Place(UnsafeCell::new([MaybeUninit::uninit(); Self::MAX_BYTES]));
        // SAFETY: the place is large enough and aligned for a `D`, and holds nothing yet.
        unsafe { place.0.get().cast::<D>().write(driver) };
        Self { place, find: find::<'a, D>, owns: PhantomData, seat: None }
    }

    /// The same driver, whose end gives `seat` back. It is one of several on one device.
    ///
    /// # Errors
    /// [`Error::Unsupported`]: it has a seat. A second one in its place would end the first, whose
    /// core the driver borrows from.
    #[cfg(all(feature = "linux", target_os = "linux"))]
    pub(crate) fn seated(mut self, seat: Seat<'a>) -> Result<Self> {
        const FIX: &str = "open the device that has the channel";
        if self.seat.is_some() {
            // Before the new seat, on whose core it stands too.
            drop(self);
            drop(seat);
            return Err(Error::Unsupported { what: "the core opened a channel of another device", fix: FIX });
        }
        self.seat = Some(seat);
        Ok(self)
    }

    fn driver(&self) -> &(dyn Driver + Send + 'a) {
        // SAFETY: `new` put a driver there, `find` is of its type, and it moves with its place. It
        // is borrowed as `self` is.
        unsafe { &*(self.find)(self.place.0.get()) }
    }

    fn driver_mut(&mut self) -> &mut (dyn Driver + Send + 'a) {
        // SAFETY: as in `driver`.
        unsafe { &mut *(self.find)(self.place.0.get()) }
    }
}

/// # Safety
/// `place` holds a `D`. (It is called for nothing else, and only makes a pointer.)
unsafe fn find<'a, D: Driver + Send + 'a>(place: *mut Bytes) -> *mut (dyn Driver + Send + 'a) {
    place.cast::<D>()
}

impl Drop for AnyDriver<'_> {
    fn drop(&mut self) {
        // SAFETY: `drop` runs once, and the driver is not used after it.
        unsafe { ptr::drop_in_place((self.find)(self.place.0.get())) }
    }
}

// SAFETY: what is in the place is `Send` (`new`), and a seat is a reference to what is `Sync`.
unsafe impl Send for AnyDriver<'_> {}

// SAFETY: every method is the driver's own, which stays in its place.
unsafe impl Driver for AnyDriver<'_> {
    crate::types::forward::forward!(|this| *this.driver() => name, port, addr_bits, operands, depth, in_order, check, arm_irq, ran_dry);
    crate::types::forward::forward!(|this| *this.driver_mut() => submit, poll, stop);

    /// None of a driver that shares its device: the kernel runs one program for a device, and this
    /// driver's leaves the siblings at work.
    fn stop_program(&self) -> StopProgram {
        if self.seat.is_some() { StopProgram::default() } else { self.driver().stop_program() }
    }
}

impl fmt::Debug for AnyDriver<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AnyDriver").field(&self.name()).finish()
    }
}
