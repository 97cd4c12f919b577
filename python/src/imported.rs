#![allow(unsafe_code, reason = "capsules of other frameworks")]
//! Another framework's array whose memory is a region's.

use crate::{
    error::{Refusal, of_class, raised},
    mine::Mine,
    region::Memory,
};
use contigo::dlpack::{Contract, Foreign, Imported as Runtimes};
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    ffi,
    prelude::*,
    types::{PyDict, PyTuple},
};
use std::ffi::CStr;

/// A framework's array that lies in a region: which bytes, and where a device finds them. It keeps
/// the array.
#[pyclass(frozen, module = "contigo")]
pub(crate) struct Imported {
    imported: Runtimes<'static>,
    memory: Mine<&'static Memory>,
}

/// "any", "numpy", "tvm", "onnxruntime", "dlpack".
fn contract(name: &str) -> PyResult<Contract> {
    Ok(match name {
        "any" => Contract::ANY,
        "numpy" => Contract::NUMPY,
        "tvm" => Contract::TVM,
        "onnxruntime" => Contract::ONNX_RUNTIME,
        "dlpack" => Contract::DLPACK,
        _ => return Err(PyValueError::new_err(format!("there is no contract {name}: any, numpy, tvm, onnxruntime, dlpack"))),
    })
}

impl Imported {
    pub(crate) fn new(memory: &'static Memory, array: &Bound<'_, PyAny>, contract_name: &str) -> PyResult<Self> {
        let contract = contract(contract_name)?;
        let imported = Runtimes::new(&memory.region, foreign(array)?, &contract).map_err(raised)?;
        Ok(Self { imported, memory: Mine::new(memory) })
    }
}

/// The tensor of an object that has `__dlpack__`, in either form.
fn foreign(array: &Bound<'_, PyAny>) -> PyResult<Foreign> {
    let arguments = PyDict::new(array.py());
    arguments.set_item("max_version", (1, 1))?;
    let capsule = match array.call_method("__dlpack__", (), Some(&arguments)) {
        // Before DLPack 1.0 nobody asked for a version.
        Err(error) if error.is_instance_of::<PyTypeError>(array.py()) => array.call_method0("__dlpack__")?,
        capsule => capsule?,
    };
    let take = |name: &CStr, used: &'static CStr| {
        // SAFETY: any object may be asked; a capsule of this name holds a tensor whose consumer is
        // whoever renames it.
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
        let port = self.memory.get()?.port.ok_or_else(crate::buffer::no_port)?;
        self.imported.dev_addr(&port).map(|address| address.0).map_err(raised)
    }

    /// Where it begins, in bytes from the beginning of the region.
    #[getter]
    fn offset(&self) -> usize {
        self.imported.offset_bytes()
    }

    /// Bytes from its lowest to its highest element.
    #[getter]
    fn nbytes(&self) -> usize {
        self.imported.len_bytes()
    }

    /// Elements of each dimension.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.imported.shape().dims())
    }

    fn __repr__(&self) -> String {
        format!("contigo.Imported(shape={:?}, offset={}, nbytes={})", self.imported.shape().dims(), self.offset(), self.nbytes())
    }
}
