//! Alignments.

use crate::types::Error;

/// An alignment in bytes: a power of two, checked once, here.
///
/// ```
/// use contigo::{Align, Error};
/// assert_eq!(Align::new(256)?, Align::DLPACK);
/// assert_eq!(Align::new(48), Err(Error::NotPowerOfTwo { align_bytes: 48 }));
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Align(usize);

impl Align {
    /// 32 bytes: the smallest alignment that an accelerator gets here (one line of a Cortex-A9, one
    /// beat of a 256-bit bus).
    pub const MIN: Self = Self(32);
    /// 64 bytes: one cache line of a Cortex-A53/A72/A78 or a PC, and TVM's `kAllocAlignment`.
    pub const LINE: Self = Self(64);
    /// 256 bytes: the alignment that DLPack's `dlpack.h` requires of a `data` pointer.
    pub const DLPACK: Self = Self(256);
    /// 4096 bytes: one page, and the boundary that no AXI burst crosses (Arm IHI 0022, A3.4.1).
    pub const PAGE: Self = Self(4096);

    /// Any power of two.
    ///
    /// # Errors
    /// [`Error::NotPowerOfTwo`] otherwise, zero included.
    pub const fn new(align_bytes: usize) -> Result<Self, Error> {
        if align_bytes.is_power_of_two() {
            Ok(Self(align_bytes))
        } else {
            Err(Error::NotPowerOfTwo { align_bytes })
        }
    }

    /// The alignment in bytes.
    #[must_use]
    pub const fn bytes(self) -> usize {
        self.0
    }

    /// Returns whether `value` is a multiple of this alignment.
    #[must_use]
    pub const fn divides(self, value: u64) -> bool {
        value & (self.0 as u64 - 1) == 0
    }

    /// Returns the next multiple at or above `value`; `None` if that overflows.
    #[must_use]
    pub const fn round_up(self, value: usize) -> Option<usize> {
        match value.checked_add(self.0 - 1) {
            Some(sum) => Some(sum & !(self.0 - 1)),
            None => None,
        }
    }

    /// Returns the next multiple at or below `value`.
    #[must_use]
    pub const fn round_down(self, value: usize) -> usize {
        value & !(self.0 - 1)
    }
}
