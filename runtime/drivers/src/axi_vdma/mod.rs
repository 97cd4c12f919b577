//! AXI VDMA v6.3, AMD's core for video frames: MM2S sends a frame from memory to a stream, S2MM
//! writes one from a stream to memory.
//!
//! | channel | operand | direction |
//! |---|---|---|
//! | 0, MM2S | one frame | to the device |
//! | 1, S2MM | room for one frame | from the device |
//!
//! **A frame** is `vsize_lines` lines of `hsize_bytes`, `stride_bytes` apart. It is one operand, of
//! at least all of its lines; the bytes between them are not touched. Writing VSIZE, last, starts
//! it. The core drops a VSIZE that comes before it has left Halted, a few clocks after RS
//! (`axi_vdma_vidreg_module.vhd`, `REG_PRE_VIDREG_UPDT`), so the driver polls until it has.
//!
//! **One frame a job, and the channel halts after it.** Left alone, a VDMA cycles through its frame
//! stores for ever, and writes to a frame while the CPU reads it. Parking it on another store does
//! not help: the move takes effect at the end of some frame, which no register identifies for
//! certain. Linux parks, and returns a frame that the core still writes. Only `FrameCntEn` ends the
//! core's access: with a count of 1 the channel halts after one frame, clears RS, and sets Halted.
//! Then the frame is reported. Genlock is off, and so is parking.
//!
//! **All frame stores are this frame.** No manual documents which store is next after a halt. So
//! every store has the address of the job's frame. If `frame_stores` is not set, the driver writes
//! 32 addresses, or 16 wide ones. A core drops those that it does not have; without `REG_INDEX` it
//! takes the second bank for the first. The setting saves writes. A value below the core's number
//! would leave a store at an old address: the caller guarantees that it is not.
//!
//! **Loss.** From a frame's end to the next job the channel takes nothing, so a frame that begins
//! meanwhile is lost. With its frame sync on TUSER the core takes the following frame from its
//! beginning. No register counts lost frames.
//! [`Driver::underruns`](contigo_core::Driver::underruns) counts such gaps of S2MM. A source whose
//! blanking is longer than the interrupt latency loses nothing; for a source that cannot wait, use
//! AXI DMA with descriptors.
//!
//! **Frames of another shape.** If the core is built with "Flush on Fsync", a frame with fewer or
//! more lines or bytes ends as one failed job, which reports how. Otherwise the channel halts,
//! which is a fault.
//!
//! **After a stop** S2MM waits for a frame's beginning if its frame sync is on TUSER, so the next
//! frame is whole. An MM2S frame completes when read: its last lines may be in the core.
//!
//! **Two channels, two resets.** A channel's reset leaves the other one at work, and each has its
//! own registers; the park pointer, which they share, is not written. [`AxiVdmaCore`] gives each
//! channel to one driver.
//!
//! **Alignment.** Without realignment (`dre`) address, line and stride are whole bus words.
//! **Coherency** is the port's: wire both channels alike. **Interrupts:** two lines, ORed.
//! **Identity:** the version register, whose first digit is 6.
//!
//! # References
//! PG020 (v6.3), "Register Space", "Programming Sequence", "Fsync Options"; Linux'
//! `drivers/dma/xilinx/xilinx_dma.c`; embeddedsw's `axivdma`.

mod channel;
mod config;
mod regs;

pub use self::channel::{AxiVdmaChannel, AxiVdmaCore};
pub use self::config::{AxiVdmaConfig, Side};

use contigo_core::hw::Device;
use contigo_core::job::{AnyCore, AnyDriver, Channels, DriverRow, Parts, Settings};
use contigo_core::types::Result;

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

/// Its driver info.
pub(crate) const fn row<D: Device + Send + Sync + 'static>() -> DriverRow<D> {
    DriverRow {
        settings: Some(SETTINGS),
        // Linux `Documentation/devicetree/bindings/dma/xilinx/xilinx_dma.txt`.
        compatible: &["xlnx,axi-vdma-1.00.a"],
        // embeddedsw `axivdma.tcl` has the same names.
        ip: &["axi_vdma"],
        parameters: &[
            ("C_NUM_FSTORES", "frame_stores"),
            ("C_ADDR_WIDTH", "address_bits"),
            ("C_M_AXI_MM2S_DATA_WIDTH", "mm2s_data_bits"),
            ("C_M_AXI_S2MM_DATA_WIDTH", "s2mm_data_bits"),
            ("C_INCLUDE_MM2S_DRE", "mm2s_dre"),
            ("C_INCLUDE_S2MM_DRE", "s2mm_dre"),
        ],
        core: Some(open_core::<D>),
        ..DriverRow::new(
            "axi_vdma",
            "AXI VDMA: a frame a job; with channel=0 it sends operand 0, with channel=1 it \
             receives into it; needs hsize_bytes and vsize_lines",
            open::<D>,
        )
    }
}

/// # Safety
/// As [`AxiVdmaChannel::alone`].
#[allow(unsafe_code, reason = "which core is behind registers is the caller's promise")]
unsafe fn open<D: Device + Send + 'static>(parts: Parts<'_, D>) -> Result<AnyDriver> {
    let (side, config) = said(parts.settings)?;
    // SAFETY: the caller's promise.
    AnyDriver::new(unsafe { AxiVdmaChannel::alone(parts.device, side, config)? })
}

/// The core that both channels share.
///
/// # Safety
/// As [`AxiVdmaCore::open`].
#[allow(unsafe_code, reason = "which core is behind registers is the caller's promise")]
unsafe fn open_core<D: Device + Send + Sync + 'static>(device: D) -> Result<AnyCore> {
    // SAFETY: the caller's promise.
    AnyCore::new(unsafe { AxiVdmaCore::open(device)? })
}

#[allow(unsafe_code, reason = "which core is behind registers is the caller's promise")]
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

/// The channel, by default 1, and its configuration.
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
