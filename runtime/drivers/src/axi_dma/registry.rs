#![allow(unsafe_code, reason = "which core is behind registers is the program's word")]
//! How every language opens it by its name.

use super::{
    AxiDma, AxiDmaChannel, AxiDmaConfig, AxiDmaCore, Side, StatusStream, config::DEPTH_MAX,
};
use contigo_core::{
    hw::Device,
    job::{AnyCore, AnyDriver, Channels, DriverRow, Parts, Settings},
    types::Result,
};

const SETTINGS: &[&str] = &[
    "channel",
    "length_bits",
    "address_bits",
    "mm2s_data_bits",
    "s2mm_data_bits",
    "mm2s_dre",
    "s2mm_dre",
    "micro_dma",
    "status_stream",
    "status_driven",
    "status_length",
    "depth",
    "stop_us",
    "irq_packets",
    "irq_delay",
];

/// Its row in the table of drivers.
pub(crate) const fn row<D: Device + Send + Sync + 'static>() -> DriverRow<D> {
    DriverRow::new(
        "axi_dma",
        "AXI DMA: sends operand 0 and receives into operand 1; with the setting channel=0 it only sends, with channel=1 it only receives",
        open::<D>,
    )
    .settings(SETTINGS)
    // Linux `Documentation/devicetree/bindings/dma/xilinx/xlnx,axi-dma.yaml`.
    .compatible(&["xlnx,axi-dma-1.00.a"])
    .ip(
        &["axi_dma"],
        &[
            ("C_SG_LENGTH_WIDTH", "length_bits"),
            ("C_ADDR_WIDTH", "address_bits"),
            ("C_M_AXI_MM2S_DATA_WIDTH", "mm2s_data_bits"),
            ("C_M_AXI_S2MM_DATA_WIDTH", "s2mm_data_bits"),
            ("C_INCLUDE_MM2S_DRE", "mm2s_dre"),
            ("C_INCLUDE_S2MM_DRE", "s2mm_dre"),
            ("C_MICRO_DMA", "micro_dma"),
            ("C_SG_INCLUDE_STSCNTRL_STRM", "status_stream"),
            ("C_SG_USE_STSAPP_LENGTH", "status_length"),
        ],
    )
    // 64 descriptors. A core without scatter-gather leaves them alone.
    .memory(4096)
    .copies()
    .shared(open_core::<D>)
}

/// Both channels as one, or one of them alone.
///
/// # Safety
/// As [`AxiDma::open`].
unsafe fn open<D: Device + Send + 'static>(parts: Parts<'_, D>) -> Result<AnyDriver> {
    let (config, side) = said(parts.settings)?;
    match side {
        // SAFETY: the caller's promise.
        None => AnyDriver::new(unsafe { AxiDma::open(parts.device, config, parts.memory)? }),
        // SAFETY: the caller's promise.
        Some(side) => AnyDriver::new(unsafe {
            AxiDmaChannel::alone(parts.device, side, config, parts.memory)?
        }),
    }
}

/// The core that both channels share.
///
/// # Safety
/// As [`AxiDmaCore::open`].
unsafe fn open_core<D: Device + Send + Sync + 'static>(device: D) -> Result<AnyCore> {
    // SAFETY: the caller's promise.
    AnyCore::new(unsafe { AxiDmaCore::open(device)? })
}

impl<D: Device + Send + Sync + 'static> Channels for AxiDmaCore<D> {
    unsafe fn open(&self, parts: Parts<'_, ()>) -> Result<AnyDriver> {
        let (config, side) = said(parts.settings)?;
        // SAFETY: the caller's promise.
        AnyDriver::new(unsafe { self.channel(side.unwrap_or(Side::Mm2s), config, parts.memory)? })
    }

    fn reset(&self, pull: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        Self::reset(self, pull)
    }
}

/// The configuration, and the channel where one is said.
fn said(settings: Settings<'_>) -> Result<(AxiDmaConfig, Option<Side>)> {
    settings.only(SETTINGS)?;
    let byte = |name, min, default: u8| -> Result<u8> {
        Ok(u8::try_from(settings.value(name, min, 255, default.into())?).unwrap_or(default))
    };
    let side = match settings.number("channel", 0, 1)? {
        None => None,
        Some(0) => Some(Side::Mm2s),
        Some(_) => Some(Side::S2mm),
    };
    let was = AxiDmaConfig::default();
    let config = AxiDmaConfig {
        length_bits: settings.value("length_bits", 8, 26, was.length_bits)?,
        address_bits: settings.value("address_bits", 32, 64, was.address_bits)?,
        mm2s_data_bits: settings.value("mm2s_data_bits", 32, 1024, was.mm2s_data_bits)?,
        s2mm_data_bits: settings.value("s2mm_data_bits", 32, 1024, was.s2mm_data_bits)?,
        mm2s_dre: settings.flag("mm2s_dre", was.mm2s_dre)?,
        s2mm_dre: settings.flag("s2mm_dre", was.s2mm_dre)?,
        micro_dma: settings.flag("micro_dma", was.micro_dma)?,
        status_stream: match (
            settings.flag("status_stream", false)?,
            settings.flag("status_length", false)?,
        ) {
            (false, _) => StatusStream::Off,
            (true, true) => StatusStream::GivesLength,
            (true, false) if settings.flag("status_driven", false)? => StatusStream::Driven,
            (true, false) => StatusStream::On,
        },
        depth: settings
            .number("depth", 1, DEPTH_MAX as u64)?
            .and_then(|depth| usize::try_from(depth).ok()),
        stop_us: settings.value("stop_us", 1, 1_000_000, was.stop_us)?,
        irq_packets: byte("irq_packets", 1, was.irq_packets)?,
        irq_delay: byte("irq_delay", 0, was.irq_delay)?,
    };
    Ok((config, side))
}
