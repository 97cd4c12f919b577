#![allow(unsafe_code, reason = "which core is behind registers is the program's word")]
//! How every language opens it by its name.

use super::Zdma;
#[cfg(feature = "sim")]
use crate::sim::AnyModel;
use crate::{
    hw::Device,
    job::{AnyDriver, Parts},
    types::Result,
};

pub(crate) const NAME: &str = "zdma";
pub(crate) const HELP: &str = "ZynqMP's DMA channel: copies operand 0 to operand 1; with memory of its own by lists of descriptors";
/// Linux `Documentation/devicetree/bindings/dma/xilinx/xlnx,zynqmp-dma-1.0.yaml`.
pub(crate) const COMPATIBLE: &[&str] = &["xlnx,zynqmp-dma-1.0"];
pub(crate) const SETTINGS: &[&str] = &[];
pub(crate) const IP: &[&str] = &[];
pub(crate) const PARAMETERS: &[(&str, &str)] = &[];
pub(crate) const MEMORY_BYTES: usize = 0;
pub(crate) const COPIES: bool = true;
#[cfg(feature = "sim")]
pub(crate) const MODEL: Option<fn() -> AnyModel> = Some(|| AnyModel::new(super::ZdmaModel::new()));

/// # Safety
/// As [`Zdma::simple`].
pub(crate) unsafe fn open<D: Device + Send + 'static>(parts: Parts<'_, D>) -> Result<AnyDriver> {
    parts.settings.only(SETTINGS)?;
    AnyDriver::new(match parts.memory {
        // SAFETY: the caller's promise.
        Some(memory) => unsafe { Zdma::linked(parts.device, memory)? },
        // SAFETY: the caller's promise.
        None => unsafe { Zdma::simple(parts.device)? },
    })
}
