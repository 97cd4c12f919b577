//! Tensors as a framework would make them, and one that counts its deleter's calls.

use contigo::dlpack::{
    DataType,
    abi::{DlDevice, DlManagedTensor, DlManagedTensorVersioned, DlTensor, DlVersion, MAJOR},
};
use std::{
    ffi::c_void,
    sync::atomic::{AtomicUsize, Ordering},
};

/// A framework's tensor: it owns shape and strides, as a framework does, behind raw pointers.
pub(crate) struct Theirs {
    managed: *mut DlManagedTensorVersioned,
    shape: *mut [i64],
    strides: *mut [i64],
    deleted: *mut AtomicUsize,
}

impl Theirs {
    /// `dims` floats at `data`, in C's order.
    pub(crate) fn new(data: *mut u8, dims: &[i64]) -> Self {
        let mut strides = vec![1_i64; dims.len()];
        for at in (1..dims.len()).rev() {
            strides[at - 1] = strides[at].wrapping_mul(dims[at].max(1));
        }
        let (shape, strides) =
            (Box::<[i64]>::into_raw(dims.into()), Box::into_raw(strides.into_boxed_slice()));
        let deleted = Box::into_raw(Box::<AtomicUsize>::default());
        let tensor = DlTensor {
            data: data.cast(),
            device: DlDevice { device_type: 1, device_id: 0 },
            ndim: i32::try_from(dims.len()).unwrap(),
            dtype: DataType::F32,
            shape: shape.cast(),
            strides: strides.cast(),
            byte_offset: 0,
        };
        let version = DlVersion { major: MAJOR, minor: 99 };
        let managed = DlManagedTensorVersioned {
            version,
            manager_ctx: deleted.cast::<c_void>(),
            deleter: Some(count_versioned),
            flags: 0,
            tensor,
        };
        Self { managed: Box::into_raw(Box::new(managed)), shape, strides, deleted }
    }

    pub(crate) fn with_strides(self, strides: &[i64]) -> Self {
        // SAFETY: this value's own, and the tensor is not given away yet.
        unsafe { (*self.strides).copy_from_slice(strides) };
        self
    }

    /// The tensor, before it is given away.
    pub(crate) fn managed(&mut self) -> &mut DlManagedTensorVersioned {
        // SAFETY: as above.
        unsafe { &mut *self.managed }
    }

    /// The tensor to give away. This value outlives it.
    pub(crate) fn give(&self) -> *mut DlManagedTensorVersioned {
        self.managed
    }

    /// The same in the old form.
    pub(crate) fn legacy(&mut self) -> DlManagedTensor {
        let managed = self.managed();
        DlManagedTensor {
            tensor: managed.tensor,
            manager_ctx: managed.manager_ctx,
            deleter: Some(count_legacy),
        }
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
            drop((
                Box::from_raw(self.shape),
                Box::from_raw(self.strides),
                Box::from_raw(self.deleted),
            ));
        }
    }
}

unsafe extern "C" fn count_versioned(tensor: *mut DlManagedTensorVersioned) {
    // SAFETY: the context is the counter of a `Theirs`, which outlives its tensor.
    unsafe { (*(*tensor).manager_ctx.cast::<AtomicUsize>()).fetch_add(1, Ordering::Relaxed) };
}

unsafe extern "C" fn count_legacy(tensor: *mut DlManagedTensor) {
    // SAFETY: as above.
    unsafe { (*(*tensor).manager_ctx.cast::<AtomicUsize>()).fetch_add(1, Ordering::Relaxed) };
}
