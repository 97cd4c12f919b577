#![allow(unsafe_code, reason = "capsules, and the structures and deleters of DLPack")]
//! DLPack's capsules: a buffer's tensor for any number of consumers, each with a structure of its
//! own, which keeps the buffer.

use crate::{
    dtype::Dtype,
    error::{Refusal, of_class},
    inner::Inner,
};
use contigo::dlpack::{
    Shape,
    abi::{
        DlDevice, DlManagedTensor, DlManagedTensorVersioned, DlTensor, DlVersion, MAJOR, MINOR,
        READ_ONLY,
    },
};
use pyo3::{ffi, prelude::*};
use std::{
    ffi::{CStr, c_void},
    sync::Arc,
};

const VERSIONED: &CStr = c"dltensor_versioned";
const LEGACY: &CStr = c"dltensor";

/// One consumer's tensor. Its `view` is counted: the buffer is no device's while it lives.
struct Export {
    versioned: DlManagedTensorVersioned,
    legacy: DlManagedTensor,
    dims: Vec<i64>,
    strides: Vec<i64>,
    _view: Counted,
}

/// One view of a buffer, as long as it lives.
pub(crate) struct Counted(Arc<Inner>);

impl Counted {
    /// `inner`'s count was raised for it.
    pub(crate) fn new(inner: Arc<Inner>) -> Self {
        Self(inner)
    }
    pub(crate) fn inner(&self) -> &Inner {
        &self.0
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.view_gone();
    }
}

/// The form that the consumer takes, and whether it may write.
#[derive(Clone, Copy)]
pub(crate) struct Form {
    /// The form of DLPack 1.0.
    versioned: bool,
    read_only: bool,
}

impl Form {
    /// For a consumer that takes DLPack up to `max_version`, and may write.
    pub(crate) fn of(max_version: Option<(u32, u32)>) -> Self {
        Self { versioned: max_version.is_some_and(|(major, _)| major >= 1), read_only: false }
    }

    /// The same for one that may not write, which only the newer form can say.
    pub(crate) fn read_only(self) -> Result<Self, Refusal> {
        if !self.versioned {
            return Err(of_class(
                "Buffer",
                "this is for reading only, which a consumer older than DLPack 1.0 would not know",
            ));
        }
        Ok(Self { read_only: true, ..self })
    }
}

/// Where a device finds a tensor's elements.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) data: *mut c_void,
    pub(crate) byte_offset: u64,
    pub(crate) device: DlDevice,
}

/// A capsule with the tensor of `view`, whose elements are at `place`; in the form before DLPack
/// 1.0 for consumers of that.
pub(crate) fn capsule(
    py: Python<'_>,
    view: Counted,
    Place { data, byte_offset, device }: Place,
    shape: &Shape,
    dtype: Dtype,
    form: Form,
) -> PyResult<Py<PyAny>> {
    let tensor = DlTensor {
        data: if shape.elements() == 0 { std::ptr::null_mut() } else { data },
        device,
        ndim: shape.dims().len() as i32,
        dtype: dtype.dlpack,
        shape: std::ptr::null_mut(),
        strides: std::ptr::null_mut(),
        byte_offset,
    };
    let flags = if form.read_only { READ_ONLY } else { 0 };
    let version = DlVersion { major: MAJOR, minor: MINOR };
    let null = std::ptr::null_mut();
    let export = Box::into_raw(Box::new(Export {
        versioned: DlManagedTensorVersioned {
            version,
            manager_ctx: null,
            deleter: Some(delete_versioned),
            flags,
            tensor,
        },
        legacy: DlManagedTensor { tensor, manager_ctx: null, deleter: Some(delete_legacy) },
        dims: shape.dims().to_vec(),
        strides: shape.strides().to_vec(),
        _view: view,
    }));
    // SAFETY: just made, and no other code has it. The vectors' memory stays where it is while the
    // box lives.
    let capsule = unsafe {
        let (dims, strides) = ((*export).dims.as_mut_ptr(), (*export).strides.as_mut_ptr());
        for tensor in [&raw mut (*export).versioned.tensor, &raw mut (*export).legacy.tensor] {
            ((*tensor).shape, (*tensor).strides) = (dims, strides);
        }
        ((*export).versioned.manager_ctx, (*export).legacy.manager_ctx) =
            (export.cast(), export.cast());
        let (what, name) = if form.versioned {
            ((&raw mut (*export).versioned).cast(), VERSIONED)
        } else {
            ((&raw mut (*export).legacy).cast(), LEGACY)
        };
        ffi::PyCapsule_New(what, name.as_ptr(), Some(dropped))
    };
    // SAFETY: a new reference, or null with an exception; then the export is still ours.
    unsafe {
        Bound::from_owned_ptr_or_err(py, capsule)
            .map(Bound::unbind)
            .inspect_err(|_| drop(Box::from_raw(export)))
    }
}

/// The capsule's destructor: deletes the tensor, unless a consumer took it and renamed the capsule.
unsafe extern "C" fn dropped(capsule: *mut ffi::PyObject) {
    // SAFETY: called by Python with the capsule; under one of these names its pointer is the tensor
    // that `capsule` put there.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, VERSIONED.as_ptr()) != 0 {
            delete_versioned(ffi::PyCapsule_GetPointer(capsule, VERSIONED.as_ptr()).cast());
        } else if ffi::PyCapsule_IsValid(capsule, LEGACY.as_ptr()) != 0 {
            delete_legacy(ffi::PyCapsule_GetPointer(capsule, LEGACY.as_ptr()).cast());
        }
    }
}

/// May be called on any thread, with Python's lock or without: nothing of Python's is in an export.
unsafe extern "C" fn delete_versioned(tensor: *mut DlManagedTensorVersioned) {
    // SAFETY: a consumer's tensor, once; its context is the export that it is in.
    unsafe { drop(Box::from_raw((*tensor).manager_ctx.cast::<Export>())) }
}

unsafe extern "C" fn delete_legacy(tensor: *mut DlManagedTensor) {
    // SAFETY: as above.
    unsafe { drop(Box::from_raw((*tensor).manager_ctx.cast::<Export>())) }
}
