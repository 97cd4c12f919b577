//! The tensor that a buffer is lent as.

use super::place::Target;
use super::{ByteOffset, Contract, DataType, Shape};
use crate::dlpack::TensorRule;
use crate::types::{Error, Result};

/// The tensor that a buffer is lent as: its elements, and the consumer's demands.
///
/// ```
/// use contigo::dlpack::{Contract, DataType, Shape, TensorSpec};
/// let image = TensorSpec { contract: Contract::TVM, ..TensorSpec::new(DataType::F32, Shape::new(&[1, 28, 28])?) };
/// assert!(!image.read_only);
/// # Ok::<(), contigo::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorSpec {
    /// The type of an element.
    pub dtype: DataType,
    /// How many elements there are.
    pub shape: Shape,
    /// The consumer may not write. Such a tensor is refused in the form before DLPack 1.0, which
    /// cannot express it.
    pub read_only: bool,
    /// Where the buffer's offset goes.
    pub offset: ByteOffset,
    /// The consumer's demands.
    pub contract: Contract,
}

impl TensorSpec {
    /// Writable, with the offset folded in, for any consumer.
    #[must_use]
    pub const fn new(dtype: DataType, shape: Shape) -> Self {
        Self { dtype, shape, read_only: false, offset: ByteOffset::Folded, contract: Contract::ANY }
    }

    /// Bytes of all elements.
    ///
    /// # Errors
    /// As [`DataType::bytes`] and [`Shape::len_bytes`].
    pub(crate) fn len_bytes(&self) -> Result<usize> {
        self.shape.len_bytes(self.dtype.bytes()?)
    }

    pub(super) fn check(&self, target: &Target) -> Result<()> {
        let len_bytes = self.len_bytes()?;
        if len_bytes > target.len_bytes {
            return Err(Error::Tensor {
                rule: TensorRule::Size,
                found: len_bytes as u64,
                need: target.len_bytes as u64,
            });
        }
        self.contract.check(target.addr, target.place, &self.shape, None)
    }
}
