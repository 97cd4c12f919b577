#![allow(unsafe_code, reason = "which core is behind registers is the program's word")]
//! How every language opens it by its name.

use super::{AxiDmac, DmacConfig};
use contigo_core::{
    hw::Device,
    job::{AnyDriver, DriverRow, Parts},
    types::Result,
};

const SETTINGS: &[&str] = DmacConfig::SETTINGS;

/// Its row in the table of drivers.
pub(crate) const fn row<D: Device + Send + Sync + 'static>() -> DriverRow<D> {
    DriverRow::new(
        "axi_dmac",
        "Analog Devices' AXI DMAC: copies, sends a packet or receives one, as its registers tell; with memory by lists, where it has them",
        open::<D>,
    )
    .settings(SETTINGS)
    // Linux `Documentation/devicetree/bindings/dma/adi,axi-dmac.yaml`.
    .compatible(&["adi,axi-dmac-1.00.a"])
    // ADI's `axi_dmac_ip.tcl` names the parameter.
    .ip(&["axi_dmac"], &[("MAX_BYTES_PER_BURST", "burst_bytes"), ("FIFO_SIZE", "fifo_bursts")])
    // Only where both of its sides are memory.
    .copies()
}

/// # Safety
/// As [`AxiDmac::open`], and where there is memory as [`AxiDmac::listed`].
unsafe fn open<D: Device + Send + 'static>(parts: Parts<'_, D>) -> Result<AnyDriver> {
    parts.settings.only(SETTINGS)?;
    let config = DmacConfig::from_settings(&parts.settings)?;
    // SAFETY: the caller's promise.
    let driver = unsafe { AxiDmac::open(parts.device, config)? };
    AnyDriver::new(match parts.memory {
        Some(memory) if driver.takes_lists() => driver.with_lists(memory)?,
        _ => driver,
    })
}
