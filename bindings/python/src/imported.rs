#![allow(unsafe_code, reason = "capsules of other frameworks")]
//! Another framework's array whose memory is a region's.

use crate::{
    error::{Refusal, of_class, raised},
    region::Memory,
};
use contigo::{
    Error,
    dlpack::{Contract, Description, Foreign, Place, Shape, abi::device},
    types::TensorRule,
};
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    ffi,
    prelude::*,
    types::{PyDict, PyTuple},
};
use std::{ffi::CStr, sync::Arc};

/// A framework's array that lies in a region: which bytes, and where a device finds them. It keeps
/// the array.
#[pyclass(frozen, module = "contigo")]
pub(crate) struct Imported {
    /// Held for its drop, which lets go of the array.
    _foreign: Foreign,
    memory: Arc<Memory>,
    shape: Shape,
    offset: usize,
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
        let size = memory.region()?.len_bytes();
        let contract = contract(contract_name)?;
        let foreign = foreign(array)?;
        let what = foreign.describe().map_err(raised)?;
        check(&what, &contract).map_err(raised)?;
        let (first, nbytes) = what.extent().map_err(raised)?;
        // An empty tensor has no address.
        let offset = if nbytes == 0 { 0 } else { first.wrapping_sub(memory.first_byte as u64) };
        match usize::try_from(offset) {
            Ok(offset) if offset <= size && nbytes <= size - offset => Ok(Self {
                _foreign: foreign,
                memory: Arc::clone(memory),
                shape: what.shape,
                offset,
                nbytes,
            }),
            _ => Err(raised(Error::NotOurs { addr: first, len_bytes: nbytes }).into()),
        }
    }
}

/// Is the tensor what `contract` demands, in memory that the CPU reaches? As the runtime's own
/// import of a region that is borrowed has it.
fn check(what: &Description, contract: &Contract) -> Result<(), Error> {
    let wrong = |rule, found, need| Err(Error::Tensor { rule, found, need });
    if !what.place.is_host() || contract.place.is_some_and(|need| need != what.place) {
        let need = contract.place.unwrap_or(Place::Cpu);
        return wrong(TensorRule::DeviceType, number(what.place), number(need));
    }
    let align = contract.align_bytes.max(1) as u64;
    if what.shape.elements() > 0 && !what.addr.is_multiple_of(align) {
        return wrong(TensorRule::Alignment, what.addr, align);
    }
    let strides = what
        .strides()
        .filter(|_| contract.contiguous && what.shape.elements() > 0)
        .unwrap_or_default();
    let mut each = what.shape.dims().iter().zip(what.shape.strides()).zip(strides);
    match each.find(|((dim, own), stride)| **dim != 1 && own != stride) {
        Some(((_, own), stride)) => {
            wrong(TensorRule::Strides, stride.cast_unsigned(), own.cast_unsigned())
        }
        None => Ok(()),
    }
}

/// A device's type, as DLPack numbers it.
fn number(place: Place) -> u64 {
    let number = match place {
        Place::Cpu => device::CPU,
        Place::CudaHost => device::CUDA_HOST,
        Place::Cuda => device::CUDA,
        _ => device::EXT_DEV,
    };
    number.unsigned_abs().into()
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
        let region = self.memory.region()?;
        let port = self.memory.port.ok_or_else(crate::port::no_port)?;
        let first = std::ptr::without_provenance(self.memory.first_byte + self.offset);
        region.dev_addr_of(&port, first, self.nbytes).map(|address| address.0).map_err(raised)
    }

    /// Where it begins, in bytes from the beginning of the region.
    #[getter]
    fn offset(&self) -> usize {
        self.offset
    }

    /// Bytes from its lowest to its highest element.
    #[getter]
    fn nbytes(&self) -> usize {
        self.nbytes
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
