//! The map of a kernel, from its own files.

use crate::handover::direction;
use contigo::design::kernel;
use pyo3::{exceptions::PyValueError, prelude::*};
use std::collections::HashMap;

/// The map of a kernel, as JSON: from JSON, HLS' `x<name>_hw.h`, or Vivado's `.hwh` with the name
/// of the instance. The rest is what the file does not say, by the arguments' names.
#[pyfunction]
#[pyo3(signature = (source, instance, directions, lengths, pointers, scalars))]
pub(crate) fn _kernel_map(
    source: &[u8],
    instance: &str,
    directions: HashMap<String, String>,
    lengths: HashMap<String, String>,
    pointers: Vec<String>,
    scalars: Vec<String>,
) -> PyResult<String> {
    let wrong = |error| PyValueError::new_err(format!("the kernel's map: {error}"));
    let mut map = kernel::any(source, instance).map_err(wrong)?;
    map = pointers.iter().fold(map, |map, name| map.as_pointer(name));
    map = scalars.iter().fold(map, |map, name| map.as_scalar(name));
    for (name, word) in &directions {
        map = map.direction(name, direction(word)?);
    }
    map = lengths.iter().fold(map, |map, (name, rule)| map.length(name, rule));
    Ok(map.build().map_err(wrong)?.to_string())
}
