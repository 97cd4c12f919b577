//! A build of the Python package of one's own: everything that it has, and two drivers that are
//! in other crates, registered before Python asks for them.
//!
//! The library takes the place of `contigo/_contigo.abi3.so`; `tests/interop/run` puts it there.
#![deny(unsafe_op_in_unsafe_fn, clippy::undocumented_unsafe_blocks)]

mod camera;

use contigo::{names, sim};
use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;

#[pymodule]
fn _contigo(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let registered = names::register(&camera::ROW)
        .and_then(|()| sim::register("camera", camera::model))
        .and_then(|()| contigo_gemm8::register());
    registered.map_err(|error| PyImportError::new_err(format!("camera, gemm8: {error}")))?;
    contigo_python::fill(module)?;
    module.add_function(wrap_pyfunction!(camera::camera_runs, module)?)
}
