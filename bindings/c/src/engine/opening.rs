#![allow(unsafe_code, reason = "that a driver is for its device is the C program's promise")]
//! Opening an engine: a driver by its name, a driver that is there already, or a GPU's kernel.

use super::queue::{ENGINES, Engine, Parents};
use crate::fault::Fault;
use crate::handles::{contigo_device, contigo_port, contigo_region};
use crate::last_error::ForeignWords;
use crate::object::device::DEVICES;
use crate::object::region::REGIONS;
use crate::object::{gpu, port_of};
use contigo::design::{Name, kernel};
use contigo::job::{AnyDriver, Parameter, Parts, Settings};
use contigo::names::{self, DriverRow, GateAt};
use contigo::{Align, Error};
use contigo_objects::driver::DRIVER_LIBRARIES;
use contigo_objects::{LoadError, Versioned, load_driver};
use core::ffi::{CStr, c_char};
use core::fmt::Write as _;
use core::mem;
use std::path::Path;

/// Says which driver an engine has, and which device.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct contigo_engine_options {
    /// `sizeof(contigo_engine_options)`.
    pub struct_size: usize,
    /// The driver's name; `contigo_inventory` lists them, with their settings and jobs. Or the path
    /// of a shared library with a driver (`contigo_driver_library`): it has a `/` in it, or ends
    /// with `.so`.
    pub driver: *const c_char,
    /// The device (`contigo_device_open`, `contigo_sim_device`).
    pub device: contigo_device,
    /// The port that its bus master is wired to; 0 where the kernel or the simulated board says it.
    pub port: contigo_port,
    /// The window of its registers: a PCI function's BAR; 0 for others.
    pub window: u32,
    /// 1: wait without the interrupt, by looking again and again.
    pub polled: u32,
    /// The region from which the driver's own memory is carved, once; 0: none. `contigo_inventory`
    /// says which drivers need it.
    pub region: contigo_region,
    /// The size of that memory; 0: as much as the driver asks for, and a page at least.
    pub region_bytes: usize,
    /// Settings that no register tells, `name=number,name=number`; NULL: none.
    pub settings: *const c_char,
    /// The description of a kernel, as its tool wrote it, for a driver that needs one; or NULL.
    pub map: *const u8,
    /// Its length.
    pub map_bytes: usize,
    /// The device that has the registers of the gate before the core (docs/stopping.md); 0: there
    /// is no gate. It is `device` where they are among the core's.
    pub gate: contigo_device,
    /// Where they begin in its window, in bytes.
    pub gate_offset: usize,
    /// Which window, as `window`.
    pub gate_window: u32,
}

// SAFETY: integers and pointers, `struct_size` first.
unsafe impl Versioned for contigo_engine_options {
    const NAME: &'static str = "contigo_engine_options";
    const LEAST: usize = mem::offset_of!(Self, gate);
}

/// The same, with its texts and small numbers checked.
pub(crate) struct EngineOptions<'t> {
    pub(crate) given: contigo_engine_options,
    pub(crate) driver: &'t str,
    pub(crate) attach: names::Attach,
    pub(crate) settings: &'t str,
    pub(crate) map: Option<&'t [u8]>,
    pub(crate) gate_window: u8,
}

