//! The module `contigo._contigo` of the package: everything of `contigo-python`, and the drivers of
//! the runtime. A build with drivers of one's own is a crate like this one:
//! `tests/interop/own`.

use pyo3::prelude::*;

#[pymodule]
fn _contigo(module: &Bound<'_, PyModule>) -> PyResult<()> {
    contigo_python::fill(module)
}
