//! Equal slots over one carve, for any number of threads.

pub(crate) mod bitmap;
mod local;
pub(crate) mod parts;
mod raw;
mod slots;

pub use local::LocalPool;
pub use raw::{RawPool, RawSlots};

use crate::{
    mem::{
        Carve, CpuBuf,
        buf::{Chunk, Owner},
        region::Block,
        span::Span,
    },
    trace::{self, Event, Site},
    types::{Error, Refused, Result},
};
use core::fmt;
pub(crate) use parts::LocalParts;
use slots::Slots;

/// Equal slots, `SLOTS` of them at most, 1 to 1,024, for any number of threads. A claim and a
/// release are one atomic operation each, with no system call and no heap. The program says at run
/// time how many there are ([`with_slots`](Self::with_slots)), or takes them all
/// ([`new`](Self::new)).
///
/// ```
/// use contigo::{Align, Error, Pool, Region, sim::SimBoard};
/// let board = SimBoard::new(1);
/// let region = Region::new(board.memory(64 * 1024)?)?;
/// let frames = Pool::<2>::new(region.carve(2 * 4096, Align::DLPACK)?, 4096)?;
/// let (one, two) = (frames.take()?, frames.take()?);
/// assert_eq!(frames.take().unwrap_err(), Error::NoSlots { slots: 2 });
/// drop(one); // back in the pool
/// assert!(frames.take().is_ok());
/// # drop(two);
/// # Ok::<(), Error>(())
/// ```
///
/// The pool cannot go away while a buffer of it is out:
/// ```compile_fail,E0505
/// # use contigo::Pool;
/// fn gone(pool: Pool<'_, 2>) {
///     let buf = pool.take().unwrap();
///     drop(pool); // error: `pool` is borrowed
///     drop(buf);
/// }
/// ```
pub struct Pool<'r, const SLOTS: usize> {
    carve: Carve<'r>,
    slot_bytes: usize,
    slots: usize,
    state: Slots<SLOTS>,
}

impl<'r, const SLOTS: usize> Pool<'r, SLOTS> {
    /// `SLOTS` slots of `slot_bytes` each, over the beginning of `carve`.
    ///
    /// # Errors
    /// The carve comes back with [`Error::SlotSize`] where a slot is not a whole number of cache
    /// lines, or with [`Error::Exhausted`] where the slots do not fit.
    pub fn new(carve: Carve<'r>, slot_bytes: usize) -> Result<Self, Refused<Carve<'r>>> {
        Self::with_slots(carve, slot_bytes, SLOTS)
    }

    /// As [`new`](Self::new), with `slots` slots: a figure of run time, from 1 to `SLOTS`.
    ///
    /// ```
    /// use contigo::{Align, Error, Pool, Region, sim::SimBoard};
    /// let board = SimBoard::new(1);
    /// let region = Region::new(board.memory(64 * 1024)?)?;
    /// let cameras = 3; // from a file, say
    /// let frames = Pool::<64>::with_slots(region.carve(cameras * 4096, Align::DLPACK)?, 4096, cameras)?;
    /// let _out = [frames.take()?, frames.take()?, frames.take()?];
    /// assert_eq!(frames.take().unwrap_err(), Error::NoSlots { slots: 3 });
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`new`](Self::new), and [`Error::Argument`] where there are no slots, or more than
    /// `SLOTS`.
    pub fn with_slots(carve: Carve<'r>, slot_bytes: usize, slots: usize) -> Result<Self, Refused<Carve<'r>>> {
        match check::<SLOTS>(&carve, slot_bytes, slots) {
            Ok(()) => Ok(Self { carve, slot_bytes, slots, state: Slots::new(slots) }),
            Err(error) => Err(Refused::new(error, carve)),
        }
    }

    /// A free slot: one atomic operation. It holds whatever its last owner left.
    ///
    /// # Errors
    /// [`Error::NoSlots`] when all are taken.
    #[inline]
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn take(&self) -> Result<CpuBuf<'_>> {
        let slot = self.state.claim().ok_or(Error::NoSlots { slots: self.slots })?;
        trace::happened(Event::Take { slot, len_bytes: self.slot_bytes }, Site::here());
        Ok(CpuBuf::new(chunk(self, self.carve.span(), slot, self.slot_bytes)))
    }

    /// How many bytes a slot has.
    #[must_use]
    pub const fn slot_bytes(&self) -> usize {
        self.slot_bytes
    }

    /// How many slots it has.
    #[must_use]
    pub const fn slots(&self) -> usize {
        self.slots
    }

    /// How many slots are taken now.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.slots - self.state.free()
    }
}

/// Do `slots` slots of `slot_bytes` fit, is there room for so many, and do they share no line?
fn check<const SLOTS: usize>(carve: &Carve<'_>, slot_bytes: usize, slots: usize) -> Result<()> {
    if slots == 0 || slots > SLOTS {
        return Err(Error::Argument { name: "slots", value: slots as u64, min: 1, max: SLOTS as u64, multiple_of: 1 });
    }
    let line = carve.block().state().line;
    if slot_bytes == 0 || !line.divides(slot_bytes as u64) {
        return Err(Error::SlotSize { slot_bytes, line_bytes: line.bytes() });
    }
    match slot_bytes.checked_mul(slots) {
        Some(need_bytes) if need_bytes <= carve.len_bytes() => Ok(()),
        need => Err(Error::Exhausted { need_bytes: need.unwrap_or(usize::MAX), capacity_bytes: carve.len_bytes() }),
    }
}

/// The bytes of one slot. `slot` is less than the pool's number of slots, and `check` put all of
/// them inside the carve.
#[allow(clippy::cast_possible_truncation, reason = "a slot's number is below MAX_SLOTS")]
fn chunk<'p>(owner: &'p impl Owner, carve: Span, slot: usize, slot_bytes: usize) -> Chunk<'p> {
    Chunk::new(owner, slot as u32, Span::new(carve.start + slot * slot_bytes, slot_bytes))
}

impl<const SLOTS: usize> Owner for Pool<'_, SLOTS> {
    fn block(&self) -> &dyn Block {
        self.carve.block()
    }
    fn release(&self, token: u32) {
        if self.state.last_is_gone(token) {
            trace::happened(Event::Release { slot: token as usize }, Site::NONE);
            self.state.release(token);
        }
    }
    fn share(&self, token: u32) -> Result<()> {
        self.state.one_more(token)
    }
}

impl<const SLOTS: usize> Drop for Pool<'_, SLOTS> {
    fn drop(&mut self) {
        if self.taken() != 0 {
            // A buffer was forgotten, maybe to a device: the region must count it for ever, and
            // keep its memory mapped.
            self.carve.block().state().share();
        }
    }
}

impl<const SLOTS: usize> fmt::Debug for Pool<'_, SLOTS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("slots", &self.slots).field("slot_bytes", &self.slot_bytes).field("taken", &self.taken()).finish()
    }
}
