#![allow(unsafe_code, reason = "structures and memory of another library, behind raw pointers")]
//! A tensor from another framework.

use super::abi::{DlManagedTensor, DlManagedTensorVersioned, DlTensor, MAJOR, READ_ONLY};
use super::contract::strided;
use super::shape::MAX_DIMS;
use super::{DataType, Place, Shape};
use crate::dlpack::TensorRule;
use crate::mem::CpuBuf;
use crate::types::{Error, Result};
use core::ptr::NonNull;
use core::{fmt, slice};

/// A tensor that a framework has given away: this value is its consumer, and calls its deleter when
/// it is dropped. [`describe`](Self::describe) checks the tensor's description, which is not
/// trusted before.
pub struct Foreign(Form);

#[derive(Clone, Copy, Debug)]
enum Form {
    Versioned(NonNull<DlManagedTensorVersioned>),
    Legacy(NonNull<DlManagedTensor>),
}

// SAFETY: DLPack lets a consumer call the deleter on any thread.
unsafe impl Send for Foreign {}
// SAFETY: `&Foreign` only reads the structure, which its producer leaves as it is until the deleter
// is called.
unsafe impl Sync for Foreign {}

/// A tensor's description of itself, checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Description {
    /// The type of an element.
    pub dtype: DataType,
    /// How many elements there are.
    pub shape: Shape,
    /// Where the memory is.
    pub place: Place,
    /// The first element's address: the data pointer and `byte_offset` together. 0 if there is
    /// none.
    pub addr: u64,
    /// The producer forbids writing. Always false in the form before DLPack 1.0.
    pub read_only: bool,
    /// The distance between elements of each dimension, in elements, if they do not follow each
    /// other in C's order.
    strides: Option<[i64; MAX_DIMS]>,
}

impl Foreign {
    /// Takes ownership of a tensor.
    ///
    /// # Errors
    /// [`Error::Tensor`] with [`TensorRule::NullTensor`].
    ///
    /// # Safety
    /// `tensor` is null, or its producer gave it to this consumer alone. It stays valid until this
    /// value calls the deleter, with `ndim` entries in its shape and in its strides where they are
    /// not null. With another major version, only the fields up to `flags` are read.
    pub unsafe fn from_versioned(tensor: *mut DlManagedTensorVersioned) -> Result<Self> {
        NonNull::new(tensor).map(|tensor| Self(Form::Versioned(tensor))).ok_or(NULL_TENSOR)
    }

    /// The same for the form before DLPack 1.0.
    ///
    /// # Errors
    /// As [`from_versioned`](Self::from_versioned).
    ///
    /// # Safety
    /// As [`from_versioned`](Self::from_versioned).
    pub unsafe fn from_legacy(tensor: *mut DlManagedTensor) -> Result<Self> {
        NonNull::new(tensor).map(|tensor| Self(Form::Legacy(tensor))).ok_or(NULL_TENSOR)
    }

    /// The tensor's description.
    ///
    /// # Errors
    /// [`Error::Tensor`]: another major version, more than 8 dimensions or fewer than 0, no shape,
    /// a negative dimension, more elements than addresses, a type of no whole bytes or of several
    /// lanes, a device type that is not ours, elements but no data.
    pub fn describe(&self) -> Result<Description> {
        // SAFETY: valid until the deleter is called (`from_versioned`); the version is checked
        // before what depends on it is read.
        let (tensor, flags) = unsafe {
            match self.0 {
                Form::Legacy(tensor) => ((&raw const (*tensor.as_ptr()).tensor).read(), 0),
                Form::Versioned(tensor) => {
                    let tensor = tensor.as_ptr();
                    let version = (&raw const (*tensor).version).read();
                    if version.major != MAJOR {
                        return Err(refusal(
                            TensorRule::MajorVersion,
                            version.major.into(),
                            MAJOR.into(),
                        ));
                    }
                    ((&raw const (*tensor).tensor).read(), (&raw const (*tensor).flags).read())
                }
            }
        };
        // SAFETY: shape and strides have `ndim` entries (`from_versioned`).
        unsafe { describe(&tensor, flags & READ_ONLY != 0) }
    }

    /// Copies the elements to the beginning of `buf`, and counts them as copied: for data that lies
    /// elsewhere. Returns the number of bytes.
    ///
    /// # Errors
    /// As [`describe`](Self::describe). [`Error::Tensor`]: [`TensorRule::DeviceType`], the CPU
    /// cannot read the elements; [`TensorRule::Strides`], they do not follow each other;
    /// [`TensorRule::Address`], on 32 bits no pointer reaches them. [`Error::OutOfRange`]: they do
    /// not fit.
    ///
    /// # Safety
    /// The elements are where the tensor says, and no other code and no device writes them
    /// meanwhile.
    #[cfg_attr(feature = "audit", track_caller)]
    pub unsafe fn copy_to(&self, buf: &mut CpuBuf) -> Result<usize> {
        let what = self.describe()?;
        if !what.place.is_host() {
            return Err(refusal(
                TensorRule::DeviceType,
                what.place.device_type(),
                Place::Cpu.device_type(),
            ));
        }
        if let Some(strides) = what.strides() {
            return Err(strided(&what.shape, Some(strides)));
        }
        let len_bytes = what.shape.len_bytes(what.dtype.bytes()?)?;
        // On 32 bits pointer and `byte_offset` together may be more than a pointer.
        let first = usize::try_from(what.addr)
            .map_err(|_| refusal(TensorRule::Address, what.addr, usize::MAX as u64))?;
        let Some(first) = NonNull::new(core::ptr::with_exposed_provenance_mut::<u8>(first)) else {
            return Ok(0);
        };
        // SAFETY: the caller's promise; the buffer's bytes are the caller's alone, so the elements
        // are other bytes.
        buf.copy_from_slice(unsafe { slice::from_raw_parts(first.as_ptr(), len_bytes) })?;
        Ok(len_bytes)
    }
}

