//! A driver's specification of one operand of its jobs.

use crate::mem::DevSlice;
use crate::types::{Align, Direction, Error};

/// One operand of a driver's jobs, as data: the queue compares each job with it, and so do C and
/// Python, which know nothing else of the driver.
///
/// ```
/// use contigo::OperandSpec;
/// /// A descriptor's length has 14 bits, and its data begins at a multiple of 8.
/// const FRAME: OperandSpec = OperandSpec { max_bytes: 16_383, align_bytes: 8, ..OperandSpec::from_device() };
/// assert_eq!(FRAME.max_bytes, 16_383);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct OperandSpec {
    /// Does the device read it, write it, or both?
    pub direction: Direction,
    /// Its bus address is a multiple of this many bytes, a power of two.
    pub align_bytes: usize,
    /// The fewest bytes, 1 at least.
    pub min_bytes: usize,
    /// The most bytes that one job takes: the width of a length register.
    pub max_bytes: usize,
    /// The device reads whole words of this many bytes of its bus, a power of two: it also reads
    /// the rest of the first and of the last word, and drops it. All these bytes have to lie in the
    /// block. 1: the device reads no byte beside the operand.
    pub word_bytes: usize,
}

impl OperandSpec {
    const fn new(direction: Direction) -> Self {
        Self { direction, align_bytes: 1, min_bytes: 1, max_bytes: usize::MAX, word_bytes: 1 }
    }

    /// The device reads it: any address, any length.
    #[must_use]
    pub const fn to_device() -> Self {
        Self::new(Direction::ToDevice)
    }

    /// The device writes it.
    #[must_use]
    pub const fn from_device() -> Self {
        Self::new(Direction::FromDevice)
    }

    /// The device reads and writes it.
    #[must_use]
    pub const fn in_out() -> Self {
        Self::new(Direction::Bidirectional)
    }

    /// Its bus address is a multiple of `align`.
    #[must_use]
    pub const fn aligned(self, align: Align) -> Self {
        Self { align_bytes: align.bytes(), ..self }
    }

    /// Checks operand number `index` of a job against this specification.
    #[inline]
    pub(super) fn check(&self, index: usize, slice: &DevSlice) -> Result<(), Error> {
        let have_bytes = slice.len_bytes;
        if have_bytes < self.min_bytes {
            return Err(Error::BufferSize { index, need_bytes: self.min_bytes as u64, have_bytes });
        }
        if have_bytes > self.max_bytes {
            return Err(Error::OperandTooLong { index, have_bytes, max_bytes: self.max_bytes });
        }
        if slice.addr.0 & (self.align_bytes as u64).wrapping_sub(1) != 0 {
            return Err(Error::BufferAlign {
                index,
                addr: slice.addr.0,
                align_bytes: self.align_bytes,
            });
        }
        Ok(())
    }
}
