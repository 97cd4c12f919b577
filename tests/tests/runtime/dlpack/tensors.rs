//! A tensor as a framework would make it, which counts its deleter's calls.

use contigo::dlpack::DataType;
use contigo::dlpack::abi::{DlDevice, DlManagedTensorVersioned, DlTensor, DlVersion, MAJOR};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A framework's tensor: it owns its shape, as a framework does, behind raw pointers.
pub(crate) struct Theirs {
    managed: *mut DlManagedTensorVersioned,
    shape: *mut [i64],
    deleted: *mut AtomicUsize,
}

impl Theirs {
    /// `dims` floats at `data`, in C's order.
    pub(crate) fn new(data: *mut u8, dims: &[i64]) -> Self {
        let shape = Box::<[i64]>::into_raw(dims.into());
        let deleted = Box::into_raw(Box::<AtomicUsize>::default());
        let tensor = DlTensor {
            data: data.cast(),
            device: DlDevice { device_type: 1, device_id: 0 },
            ndim: i32::try_from(dims.len()).unwrap(),
            dtype: DataType::F32,
            shape: shape.cast(),
            strides: ptr::null_mut(),
            byte_offset: 0,
        };
        let managed = DlManagedTensorVersioned {
            version: DlVersion { major: MAJOR, minor: 99 },
            manager_ctx: deleted.cast(),
            deleter: Some(count),
            flags: 0,
            tensor,
        };
        Self { managed: Box::into_raw(Box::new(managed)), shape, deleted }
    }

    /// The tensor, before it is given away.
    pub(crate) fn managed(&mut self) -> &mut DlManagedTensorVersioned {
        // SAFETY: this value's own, and the tensor is not given away yet.
        unsafe { &mut *self.managed }
    }

    /// The tensor to give away. This value outlives it.
    pub(crate) fn give(&self) -> *mut DlManagedTensorVersioned {
        self.managed
    }

    /// How often its deleter was called.
    pub(crate) fn deleted(&self) -> usize {
        // SAFETY: this value's own.
        unsafe { (*self.deleted).load(Ordering::Relaxed) }
    }
}

impl Drop for Theirs {
    fn drop(&mut self) {
        // SAFETY: `new` made them, and no code has the tensor any more.
        unsafe {
            drop(Box::from_raw(self.managed));
            drop((Box::from_raw(self.shape), Box::from_raw(self.deleted)));
        }
    }
}

unsafe extern "C" fn count(tensor: *mut DlManagedTensorVersioned) {
    // SAFETY: the context is the counter of a `Theirs`, which outlives its tensor.
    unsafe { (*(*tensor).manager_ctx.cast::<AtomicUsize>()).fetch_add(1, Ordering::Relaxed) };
}
