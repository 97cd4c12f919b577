//! AMD's AXI MCDMA 1.1: many channels over one core, by lists of descriptors. Up to 16 send memory
//! as packets of a stream (MM2S), and up to 16 receive packets into memory (S2MM). A packet's TDEST
//! is the number of its channel.
//!
//! [`Mcdma`] is the core, and opens its channels; each [`McdmaChannel`] is a driver of its own, in
//! any thread. By name, `axi_mcdma` with the setting `channel` is one of them: 0 to 15 send, 16 to
//! 31 receive. Without the setting it is channel 0, and owns the whole core.
//!
//! A job has one operand:
//!
//! | channel | operand | bytes | direction |
//! |---|---|---|---|
//! | MM2S | a packet, all of it | 1 to 2^`length_bits` - 1 | to the device |
//! | S2MM | room for a packet | as many; without DRE a multiple of the data width | from the device |
//!
//! Without DRE an operand begins at a multiple of the data width. No register has the core's
//! parameters: see [`McdmaConfig`]. A channel has as many jobs in flight as descriptors, which lie
//! in the caller's memory. A completion has the number of bytes, and whether they begin and end a
//! packet. A packet longer than its buffer continues in the next job's.
//!
//! # Traps, and how the driver meets them
//! - **A packet that finds no descriptor is dropped** (S2MM), as is one for a channel that is not
//!   enabled: the core never lets a stream wait. Submit buffers before the stream starts.
//!   [`McdmaChannel::dropped`] counts, and so does
//!   [`Driver::underruns`](contigo_core::Driver::underruns).
//! - **One reset for all**, in both directions. No register reports that one channel has stopped:
//!   it carries out what it fetched when a packet comes. So `stop` clears the channel's RS and
//!   waits until its descriptors are done; failing that it resets the core, and siblings return
//!   [`Error::EndedByReset`]. The packet under way is cut, and its rest may come first next time:
//!   [`PacketReport`] marks the first packet as possibly torn.
//! - **An error halts a whole direction.** The channel that failed reports why. The others report
//!   that another one failed; each is stopped, and its next job starts it again.
//! - A sent packet completes when its buffer was read. The core may still hold its last beats,
//!   which a reset drops.
//! - CURDESC is fetched ahead, so it does not show what is done. The driver reads the channel's
//!   status register first, and a descriptor if that showed possible ends or an error. On a port
//!   that snoops it polls a descriptor first, except for the last job's and beside other channels.
//! - The core interrupts at the end of a packet. A stream without TLAST never interrupts: its
//!   buffers are reported when all are full, or on a poll.
//! - Each channel has an interrupt of its own, unless the core is built with a single one. A
//!   program gets one line of a node (`uio_pdrv_genirq`): build it with a single one, or OR them.
//! - The MM2S scheduler is left as a reset leaves it (register 14h).
//!
//! Descriptors lie on the port of the device. If it does not snoop, each read of one is a sync.
//! Both clocks, `s_axi_lite_aclk` and `s_axi_aclk`, run before the core is opened. A core whose
//! clock is off never leaves its reset.
//!
//! # References
//! AMD PG288, AXI Multichannel Direct Memory Access v1.1. AMD embeddedsw
//! `XilinxProcessorIPLib/drivers/mcdma`. Linux `drivers/dma/xilinx/xilinx_dma.c`.

mod channel;
mod config;
mod jobs;
mod regs;
mod stop;

pub use self::channel::{Mcdma, McdmaChannel, PacketReport};
pub use self::config::{McdmaConfig, Way};

use contigo_core::hw::Device;
use contigo_core::job::{AnyCore, AnyDriver, Channels, Descriptors, DriverRow, Parts};
use contigo_core::mem::CpuBuf;
use contigo_core::types::{Error, Result};

const SETTINGS: &[&str] = &[
    "channel",
    Descriptors::SETTING,
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
const MEMORY_BYTES: usize = 64 * regs::DESCRIPTOR_BYTES;

/// Its driver info.
pub(crate) const fn row<D: Device + Send + Sync + 'static>() -> DriverRow<D> {
    DriverRow {
        settings: Some(SETTINGS),
        // Linux `Documentation/devicetree/bindings/dma/xilinx/xilinx_dma.txt`.
        compatible: &["xlnx,axi-mcdma-1.00.a"],
        ip: &["axi_mcdma"],
        parameters: &[
            ("C_ADDR_WIDTH", "address_bits"),
            ("C_SG_LENGTH_WIDTH", "length_bits"),
            ("C_M_AXI_MM2S_DATA_WIDTH", "mm2s_data_bits"),
            ("C_INCLUDE_MM2S_DRE", "mm2s_dre"),
            ("C_M_AXI_S2MM_DATA_WIDTH", "s2mm_data_bits"),
            ("C_INCLUDE_S2MM_DRE", "s2mm_dre"),
        ],
        memory_bytes: MEMORY_BYTES,
        core: Some(open_core::<D>),
        ..DriverRow::new(
            "axi_mcdma",
            "AMD's AXI MCDMA: channel=0 to 15 sends operand 0 as a packet, channel=16 to 31 \
             receives one into it; many channels at once",
            open::<D>,
        )
    }
}

/// The whole core, driven through channel 0, which sends.
///
/// # Safety
/// As [`McdmaChannel::open`].
#[allow(unsafe_code, reason = "which core is behind registers is the caller's promise")]
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
#[allow(unsafe_code, reason = "which core is behind registers is the caller's promise")]
unsafe fn open_core<D: Device + Send + Sync + 'static>(device: D) -> Result<AnyCore> {
    // SAFETY: the caller's promise. Each channel has the parameters, and the reset needs none.
    AnyCore::new(unsafe { Mcdma::open(device, McdmaConfig::default())? })
}

#[allow(unsafe_code, reason = "which core is behind registers is the caller's promise")]
impl<D: Device + Send + Sync + 'static> Channels for Mcdma<D> {
    /// A channel; the caller guarantees that the settings match the core.
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
        length_bits: byte("length_bits", regs::LENGTH_BITS_MAX.into(), default.length_bits)?,
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
