#![allow(unsafe_code, reason = "which core is behind registers is the program's word")]
//! How every language opens it by its name.

use super::Zdma;
use contigo_core::{
    hw::Device,
    job::{AnyDriver, DriverRow, Parts},
    types::Result,
};

const SETTINGS: &[&str] = &[];

/// Its row in the table of drivers.
pub(crate) const fn row<D: Device + Send + Sync + 'static>() -> DriverRow<D> {
    DriverRow::new("zdma", "ZynqMP's DMA channel: copies operand 0 to operand 1; with memory of its own by lists of descriptors", open::<D>)
        .settings(SETTINGS)
        // Linux `Documentation/devicetree/bindings/dma/xilinx/xlnx,zynqmp-dma-1.0.yaml`.
        .compatible(&["xlnx,zynqmp-dma-1.0"])
        .copies()
}

/// # Safety
/// As [`Zdma::simple`].
unsafe fn open<D: Device + Send + 'static>(parts: Parts<'_, D>) -> Result<AnyDriver> {
    parts.settings.only(SETTINGS)?;
    AnyDriver::new(match parts.memory {
        // SAFETY: the caller's promise.
        Some(memory) => unsafe { Zdma::linked(parts.device, memory)? },
        // SAFETY: the caller's promise.
        None => unsafe { Zdma::simple(parts.device)? },
    })
}
