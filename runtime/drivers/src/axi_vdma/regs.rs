//! The registers of an AXI VDMA, by AMD PG020 (AXI Video Direct Memory Access v6.3), "AXI VDMA
//! Register Address Map". Linux `drivers/dma/xilinx/xilinx_dma.c` has the same numbers
//! (`XILINX_DMA_REG_…`, `XILINX_DMA_DMACR_…`, `XILINX_DMA_DMASR_…`, `XILINX_VDMA_…`).

use contigo_core::hw::mmio::{ReadOnly, ReadWrite, Register, WriteOneToggles};

/// The window: up to the last start address, E8h.
pub(crate) const WINDOW_BYTES: usize = 0xEC;

/// `VDMA_VERSION`, 2Ch: bits 31:28 are the major version. RO.
pub(crate) const VERSION: Register<ReadOnly> = Register::at(0x2C);
/// The major version that has these registers.
pub(crate) const MAJOR: u32 = 6;

/// The registers of one channel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Channel {
    /// `VDMACR`, 00h or 30h: control. R/W.
    pub(crate) control: Register<ReadWrite>,
    /// `VDMASR`, 04h or 34h: status. RO; interrupts and frame errors are cleared by writing 1.
    pub(crate) status: Register<WriteOneToggles>,
    /// `REG_INDEX`, 14h or 44h: 1 shows the other bank of start addresses. R/W.
    pub(crate) index: Register<ReadWrite>,
    /// `VSIZE`, 50h or A0h: lines, 13 bits. Writing it starts a frame, except while Halted. R/W.
    pub(crate) vsize: Register<ReadWrite>,
    /// `HSIZE`, 54h or A4h: bytes of a line, 16 bits. R/W.
    pub(crate) hsize: Register<ReadWrite>,
    /// `FRMDLY_STRIDE`, 58h or A8h: bytes from a line to the next, 16 bits. R/W.
    pub(crate) stride: Register<ReadWrite>,
    /// Where the start addresses begin: `START_ADDRESS1`, 5Ch or ACh. R/W.
    pub(crate) start: usize,
}

impl Channel {
    const fn at(control: usize, sizes: usize) -> Self {
        Self {
            control: Register::at(control),
            status: Register::at(control + 0x04),
            index: Register::at(control + 0x14),
            vsize: Register::at(sizes),
            hsize: Register::at(sizes + 0x04),
            stride: Register::at(sizes + 0x08),
            start: sizes + 0x0C,
        }
    }
}

/// The channel from memory to the stream.
pub(crate) const MM2S: Channel = Channel::at(0x00, 0x50);
/// The channel from the stream to memory.
pub(crate) const S2MM: Channel = Channel::at(0x30, 0xA0);

/// The number of start address registers in each of two banks. A wide address has two registers.
pub(crate) const BANK: usize = 16;
/// The most frame stores, with addresses of 32 bits.
pub(crate) const STORES_MAX: usize = 32;
/// The most frame stores with wider addresses (embeddedsw, `XAXIVDMA_MAX_FRAMESTORE_64`).
pub(crate) const STORES_WIDE_MAX: usize = 16;
/// The most bytes of a line, and of a stride.
pub(crate) const HSIZE_MAX: u32 = 0xFFFF;
/// The most lines.
pub(crate) const VSIZE_MAX: u32 = 0x1FFF;

/// VDMACR, bit 0, RS: run. The channel clears it after the last frame of a count.
pub(crate) const RUN: u32 = 1 << 0;
/// VDMACR, bit 1, `Circular_Park`: use the frame stores in turn, instead of one of them repeatedly.
pub(crate) const CIRCULAR: u32 = 1 << 1;
/// VDMACR, bit 2, Reset: soft reset of this channel; clears itself.
pub(crate) const RESET: u32 = 1 << 2;
/// VDMACR, bit 4, `FrameCntEn`: the channel halts after `IRQFrameCount` frames.
pub(crate) const FRAME_COUNT: u32 = 1 << 4;
/// VDMACR, bits 23:16, `IRQFrameCount`.
pub(crate) const COUNT_SHIFT: u32 = 16;
/// VDMACR and VDMASR, bit 12, `FrmCnt_Irq`: that many frames are over.
pub(crate) const FRAMES: u32 = 1 << 12;
/// VDMACR and VDMASR, bit 13, `DlyCnt_Irq`.
pub(crate) const DELAY: u32 = 1 << 13;
/// VDMACR and VDMASR, bit 14, `Err_Irq`.
pub(crate) const ERROR: u32 = 1 << 14;

