//! AXI DMA 7.1, the core of AMD (Xilinx) between memory and a pair of streams: MM2S sends from
//! memory, S2MM writes to memory what comes.
//!
//! | driver | operands of a job | use |
//! |---|---|---|
//! | [`AxiDmaChannel`], MM2S | a packet, to the device | sending |
//! | [`AxiDmaChannel`], S2MM | room for a packet, from the device | receiving: a camera, a converter |
//! | [`AxiDma`] | a packet, to the device; room for the answer, from the device | both channels as one: a loopback, a filter, a kernel that answers each packet by one |
//!
//! **Two modes**, which the core itself reports (DMASR.SGIncld). In direct register mode a channel
//! takes one job at a time, in registers. With scatter-gather it takes as many as there are
//! descriptors, which lie in the driver's memory: 64 bytes each, and at least a cache line. A
//! channel then works without a pause between packets, as a camera needs.
//!
//! **Lengths.** A transfer or a descriptor has fewer than two to the power of 8 to 26 bytes: "Width
//! of Buffer Length Register", 14 bits by default, which is 16,383 bytes. No register shows the
//! width, so the setting `length_bits` gives it. If it gives too many bits, the core cuts lengths,
//! which is [`Error::LengthCut`](contigo_core::Error::LengthCut). The driver finds that when direct
//! register mode sends, when a length is cut to 0, and when a piece of an operand was not filled.
//! **It does not find it when scatter-gather sends a part of a length:** the descriptor then counts
//! all of it (`axi_dma_mm2s_sg_if.vhd`). So take `length_bits` from the block design. With
//! scatter-gather a longer operand has several descriptors, if the setting `depth` leaves several
//! for each job. A received packet must fill all of them except for the last: the rest of a shorter
//! one's descriptors would take the next packet, which is an error.
//!
//! **A packet that is longer than its operand** continues in the next job's with scatter-gather
//! ([`PacketReport`] has its beginning and its end), and so does a stream without TLAST. In direct
//! register mode it is an error.
//!
//! **Alignment.** An address is a multiple of the memory map data width, 4 bytes by default, unless
//! the channel is built with "Allow Unaligned Transfers" (DRE). Set `mm2s_data_bits`,
//! `s2mm_data_bits`, `mm2s_dre` and `s2mm_dre` accordingly.
//!
//! **Reads take whole words.** MM2S reads the rest of the bus words of a packet's first and last
//! byte, and drops it. With a bus that is wider than a cache line these words may reach past the
//! memory's end, which is refused ([`Error::ReadsBeside`](contigo_core::Error::ReadsBeside)).
//!
//! **Switches of the block design.** A core with "Micro DMA" is refused, if the setting `micro_dma`
//! is on. Switch off "Enable Control / Status Stream" if nothing drives the status stream: S2MM
//! ends no packet without it ([`StatusStream`]; `status_stream`, `status_driven` and
//! `status_length`). A `.hwh` has these settings.
//!
//! **Coherency.** Three ports reach memory: M_AXI_MM2S, M_AXI_S2MM and, for descriptors, M_AXI_SG.
//! This driver assumes that all are wired as the device's port describes.
//!
//! **A reset of one channel resets both** ([`AxiDmaCore`]). A wait that ends without a packet stops
//! nothing. A stop does: a receive that waits for a packet ends only by a reset, because RS=0 waits
//! for the transfer under way. The stream is then torn: the rest of a packet may wait in front of
//! the core, and comes first next time. A source and FIFOs that are reset with the core
//! (`s2mm_prmry_reset_out_n`, `mm2s_prmry_reset_out_n`) drop it; without them discard the packet
//! that [`PacketReport`] marks as maybe torn. That is the first after the next start: packets that
//! ended before the stop are reported after it, and are whole.
//!
//! **An end of MM2S** means that its buffer was read. The last beats may still be in the core, and
//! a reset right after it drops them, as does a stop of an S2MM that waits for a packet.
//!
//! **An error of one channel halts both**, until a reset. The other's DMASR shows only Halted, so
//! its driver reads the failed channel's DMASR, and returns that error.
//!
//! **Interrupts.** One for each packet, or one for several, by the settings `irq_packets` and
//! `irq_delay`. Both lines are ORed into one. A driver polls registers first, and a descriptor when
//! CURDESC, Idle or an interrupt's bit shows that one may be done. On a port that snoops it polls a
//! descriptor first, except for the last job's and beside a sibling.
//!
//! **No identity.** No register identifies an AXI DMA. Opening one detects all ones, and reserved
//! bits that are set; another core would pass.
//!
//! **Clocks.** The core runs by the fabric's clocks. Where one is off, a read of a register may
//! hang the processor, or it finds all ones. A core that is held in reset never ends its own reset,
//! which the driver reports.
//!
//! # References
//! AMD PG021, AXI DMA v7.1: "Register Space", "Scatter Gather Descriptor", "Programming Sequence";
//! Linux `drivers/dma/xilinx/xilinx_dma.c`. The model's numbers come from AMD's embeddedsw,
//! `XilinxProcessorIPLib/drivers/axidma`.

mod channel;
mod complete;
mod config;
mod doorbell;
mod driver;
mod lane;
mod regs;
mod stop;

pub use self::channel::{AxiDmaChannel, PacketReport};
pub use self::config::{AxiDmaConfig, StatusStream};
pub use self::driver::{AxiDma, AxiDmaCore};
pub use self::regs::Side;

use contigo_core::hw::Device;
use contigo_core::job::{AnyCore, AnyDriver, Channels, Descriptors, DriverRow, Parts, Settings};
use contigo_core::types::Result;

const SETTINGS: &[&str] = &[
    "channel",
    Descriptors::SETTING,
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
    DriverRow {
        settings: Some(SETTINGS),
        // Linux `Documentation/devicetree/bindings/dma/xilinx/xlnx,axi-dma.yaml`.
        compatible: &["xlnx,axi-dma-1.00.a"],
        ip: &["axi_dma"],
        parameters: &[
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
        // 64 descriptors. A core without scatter-gather leaves them alone.
        memory_bytes: 4096,
        copies: true,
        core: Some(open_core::<D>),
        ..DriverRow::new(
            "axi_dma",
            "AXI DMA: sends operand 0 and receives into operand 1; with the setting channel=0 it \
             only sends, with channel=1 it only receives",
            open::<D>,
        )
    }
}

/// Both channels as one driver, or one of them alone.
///
/// # Safety
/// As [`AxiDma::open`].
#[allow(unsafe_code, reason = "which core is behind registers is the caller's promise")]
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
#[allow(unsafe_code, reason = "which core is behind registers is the caller's promise")]
unsafe fn open_core<D: Device + Send + Sync + 'static>(device: D) -> Result<AnyCore> {
    // SAFETY: the caller's promise.
    AnyCore::new(unsafe { AxiDmaCore::open(device)? })
}

#[allow(unsafe_code, reason = "which core is behind registers is the caller's promise")]
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

/// The configuration, and the channel if the settings name one.
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
            .number("depth", 1, config::DEPTH_MAX as u64)?
            .and_then(|depth| usize::try_from(depth).ok()),
        stop_us: settings.value("stop_us", 1, 1_000_000, was.stop_us)?,
        irq_packets: byte("irq_packets", 1, was.irq_packets)?,
        irq_delay: byte("irq_delay", 0, was.irq_delay)?,
    };
    Ok((config, side))
}
