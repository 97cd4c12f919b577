#![allow(
    unsafe_code,
    reason = "a buffer goes to the device's side and back with no job between: a promise that none \
              ran"
)]
//! The memory that is exercised: 64 slots in a row, a guard on either side, and the bytes that it
//! really holds behind the CPU's caches.

use contigo::mem::DriverBuf;
use contigo::{Align, CpuBuf, Error, Pool, Port, Region, Result};

/// How many buffers are alive at once.
pub const SLOTS: usize = 64;
/// The slots and both guards.
pub(super) const PLACES: usize = SLOTS + 2;
/// The most that a slot has: two pages, so that a copy can cross a multiple of 4 KiB.
const SLOT_BYTES_MAX: usize = 2 * Align::PAGE.bytes();
/// The least that a slot has: four lines of the longest line here, so that a copy can touch some
/// and leave some.
const SLOT_BYTES_MIN: usize = 1024;

/// 64 slots of one region, in a row, and a guard of a slot's size before and after them: next to
/// them where the region's free bytes are in one piece.
#[derive(Debug)]
pub struct Ground {
    pub(super) pool: Pool,
    pub(super) guards: [CpuBuf; 2],
    pub(super) slot_bytes: usize,
}

impl Ground {
    /// The bytes that a region needs at most, beside those that a driver keeps of it: 66 slots of 8
    /// KiB.
    pub const WHOLE_BYTES: usize = PLACES * SLOT_BYTES_MAX;
    /// The bytes that a driver may keep: a PL330's program, ZDMA's descriptors.
    pub const DRIVER_BYTES: usize = 16 * 1024;
    /// Both, and a page for their alignment: all that is asked of memory.
    pub const REGION_BYTES: usize = Self::WHOLE_BYTES + Self::DRIVER_BYTES + Align::PAGE.bytes();

    /// Takes what `region` has left, up to slots of 8 KiB; allocate what a driver needs first.
    ///
    /// # Errors
    /// [`Error::Exhausted`] where slots of 1 KiB do not fit, or an error of [`Region::alloc`].
    pub fn new(region: &Region) -> Result<Self> {
        // A page is left out, for the first guard's alignment.
        let have_bytes = region.free_bytes().saturating_sub(Align::PAGE.bytes());
        let unit = SLOT_BYTES_MIN.max(region.line().bytes());
        let slot_bytes = (have_bytes / PLACES).min(SLOT_BYTES_MAX) / unit * unit;
        if slot_bytes == 0 {
            return Err(Error::Exhausted {
                need_bytes: PLACES * unit + Align::PAGE.bytes(),
                capacity_bytes: region.free_bytes(),
            });
        }
        let before = region.alloc(slot_bytes, Align::PAGE)?;
        let pool = region.pool(SLOTS, slot_bytes)?;
        let after = region.alloc(slot_bytes, Align::LINE)?;
        Ok(Self { pool, guards: [before, after], slot_bytes })
    }

    /// How many bytes a slot has.
    #[must_use]
    pub const fn slot_bytes(&self) -> usize {
        self.slot_bytes
    }
}

/// The same buffer, its lines written back and fetched anew: a view of it shows what memory holds,
/// not what the caches remember. Without this, a byte that a device wrote where it should not,
/// behind a port that does not snoop, stays hidden until the line happens to leave the cache. On a
/// port that snoops there is nothing to do.
///
/// # Errors
/// An error of [`DriverBuf::new`] or of the backend's sync; the buffer is lost then.
pub fn refresh(buf: CpuBuf, port: &Port, addr_bits: u32) -> Result<CpuBuf> {
    if port.coherent {
        return Ok(buf);
    }
    let cleaned = DriverBuf::new(buf, port, addr_bits)?;
    // SAFETY: `addr_at` was never called, so no device was told of these bytes, and the buffer came
    // from the CPU's side, which no device had.
    let unused = unsafe { cleaned.release() };
    Ok(unused.into_cpu()?)
}
