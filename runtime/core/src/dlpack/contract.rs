//! A consumer's demands on a tensor, checked before it sees one.

use super::{Place, Shape};
use crate::dlpack::TensorRule;
use crate::types::{Error, Result};

/// A consumer's demands on a tensor's memory. They are checked at export and at import, so that
/// what a framework would refuse, or read wrongly, is refused here first, with the numbers.
///
/// ```
/// use contigo::dlpack::Contract;
/// let mine = Contract { align_bytes: 4096, ..Contract::TVM };
/// assert!(mine.contiguous);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Contract {
    /// The first element's address is a multiple of this; 0 and 1 demand nothing.
    pub align_bytes: usize,
    /// The elements follow each other in C's order. Only tensors that are imported can break it.
    pub contiguous: bool,
    /// Where the memory is; `None`: anywhere.
    pub place: Option<Place>,
}

impl Contract {
    /// TVM: `kAllocAlignment`, 64 bytes (`include/tvm/runtime/device_api.h`), compact
    /// (`Tensor::FromDLPack` checks both), in the CPU's memory.
    pub const TVM: Self = Self { align_bytes: 64, contiguous: true, place: Some(Place::Cpu) };
    /// The alignment that `dlpack.h` demands of every data pointer: 256 bytes.
    pub const DLPACK: Self = Self { align_bytes: 256, contiguous: true, place: None };
    /// ONNX Runtime's I/O binding: 64 bytes, as its CPU allocator gives
    /// (`MlasGetPreferredBufferAlignment`), compact (`OrtValue` has no strides), in the CPU's
    /// memory.
    pub const ONNX_RUNTIME: Self =
        Self { align_bytes: 64, contiguous: true, place: Some(Place::Cpu) };
    /// NumPy: any alignment and any strides, in the CPU's memory.
    pub const NUMPY: Self = Self { align_bytes: 1, contiguous: false, place: Some(Place::Cpu) };
    /// Demands nothing but a tensor.
    pub const ANY: Self = Self { align_bytes: 1, contiguous: false, place: None };

    /// Checks that a tensor whose first element is at `addr` meets the demands. An empty tensor has
    /// no address.
    pub(super) fn check(
        &self,
        addr: u64,
        place: Place,
        shape: &Shape,
        strides: Option<&[i64]>,
    ) -> Result<()> {
        if let Some(need) = self.place.filter(|need| *need != place) {
            return Err(Error::Tensor {
                rule: TensorRule::DeviceType,
                found: place.device_type(),
                need: need.device_type(),
            });
        }
        let align = self.align_bytes.max(1) as u64;
        if shape.elements() > 0 && !addr.is_multiple_of(align) {
            return Err(Error::Tensor { rule: TensorRule::Alignment, found: addr, need: align });
        }
        if self.contiguous && strides.is_some_and(|strides| !shape.is_compact(strides)) {
            return Err(strided(shape, strides));
        }
        Ok(())
    }
}

/// The first stride that differs from C's.
#[allow(clippy::cast_sign_loss, reason = "a negative stride is shown as its bits")]
pub(super) fn strided(shape: &Shape, strides: Option<&[i64]>) -> Error {
    let wrong = shape.dims().iter().zip(shape.strides()).zip(strides.unwrap_or_default());
    let first = wrong.into_iter().find(|((dim, own), stride)| **dim != 1 && own != stride);
    let (need, found) = first.map_or((0, 0), |((_, own), stride)| (*own as u64, *stride as u64));
    Error::Tensor { rule: TensorRule::Strides, found, need }
}
