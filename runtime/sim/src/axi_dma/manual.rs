//! The model's own registers, transcribed separately from the driver's `regs`: from AMD's
//! embeddedsw, `XilinxProcessorIPLib/drivers/axidma/src/xaxidma_hw.h`. Each number names its macro;
//! the names are PG021's. A test compares the two.

pub(super) const MM2S: usize = 0x00; // The first of MM2S's registers: XAXIDMA_TX_OFFSET
pub(super) const S2MM: usize = 0x30; // The first of S2MM's registers: XAXIDMA_RX_OFFSET
pub(super) const DMACR: usize = 0x00; // Control: XAXIDMA_CR_OFFSET
pub(super) const DMASR: usize = 0x04; // Status: XAXIDMA_SR_OFFSET
pub(super) const CURDESC: usize = 0x08; // Current descriptor: XAXIDMA_CDESC_OFFSET
pub(super) const CURDESC_MSB: usize = 0x0C; // XAXIDMA_CDESC_MSB_OFFSET
pub(super) const TAILDESC: usize = 0x10; // Tail descriptor: XAXIDMA_TDESC_OFFSET
pub(super) const TAILDESC_MSB: usize = 0x14; // XAXIDMA_TDESC_MSB_OFFSET
/// The buffer's address: `XAXIDMA_SRCADDR_OFFSET`, and `XAXIDMA_DESTADDR_OFFSET` of S2MM.
pub(super) const ADDR: usize = 0x18;
pub(super) const ADDR_MSB: usize = 0x1C; // XAXIDMA_SRCADDR_MSB_OFFSET, XAXIDMA_DESTADDR_MSB_OFFSET
pub(super) const LENGTH: usize = 0x28; // XAXIDMA_BUFFLEN_OFFSET
/// The end of S2MM_LENGTH, and of the reserved bytes up to the next multiple of 16.
pub(super) const END: usize = 0x60;

pub(super) const CR_RS: u32 = 0x0000_0001; // DMACR: bit 0, RS (XAXIDMA_CR_RUNSTOP_MASK)
/// Bit 1, which is always read as 1 (PG021); QEMU `hw/dma/xilinx_axidma.c` calls it
/// `DMACR_TAILPTR_MODE`.
pub(super) const CR_ALWAYS: u32 = 0x0000_0002;
pub(super) const CR_RESET: u32 = 0x0000_0004; // Bit 2, Reset (XAXIDMA_CR_RESET_MASK)
/// The threshold after a reset: 1 (QEMU, `stream_reset`).
pub(super) const THRESHOLD_RESET: u32 = 0x0001_0000;
/// Bits 23:16 (`XAXIDMA_COALESCE_MASK`, `XAXIDMA_COALESCE_SHIFT`).
pub(super) const THRESHOLD: u32 = 0x00FF_0000;
pub(super) const DELAY: u32 = 0xFF00_0000; // Bits 31:24 (XAXIDMA_DELAY_MASK, XAXIDMA_DELAY_SHIFT)

pub(super) const SR_HALTED: u32 = 0x0000_0001; // DMASR: bit 0, Halted (XAXIDMA_HALTED_MASK)
pub(super) const SR_IDLE: u32 = 0x0000_0002; // Bit 1, Idle (XAXIDMA_IDLE_MASK)
pub(super) const SR_SG_INCLUDED: u32 = 0x0000_0008; // Bit 3, SGIncld (XAXIDMA_SR_SGINCL_MASK)
pub(super) const SR_DMA_INT_ERR: u32 = 0x0000_0010; // Bit 4, DMAIntErr (XAXIDMA_ERR_INTERNAL_MASK)
pub(super) const SR_DMA_SLV_ERR: u32 = 0x0000_0020; // Bit 5, DMASlvErr (XAXIDMA_ERR_SLAVE_MASK)
pub(super) const SR_DMA_DEC_ERR: u32 = 0x0000_0040; // Bit 6, DMADecErr (XAXIDMA_ERR_DECODE_MASK)
pub(super) const SR_SG_INT_ERR: u32 = 0x0000_0100; // Bit 8, SGIntErr (XAXIDMA_ERR_SG_INT_MASK)
pub(super) const SR_SG_SLV_ERR: u32 = 0x0000_0200; // Bit 9, SGSlvErr (XAXIDMA_ERR_SG_SLV_MASK)
pub(super) const SR_SG_DEC_ERR: u32 = 0x0000_0400; // Bit 10, SGDecErr (XAXIDMA_ERR_SG_DEC_MASK)
/// Bit 12, IOC_Irq (`XAXIDMA_IRQ_IOC_MASK`); IOC_IrqEn of DMACR is the same bit.
pub(crate) const SR_IOC_IRQ: u32 = 0x0000_1000;
pub(crate) const SR_DLY_IRQ: u32 = 0x0000_2000; // Bit 13, Dly_Irq (XAXIDMA_IRQ_DELAY_MASK)
pub(crate) const SR_ERR_IRQ: u32 = 0x0000_4000; // Bit 14, Err_Irq (XAXIDMA_IRQ_ERROR_MASK)
pub(super) const SR_IRQ_ALL: u32 = 0x0000_7000; // All three (XAXIDMA_IRQ_ALL_MASK)

/// A descriptor begins at a multiple of 16 words (`XAXIDMA_BD_MINIMUM_ALIGNMENT`).
pub(super) const BD_ALIGN: u64 = 0x40;
pub(super) const BD_NEXT: usize = 0x00; // NXTDESC (XAXIDMA_BD_NDESC_OFFSET)
pub(super) const BD_BUFFER: usize = 0x08; // Buffer (XAXIDMA_BD_BUFA_OFFSET)
pub(super) const BD_CONTROL: usize = 0x18; // Control (XAXIDMA_BD_CTRL_LEN_OFFSET)
pub(super) const BD_STATUS: usize = 0x1C; // Status (XAXIDMA_BD_STS_OFFSET)
/// Control and status: bits 25:0 (those outside `XAXIDMA_BD_STS_ALL_MASK`).
pub(super) const BD_BYTES: u32 = 0x03FF_FFFF;
pub(super) const BD_TX_EOF: u32 = 0x0400_0000; // Bit 26, TXEOF (XAXIDMA_BD_CTRL_TXEOF_MASK)
#[cfg(test)]
pub(super) const BD_TX_SOF: u32 = 0x0800_0000; // Bit 27, TXSOF (XAXIDMA_BD_CTRL_TXSOF_MASK)
pub(super) const BD_RX_EOF: u32 = 0x0400_0000; // Status: bit 26, RXEOF (XAXIDMA_BD_STS_RXEOF_MASK)
pub(super) const BD_RX_SOF: u32 = 0x0800_0000; // Status: bit 27, RXSOF (XAXIDMA_BD_STS_RXSOF_MASK)
pub(super) const BD_INT_ERR: u32 = 0x1000_0000; // Bit 28, DMAIntErr (XAXIDMA_BD_STS_INT_ERR_MASK)
pub(super) const BD_SLV_ERR: u32 = 0x2000_0000; // Bit 29, DMASlvErr (XAXIDMA_BD_STS_SLV_ERR_MASK)
pub(super) const BD_DEC_ERR: u32 = 0x4000_0000; // Bit 30, DMADecErr (XAXIDMA_BD_STS_DEC_ERR_MASK)
pub(super) const BD_CMPLT: u32 = 0x8000_0000; // Bit 31, Cmplt (XAXIDMA_BD_STS_COMPLETE_MASK)
/// The errors of DMASR together (`XAXIDMA_ERR_ALL_MASK`).
pub(super) const SR_ERRORS: u32 = 0x0000_0770;
