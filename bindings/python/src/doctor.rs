//! The doctor's checks of a machine, as the tool has them.

use crate::error::of_class;
use contigo_bringup::{
    doctor::{Check, doctor as look},
    machine::Machine,
};
use pyo3::{
    prelude::*,
    types::{PyDict, PyList},
};
use std::path::PathBuf;

/// A dict for each check of this machine, or of the one whose copy is below the folder `machine`.
/// Files are read, nothing is opened, and nothing is written.
///
/// - `id`: its name; `area`, and `title`: the thing that should hold
/// - `verdict`: "fine", "skipped", "note" or "fault"; `found`: the numbers behind it
/// - `cause`, `cure`, and `source`: the thread or the file that it comes from
#[pyfunction]
#[pyo3(signature = (*, machine = None))]
pub(crate) fn doctor(py: Python<'_>, machine: Option<PathBuf>) -> PyResult<Bound<'_, PyList>> {
    let look = || look(&machine.map_or_else(Machine::this, Machine::copy));
    let findings = py.detach(look).map_err(|error| of_class("NotFound", error.to_string()))?;
    let list = PyList::empty(py);
    for finding in findings {
        let Check { id, area, title, cause, cure, source, .. } = *finding.check;
        let dict = PyDict::new(py);
        for (name, text) in [
            ("id", id),
            ("area", area),
            ("title", title),
            ("verdict", finding.outcome.verdict.name()),
        ] {
            dict.set_item(name, text)?;
        }
        dict.set_item("found", finding.outcome.found)?;
        for (name, text) in [("cause", cause), ("cure", cure), ("source", source)] {
            dict.set_item(name, text)?;
        }
        list.append(dict)?;
    }
    Ok(list)
}
