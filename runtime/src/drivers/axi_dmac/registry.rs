#![allow(unsafe_code, reason = "which core is behind registers is the program's word")]
//! How every language opens it by its name.

use super::{AxiDmac, DmacConfig};
#[cfg(feature = "sim")]
use super::{AxiDmacBuild, AxiDmacModel, regs::Side};
#[cfg(feature = "sim")]
use crate::sim::{
    AnyModel,
    stream::{SourceConfig, StreamConfig},
};
use crate::{
    hw::Device,
    job::{AnyDriver, Parts},
    types::Result,
};

pub(crate) const NAME: &str = "axi_dmac";
pub(crate) const HELP: &str =
    "Analog Devices' AXI DMAC: copies, sends a packet or receives one, as its registers tell; with memory by lists, where it has them";
/// Linux `Documentation/devicetree/bindings/dma/adi,axi-dmac.yaml`.
pub(crate) const COMPATIBLE: &[&str] = &["adi,axi-dmac-1.00.a"];
pub(crate) const SETTINGS: &[&str] = DmacConfig::SETTINGS;
pub(crate) const IP: &[&str] = &["axi_dmac"];
/// ADI's `axi_dmac_ip.tcl` names the parameter.
pub(crate) const PARAMETERS: &[(&str, &str)] = &[("MAX_BYTES_PER_BURST", "burst_bytes"), ("FIFO_SIZE", "fifo_bursts")];
pub(crate) const MEMORY_BYTES: usize = 0;
/// Only where both of its sides are memory.
pub(crate) const COPIES: bool = true;
#[cfg(feature = "sim")]
pub(crate) const MODEL: Option<fn() -> AnyModel> = Some(|| AnyModel::new(AxiDmacModel::default()));

/// `sim:axi_dmac_sink`: it takes whatever comes.
#[cfg(feature = "sim")]
pub(crate) fn sink() -> AnyModel {
    let sides = [Side::Memory, Side::Stream];
    AnyModel::new(AxiDmacModel::new(AxiDmacBuild { sides, stream: StreamConfig::sink(), ..AxiDmacBuild::default() }))
}

/// `sim:axi_dmac_camera`: packets of 4 KiB back to back at 400 MB/s, without end.
#[cfg(feature = "sim")]
pub(crate) fn camera() -> AnyModel {
    let (sides, stream) = ([Side::Stream, Side::Memory], StreamConfig::source(SourceConfig::default(), 512));
    AnyModel::new(AxiDmacModel::new(AxiDmacBuild { sides, stream, ..AxiDmacBuild::default() }))
}

/// # Safety
/// As [`AxiDmac::open`], and where there is memory as [`AxiDmac::listed`].
pub(crate) unsafe fn open<D: Device + Send + 'static>(parts: Parts<'_, D>) -> Result<AnyDriver> {
    parts.settings.only(SETTINGS)?;
    let config = DmacConfig::from_settings(&parts.settings)?;
    // SAFETY: the caller's promise.
    let driver = unsafe { AxiDmac::open(parts.device, config)? };
    AnyDriver::new(match parts.memory {
        Some(memory) if driver.takes_lists() => driver.with_lists(memory)?,
        _ => driver,
    })
}
