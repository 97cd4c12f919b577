//! The rules by which a tensor is refused.

use core::fmt;

/// Which rule a tensor breaks; [`Error::Tensor`](crate::Error::Tensor) has the numbers. Negative
/// numbers are shown as the 64 bits that they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum TensorRule {
    /// The pointer to a tensor is null.
    NullTensor,
    /// Another major version of DLPack has another layout. Needed: the one here.
    MajorVersion,
    /// A number of dimensions. Needed: at most.
    Dims,
    /// There are dimensions, and no shape. Needed: entries.
    NullShape,
    /// A dimension. Needed: at most, and not negative.
    Dimension,
    /// Bytes or elements. Needed: at most.
    Size,
    /// Bits of an element. Needed: a multiple, and not 0.
    Type,
    /// Lanes of an element: vector types are not exchanged.
    Lanes,
    /// There are elements, and no data pointer. Needed: elements.
    NullData,
    /// A stride of a tensor whose elements do not follow each other. Needed: C's.
    Strides,
    /// `DLDeviceType`.
    DeviceType,
    /// The first element's address. Needed: a multiple.
    Alignment,
    /// An address that no pointer holds. Needed: at most.
    Address,
    /// Flags that the form before DLPack 1.0 cannot carry.
    Flags,
    /// A byte offset that would go into an opaque handle: it is to be kept. Needed: at most.
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
