//! The receive channel's registers, and its descriptor in memory: AMD PG021 (AXI DMA v7.1), by the
//! names of its pages. The core is built for addresses of 32 bits, so that the upper halves are 0.
//!
//! Linux `drivers/dma/xilinx/xilinx_dma.c` has the same numbers: `XILINX_DMA_S2MM_CTRL_OFFSET` and
//! `XILINX_DMA_REG_…` for the registers, `XILINX_DMA_DMACR_…` and `XILINX_DMA_DMASR_…` for their
//! bits, `struct xilinx_axidma_desc_hw` for the descriptor. QEMU `hw/dma/xilinx_axidma.c` has fewer
//! of them, and lengths of 23 bits.

use contigo::mmio::{ReadOnly, ReadWrite, Register, WriteOneToggles};

/// The window, with the last register of the channel in this mode: S2MM_TAILDESC_MSB, 44h.
pub const WINDOW_BYTES: usize = 0x48;

/// S2MM_DMACR, 30h: control.
pub const DMACR: Register<ReadWrite> = Register::at(0x30);
/// S2MM_DMASR, 34h: status; writing 1 clears an interrupt's bit.
pub const DMASR: Register<WriteOneToggles> = Register::at(0x34);
/// S2MM_CURDESC, 38h: the descriptor under way. It is written while the channel is halted.
pub const CURDESC: Register<ReadWrite> = Register::at(0x38);
/// S2MM_TAILDESC, 40h: the last descriptor; writing it is the doorbell.
pub const TAILDESC: Register<ReadWrite> = Register::at(0x40);
/// S2MM_DMACR as who only looks sees it.
pub const CONTROL: Register<ReadOnly> = Register::at(0x30);

/// DMACR, bit 0, RS: run (`XILINX_DMA_DMACR_RUNSTOP`).
pub const RUN: u32 = 1 << 0;
/// DMACR, bit 2, Reset: soft reset of the whole core; clears itself when it is done
/// (`XILINX_DMA_DMACR_RESET`, `xilinx_dma_reset`).
pub const RESET: u32 = 1 << 2;
/// DMACR, bits 12 and 14, IOC_IrqEn and Err_IrqEn: an interrupt for each packet (with a threshold
/// of 1), and for an error (`XILINX_DMA_DMACR_FRM_CNT_IRQ`, `XILINX_DMA_DMACR_ERR_IRQ`).
pub const IRQ_ENABLE: u32 = 1 << 12 | 1 << 14;
/// DMACR, bits 23:16, IRQThreshold: so many packets make an interrupt
/// (`XILINX_DMA_CR_COALESCE_SHIFT`).
pub const THRESHOLD_1: u32 = 1 << 16;

/// DMASR, bit 0, Halted: the channel has stopped (`XILINX_DMA_DMASR_HALTED`).
pub const HALTED: u32 = 1 << 0;
/// DMASR, bit 1, Idle: the descriptor in TAILDESC is done, and there is none after it
/// (`XILINX_DMA_DMASR_IDLE`).
pub const IDLE: u32 = 1 << 1;
/// DMASR, bit 2, which "is always read as zero": so a device that is gone shows.
pub const RESERVED: u32 = 1 << 2;
/// DMASR, bits 6:4 and 10:8: an error of the data mover (internal, slave, decode) or of the
/// descriptor fetch. Linux calls bit 8 as VDMA has it (`XILINX_DMA_DMASR_EOF_EARLY_ERR`); that it
/// is the fetch's internal error is embeddedsw's word (`XAXIDMA_ERR_SG_INT_MASK`).
pub const ERRORS: u32 = 0b111 << 4 | 0b111 << 8;
/// DMASR, bits 12 and 14, IOC_Irq and Err_Irq: a packet is done, or an error came; writing 1 clears
/// it (`XILINX_DMA_DMASR_FRM_CNT_IRQ`, `XILINX_DMA_DMASR_ERR_IRQ`).
pub const IRQS: u32 = 1 << 12 | 1 << 14;

/// A descriptor's address is a multiple of this ("Scatter Gather Descriptor", note 1: 16 words).
/// Its eight words and, where a core has them, five of the user's fit in.
pub const DESCRIPTOR_BYTES: usize = 64;
/// Where a descriptor's status is, from its beginning: STATUS, 1Ch.
pub const STATUS_AT: usize = 0x1C;
/// The most bytes that a descriptor's length holds: S2MM_CONTROL, bits 25:0, all of which the core
/// has here (`XILINX_DMA_V2_MAX_TRANS_LEN_MAX`; a core may be built with fewer).
pub const BYTES_MASK: u32 = (1 << 26) - 1;
/// Descriptor status, bit 27, RXSOF: the packet's first bytes are in this buffer.
pub const FIRST: u32 = 1 << 27;
/// Descriptor status, bit 26, RXEOF: the packet's last bytes are in this buffer.
pub const LAST: u32 = 1 << 26;
/// Descriptor status, bit 31, Cmplt: the device is done with it.
pub const COMPLETE: u32 = 1 << 31;
/// Descriptor status, bits 30:28: an error of the data mover (decode, slave, internal). It comes
/// beside Cmplt, and the channel halts after it (embeddedsw, `XAXIDMA_BD_STS_ALL_ERR_MASK` and
/// `XAxiDma_BdRingFromHw`).
pub const FAILED: u32 = 0b111 << 28;

/// A descriptor's words: NXTDESC at 00h, BUFFER_ADDRESS at 08h, each in two halves; two reserved
/// ones; CONTROL at 18h and STATUS at 1Ch.
#[must_use]
#[allow(clippy::cast_possible_truncation, reason = "the halves of an address")]
pub const fn descriptor(next: u64, buffer: u64, len_bytes: u32) -> [u32; 8] {
    [next as u32, (next >> 32) as u32, buffer as u32, (buffer >> 32) as u32, 0, 0, len_bytes & BYTES_MASK, 0]
}

/// An error's bits in words.
#[must_use]
pub const fn describe(status: u32) -> &'static str {
    match status {
        _ if status & 1 << 4 != 0 => "internal error of the data mover: a length of 0, or a buffer too short",
        _ if status & 1 << 5 != 0 => "memory answered a write with an error",
        _ if status & 1 << 6 != 0 => "no memory is at a buffer's address",
        _ if status & 1 << 8 != 0 => "a descriptor was fetched that is complete already",
        _ if status & 1 << 9 != 0 => "memory answered a descriptor's fetch with an error",
        _ if status & 1 << 10 != 0 => "no memory is at a descriptor's address",
        _ if status == u32::MAX => "the device is gone",
        _ => "the channel halted by itself",
    }
}