impl Engine {
    /// Opens the driver of a device, and its engine.
    ///
    /// # Safety
    /// The device is what the driver is for, as its settings and its map describe it; only engines
    /// of this library drive it, and it is behind the port. As `Taken::behind`, where there is a
    /// gate.
    pub(crate) unsafe fn open(options: &EngineOptions<'_>) -> Result<u64, Fault> {
        let claimed = ENGINES.claim()?;
        // SAFETY: the caller's promise: the file is the driver of this device.
        let row = unsafe { row(options.driver)? };
        let contigo_engine_options { device, port, region, region_bytes, gate, .. } = options.given;
        let held = DEVICES.lease(device)?;
        // Its own device, or the core's.
        let own_gate = Some(gate).filter(|&gate| gate != 0 && gate != device);
        let own_gate = own_gate.map(|gate| DEVICES.lease(gate)).transpose()?;
        let region = (region != 0).then(|| REGIONS.lease(region)).transpose()?;
        let settings = Settings(options.settings);
        let port = (port != 0).then(|| port_of(port)).transpose()?;
        // SAFETY: the caller's promise.
        let mut taken = unsafe { held.take(row, settings, port, options.attach) }
            .map_err(|error| named(error, settings))?;
        if gate != 0 {
            let (window, offset) = (options.gate_window, options.given.gate_offset);
            let gate =
                GateAt { device: own_gate.as_ref().map(|gate| &gate.device), window, offset };
            // SAFETY: the caller's promise.
            taken = unsafe { taken.behind(gate)? };
        }
        // A page at least: a driver of lists has room for as many jobs as it takes.
        let len_bytes = match region_bytes {
            0 => row.memory_bytes.max(Align::PAGE.bytes()),
            given => given,
        };
        let memory = region
            .as_ref()
            .map(|region| region.memory().alloc(len_bytes, Align::PAGE))
            .transpose()?;
        let parts = Parts { device: (), memory, settings, map: options.map };
        // SAFETY: the caller's promise.
        let driver = unsafe { taken.open(parts) }
            .map_err(|error| not_opened(error, settings, options.map))?;
        Self::put(
            claimed,
            driver,
            Parents { device: Some(held), _gate: own_gate, _region: region, ..Parents::default() },
        )
    }

    /// An engine over a driver that has all it needs.
    pub(crate) fn of_driver(driver: AnyDriver) -> Result<u64, Fault> {
        Self::put(ENGINES.claim()?, driver, Parents::default())
    }

    /// An engine over a kernel of a GPU's module.
    ///
    /// # Safety
    /// As `AnyModule::kernel`.
    pub(crate) unsafe fn of_kernel(
        module: u64,
        entry: &CStr,
        parameters: &[Parameter],
    ) -> Result<u64, Fault> {
        let claimed = ENGINES.claim()?;
        // SAFETY: the caller's promise.
        let (driver, module) = unsafe { gpu::kernel(module, entry, parameters)? };
        Self::put(claimed, driver, Parents { _module: Some(module), ..Parents::default() })
    }
}

/// The driver of that name, or in the shared library of that path.
///
/// # Safety
/// As `load_driver`.
unsafe fn row(driver: &str) -> Result<&'static DriverRow, Fault> {
    const NO_LIBRARY: Error = Error::NoLibrary {
        name: "the driver's file",
        fix: "docs/write-a-driver.md has how it is made",
    };
    if !driver.contains('/') && !driver.ends_with(".so") {
        return Ok(names::row(driver)?);
    }
    // dlopen(3) looks for a name without a folder elsewhere.
    let here = Path::new(".");
    let path = if driver.contains('/') { driver.into() } else { here.join(driver) };
    // SAFETY: the caller's promise.
    unsafe { load_driver(&path) }.map_err(|error| match error {
        LoadError::Refused(refusal) => refusal.into(),
        LoadError::TooMany => {
            Error::TooMany { what: "drivers in shared libraries", most: DRIVER_LIBRARIES as u64 }
                .into()
        }
        other => {
            let mut words = ForeignWords::of(if let LoadError::Library(_) = other {
                "the loader"
            } else {
                "this library"
            });
            let _ = write!(words, "{other}");
            words.refusal(NO_LIBRARY)
        }
    })
}

/// Why a driver could not be opened. Where its map is none, where in the map, as
/// `contigo_kernel_open` says it.
#[cold]
fn not_opened(error: Error, settings: Settings<'_>, map: Option<&[u8]>) -> Fault {
    let built = map.map(|map| kernel::any(map, "").and_then(|map| map.build()));
    match (error, built) {
        (Error::BadMap { .. }, Some(Err(wrong))) => Fault::Map(wrong),
        _ => named(error, settings),
    }
}

/// The refusal, which names the setting where it is about one that the driver does not know.
#[cold]
fn named(error: Error, settings: Settings<'_>) -> Fault {
    match error {
        Error::UnknownSetting { place, .. } => {
            Fault::Setting { name: Name::clipped(settings.name(place)), error }
        }
        other => other.into(),
    }
}
