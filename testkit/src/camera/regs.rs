//! The receive channel's registers, and its descriptor in memory: AMD PG021 (AXI DMA v7.1),
//! "Register Space" and "Scatter Gather Descriptor". The core is built for addresses of 32 bits, so
//! that the upper halves are 0.

use contigo::mmio::{ReadOnly, ReadWrite, Register, WriteOneToggles};

/// The window, up to the last register of the channel.
pub const WINDOW_BYTES: usize = 0x58;

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

/// DMACR: run.
pub const RUN: u32 = 1 << 0;
/// DMACR: soft reset of the whole core; clears itself when it is done.
pub const RESET: u32 = 1 << 2;
/// DMACR: an interrupt for each packet (with a threshold of 1), and for an error.
pub const IRQ_ENABLE: u32 = 1 << 12 | 1 << 14;
/// DMACR: so many packets make an interrupt.
pub const THRESHOLD_1: u32 = 1 << 16;

/// DMASR: the channel has stopped.
pub const HALTED: u32 = 1 << 0;
/// DMASR: the descriptor in TAILDESC is done, and there is none after it.
pub const IDLE: u32 = 1 << 1;
/// DMASR: a bit that reads as 0, so that a device that is gone shows.
pub const RESERVED: u32 = 1 << 2;
/// DMASR: an error of the data mover (internal, slave, decode) or of the descriptor fetch.
pub const ERRORS: u32 = 0b111 << 4 | 0b111 << 8;
/// DMASR: a packet is done, or an error came; writing 1 clears it.
pub const IRQS: u32 = 1 << 12 | 1 << 14;

/// How many bytes of a descriptor the driver writes: to its status. The device wants each at a
/// multiple of 64 bytes.
pub const DESCRIPTOR_BYTES: usize = 64;
/// Where a descriptor's status is, from its beginning.
pub const STATUS_AT: usize = 0x1C;
/// The most bytes that a descriptor's length holds: 26 bits, as the core is built here.
pub const BYTES_MASK: u32 = (1 << 26) - 1;
/// Descriptor status: the packet's first bytes are in this buffer.
pub const FIRST: u32 = 1 << 27;
/// Descriptor status: the packet's last bytes are in this buffer.
pub const LAST: u32 = 1 << 26;
/// Descriptor status: the device is done with it.
pub const COMPLETE: u32 = 1 << 31;

/// A descriptor's words: NXTDESC, BUFFER_ADDRESS, CONTROL, STATUS, each address in two halves.
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
