#![allow(unsafe_code, reason = "which core is behind registers is the program's word")]
//! How every language opens it by its name: with the kernel's map as its tool wrote it.

use super::ApCtrl;
use contigo_core::{
    hw::Device,
    job::{AnyDriver, DriverRow, Parts},
    types::{Error, MAX_TIMEOUT, Result, timeout_us},
};
use contigo_design::kernel;
use core::time::Duration;

const SETTINGS: &[&str] = &["stop_us"];

/// Its row in the table of drivers.
pub(crate) const fn row<D: Device + Send + Sync + 'static>() -> DriverRow<D> {
    DriverRow::new("ap_ctrl", "any kernel of Vitis HLS, by its map: JSON, x<name>_hw.h or .hwh; setting stop_us. sim:ap_ctrl is a chain, copy(from, to, n); sim:ap_ctrl_hs is none, and sim:ap_ctrl_gated has a gate at 0x10000", open::<D>)
        .settings(SETTINGS)
}

/// # Safety
/// As [`ApCtrl::open`].
unsafe fn open<D: Device + Send + 'static>(parts: Parts<'_, D>) -> Result<AnyDriver> {
    parts.settings.only(SETTINGS)?;
    let map = parts.map.ok_or(Error::Unsupported {
        what: "ap_ctrl needs the map of its kernel",
        fix: "give its JSON, x<name>_hw.h or .hwh",
    })?;
    // SAFETY: the caller's promise.
    let driver = unsafe { ApCtrl::open(parts.device, kernel::any(map, "")?.build()?)? };
    AnyDriver::new(match parts.settings.number("stop_us", 1, timeout_us(MAX_TIMEOUT)?.into())? {
        Some(stop_us) => driver.stops_within(Duration::from_micros(stop_us))?,
        None => driver,
    })
}
