//! The names of 0.1, for this release.

use pyo3::prelude::*;

/// A `DeprecationWarning` for the line of the program that used the old name.
pub(crate) fn renamed(py: Python<'_>, old: &str, new: &str) -> PyResult<()> {
    py.import("contigo._renamed")?.getattr("renamed")?.call1((old, new)).map(drop)
}
