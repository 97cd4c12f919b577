//! Names of memory, devices and drivers, what this machine has, and the doctor's checks of it.

use crate::error::{Refusal, of_class, raised, raised_as};
use contigo::Error;
use contigo::names::{
    DeviceName, DriverRow, Entry, Inventory, MemoryName, NameError, each_row, row,
};
use contigo_bringup::doctor::{Check, doctor as look};
use contigo_bringup::machine::Machine;
use contigo_objects::LoadError;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::path::{PathBuf, absolute};

/// Reads a name of memory. Another text is answered with what to write, and with what this machine
/// has.
pub(crate) fn memory(text: &str) -> Result<MemoryName, Refusal> {
    text.parse().map_err(|error: NameError| {
        raised_as(error.into(), format!("{text}: {error}; {}", Inventory::here().memory_answer()))
    })
}

/// The same for a device.
pub(crate) fn device(text: &str) -> Result<DeviceName, Refusal> {
    text.parse().map_err(|error: NameError| {
        raised_as(error.into(), format!("{text}: {error}; {}", Inventory::here().device_answer()))
    })
}

/// The driver called `name`. Another name is answered with those that there are.
pub(crate) fn driver(name: &str) -> PyResult<&'static DriverRow> {
    row(name).map_err(|_| {
        let mut known = Vec::new();
        each_row(|row| known.push(format!("{} ({})", row.name, row.help)));
        let file = if name.contains('/') || name.ends_with(".so") {
            "; one in a file is loaded first, by contigo.load_driver(path)"
        } else {
            ""
        };
        PyValueError::new_err(format!(
            "there is no driver {name:?}{file}; there are: {}",
            known.join("; ")
        ))
    })
}

/// Loads a driver from the shared library `path`, and returns its name: `device.driver(name)` opens
/// it. The same file again answers the same name. It stays loaded until the program ends, so a new
/// build of it is for a new program.
///
/// The driver is in C, in C++ or in Rust: `contigo.h` says it at `contigo_driver_library`. It needs
/// none of this package's libraries, and a program in C loads the same file.
///
/// The program promises that the file is a driver that keeps the rules there: its code runs at
/// once.
/// `NotFoundError`: the loader's words. `ArgumentError`: what the file exports cannot be, or there
/// is a driver of that name.
#[pyfunction]
pub(crate) fn load_driver(py: Python<'_>, path: PathBuf) -> Result<&'static str, Refusal> {
    const NO_LIBRARY: Error =
        Error::NoLibrary { name: "the driver's file", fix: "see what the loader says" };
    let load = || {
        // The loader looks for a name without a folder elsewhere.
        let path = absolute(&path)
            .map_err(|error| LoadError::Library(format!("{}: {error}", path.display())))?;
        // SAFETY: the program's promise, above.
        unsafe { contigo_objects::load_driver(&path) }
    };
    let row = py.detach(load).map_err(|error| match error {
        LoadError::Library(words) => raised_as(NO_LIBRARY, words),
        LoadError::Refused(contigo_objects::Refusal::Runtime(error)) => raised(error),
        other => of_class("Argument", format!("{}: {other}", path.display())),
    })?;
    Ok(row.name)
}

/// The memory and the devices of this machine, and why the rest is missing: a dict for each of
/// them, and for each kind of which there is none. Files are read, and nothing is opened.
///
/// - `what`: "memory", for `open_memory`, or "device", for `Device`
/// - `kind`, and `name`: what opens it; None where there is none of its kind
/// - `state`: "ready", "blocked" (it is there, and something keeps it from working), "absent"
/// - `size` in bytes, `address` and `coherent`: None where it is not known
/// - `note`: what it is; where it is not ready, why, and what to do
#[pyfunction]
pub(crate) fn inventory(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let (here, list) = (Inventory::here(), PyList::empty(py));
    here.memories().try_for_each(|entry| {
        list.append(described(py, "memory", &entry, entry.name.map(|name| name.help()))?)
    })?;
    here.devices().try_for_each(|entry| {
        list.append(described(py, "device", &entry, entry.name.map(|name| name.help()))?)
    })?;
    Ok(list)
}

fn described<'py, N: ToString>(
    py: Python<'py>,
    what: &str,
    entry: &Entry<N>,
    help: Option<&str>,
) -> PyResult<Bound<'py, PyDict>> {
    let state = match (&entry.name, entry.why) {
        (None, _) => "absent",
        (Some(_), Some(_)) => "blocked",
        (Some(_), None) => "ready",
    };
    let dict = PyDict::new(py);
    dict.set_item("what", what)?;
    dict.set_item("kind", entry.kind)?;
    dict.set_item("name", entry.name.as_ref().map(ToString::to_string))?;
    dict.set_item("state", state)?;
    dict.set_item("size", entry.facts.len_bytes)?;
    dict.set_item("address", entry.facts.addr)?;
    dict.set_item("coherent", entry.facts.coherent)?;
    dict.set_item("note", entry.why.or(help))?;
    Ok(dict)
}

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
        let Check { id, title, cause, cure, source, .. } = *finding.check;
        let dict = PyDict::new(py);
        for (name, text) in [("id", id), ("area", finding.area), ("title", title)] {
            dict.set_item(name, text)?;
        }
        dict.set_item("verdict", finding.outcome.verdict.name())?;
        dict.set_item("found", finding.outcome.found)?;
        for (name, text) in [("cause", cause), ("cure", cure), ("source", source)] {
            dict.set_item(name, text)?;
        }
        list.append(dict)?;
    }
    Ok(list)
}
