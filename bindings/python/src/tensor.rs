#![allow(unsafe_code, reason = "capsules, and the structures and deleters of DLPack")]
//! DLPack's capsules. A buffer's tensor goes to any number of consumers, each with a structure of
//! its own, which keeps the buffer; and a framework's tensor that lies in a region comes in.

use crate::error::{Refusal, of_class, raised};
use crate::inner::CountedView;
use crate::layout::Layout;
use crate::local::ProcessLocal;
use crate::memory::Memory;
use contigo::dlpack::abi::{
    DlDevice, DlManagedTensor, DlManagedTensorVersioned, DlTensor, DlVersion, MAJOR, MINOR,
    READ_ONLY,
};
use contigo::dlpack::{self, Contract, Foreign, Shape};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::ffi::{CStr, c_void};
use std::sync::Arc;

const VERSIONED: &CStr = c"dltensor_versioned";
const LEGACY: &CStr = c"dltensor";

/// One consumer's tensor.
struct Export {
    versioned: DlManagedTensorVersioned,
    legacy: DlManagedTensor,
    dims: Vec<i64>,
    strides: Vec<i64>,
    _view: CountedView,
}

/// The form that the consumer takes, and whether it may write.
#[derive(Clone, Copy)]
pub(crate) struct Form {
    /// The form of DLPack 1.0.
    versioned: bool,
    read_only: bool,
}

impl Form {
    /// For a consumer that takes DLPack up to `max_version`. One that may not write needs the newer
    /// form, which alone can say it.
    pub(crate) fn of(max_version: Option<(u32, u32)>, read_only: bool) -> Result<Self, Refusal> {
        let versioned = max_version.is_some_and(|(major, _)| major >= 1);
        if read_only && !versioned {
            return Err(of_class(
                "Buffer",
                "this is for reading only, which a consumer older than DLPack 1.0 would not know",
            ));
        }
        Ok(Self { versioned, read_only })
    }
}

/// Refuses what `__dlpack__` may be asked for beside the tensor: a copy, or the tensor of another
/// device. `what` names the memory for the message.
pub(crate) fn no_copy(
    what: &str,
    own: DlDevice,
    wanted: Option<(i32, i32)>,
    copy: Option<bool>,
) -> Result<(), Refusal> {
    if wanted.is_some_and(|wanted| wanted != (own.device_type, own.device_id)) {
        let text = format!("{what}, and is copied to no other device: see __dlpack_device__");
        return Err(of_class("Buffer", text));
    }
    if copy == Some(true) {
        let text = "this is never copied: copy the array or the tensor that you made of it";
        return Err(of_class("Buffer", text));
    }
    Ok(())
}

/// Where a consumer finds a tensor's elements.
#[derive(Clone, Copy)]
pub(crate) struct Elements {
    pub(crate) data: *mut c_void,
    pub(crate) byte_offset: u64,
    pub(crate) device: DlDevice,
}

/// A capsule with the tensor of `view`.
pub(crate) fn capsule(
    py: Python<'_>,
    view: CountedView,
    Elements { data, byte_offset, device }: Elements,
    Layout { shape, dtype }: &Layout,
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

/// A framework's array that lies in a region: which bytes, and where a device finds them. It keeps
/// the array. In a child of fork the array is the parent's, and its deleter is not called there.
#[pyclass(frozen, module = "contigo")]
pub(crate) struct Imported {
    tensor: ProcessLocal<dlpack::Imported>,
    memory: Arc<Memory>,
    shape: Shape,
    /// Where it begins, in bytes from the beginning of the region.
    #[pyo3(get)]
    offset: usize,
    /// Bytes from its lowest to its highest element.
    #[pyo3(get)]
    nbytes: usize,
}

/// "any", "numpy", "tvm", "onnxruntime", "dlpack".
fn contract(name: &str) -> PyResult<Contract> {
    Ok(match name {
        "any" => Contract::ANY,
        "numpy" => Contract::NUMPY,
        "tvm" => Contract::TVM,
        "onnxruntime" => Contract::ONNX_RUNTIME,
        "dlpack" => Contract::DLPACK,
        _ => {
            return Err(PyValueError::new_err(format!(
                "there is no contract {name}: any, numpy, tvm, onnxruntime, dlpack"
            )));
        }
    })
}

impl Imported {
    pub(crate) fn new(
        memory: &Arc<Memory>,
        array: &Bound<'_, PyAny>,
        contract_name: &str,
    ) -> PyResult<Self> {
        let contract = contract(contract_name)?;
        let tensor = dlpack::Imported::new(memory.region()?, foreign(array)?, &contract)
            .map_err(|refused| raised(refused.error))?;
        Ok(Self {
            shape: *tensor.shape(),
            offset: tensor.offset_bytes(),
            nbytes: tensor.len_bytes(),
            tensor: ProcessLocal::new(tensor),
            memory: Arc::clone(memory),
        })
    }
}

/// The tensor of an object that has `__dlpack__`, in either form.
fn foreign(array: &Bound<'_, PyAny>) -> PyResult<Foreign> {
    let arguments = PyDict::new(array.py());
    arguments.set_item("max_version", (1, 1))?;
    let capsule = match array.call_method("__dlpack__", (), Some(&arguments)) {
        // Before DLPack 1.0, `__dlpack__` had no argument `max_version`.
        Err(error) if error.is_instance_of::<PyTypeError>(array.py()) => {
            array.call_method0("__dlpack__")?
        }
        capsule => capsule?,
    };
    let take = |name: &CStr, used: &'static CStr| {
        // SAFETY: any object may be asked; a capsule of this name holds a tensor, which belongs to
        // the consumer that renames the capsule.
        unsafe {
            if ffi::PyCapsule_IsValid(capsule.as_ptr(), name.as_ptr()) == 0 {
                return None;
            }
            let tensor = ffi::PyCapsule_GetPointer(capsule.as_ptr(), name.as_ptr());
            (ffi::PyCapsule_SetName(capsule.as_ptr(), used.as_ptr()) == 0).then_some(tensor)
        }
    };
    if let Some(tensor) = take(c"dltensor_versioned", c"used_dltensor_versioned") {
        // SAFETY: a producer's tensor, taken out of its capsule just now.
        return Ok(unsafe { Foreign::from_versioned(tensor.cast()) }.map_err(raised)?);
    }
    if let Some(tensor) = take(c"dltensor", c"used_dltensor") {
        // SAFETY: as above.
        return Ok(unsafe { Foreign::from_legacy(tensor.cast()) }.map_err(raised)?);
    }
    Err(of_class("Buffer", "__dlpack__ returned no capsule with a tensor").into())
}

#[pymethods]
impl Imported {
    /// The bus address of its lowest element.
    #[getter]
    fn device_address(&self) -> Result<u64, Refusal> {
        let tensor = self.tensor.get()?;
        tensor.dev_addr(&self.memory.port()?).map(|address| address.0).map_err(raised)
    }

    /// Elements of each dimension.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.shape.dims())
    }

    fn __repr__(&self) -> String {
        format!(
            "contigo.Imported(shape={:?}, offset={}, nbytes={})",
            self.shape.dims(),
            self.offset,
            self.nbytes
        )
    }
}
