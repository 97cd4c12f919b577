#![allow(unsafe_code, reason = "which core is behind registers is the program's word")]
//! How every language opens it by its name: with the kernel's map as its tool wrote it.

use super::{ApCtrl, describe};
#[cfg(feature = "sim")]
use crate::{drivers::axi_gate::GatedModel, sim::AnyModel};
use crate::{
    hw::Device,
    job::{AnyDriver, Parts},
    types::{Error, MAX_TIMEOUT, Result, timeout_us},
};
use core::time::Duration;

pub(crate) const NAME: &str = "ap_ctrl";
pub(crate) const HELP: &str = "any kernel of Vitis HLS, by its map: JSON, x<name>_hw.h or .hwh; setting stop_us. sim:ap_ctrl is a chain, copy(from, to, n); sim:ap_ctrl_hs is none, and sim:ap_ctrl_gated has a gate at 0x10000";
/// HLS gives each kernel a name of its own.
pub(crate) const COMPATIBLE: &[&str] = &[];
pub(crate) const SETTINGS: &[&str] = &["stop_us"];
pub(crate) const IP: &[&str] = &[];
pub(crate) const PARAMETERS: &[(&str, &str)] = &[];
pub(crate) const MEMORY_BYTES: usize = 0;
pub(crate) const COPIES: bool = false;
#[cfg(feature = "sim")]
pub(crate) const MODEL: Option<fn() -> AnyModel> = Some(|| AnyModel::new(<super::ApCtrlModel>::default()));

/// `sim:ap_ctrl_hs`: the same kernel, for maps that say `ap_ctrl_hs`.
#[cfg(feature = "sim")]
pub(crate) fn hs() -> AnyModel {
    AnyModel::new(super::ApCtrlModel::copier_hs())
}

/// `sim:ap_ctrl_gated`: the first one behind a gate, whose registers follow at 0x1_0000.
#[cfg(feature = "sim")]
pub(crate) fn gated() -> AnyModel {
    AnyModel::new(GatedModel::new(<super::ApCtrlModel>::default()))
}

/// # Safety
/// As [`ApCtrl::open`].
pub(crate) unsafe fn open<D: Device + Send + 'static>(parts: Parts<'_, D>) -> Result<AnyDriver> {
    parts.settings.only(SETTINGS)?;
    let map =
        parts.map.ok_or(Error::Unsupported { what: "ap_ctrl needs the map of its kernel", fix: "give its JSON, x<name>_hw.h or .hwh" })?;
    // SAFETY: the caller's promise.
    let driver = unsafe { ApCtrl::open(parts.device, describe::any(map, "")?.build()?)? };
    AnyDriver::new(match parts.settings.number("stop_us", 1, timeout_us(MAX_TIMEOUT)?.into())? {
        Some(stop_us) => driver.stops_within(Duration::from_micros(stop_us))?,
        None => driver,
    })
}
