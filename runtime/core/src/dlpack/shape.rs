//! How many elements a tensor has, and in which order.

use crate::dlpack::TensorRule;
use crate::types::Error;

/// Dimensions of a tensor. Networks have 4 to 5; each costs 16 bytes of every slot of a
/// [`TensorTable`](super::TensorTable).
pub const MAX_DIMS: usize = 8;

/// The dimensions of a tensor whose elements follow each other in memory in C's order, where the
/// last dimension varies fastest.
///
/// ```
/// use contigo::{Error, dlpack::Shape, types::TensorRule};
/// let image = Shape::new(&[1, 3, 224, 224])?;
/// assert_eq!((image.dims(), image.elements()), ([1, 3, 224, 224].as_slice(), 150_528));
/// assert_eq!(Shape::new(&[2, -1]), Err(Error::Tensor { rule: TensorRule::Dimension, found: -1_i64 as u64, need: i64::MAX as u64 }));
/// assert_eq!(Shape::new(&[])?.elements(), 1); // a scalar
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Shape {
    dims: [i64; MAX_DIMS],
    strides: [i64; MAX_DIMS],
    count: usize,
    elements: usize,
}

impl Shape {
    /// Makes a shape of these dimensions.
    ///
    /// # Errors
    /// [`Error::Tensor`]: [`TensorRule::Dims`], more than 8; [`TensorRule::Dimension`], one is
    /// negative; [`TensorRule::Size`], more elements than there are addresses.
    #[allow(
        clippy::cast_sign_loss,
        reason = "a negative dimension is shown as its bits; a checked one is not negative"
    )]
    pub fn new(dims: &[i64]) -> Result<Self, Error> {
        let mut shape =
            Self { dims: [0; MAX_DIMS], strides: [0; MAX_DIMS], count: dims.len(), elements: 1 };
        let too_many = Error::Tensor {
            rule: TensorRule::Dims,
            found: dims.len() as u64,
            need: MAX_DIMS as u64,
        };
        shape.dims.get_mut(..dims.len()).ok_or(too_many)?.copy_from_slice(dims);
        if let Some(&negative) = dims.iter().find(|dim| **dim < 0) {
            return Err(Error::Tensor {
                rule: TensorRule::Dimension,
                found: negative as u64,
                need: i64::MAX as u64,
            });
        }
        // A dimension of 0 makes the tensor empty; the others must be countable all the same.
        let mut stride = 1_i64;
        for (stride_at, &dim) in shape.strides.iter_mut().zip(dims).rev() {
            *stride_at = stride;
            stride = stride.checked_mul(dim.max(1)).ok_or(TOO_LARGE)?;
        }
        shape.elements =
            if dims.contains(&0) { 0 } else { usize::try_from(stride).map_err(|_| TOO_LARGE)? };
        Ok(shape)
    }

    /// The dimensions, the outermost first.
    #[must_use]
    pub fn dims(&self) -> &[i64] {
        self.dims.get(..self.count).unwrap_or_default()
    }

    /// The distance between elements of each dimension, in elements.
    #[must_use]
    pub fn strides(&self) -> &[i64] {
        self.strides.get(..self.count).unwrap_or_default()
    }

    /// How many elements there are.
    #[must_use]
    pub const fn elements(&self) -> usize {
        self.elements
    }

    /// The bytes of all elements.
    ///
    /// # Errors
    /// [`Error::Tensor`] with [`TensorRule::Size`]: more than there are addresses.
    pub fn len_bytes(&self, element_bytes: usize) -> Result<usize, Error> {
        self.elements
            .checked_mul(element_bytes)
            .filter(|len| isize::try_from(*len).is_ok())
            .ok_or(TOO_LARGE)
    }

    /// Returns whether `strides` mean the same order. A dimension of one element may have any; so
    /// may all dimensions of an empty tensor.
    #[must_use]
    pub(super) fn is_compact(&self, strides: &[i64]) -> bool {
        let each = self.dims().iter().zip(self.strides()).zip(strides);
        self.elements == 0
            || each.into_iter().all(|((dim, own), stride)| *dim == 1 || own == stride)
    }
}

const TOO_LARGE: Error =
    Error::Tensor { rule: TensorRule::Size, found: u64::MAX, need: isize::MAX as u64 };
