#![allow(unsafe_code, reason = "that a driver is for its device is the C program's promise")]
//! Opening an engine: a driver by its name, a driver that is there already, or a GPU's kernel.

use super::queue::{ENGINES, Engine, Parents};
use crate::{
    fault::Fault,
    last_error::ForeignWords,
    object::{device::UsedDevice, gpu, region::REGIONS},
};
use contigo::{
    Align, Error,
    design::{Name, kernel},
    job::{AnyDriver, Parameter, Parts, Settings},
    names::{self, DriverRow, GateAt},
};
use contigo_objects::{LoadError, driver::DRIVER_LIBRARIES, load_driver};
use core::{ffi::CStr, fmt::Write as _};
use std::path::Path;

/// The options of an engine that is to be opened.
pub(crate) struct EngineOptions<'t> {
    /// The driver's name.
    pub(crate) driver: &'t str,
    /// The device, and how it is attached.
    pub(crate) device: u64,
    /// 0: the kernel or the simulated board says it.
    pub(crate) port: u64,
    pub(crate) attach: names::Attach,
    /// Where the driver's own memory is allocated from; 0: none.
    pub(crate) region: u64,
    /// How much of it; 0: as much as the driver asks for.
    pub(crate) region_bytes: usize,
    pub(crate) settings: &'t str,
    pub(crate) map: Option<&'t [u8]>,
    /// The gate before the core, if there is one.
    pub(crate) gate: Option<Gate>,
}

/// Where a gate's registers are.
pub(crate) struct Gate {
    /// Its own device, or the core's.
    pub(crate) device: u64,
    pub(crate) window: u8,
    pub(crate) offset: usize,
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
        let held = UsedDevice::of(options.device)?;
        let own_gate =
            options.gate.as_ref().map(|gate| gate.device).filter(|&gate| gate != options.device);
        let gate = own_gate.map(UsedDevice::of).transpose()?;
        let region = (options.region != 0).then(|| REGIONS.lease(options.region)).transpose()?;
        let settings = Settings(options.settings);
        // SAFETY: the caller's promise.
        let mut taken = unsafe { held.take(row, settings, options.port, options.attach) }
            .map_err(|error| named(error, settings))?;
        if let Some(Gate { window, offset, .. }) = options.gate {
            let device = gate.as_deref();
            // SAFETY: the caller's promise.
            taken = unsafe { taken.behind(GateAt { device, window, offset })? };
        }
        // A page at least: a driver of lists has room for as many jobs as it takes.
        let len_bytes = if options.region_bytes == 0 {
            row.memory_bytes.max(Align::PAGE.bytes())
        } else {
            options.region_bytes
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
            Parents { device: Some(held), _gate: gate, _region: region, ..Parents::default() },
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
        _ => named(error.into(), settings),
    }
}

/// The refusal, which names the setting where it is about one that the driver does not know.
#[cold]
fn named(refused: Fault, settings: Settings<'_>) -> Fault {
    match refused {
        Fault::Runtime(error @ Error::UnknownSetting { place, .. }) => {
            Fault::Setting { name: Name::clipped(settings.name(place)), error }
        }
        other => other,
    }
}
