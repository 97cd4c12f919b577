#![allow(unsafe_code, reason = "which core is behind registers is the program's word")]
//! How every language opens it by its name.

use super::{AxiVdmaChannel, AxiVdmaConfig, AxiVdmaCore, Side, regs};
use contigo_core::{
    hw::Device,
    job::{AnyCore, AnyDriver, Channels, DriverRow, Parts, Settings},
    types::Result,
};

const SETTINGS: &[&str] = &[
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

/// Its row in the table of drivers.
pub(crate) const fn row<D: Device + Send + Sync + 'static>() -> DriverRow<D> {
    DriverRow::new(
        "axi_vdma",
        "AXI VDMA: a frame a job; with channel=0 it sends operand 0, with channel=1 it receives into it; needs \
                               hsize_bytes and vsize_lines",
        open::<D>,
    )
    .settings(SETTINGS)
    // Linux `Documentation/devicetree/bindings/dma/xilinx/xilinx_dma.txt`.
    .compatible(&["xlnx,axi-vdma-1.00.a"])
    // embeddedsw `axivdma.tcl` has the same names.
    .ip(
        &["axi_vdma"],
        &[
            ("C_NUM_FSTORES", "frame_stores"),
            ("C_ADDR_WIDTH", "address_bits"),
            ("C_M_AXI_MM2S_DATA_WIDTH", "mm2s_data_bits"),
            ("C_M_AXI_S2MM_DATA_WIDTH", "s2mm_data_bits"),
            ("C_INCLUDE_MM2S_DRE", "mm2s_dre"),
            ("C_INCLUDE_S2MM_DRE", "s2mm_dre"),
        ],
    )
    .shared(open_core::<D>)
}

/// # Safety
/// As [`AxiVdmaChannel::alone`].
unsafe fn open<D: Device + Send + 'static>(parts: Parts<'_, D>) -> Result<AnyDriver> {
    let (side, config) = said(parts.settings)?;
    // SAFETY: the caller's promise.
    AnyDriver::new(unsafe { AxiVdmaChannel::alone(parts.device, side, config)? })
}

/// The core that both channels share.
///
/// # Safety
/// As [`AxiVdmaCore::open`].
unsafe fn open_core<D: Device + Send + Sync + 'static>(device: D) -> Result<AnyCore> {
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
