//! The same registers for the model, transcribed from PG021 apart from `regs`: name, offset or bit.
//! `tests/tests/camera.rs` compares the two.

/// Offsets, "AXI DMA Register Address Map (Scatter/Gather Mode)".
pub const DMACR: usize = 0x30;
/// Status.
pub const DMASR: usize = 0x34;
/// Current descriptor.
pub const CURDESC: usize = 0x38;
/// Tail descriptor.
pub const TAILDESC: usize = 0x40;

/// S2MM_DMACR: bit 0, RS.
pub const CR_RS: u32 = 0x0000_0001;
/// Bit 2, Reset.
pub const CR_RESET: u32 = 0x0000_0004;
/// Bit 12, IOC_IrqEn.
pub const CR_IOC_IRQ_EN: u32 = 0x0000_1000;
/// Bit 14, Err_IrqEn.
pub const CR_ERR_IRQ_EN: u32 = 0x0000_4000;

/// S2MM_DMASR: bit 0, Halted.
pub const SR_HALTED: u32 = 0x0000_0001;
/// Bit 1, Idle.
pub const SR_IDLE: u32 = 0x0000_0002;
/// Bit 3, SGIncld: the core has scatter-gather.
pub const SR_SG_INCLUDED: u32 = 0x0000_0008;
/// Bit 4, DMAIntErr.
pub const SR_DMA_INT_ERR: u32 = 0x0000_0010;
/// Bit 5, DMASlvErr.
pub const SR_DMA_SLV_ERR: u32 = 0x0000_0020;
/// Bit 6, DMADecErr.
pub const SR_DMA_DEC_ERR: u32 = 0x0000_0040;
/// Bit 8, SGIntErr: a descriptor whose Cmplt is set was fetched.
pub const SR_SG_INT_ERR: u32 = 0x0000_0100;
/// Bit 9, SGSlvErr.
pub const SR_SG_SLV_ERR: u32 = 0x0000_0200;
/// Bit 10, SGDecErr.
pub const SR_SG_DEC_ERR: u32 = 0x0000_0400;
/// Bit 12, IOC_Irq.
pub const SR_IOC_IRQ: u32 = 0x0000_1000;
/// Bit 14, Err_Irq.
pub const SR_ERR_IRQ: u32 = 0x0000_4000;

/// A descriptor begins at a multiple of 16 words.
pub const BD_ALIGN: u64 = 0x40;
/// Descriptor: STATUS.
pub const BD_STATUS: u64 = 0x1C;
/// CONTROL and STATUS: bits 25:0, buffer length and transferred bytes.
pub const BD_BYTES: u32 = 0x03FF_FFFF;
/// STATUS: bit 26, RXEOF.
pub const BD_EOF: u32 = 0x0400_0000;
/// STATUS: bit 27, RXSOF.
pub const BD_SOF: u32 = 0x0800_0000;
/// STATUS: bit 31, Cmplt.
pub const BD_CMPLT: u32 = 0x8000_0000;
