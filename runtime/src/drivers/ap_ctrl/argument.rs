//! One argument of a kernel: a pointer, or a number.

use super::{length::Length, name::Name};
use crate::hw::mmio::{Pointer as Registers, ReadWrite, Register};

/// One pointer: an operand of the kernel's jobs. Its direction, alignment and limits are the
/// [`OperandSpec`](crate::OperandSpec) of the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Pointer {
    pub(super) name: Name,
    pub(super) offset: u32,
    pub(super) bits: u32,
    pub(super) length: Length,
}

/// One number: a scalar that a job is given, or a result that its end leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Scalar {
    pub(super) name: Name,
    pub(super) offset: u32,
    pub(super) bits: u32,
}

impl Pointer {
    pub(super) const FILLER: Self = Self { name: Name::NONE, offset: 0, bits: 64, length: Length::NONE };

    /// The rule for its operand's length.
    #[must_use]
    pub const fn length(&self) -> &Length {
        &self.length
    }

    /// Its registers, where it has 64 bits.
    pub(super) const fn registers(&self) -> Registers {
        Registers::at(self.offset())
    }
}

impl Scalar {
    pub(super) const FILLER: Self = Self { name: Name::NONE, offset: 0, bits: 32 };

    /// How many argument words it takes, and how many registers: 1, or 2 with the low one first.
    #[must_use]
    pub const fn words(&self) -> usize {
        if self.bits > 32 { 2 } else { 1 }
    }

    /// Its second register, where it has one.
    pub(super) const fn high_register(&self) -> Option<Register<ReadWrite>> {
        if self.bits > 32 { Some(Register::at(self.offset() + 4)) } else { None }
    }
}

/// The place of an argument among the registers.
macro_rules! placed {
    ($argument:ident, $bits:literal) => {
        impl $argument {
            /// Its name.
            #[must_use]
            pub const fn name(&self) -> &Name {
                &self.name
            }

            /// Where its low word is, in bytes from the window's first.
            #[must_use]
            pub const fn offset(&self) -> usize {
                self.offset as usize
            }

            #[doc = $bits]
            #[must_use]
            pub const fn bits(&self) -> u32 {
                self.bits
            }

            /// Its first register, and its only one where it has 32 bits or fewer.
            pub(super) const fn register(&self) -> Register<ReadWrite> {
                Register::at(self.offset())
            }
        }
    };
}

placed!(Pointer, "How many bits of a bus address it holds: 32 or 64.");
placed!(Scalar, "How many bits it has: 1 to 64.");