/// VDMASR, bit 0, Halted.
pub(crate) const HALTED: u32 = 1 << 0;
/// VDMASR, bit 2, which by the manual reads as zero. It reveals an absent core.
pub(crate) const RESERVED: u32 = 1 << 2;
/// VDMASR, bit 4, `VDMAIntErr`.
pub(crate) const INTERNAL: u32 = 1 << 4;
/// VDMASR, bit 5, `VDMASlvErr`.
pub(crate) const SLAVE: u32 = 1 << 5;
/// VDMASR, bit 6, `VDMADecErr`.
pub(crate) const DECODE: u32 = 1 << 6;
/// VDMASR, bit 7, `SOFEarlyErr`.
pub(crate) const SOF_EARLY: u32 = 1 << 7;
/// VDMASR, bit 8, `EOLEarlyErr`, of S2MM.
pub(crate) const EOL_EARLY: u32 = 1 << 8;
/// VDMASR, bit 11, `SOFLateErr`, of S2MM.
pub(crate) const SOF_LATE: u32 = 1 << 11;
/// VDMASR, bit 15, `EOLLateErr`, of S2MM.
pub(crate) const EOL_LATE: u32 = 1 << 15;
/// VDMASR: errors that halt the channel.
pub(crate) const FATAL: u32 = INTERNAL | SLAVE | DECODE;
/// VDMASR: errors of one frame's shape.
pub(crate) const SHAPE: u32 = SOF_EARLY | EOL_EARLY | SOF_LATE | EOL_LATE;
/// VDMASR: the bits that writing 1 clears.
pub(crate) const CLEARED: u32 = FRAMES | DELAY | ERROR | SHAPE | INTERNAL;

/// Returns whether VDMASR shows that the one frame is over and the channel accesses nothing. Halted
/// alone may date from before the frame began.
#[must_use]
pub(crate) const fn is_over(status: u32) -> bool {
    status & (HALTED | FRAMES | RESERVED | FATAL) == HALTED | FRAMES
}

/// The most important error of VDMASR in words.
#[must_use]
pub(crate) const fn describe(status: u32) -> &'static str {
    match status {
        u32::MAX => "all ones: it is gone, or has no clock; check the bitstream and its clocks",
        _ if status & DECODE != 0 => {
            "VDMADecErr: the port reaches no memory at an address of this frame; check the port \
             and the address map"
        }
        _ if status & SLAVE != 0 => {
            "VDMASlvErr: memory refused an access of this frame; is every slave on its way \
             clocked and open?"
        }
        _ if status & INTERNAL != 0 => {
            "VDMAIntErr: a size of 0, or a frame that does not fit its line buffer; check \
             hsize_bytes, vsize_lines and data_bits"
        }
        _ if status & SOF_EARLY != 0 => {
            "SOFEarlyErr: the next frame began before the last line; the source has fewer lines \
             than vsize_lines"
        }
        _ if status & EOL_EARLY != 0 => {
            "EOLEarlyErr: a line ended too early; the source has fewer bytes in a line than \
             hsize_bytes"
        }
        _ if status & SOF_LATE != 0 => {
            "SOFLateErr: lines came after the last one; the source has more lines than vsize_lines"
        }
        _ if status & EOL_LATE != 0 => {
            "EOLLateErr: a line did not end; the source has more bytes in a line than hsize_bytes"
        }
        _ => "that it halted, and no error; did something other than this driver reset it?",
    }
}

/// The error, by VDMASR, of a channel that stays halted after RS was set.
#[must_use]
pub(crate) const fn describe_start(status: u32) -> &'static str {
    if status == u32::MAX || status & FATAL != 0 {
        return describe(status);
    }
    "Halted stayed after RS was set: has this channel's m_axi clock stopped, or is its reset held?"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_has_its_sentence() {
        let names = [
            (INTERNAL, "VDMAIntErr"),
            (SLAVE, "VDMASlvErr"),
            (DECODE, "VDMADecErr"),
            (SOF_EARLY, "SOFEarlyErr"),
            (EOL_EARLY, "EOLEarlyErr"),
            (SOF_LATE, "SOFLateErr"),
            (EOL_LATE, "EOLLateErr"),
            (0, "no error"),
            (u32::MAX, "all ones"),
        ];
        for (bit, name) in names {
            assert!(
                describe(bit).contains(name) && describe(bit | HALTED | ERROR).contains(name),
                "{name}"
            );
        }
        assert_eq!(
            names.iter().filter(|(bit, _)| *bit != u32::MAX).fold(0, |bits, (bit, _)| bits | bit),
            FATAL | SHAPE
        );
    }
}
