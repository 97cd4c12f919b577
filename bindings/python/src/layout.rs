//! An array's shape and element type, as Python names them.

use crate::error::{Refusal, raised};
use contigo::dlpack::{DataType, Shape};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// Name, DLPack's type, NumPy's type string ("" where NumPy has none).
const TYPES: [(&str, DataType, &str); 14] = [
    ("int8", DataType::I8, "|i1"),
    ("int16", DataType::I16, "<i2"),
    ("int32", DataType::I32, "<i4"),
    ("int64", DataType::I64, "<i8"),
    ("uint8", DataType::U8, "|u1"),
    ("uint16", DataType::U16, "<u2"),
    ("uint32", DataType::U32, "<u4"),
    ("uint64", DataType::U64, "<u8"),
    ("float16", DataType::F16, "<f2"),
    ("float32", DataType::F32, "<f4"),
    ("float64", DataType::F64, "<f8"),
    ("bfloat16", DataType::BF16, ""),
    ("complex64", DataType::COMPLEX64, "<c8"),
    ("bool", DataType::BOOL, "|b1"),
];

// NumPy's type strings name the byte order, and DLPack means the machine's.
const _: () = assert!(cfg!(target_endian = "little"));

/// An element type.
#[derive(Clone, Copy)]
pub(crate) struct Dtype {
    pub(crate) name: &'static str,
    pub(crate) dlpack: DataType,
    pub(crate) typestr: &'static str,
}

impl Dtype {
    pub(crate) const BYTES: Self = Self { name: "uint8", dlpack: DataType::U8, typestr: "|u1" };
    pub(crate) const WORDS: Self = Self { name: "uint32", dlpack: DataType::U32, typestr: "<u4" };

    /// Bytes of an element.
    pub(crate) fn bytes(self) -> Result<usize, Refusal> {
        self.dlpack.bytes().map_err(raised)
    }

    /// By its name, or as NumPy writes it for short: "u4", "<i4".
    fn called(name: &str) -> Option<Self> {
        let short = name.strip_prefix(['<', '=', '|']).unwrap_or(name);
        let found = TYPES
            .iter()
            .find(|(known, _, typestr)| *known == name || typestr.get(1..) == Some(short));
        found.map(|&(name, dlpack, typestr)| Self { name, dlpack, typestr })
    }

    /// Of an object that has a name: `numpy.float32`, `numpy.dtype("float32")`, which may have
    /// another byte order.
    fn named(object: &Bound<'_, PyAny>) -> Option<Self> {
        if object
            .getattr("isnative")
            .is_ok_and(|native| native.is_truthy().is_ok_and(|native| !native))
        {
            return None;
        }
        let name = object.getattr("name").or_else(|_| object.getattr("__name__")).ok()?;
        Self::called(&name.extract::<String>().ok()?)
    }

    /// Of what NumPy knows beside that ("I", "double", `int`), where it is installed. None is no
    /// type here: NumPy takes it for float64.
    fn of_numpy(object: &Bound<'_, PyAny>) -> Option<Self> {
        if object.is_none() {
            return None;
        }
        Self::named(
            &object.py().import("numpy").ok()?.getattr("dtype").ok()?.call1((object,)).ok()?,
        )
    }
}

impl FromPyObject<'_, '_> for Dtype {
    type Error = PyErr;

    /// Of `"float32"`, `"f4"`, `numpy.float32`, or whatever else `numpy.dtype()` takes, in this
    /// machine's byte order.
    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let found = match object.extract::<String>() {
            Ok(name) => Self::called(&name),
            Err(_) => Self::named(&object),
        };
        found.or_else(|| Self::of_numpy(&object)).ok_or_else(|| {
            let known: Vec<_> = TYPES.iter().map(|(known, ..)| *known).collect();
            let text = object.repr().map_or_else(|_| "this".into(), |text| text.to_string());
            PyTypeError::new_err(format!(
                "dtype {text} is none that a device takes; these are, in this machine's byte \
                 order and also as \"u4\" or NumPy's types: {}",
                known.join(", ")
            ))
        })
    }
}

/// A shape and an element type: the elements lie one after the other, in C's order.
#[derive(Clone, Copy)]
pub(crate) struct Layout {
    pub(crate) shape: Shape,
    pub(crate) dtype: Dtype,
}

impl Layout {
    pub(crate) fn new(dims: &[i64], dtype: Dtype) -> Result<Self, Refusal> {
        Ok(Self { shape: Shape::new(dims).map_err(raised)?, dtype })
    }

    pub(crate) fn len_bytes(&self) -> Result<usize, Refusal> {
        self.shape.len_bytes(self.dtype.bytes()?).map_err(raised)
    }

    /// Elements of each dimension.
    pub(crate) fn dims<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.shape.dims())
    }

    /// For `__repr__`.
    pub(crate) fn describe(&self) -> String {
        format!("shape={:?}, dtype={}", self.shape.dims(), self.dtype.name)
    }
}

/// The dimensions of a shape: a number, or a tuple of numbers.
pub(crate) fn dims(shape: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    let dims = match shape.extract::<i64>() {
        Ok(dim) => vec![dim],
        Err(_) => shape
            .cast::<PyTuple>()
            .map_or_else(|_| shape.extract::<Vec<i64>>(), |tuple| tuple.extract())?,
    };
    match dims.iter().find(|dim| **dim < 0) {
        Some(dim) => Err(PyValueError::new_err(format!(
            "shape {shape}: a dimension is 0 or more elements, and not {dim}"
        ))),
        None => Ok(dims),
    }
}
