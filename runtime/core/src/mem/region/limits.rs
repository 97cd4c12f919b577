//! The limits of a region, and the arithmetic of control blocks. No memory is touched here, and all
//! of it can run at compile time.

use super::slots::WORD_SLOTS;
use crate::mem::region::bitmap::WORD_BITS;
use crate::types::{Error, Result};
use core::alloc::Layout;

/// `?` for a `const fn`, in which the compiler does not allow it yet.
macro_rules! tri {
    ($result:expr) => {
        match $result {
            Ok(value) => value,
            Err(error) => return Err(error),
        }
    };
}
pub(super) use tri;

/// A cache line: what every control block is aligned to, and each part of one that is written
/// often.
pub(super) const LINE: usize = 64;
/// Pages have at least this many bytes. A backend of a larger alignment has no place in them.
pub(super) const PAGE: usize = 4096;
/// The most slots of one pool: more than any program needs, and few enough that a token fits into
/// 32 bits, and that no count of slots comes near [`usize::MAX`] on a processor of 32 bits.
pub(super) const MAX_SLOTS: usize = 1 << 20;

/// How much a region can track. You set it once, when the region is opened, because it decides how
/// large the region's control block is. A refusal names the limit that was reached
/// ([`Error::TooMany`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Limits {
    /// How many buffers of [`Region::alloc`](super::Region::alloc) and pools there can be at once,
    /// together: 1 to 16,384. Each is 17 bytes of the control block.
    pub allocations: usize,
}

impl Default for Limits {
    /// 1,024 allocations: about 20 KiB.
    fn default() -> Self {
        Self { allocations: 1024 }
    }
}

pub(super) const fn within(name: &'static str, value: usize, max: usize) -> Result<()> {
    if value == 0 || value > max {
        return Err(Error::Argument {
            name,
            value: value as u64,
            min: 1,
            max: max as u64,
            multiple_of: 1,
        });
    }
    Ok(())
}

/// Lays out a part behind the parts that end at `end`. Returns where the part begins.
pub(super) const fn put(end: &mut usize, align: usize, size_bytes: usize) -> usize {
    let start = end.next_multiple_of(align);
    *end = start + size_bytes;
    start
}

pub(super) const fn layout(size_bytes: usize, align: usize) -> Result<Layout> {
    match Layout::from_size_align(size_bytes, align) {
        Ok(layout) => Ok(layout),
        Err(_) => {
            Err(Error::Exhausted { need_bytes: size_bytes, capacity_bytes: isize::MAX as usize })
        }
    }
}

// A token is the number of a bit, and one bit in each word stands for no slot.
const _: () = assert!(MAX_SLOTS.div_ceil(WORD_SLOTS) * WORD_BITS < u32::MAX as usize);
