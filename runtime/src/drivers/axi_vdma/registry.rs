#![allow(unsafe_code, reason = "which core is behind registers is the program's word")]
//! How every language opens it by its name.

use super::{AxiVdmaChannel, AxiVdmaConfig, AxiVdmaCore, Side, regs};
#[cfg(feature = "sim")]
use crate::sim::{
    AnyModel,
    stream::{SourceConfig, StreamConfig},
};
use crate::{
    hw::Device,
    job::{AnyCore, AnyDriver, Channels, Parts, Settings},
    types::Result,
};

pub(crate) const NAME: &str = "axi_vdma";
pub(crate) const HELP: &str = "AXI VDMA: a frame a job; with channel=0 it sends operand 0, with channel=1 it receives into it; needs \
                               hsize_bytes and vsize_lines";
/// Linux `Documentation/devicetree/bindings/dma/xilinx/xilinx_dma.txt`.
pub(crate) const COMPATIBLE: &[&str] = &["xlnx,axi-vdma-1.00.a"];
pub(crate) const SETTINGS: &[&str] = &[
    "channel",
    "hsize_bytes",
    "vsize_lines",
    "stride_bytes",
    "frame_stores",
    "address_bits",
    "mm2s_data_bits",
    "s2mm_data_bits",
    "mm2s_dre",
    "s2mm_dre",
    "stop_us",
];
pub(crate) const IP: &[&str] = &["axi_vdma"];
/// embeddedsw `axivdma.tcl` has the same names.
pub(crate) const PARAMETERS: &[(&str, &str)] = &[
    ("C_NUM_FSTORES", "frame_stores"),
    ("C_ADDR_WIDTH", "address_bits"),
    ("C_M_AXI_MM2S_DATA_WIDTH", "mm2s_data_bits"),
    ("C_M_AXI_S2MM_DATA_WIDTH", "s2mm_data_bits"),
    ("C_INCLUDE_MM2S_DRE", "mm2s_dre"),
    ("C_INCLUDE_S2MM_DRE", "s2mm_dre"),
];
pub(crate) const MEMORY_BYTES: usize = 0;
pub(crate) const COPIES: bool = false;
#[cfg(feature = "sim")]
pub(crate) const MODEL: Option<fn() -> AnyModel> = Some(|| behind(StreamConfig::default()));

/// `sim:axi_vdma_camera`, for the setting `channel=1`: frames of 4 KiB at 400 MB/s, without end,
/// 100 us apart.
#[cfg(feature = "sim")]
pub(crate) fn camera() -> AnyModel {
    behind(StreamConfig::source(SourceConfig { gap_ns: 100_000, ..SourceConfig::default() }, 512))
}

/// `sim:axi_vdma_sink`, for the setting `channel=0`: it takes whatever comes.
#[cfg(feature = "sim")]
pub(crate) fn sink() -> AnyModel {
    behind(StreamConfig::sink())
}

/// By its name a core realigns, so that a driver of any width works.
#[cfg(feature = "sim")]
fn behind(stream: StreamConfig) -> AnyModel {
    AnyModel::new(super::AxiVdmaModel::new(super::AxiVdmaSpec { stream, dre: true, ..super::AxiVdmaSpec::default() }))
}

/// # Safety
/// As [`AxiVdmaChannel::alone`].
pub(crate) unsafe fn open<D: Device + Send + 'static>(parts: Parts<'_, D>) -> Result<AnyDriver> {
    let (side, config) = said(parts.settings)?;
    // SAFETY: the caller's promise.
    AnyDriver::new(unsafe { AxiVdmaChannel::alone(parts.device, side, config)? })
}

/// The core that both channels share.
///
/// # Safety
/// As [`AxiVdmaCore::open`].
pub(crate) unsafe fn open_core<D: Device + Send + Sync + 'static>(device: D) -> Result<AnyCore> {
    // SAFETY: the caller's promise.
    AnyCore::new(unsafe { AxiVdmaCore::open(device)? })
}

impl<D: Device + Send + Sync + 'static> Channels for AxiVdmaCore<D> {
    unsafe fn open(&self, parts: Parts<'_, ()>) -> Result<AnyDriver> {
        let (side, config) = said(parts.settings)?;
        // SAFETY: the caller's promise.
        AnyDriver::new(unsafe { self.channel(side, config)? })
    }

    fn reset(&self, pull: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        Self::reset(self, pull)
    }
}

/// The channel, 1 unless told otherwise, and its configuration.
fn said(settings: Settings<'_>) -> Result<(Side, AxiVdmaConfig)> {
    settings.only(SETTINGS)?;
    let side = if settings.value("channel", 0, 1, 1)? == 0 { Side::Mm2s } else { Side::S2mm };
    let (bits, dre) = match side {
        Side::Mm2s => ("mm2s_data_bits", "mm2s_dre"),
        Side::S2mm => ("s2mm_data_bits", "s2mm_dre"),
    };
    let was = AxiVdmaConfig::default();
    let config = AxiVdmaConfig {
        hsize_bytes: settings.value("hsize_bytes", 1, regs::HSIZE_MAX, was.hsize_bytes)?,
        vsize_lines: settings.value("vsize_lines", 1, regs::VSIZE_MAX, was.vsize_lines)?,
        stride_bytes: settings.value("stride_bytes", 1, regs::HSIZE_MAX, was.stride_bytes)?,
        // At most 32; 0 where it is not set.
        frame_stores: settings.value("frame_stores", 1, 32, 0)? as usize,
        address_bits: settings.value("address_bits", 32, 64, was.address_bits)?,
        data_bits: settings.value(bits, 32, 1024, was.data_bits)?,
        dre: settings.flag(dre, false)?,
        stop_us: settings.value("stop_us", 1, 400_000, was.stop_us)?,
    };
    Ok((side, config))
}
