//! A build of the Python package of one's own: everything that it has, and two drivers that are
//! in other crates, registered before Python asks for them.
//!
//! The library takes the place of `contigo/_contigo.abi3.so`; `tests/interop/run` puts it there.
#![deny(unsafe_op_in_unsafe_fn, clippy::undocumented_unsafe_blocks)]

mod camera;

use contigo::names::register;
use pyo3::{exceptions::PyImportError, prelude::*};

#[pymodule]
fn _contigo(module: &Bound<'_, PyModule>) -> PyResult<()> {
    for row in [&camera::ROW, &contigo_gemm8::ROW] {
        register(row).map_err(|error| PyImportError::new_err(format!("{}: {error}", row.name)))?;
    }
    contigo_python::fill(module)?;
    module.add_function(wrap_pyfunction!(camera::camera_runs, module)?)
}
