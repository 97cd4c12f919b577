//! The types of a tensor's elements.

use super::abi::DataType;
use crate::dlpack::TensorRule;
use crate::types::Error;

/// `DLDataTypeCode`: the first seven. The codes after them are types of 8 bits and less.
mod code {
    pub(super) const INT: u8 = 0;
    pub(super) const UINT: u8 = 1;
    pub(super) const FLOAT: u8 = 2;
    pub(super) const BFLOAT: u8 = 4;
    pub(super) const COMPLEX: u8 = 5;
    pub(super) const BOOL: u8 = 6;
}

/// The types that accelerators and frameworks exchange. Any other type is made from its fields, and
/// checked when it is used.
impl DataType {
    /// `int8_t`.
    pub const I8: Self = Self::new(code::INT, 8);
    /// `int16_t`.
    pub const I16: Self = Self::new(code::INT, 16);
    /// `int32_t`.
    pub const I32: Self = Self::new(code::INT, 32);
    /// `int64_t`.
    pub const I64: Self = Self::new(code::INT, 64);
    /// `uint8_t`.
    pub const U8: Self = Self::new(code::UINT, 8);
    /// `uint16_t`.
    pub const U16: Self = Self::new(code::UINT, 16);
    /// `uint32_t`.
    pub const U32: Self = Self::new(code::UINT, 32);
    /// `uint64_t`.
    pub const U64: Self = Self::new(code::UINT, 64);
    /// IEEE 754 half precision.
    pub const F16: Self = Self::new(code::FLOAT, 16);
    /// IEEE 754 single precision.
    pub const F32: Self = Self::new(code::FLOAT, 32);
    /// IEEE 754 double precision.
    pub const F64: Self = Self::new(code::FLOAT, 64);
    /// The upper half of an IEEE 754 single.
    pub const BF16: Self = Self::new(code::BFLOAT, 16);
    /// Two singles.
    pub const COMPLEX64: Self = Self::new(code::COMPLEX, 64);
    /// One byte, 0 or 1.
    pub const BOOL: Self = Self::new(code::BOOL, 8);

    const fn new(code: u8, bits: u8) -> Self {
        Self { code, bits, lanes: 1 }
    }

    /// Bytes of one element.
    ///
    /// # Errors
    /// [`Error::Tensor`]: [`TensorRule::Lanes`], a vector type; [`TensorRule::Type`], no whole
    /// number of bytes, or 0.
    pub fn bytes(self) -> Result<usize, Error> {
        if self.lanes != 1 {
            return Err(Error::Tensor {
                rule: TensorRule::Lanes,
                found: self.lanes.into(),
                need: 1,
            });
        }
        if self.bits == 0 || !self.bits.is_multiple_of(8) {
            return Err(Error::Tensor { rule: TensorRule::Type, found: self.bits.into(), need: 8 });
        }
        Ok(usize::from(self.bits / 8))
    }
}
