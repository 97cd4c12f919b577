//! LitePCIe's registers, as `litepcie/software/kernel/config.h` has them: each names its macro.

/// `PCIE_DMA_WRITER_ENABLE_OFFSET`.
pub const WRITER: usize = 0x0000;
/// `PCIE_DMA_READER_ENABLE_OFFSET`.
pub const READER: usize = 0x0020;
/// `PCIE_DMA_LOOPBACK_ENABLE_OFFSET`.
pub const LOOPBACK: usize = 0x0040;

/// From a lane's first register: `PCIE_DMA_WRITER_TABLE_VALUE_OFFSET`; the address is four bytes
/// further (`main.c`, `litepcie_dma_writer_start`).
pub const VALUE: usize = 0x0004;
/// `PCIE_DMA_WRITER_TABLE_WE_OFFSET`.
pub const WE: usize = 0x000C;
/// `PCIE_DMA_WRITER_TABLE_LOOP_PROG_N_OFFSET`.
pub const LOOP_PROG_N: usize = 0x0010;
/// `PCIE_DMA_WRITER_TABLE_LOOP_STATUS_OFFSET`.
pub const LOOP_STATUS: usize = 0x0014;
/// `PCIE_DMA_WRITER_TABLE_LEVEL_OFFSET`.
pub const LEVEL: usize = 0x0018;
/// `PCIE_DMA_WRITER_TABLE_FLUSH_OFFSET`.
pub const FLUSH: usize = 0x001C;

/// `DMA_LAST_DISABLE`.
pub const LAST_DISABLE: u32 = 1 << 25;
/// A length has 24 bits; the next bit is `DMA_IRQ_DISABLE`.
pub const LENGTH: u32 = (1 << 24) - 1;

/// `CSR_PCIE_DMA0_BASE` of LiteX-M2SDR.
pub const DMA0: usize = 0x6000;
/// `CSR_PCIE_MSI_BASE` of LiteX's SoC for the Acorn.
pub const MSI: usize = 0x5800;
