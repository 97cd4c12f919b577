//! The rules for accepting a tensor.

use core::fmt;

/// The rule that a tensor breaks; [`Error::Tensor`](crate::Error::Tensor) has the numbers, which
/// show a negative number as its 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum TensorRule {
    /// The pointer to a tensor is null.
    NullTensor,
    /// Another major version of DLPack has another layout. Needed: this runtime's version.
    MajorVersion,
    /// The number of dimensions. Needed: the maximum.
    Dims,
    /// There are dimensions but no shape. Needed: the number of entries.
    NullShape,
    /// A dimension. Needed: the maximum; a dimension is not negative.
    Dimension,
    /// The number of bytes or elements. Needed: the maximum.
    Size,
    /// The bits of an element. Needed: a multiple of this, and not 0.
    Type,
    /// The lanes of an element: vector types are not supported.
    Lanes,
    /// There are elements but no data pointer. Needed: the number of elements.
    NullData,
    /// A stride of a tensor that is not contiguous. Needed: the stride of a C array.
    Strides,
    /// `DLDeviceType`.
    DeviceType,
    /// The address of the first element. Needed: a multiple of this.
    Alignment,
    /// An address that does not fit a pointer. Needed: the maximum.
    Address,
    /// Flags that the format before DLPack 1.0 cannot carry.
    Flags,
    /// A byte offset that would be lost in an opaque handle. Needed: the maximum.
    Handle,
}

impl fmt::Display for TensorRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NullTensor => "pointer to a tensor",
            Self::MajorVersion => "major version of DLPack",
            Self::Dims => "number of dimensions, at most",
            Self::NullShape => "entries of the shape",
            Self::Dimension => "dimension, at most",
            Self::Size => "size, at most",
            Self::Type => "bits of an element, in multiples of",
            Self::Lanes => "lanes of an element",
            Self::NullData => "elements with data",
            Self::Strides => "stride, in elements",
            Self::DeviceType => "device type",
            Self::Alignment => "address of the first element, a multiple of",
            Self::Address => "address of the first element, at most",
            Self::Flags => "flags",
            Self::Handle => "offset that is folded into a handle, at most",
        })
    }
}
