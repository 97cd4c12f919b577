//! Element types by NumPy's names.

use contigo::dlpack::DataType;
use pyo3::{exceptions::PyTypeError, prelude::*};

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

    /// Of `"float32"`, `numpy.float32`, or `numpy.dtype("float32")`.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let name: String = match object.extract::<String>() {
            Ok(name) => name,
            Err(_) => match object.getattr("name") {
                Ok(name) => name.extract()?,
                Err(_) => object.getattr("__name__")?.extract()?,
            },
        };
        let found = TYPES.iter().find(|(known, ..)| *known == name);
        let (name, dlpack, typestr) = *found.ok_or_else(|| {
            let known: Vec<_> = TYPES.iter().map(|(known, ..)| *known).collect();
            PyTypeError::new_err(format!("dtype {name} is none that a device takes; these are: {}", known.join(", ")))
        })?;
        Ok(Self { name, dlpack, typestr })
    }
}
