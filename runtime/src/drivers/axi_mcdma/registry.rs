#![allow(unsafe_code, reason = "which core is behind registers is the program's word")]
//! How every language opens it by its name.

use super::{Mcdma, McdmaChannel, McdmaConfig, Way};
#[cfg(feature = "sim")]
use crate::sim::{
    AnyModel,
    stream::{SourceConfig, StreamConfig},
};
use crate::{
    hw::Device,
    job::{AnyCore, AnyDriver, Channels, Parts},
    mem::CpuBuf,
    types::{Error, Result},
};

pub(crate) const NAME: &str = "axi_mcdma";
pub(crate) const HELP: &str =
    "AMD's AXI MCDMA: channel=0 to 15 sends operand 0 as a packet, channel=16 to 31 receives one into it; many channels at once";
/// Linux `Documentation/devicetree/bindings/dma/xilinx/xilinx_dma.txt`.
pub(crate) const COMPATIBLE: &[&str] = &["xlnx,axi-mcdma-1.00.a"];
pub(crate) const SETTINGS: &[&str] =
    &["channel", "address_bits", "length_bits", "mm2s_data_bits", "mm2s_dre", "s2mm_data_bits", "s2mm_dre", "stop_us", "sideband"];
pub(crate) const IP: &[&str] = &["axi_mcdma"];
pub(crate) const PARAMETERS: &[(&str, &str)] = &[
    ("C_ADDR_WIDTH", "address_bits"),
    ("C_SG_LENGTH_WIDTH", "length_bits"),
    ("C_M_AXI_MM2S_DATA_WIDTH", "mm2s_data_bits"),
    ("C_INCLUDE_MM2S_DRE", "mm2s_dre"),
    ("C_M_AXI_S2MM_DATA_WIDTH", "s2mm_data_bits"),
    ("C_INCLUDE_S2MM_DRE", "s2mm_dre"),
];
/// 64 descriptors.
pub(crate) const MEMORY_BYTES: usize = 64 * super::regs::DESCRIPTOR_BYTES;
pub(crate) const COPIES: bool = false;
#[cfg(feature = "sim")]
pub(crate) const MODEL: Option<fn() -> AnyModel> = Some(|| behind(StreamConfig::default()));

/// `sim:axi_mcdma_camera`, for the settings `channel=16` and `channel=17`: packets of 4 KiB back to
/// back at 400 MB/s, without end, and a FIFO of 512 bytes before the core.
#[cfg(feature = "sim")]
pub(crate) fn camera() -> AnyModel {
    behind(StreamConfig::source(SourceConfig::default(), 512))
}

/// `sim:axi_mcdma_sink`, for the settings `channel=0` and `channel=1`: it takes whatever comes.
#[cfg(feature = "sim")]
pub(crate) fn sink() -> AnyModel {
    behind(StreamConfig::sink())
}

/// By its name a core has all bits of a length: a driver of any design uses fewer.
#[cfg(feature = "sim")]
fn behind(stream: StreamConfig) -> AnyModel {
    let config = McdmaConfig { length_bits: super::regs::LENGTH_BITS_MAX, ..McdmaConfig::default() };
    AnyModel::new(super::McdmaModel::new(super::McdmaSpec { config, streams: [stream; 2] }))
}

/// The whole core, by one channel: 0, which sends.
///
/// # Safety
/// As [`McdmaChannel::open`].
pub(crate) unsafe fn open<D: Device + Send + 'static>(parts: Parts<'_, D>) -> Result<AnyDriver> {
    let Parts { device, memory, settings, map } = parts;
    let (way, config, memory) = said(Parts { device: (), memory, settings, map })?;
    // SAFETY: the caller's promise.
    AnyDriver::new(unsafe { McdmaChannel::open(device, way, config, memory)? })
}

/// The core that its channels share.
///
/// # Safety
/// As [`Mcdma::open`].
pub(crate) unsafe fn open_core<D: Device + Send + Sync + 'static>(device: D) -> Result<AnyCore> {
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
    const NO_MEMORY: Error =
        Error::Unsupported { what: "axi_mcdma needs memory of its own, for its descriptors", fix: "give it a block of 4096 bytes" };
    const { assert!(MEMORY_BYTES == 4096) };
    parts.settings.only(SETTINGS)?;
    let default = McdmaConfig::default();
    let number = |name, least: u64, most: u64, default: u64| parts.settings.number(name, least, most).map(|value| value.unwrap_or(default));
    let byte = |name, most, default: u8| number(name, 0, most, default.into()).map(|value| u8::try_from(value).unwrap_or(u8::MAX));
    let width = |name, default: u16| number(name, 32, 1024, default.into()).map(|value| u16::try_from(value).unwrap_or(u16::MAX));
    let config = McdmaConfig {
        address_bits: byte("address_bits", 64, default.address_bits)?,
        length_bits: byte("length_bits", super::regs::LENGTH_BITS_MAX.into(), default.length_bits)?,
        mm2s_data_bits: width("mm2s_data_bits", default.mm2s_data_bits)?,
        mm2s_dre: parts.settings.flag("mm2s_dre", default.mm2s_dre)?,
        s2mm_data_bits: width("s2mm_data_bits", default.s2mm_data_bits)?,
        s2mm_dre: parts.settings.flag("s2mm_dre", default.s2mm_dre)?,
        stop_us: number("stop_us", 1, 100_000, default.stop_us.into()).map(|value| u32::try_from(value).unwrap_or(u32::MAX))?,
        sideband: parts.settings.flag("sideband", default.sideband)?,
    };
    let way = Way::of_setting(byte("channel", 31, 0)?);
    Ok((way, config, parts.memory.ok_or(NO_MEMORY)?))
}
