//! The registers of `edu`, by QEMU's `docs/specs/edu.rst`, "MMIO area spec"; offsets in BAR 0.

use contigo::hw::mmio::{ReadOnly, ReadWrite, Register};

/// So much of BAR 0, which has 1 MiB, is used.
pub const WINDOW_BYTES: usize = 0x9C;
/// edu.rst, 0x00: identification, `0xRRrr00ed`: two digits of a major and two of a minor version.
pub const ID: Register<ReadOnly> = Register::at(0x00);
/// ID: the bits that name the device.
pub const ID_MASK: u32 = 0xFFFF;
/// ID: edu.
pub const ID_VALUE: u32 = 0x00ED;
/// edu.rst, 0x24: interrupt status: which values raised the interrupt.
pub const RAISED: Register<ReadOnly> = Register::at(0x24);
/// edu.rst, 0x64: interrupt acknowledge: clears what is written.
pub const ACKNOWLEDGE: Register<ReadWrite> = Register::at(0x64);
/// edu.rst, 0x80: DMA source address. An access of 32 bits sets it as a whole: hw/misc/edu.c,
/// `dma_rw`.
pub const SOURCE: Register<ReadWrite> = Register::at(0x80);
/// edu.rst, 0x88: DMA destination address.
pub const TARGET: Register<ReadWrite> = Register::at(0x88);
/// edu.rst, 0x90: DMA transfer count.
pub const COUNT: Register<ReadWrite> = Register::at(0x90);
/// edu.rst, 0x98: DMA command. While RUN is set, writes to this and to the three above are ignored.
pub const COMMAND: Register<ReadWrite> = Register::at(0x98);

/// COMMAND: starts the transfer; reads 1 until it is done.
pub const RUN: u32 = 1 << 0;
/// COMMAND: from memory to edu.
pub const TO_EDU: u32 = 0;
/// COMMAND: from edu to memory.
pub const FROM_EDU: u32 = 1 << 1;
/// COMMAND: raises [`DMA_DONE`] after the transfer.
pub const INTERRUPT: u32 = 1 << 2;
/// RAISED: a transfer is done.
pub const DMA_DONE: u32 = 0x100;

/// edu.rst: where edu's own buffer of 4,096 bytes is, in its own address space.
pub const BUFFER: u32 = 0x4_0000;
/// The longest transfer: without the buffer's last byte, because QEMU 7.2 ends itself over a
/// transfer that takes it (`edu_check_range`; 10.0 does not).
pub const TRANSFER_BYTES: u32 = 4095;
