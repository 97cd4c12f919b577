//! What tools write: a block design from its `.hwh`, as dicts, and the map of a kernel.

use crate::memory::direction;
use contigo::design::kernel::{self, Protocol};
use contigo::design::{Core, Design, Reaches, Register, Snoops, Trigger, Wired};
use contigo::names::Fabric;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Display;

/// The design in a `.hwh`: its facts, and a dict for each core.
#[pyfunction]
pub(crate) fn _design<'py>(py: Python<'py>, source: &[u8]) -> PyResult<Bound<'py, PyDict>> {
    let design = Design::read(source).map_err(wrong)?;
    let dict = PyDict::new(py);
    dict.set_item("name", design.name)?;
    dict.set_item("device", design.device)?;
    dict.set_item("soc", design.soc.name())?;
    dict.set_item("tool", design.tool)?;
    let cores = PyList::empty(py);
    for core in design.cores() {
        cores.append(described(py, &core)?)?;
    }
    dict.set_item("cores", cores)?;
    Ok(dict)
}

/// Whether a bitstream is loaded here: True, False, or None where it is not known; and the same in
/// words.
#[pyfunction]
pub(crate) fn _fabric() -> (Option<bool>, String) {
    let fabric = Fabric::here();
    let loaded = match fabric {
        Fabric::Operating => Some(true),
        Fabric::NotLoaded(_) => Some(false),
        _ => None,
    };
    (loaded, fabric.to_string())
}

fn wrong(error: impl Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

fn described<'py>(py: Python<'py>, core: &Core<'_, '_>) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("name", core.name())?;
    dict.set_item("path", core.path())?;
    dict.set_item("type", core.vlnv())?;
    dict.set_item("hls", core.is_hls())?;
    dict.set_item("outside", core.is_outside())?;
    dict.set_item("chain", core.protocol() == Some(Protocol::Chain))?;
    let row = contigo::names::driver_of(core);
    dict.set_item("driver", row.map(|row| row.name))?;
    dict.set_item("memory_bytes", row.map_or(0, |row| row.memory_bytes))?;
    dict.set_item("shared", row.is_some_and(|row| row.core.is_some()))?;
    dict.set_item("parameters", core.parameters().collect::<BTreeMap<_, _>>())?;
    let settings = contigo::names::settings_of(core).map_err(wrong)?;
    let settings = settings
        .split(',')
        .filter_map(|setting| setting.split_once('='))
        .filter_map(|(key, value)| Some((key, value.parse::<u64>().ok()?)));
    dict.set_item("settings", settings.collect::<Vec<_>>())?;
    dict.set_item("device", contigo::names::device_of(core).ok().map(|name| name.to_string()))?;
    let windows = core.windows().map_err(wrong)?;
    dict.set_item(
        "windows",
        windows
            .iter()
            .map(|window| (window.interface, window.address, window.len_bytes))
            .collect::<Vec<_>>(),
    )?;
    let interrupts = PyList::empty(py);
    for interrupt in &core.interrupts().map_err(wrong)? {
        let (line, controller) = match interrupt.wired {
            Wired::Processor { line } => (Some(line), None),
            Wired::Controller { instance, input } => (None, Some((instance, input))),
            _ => (None, None),
        };
        let entry = PyDict::new(py);
        entry.set_item("pin", interrupt.pin)?;
        entry.set_item("line", line)?;
        entry.set_item("controller", controller)?;
        entry.set_item("edge", interrupt.trigger == Trigger::EdgeRising)?;
        interrupts.append(entry)?;
    }
    dict.set_item("interrupts", interrupts)?;
    let masters = PyList::empty(py);
    for master in &core.masters().map_err(wrong)? {
        let entry = PyDict::new(py);
        entry.set_item("interface", master.interface)?;
        entry.set_item("data_bits", master.data_bits)?;
        let (port, port_bits, coherent, elsewhere) = match master.reaches {
            Reaches::Memory { port, data_bits, snoops, .. } => (
                Some(port.name),
                data_bits,
                (snoops != Snoops::Unsure).then_some(snoops == Snoops::Yes),
                None,
            ),
            Reaches::Elsewhere { instance } => (None, 0, None, Some(instance)),
            _ => (None, 0, None, None),
        };
        entry.set_item("port", port)?;
        entry.set_item("port_bits", port_bits)?;
        entry.set_item("coherent", coherent)?;
        entry.set_item("elsewhere", elsewhere)?;
        masters.append(entry)?;
    }
    dict.set_item("masters", masters)?;
    match core.port() {
        Ok(port) => dict.set_item(
            "port",
            (port.name, port.offset, port.addr_bits, port.coherent, port.window.0, port.window.1),
        )?,
        Err(error) => {
            dict.set_item("port", py.None())?;
            dict.set_item("no_port", error.to_string())?;
        }
    }
    // No rate, or words that are none: None.
    let rate = |hz| (hz > 0).then_some(hz);
    dict.set_item(
        "clocks",
        core.clocks().map(|clock| (clock.pin, rate(clock.hz), clock.fabric)).collect::<Vec<_>>(),
    )?;
    let register = |register: Register<'_>| {
        (
            register.interface.to_owned(),
            register.name.to_owned(),
            register.offset,
            register.bits,
            register.argument.map(str::to_owned),
        )
    };
    let registers = core
        .registers()
        .map(|each| Ok(register(each.map_err(wrong)?)))
        .collect::<PyResult<Vec<_>>>()?;
    dict.set_item("registers", registers)?;
    Ok(dict)
}

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
