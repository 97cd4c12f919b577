//! The same registers for the model, transcribed apart from `regs`: from AMD's embeddedsw,
//! `XilinxProcessorIPLib/drivers/axidma/src/xaxidma_hw.h`. Its macro stands beside each number; the
//! names are PG021's. `tests/tests/camera.rs` compares the two.

/// Control: `XAXIDMA_RX_OFFSET` and `XAXIDMA_CR_OFFSET`.
pub const DMACR: usize = 0x30;
/// Status: the same and `XAXIDMA_SR_OFFSET`.
pub const DMASR: usize = 0x34;
/// Current descriptor: the same and `XAXIDMA_CDESC_OFFSET`.
pub const CURDESC: usize = 0x38;
/// Tail descriptor: the same and `XAXIDMA_TDESC_OFFSET`.
pub const TAILDESC: usize = 0x40;
/// After `XAXIDMA_TDESC_MSB_OFFSET` of the same: this mode's last register.
pub const END: usize = 0x48;

/// S2MM_DMACR: bit 0, RS (`XAXIDMA_CR_RUNSTOP_MASK`).
pub const CR_RS: u32 = 0x0000_0001;
/// Bit 1, which "is always read as 1" (PG021, S2MM_DMACR); QEMU `hw/dma/xilinx_axidma.c` calls it
/// `DMACR_TAILPTR_MODE`.
pub const CR_ALWAYS: u32 = 0x0000_0002;
/// Bit 2, Reset (`XAXIDMA_CR_RESET_MASK`).
pub const CR_RESET: u32 = 0x0000_0004;
/// Bit 12, IOC_IrqEn (`XAXIDMA_IRQ_IOC_MASK`).
pub const CR_IOC_IRQ_EN: u32 = 0x0000_1000;
/// Bit 14, Err_IrqEn (`XAXIDMA_IRQ_ERROR_MASK`).
pub const CR_ERR_IRQ_EN: u32 = 0x0000_4000;
/// Bits 23:16, IRQThreshold, and its status in S2MM_DMASR (`XAXIDMA_COALESCE_MASK`).
pub const THRESHOLD: u32 = 0x00FF_0000;
/// The threshold after a reset: 1 (QEMU, `stream_reset`).
pub const THRESHOLD_RESET: u32 = 0x0001_0000;

/// S2MM_DMASR: bit 0, Halted (`XAXIDMA_HALTED_MASK`).
pub const SR_HALTED: u32 = 0x0000_0001;
/// Bit 1, Idle (`XAXIDMA_IDLE_MASK`).
pub const SR_IDLE: u32 = 0x0000_0002;
/// Bit 3, SGIncld: the core has scatter-gather (PG021; Linux `XILINX_DMA_DMASR_SG_MASK`).
pub const SR_SG_INCLUDED: u32 = 0x0000_0008;
/// Bit 4, DMAIntErr (`XAXIDMA_ERR_INTERNAL_MASK`).
pub const SR_DMA_INT_ERR: u32 = 0x0000_0010;
/// Bit 5, DMASlvErr (`XAXIDMA_ERR_SLAVE_MASK`).
pub const SR_DMA_SLV_ERR: u32 = 0x0000_0020;
/// Bit 6, DMADecErr (`XAXIDMA_ERR_DECODE_MASK`).
pub const SR_DMA_DEC_ERR: u32 = 0x0000_0040;
/// Bit 8, SGIntErr: a descriptor whose Cmplt is set was fetched (`XAXIDMA_ERR_SG_INT_MASK`).
pub const SR_SG_INT_ERR: u32 = 0x0000_0100;
/// Bit 9, SGSlvErr (`XAXIDMA_ERR_SG_SLV_MASK`).
pub const SR_SG_SLV_ERR: u32 = 0x0000_0200;
/// Bit 10, SGDecErr (`XAXIDMA_ERR_SG_DEC_MASK`).
pub const SR_SG_DEC_ERR: u32 = 0x0000_0400;
/// Bit 12, IOC_Irq (`XAXIDMA_IRQ_IOC_MASK`).
pub const SR_IOC_IRQ: u32 = 0x0000_1000;
/// Bit 14, Err_Irq (`XAXIDMA_IRQ_ERROR_MASK`).
pub const SR_ERR_IRQ: u32 = 0x0000_4000;

/// A descriptor begins at a multiple of 16 words (`XAXIDMA_BD_MINIMUM_ALIGNMENT`).
pub const BD_ALIGN: u64 = 0x40;
/// Descriptor: STATUS (`XAXIDMA_BD_STS_OFFSET`). The model reads the words before it by their
/// number: NXTDESC 0, BUFFER_ADDRESS 2 and 3, CONTROL 6 (`XAXIDMA_BD_NDESC_OFFSET`,
/// `XAXIDMA_BD_BUFA_OFFSET`, `XAXIDMA_BD_BUFA_MSB_OFFSET`, `XAXIDMA_BD_CTRL_LEN_OFFSET`).
pub const BD_STATUS: u64 = 0x1C;
/// CONTROL and STATUS: bits 25:0, buffer length and transferred bytes (what
/// `XAXIDMA_BD_STS_ALL_MASK` leaves).
pub const BD_BYTES: u32 = 0x03FF_FFFF;
/// STATUS: bit 26, RXEOF (`XAXIDMA_BD_STS_RXEOF_MASK`).
pub const BD_EOF: u32 = 0x0400_0000;
/// STATUS: bit 27, RXSOF (`XAXIDMA_BD_STS_RXSOF_MASK`).
pub const BD_SOF: u32 = 0x0800_0000;
/// STATUS: bit 28, DMAIntErr (`XAXIDMA_BD_STS_INT_ERR_MASK`).
pub const BD_INT_ERR: u32 = 0x1000_0000;
/// STATUS: bit 29, DMASlvErr (`XAXIDMA_BD_STS_SLV_ERR_MASK`).
pub const BD_SLV_ERR: u32 = 0x2000_0000;
/// STATUS: bit 30, DMADecErr (`XAXIDMA_BD_STS_DEC_ERR_MASK`).
pub const BD_DEC_ERR: u32 = 0x4000_0000;
/// STATUS: bit 31, Cmplt (`XAXIDMA_BD_STS_COMPLETE_MASK`).
pub const BD_CMPLT: u32 = 0x8000_0000;