impl Description {
    /// The strides, where they differ from C's.
    #[must_use]
    pub fn strides(&self) -> Option<&[i64]> {
        self.strides.as_ref().and_then(|strides| strides.get(..self.shape.dims().len()))
    }

    /// The bytes from the lowest to the highest element: their first address, and their number.
    ///
    /// # Errors
    /// [`Error::Tensor`] with [`TensorRule::Size`]: they go beyond all addresses.
    pub fn extent(&self) -> Result<(u64, usize)> {
        let element_bytes = self.dtype.bytes()? as i128;
        let (mut low, mut high) = (0_i128, 0_i128);
        if self.shape.elements() == 0 {
            return Ok((self.addr, 0));
        }
        for (dim, stride) in
            self.shape.dims().iter().zip(self.strides().unwrap_or(self.shape.strides()))
        {
            // 8 dimensions of at most 2^63 steps of at most 2^63: below 2^127 only where each
            // product is; the sum is checked.
            let reach = i128::from(*dim - 1).checked_mul(i128::from(*stride)).ok_or(BEYOND)?;
            let end = if reach < 0 { &mut low } else { &mut high };
            *end = end.checked_add(reach).ok_or(BEYOND)?;
        }
        let bytes = |elements: i128| elements.checked_mul(element_bytes).ok_or(BEYOND);
        let first = i128::from(self.addr) + bytes(low)?;
        let len = bytes(high.checked_sub(low).and_then(|span| span.checked_add(1)).ok_or(BEYOND)?)?;
        let first = u64::try_from(first).map_err(|_| BEYOND)?;
        let len = usize::try_from(len)
            .ok()
            .filter(|len| first.checked_add(*len as u64).is_some())
            .ok_or(BEYOND)?;
        Ok((first, len))
    }
}

const NULL_TENSOR: Error = refusal(TensorRule::NullTensor, 0, 1);
const BEYOND: Error = refusal(TensorRule::Size, u64::MAX, isize::MAX as u64);

const fn refusal(rule: TensorRule, found: u64, need: u64) -> Error {
    Error::Tensor { rule, found, need }
}

/// # Safety
/// Shape and strides are null or have `ndim` entries.
#[allow(clippy::cast_sign_loss, reason = "a negative number is shown as its bits")]
unsafe fn describe(tensor: &DlTensor, read_only: bool) -> Result<Description> {
    let count = usize::try_from(tensor.ndim).ok().filter(|count| *count <= MAX_DIMS);
    let count =
        count.ok_or(refusal(TensorRule::Dims, i64::from(tensor.ndim) as u64, MAX_DIMS as u64))?;
    let read = |from: *mut i64| {
        let mut entries = [0; MAX_DIMS];
        for (index, entry) in entries.iter_mut().enumerate().take(count) {
            // SAFETY: not null, and an index below `ndim`. A producer may keep them at any
            // alignment.
            *entry = unsafe { from.add(index).read_unaligned() };
        }
        entries
    };
    if count > 0 && tensor.shape.is_null() {
        return Err(refusal(TensorRule::NullShape, 0, count as u64));
    }
    let dims = if count == 0 { [0; MAX_DIMS] } else { read(tensor.shape) };
    let shape = Shape::new(dims.get(..count).unwrap_or_default())?;
    let element_bytes = tensor.dtype.bytes()?;
    shape.len_bytes(element_bytes)?;
    let device_type = i64::from(tensor.device.device_type) as u64;
    let place = Place::of(tensor.device.device_type).ok_or(refusal(
        TensorRule::DeviceType,
        device_type,
        Place::Cpu.device_type(),
    ))?;
    let strides = (count > 0 && !tensor.strides.is_null()).then(|| read(tensor.strides));
    let strides =
        strides.filter(|strides| !shape.is_compact(strides.get(..count).unwrap_or_default()));
    let addr = if shape.elements() == 0 {
        0
    } else if tensor.data.is_null() {
        return Err(refusal(TensorRule::NullData, 0, shape.elements() as u64));
    } else {
        // Its provenance is exposed for code that follows the address (`copy_to`).
        (tensor.data.expose_provenance() as u64).checked_add(tensor.byte_offset).ok_or(BEYOND)?
    };
    Ok(Description { dtype: tensor.dtype, shape, place, addr, read_only, strides })
}

impl Drop for Foreign {
    /// Calls the deleter, if there is one: it is at the same place in every version.
    fn drop(&mut self) {
        // SAFETY: this value is the tensor's only consumer (`from_versioned`), and `drop` runs
        // once.
        unsafe {
            match self.0 {
                Form::Versioned(tensor) => {
                    if let Some(delete) = (&raw const (*tensor.as_ptr()).deleter).read() {
                        delete(tensor.as_ptr());
                    }
                }
                Form::Legacy(tensor) => {
                    if let Some(delete) = (&raw const (*tensor.as_ptr()).deleter).read() {
                        delete(tensor.as_ptr());
                    }
                }
            }
        }
    }
}

impl fmt::Debug for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Foreign").field(&self.0).finish()
    }
}
