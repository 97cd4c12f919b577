#![allow(unsafe_code, reason = "which core is behind registers is the program's word")]
//! How every language opens it by its name.

use super::{Mcdma, McdmaChannel, McdmaConfig, Way};
use contigo_core::{
    hw::Device,
    job::{AnyCore, AnyDriver, Channels, DriverRow, Parts},
    mem::CpuBuf,
    types::{Error, Result},
};

const SETTINGS: &[&str] = &[
    "channel",
    "address_bits",
    "length_bits",
    "mm2s_data_bits",
    "mm2s_dre",
    "s2mm_data_bits",
    "s2mm_dre",
    "stop_us",
    "sideband",
];

/// 64 descriptors.
const MEMORY_BYTES: usize = 64 * super::regs::DESCRIPTOR_BYTES;

/// Its row in the table of drivers.
pub(crate) const fn row<D: Device + Send + Sync + 'static>() -> DriverRow<D> {
    DriverRow::new(
        "axi_mcdma",
        "AMD's AXI MCDMA: channel=0 to 15 sends operand 0 as a packet, channel=16 to 31 receives one into it; many channels at once",
        open::<D>,
    )
    .settings(SETTINGS)
    // Linux `Documentation/devicetree/bindings/dma/xilinx/xilinx_dma.txt`.
    .compatible(&["xlnx,axi-mcdma-1.00.a"])
    .ip(
        &["axi_mcdma"],
        &[
            ("C_ADDR_WIDTH", "address_bits"),
            ("C_SG_LENGTH_WIDTH", "length_bits"),
            ("C_M_AXI_MM2S_DATA_WIDTH", "mm2s_data_bits"),
            ("C_INCLUDE_MM2S_DRE", "mm2s_dre"),
            ("C_M_AXI_S2MM_DATA_WIDTH", "s2mm_data_bits"),
            ("C_INCLUDE_S2MM_DRE", "s2mm_dre"),
        ],
    )
    .memory(MEMORY_BYTES)
    .shared(open_core::<D>)
}

/// The whole core, by one channel: 0, which sends.
///
/// # Safety
/// As [`McdmaChannel::open`].
unsafe fn open<D: Device + Send + 'static>(parts: Parts<'_, D>) -> Result<AnyDriver> {
    let Parts { device, memory, settings, map } = parts;
    let (way, config, memory) = said(Parts { device: (), memory, settings, map })?;
    // SAFETY: the caller's promise.
    AnyDriver::new(unsafe { McdmaChannel::open(device, way, config, memory)? })
}

/// The core that its channels share.
///
/// # Safety
/// As [`Mcdma::open`].
unsafe fn open_core<D: Device + Send + Sync + 'static>(device: D) -> Result<AnyCore> {
    // SAFETY: the caller's promise. A channel brings the parameters, and the reset needs none.
    AnyCore::new(unsafe { Mcdma::open(device, McdmaConfig::default())? })
}

impl<D: Device + Send + Sync + 'static> Channels for Mcdma<D> {
    /// A channel, whose settings the caller has promised to be the core's.
    unsafe fn open(&self, parts: Parts<'_, ()>) -> Result<AnyDriver> {
        let (way, config, memory) = said(parts)?;
        AnyDriver::new(self.channel_as(way, config, memory)?)
    }

    fn reset(&self, pull: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        Self::reset(self, pull)
    }
}

/// Channel, parameters and descriptors.
fn said(parts: Parts<'_, ()>) -> Result<(Way, McdmaConfig, CpuBuf)> {
    const NO_MEMORY: Error = Error::Unsupported {
        what: "axi_mcdma needs memory of its own, for its descriptors",
        fix: "give it a block of 4096 bytes",
    };
    const { assert!(MEMORY_BYTES == 4096) };
    parts.settings.only(SETTINGS)?;
    let default = McdmaConfig::default();
    let number = |name, least: u64, most: u64, default: u64| {
        parts.settings.number(name, least, most).map(|value| value.unwrap_or(default))
    };
    let byte = |name, most, default: u8| {
        number(name, 0, most, default.into()).map(|value| u8::try_from(value).unwrap_or(u8::MAX))
    };
    let width = |name, default: u16| {
        number(name, 32, 1024, default.into()).map(|value| u16::try_from(value).unwrap_or(u16::MAX))
    };
    let config = McdmaConfig {
        address_bits: byte("address_bits", 64, default.address_bits)?,
        length_bits: byte("length_bits", super::regs::LENGTH_BITS_MAX.into(), default.length_bits)?,
        mm2s_data_bits: width("mm2s_data_bits", default.mm2s_data_bits)?,
        mm2s_dre: parts.settings.flag("mm2s_dre", default.mm2s_dre)?,
        s2mm_data_bits: width("s2mm_data_bits", default.s2mm_data_bits)?,
        s2mm_dre: parts.settings.flag("s2mm_dre", default.s2mm_dre)?,
        stop_us: number("stop_us", 1, 100_000, default.stop_us.into())
            .map(|value| u32::try_from(value).unwrap_or(u32::MAX))?,
        sideband: parts.settings.flag("sideband", default.sideband)?,
    };
    let way = Way::of_setting(byte("channel", 31, 0)?);
    Ok((way, config, parts.memory.ok_or(NO_MEMORY)?))
}
