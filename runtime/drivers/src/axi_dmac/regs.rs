//! The registers of the AXI DMAC. The numbers come from Linux: `drivers/dma/dma-axi-dmac.c`. The
//! meanings come from ADI's page "AXI DMAC" and its register map. [`STATE`] is in no table: ADI's
//! Verilog has it (`axi_dmac_regmap.v`, word 0x10F; `axi_dmac_reset_manager.v`, `dbg_status`).

use contigo_core::hw::mmio::{ReadClears, ReadOnly, ReadWrite, Register, WriteOneToggles};

/// The window: 2 KiB of it are decoded.
pub(crate) const WINDOW_BYTES: usize = 0x800;

/// VERSION, 0x000: major in bits 31:16, minor in 15:8, patch in 7:0.
pub(crate) const VERSION: Register<ReadOnly> = Register::at(0x000);
/// IDENTIFICATION, 0x00C: [`DMAC`].
pub(crate) const IDENTIFICATION: Register<ReadOnly> = Register::at(0x00C);
/// `INTERFACE_DESCRIPTION_1`, 0x010, from version 4.3 on: types and widths.
pub(crate) const INTERFACE: Register<ReadOnly> = Register::at(0x010);
/// `INTERFACE_DESCRIPTION_2`, 0x014, from version 4.4 on: [`COHERENT`].
pub(crate) const COHERENCY: Register<ReadOnly> = Register::at(0x014);
/// `IRQ_MASK`, 0x080: 1 masks; all are masked after a reset.
pub(crate) const IRQ_MASK: Register<ReadWrite> = Register::at(0x080);
/// `IRQ_PENDING`, 0x084: writing 1 clears.
pub(crate) const IRQ_PENDING: Register<WriteOneToggles> = Register::at(0x084);
/// CONTROL, 0x400.
pub(crate) const CONTROL: Register<ReadWrite> = Register::at(0x400);
/// `TRANSFER_ID`, 0x404: the ID of the next transfer, while `SUBMIT` is 0.
pub(crate) const TRANSFER_ID: Register<ReadOnly> = Register::at(0x404);
/// `TRANSFER_SUBMIT`, 0x408: writing 1 queues a transfer; it reads 1 until that is in the queue.
pub(crate) const SUBMIT: Register<ReadWrite> = Register::at(0x408);
/// FLAGS, 0x40C.
pub(crate) const FLAGS: Register<ReadWrite> = Register::at(0x40C);
/// `DEST_ADDRESS`, 0x410; its low bits do not exist.
pub(crate) const DEST_ADDR: Register<ReadWrite> = Register::at(0x410);
/// `SRC_ADDRESS`, 0x414.
pub(crate) const SRC_ADDR: Register<ReadWrite> = Register::at(0x414);
/// `X_LENGTH`, 0x418: bytes of a row, less one; its low bits are always 1.
pub(crate) const X_LENGTH: Register<ReadWrite> = Register::at(0x418);
/// `Y_LENGTH`, 0x41C: rows less one, with 2D transfers.
pub(crate) const Y_LENGTH: Register<ReadWrite> = Register::at(0x41C);
/// `DEST_STRIDE`, 0x420: from row to row.
pub(crate) const DEST_STRIDE: Register<ReadWrite> = Register::at(0x420);
/// `SRC_STRIDE`, 0x424.
pub(crate) const SRC_STRIDE: Register<ReadWrite> = Register::at(0x424);
/// `TRANSFER_DONE`, 0x428: bit N is transfer N's, and [`PARTIAL`]. A bit is cleared when its ID is
/// queued again.
pub(crate) const DONE: Register<ReadOnly> = Register::at(0x428);
/// The debug word, 0x43C: the reset manager's state.
pub(crate) const STATE: Register<ReadOnly> = Register::at(0x43C);
/// `PARTIAL_TRANSFER_LENGTH`, 0x44C, from version 4.2 on.
pub(crate) const PARTIAL_LENGTH: Register<ReadOnly> = Register::at(0x44C);
/// `PARTIAL_TRANSFER_ID`, 0x450: reading it removes the report.
pub(crate) const PARTIAL_ID: Register<ReadClears> = Register::at(0x450);
/// `SG_ADDRESS`, 0x47C: the first descriptor, from version 4.5 on.
pub(crate) const SG_ADDR: Register<ReadWrite> = Register::at(0x47C);
/// `DEST_ADDRESS_HIGH`, 0x490.
pub(crate) const DEST_ADDR_HIGH: Register<ReadWrite> = Register::at(0x490);
/// `SRC_ADDRESS_HIGH`, 0x494.
pub(crate) const SRC_ADDR_HIGH: Register<ReadWrite> = Register::at(0x494);
/// `SG_ADDRESS_HIGH`, 0x4BC.
pub(crate) const SG_ADDR_HIGH: Register<ReadWrite> = Register::at(0x4BC);

/// IDENTIFICATION: "DMAC".
pub(crate) const DMAC: u32 = 0x444D_4143;
/// VERSION: the oldest that this driver supports, 4.3, which reports its types.
pub(crate) const VERSION_MIN: u32 = 4 << 16 | 3 << 8;
/// VERSION: 4.4, which reports its coherency.
pub(crate) const VERSION_COHERENCY: u32 = 4 << 16 | 4 << 8;
/// VERSION: 4.5, which has descriptors.
pub(crate) const VERSION_SG: u32 = 4 << 16 | 5 << 8;
/// VERSION: without the patch.
pub(crate) const VERSION_BITS: u32 = 0xFFFF_FF00;
/// `COHERENCY`: built with `CACHE_COHERENT`.
pub(crate) const COHERENT: u32 = 1 << 0;
/// IRQ: a transfer was queued.
pub(crate) const IRQ_QUEUED: u32 = 1 << 0;
/// IRQ: a transfer ended.
pub(crate) const IRQ_ENDED: u32 = 1 << 1;
/// CONTROL: enabled. Clearing it ends all transfers.
pub(crate) const ENABLE: u32 = 1 << 0;
/// CONTROL: descriptors. While it is 0, a stop does not wait for the read of one.
pub(crate) const HWDESC: u32 = 1 << 2;
/// FLAGS: TLAST at the end; for a receiver: a new packet begins here.
pub(crate) const LAST: u32 = 1 << 1;
/// FLAGS: report a packet that was shorter.
pub(crate) const REPORT: u32 = 1 << 2;
/// DONE: a report waits.
pub(crate) const PARTIAL: u32 = 1 << 31;
/// DONE: the transfers' bits.
pub(crate) const DONE_IDS: u32 = 0xF;
/// DONE: bits that read as 0.
pub(crate) const DONE_RESERVED: u32 = !(PARTIAL | DONE_IDS);
/// SUBMIT and the like: bits that read as 0.
pub(crate) const SUBMIT_RESERVED: u32 = !1;
/// STATE: the manager's in bits 2:0, then enable bits: the reader of descriptors (bit 3), the
/// destination, the source, the queue. Bits 10:7 show resets, and bit 11 a pending one.
pub(crate) const STATE_BITS: u32 = 0x7F;
/// STATE: all sides have ended their accesses, and were reset.
pub(crate) const STATE_RESET: u32 = 0x01;
/// STATE: bits that read as 0.
pub(crate) const STATE_RESERVED: u32 = 0xFFFF_F000;
/// The number of transfer IDs.
pub(crate) const IDS: usize = 4;

/// A descriptor: its words. Flags, ID, destination, source, next, rows, bytes, strides of source
/// and destination.
pub(crate) const DESCRIPTOR_WORDS: usize = 12;
/// A descriptor begins at a multiple of 64 bytes, so that none crosses 4 KiB.
pub(crate) const DESCRIPTOR_BYTES: usize = 64;
/// A descriptor's flags: the last of its transfer.
pub(crate) const DESCRIPTOR_LAST: u32 = 1 << 0;
/// A descriptor's flags: its end ends the transfer.
pub(crate) const DESCRIPTOR_END: u32 = 1 << 1;

/// A side of the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// AXI memory.
    Memory,
    /// An AXI stream.
    Stream,
    /// ADI's FIFO interface, which marks no ends.
    Fifo,
}

impl Side {
    const fn of(bits: u32) -> Option<Self> {
        match bits & 3 {
            0 => Some(Self::Memory),
            1 => Some(Self::Stream),
            2 => Some(Self::Fifo),
            _ => None,
        }
    }
}

/// `INTERFACE`: the source's side, and a word of it in bytes.
#[must_use]
pub(crate) const fn source(interface: u32) -> Option<(Side, usize)> {
    match Side::of(interface >> 12) {
        Some(side) => Some((side, 1 << (interface >> 8 & 0xF))),
        None => None,
    }
}

/// `INTERFACE`: the destination's.
#[must_use]
pub(crate) const fn destination(interface: u32) -> Option<(Side, usize)> {
    match Side::of(interface >> 4) {
        Some(side) => Some((side, 1 << (interface & 0xF))),
        None => None,
    }
}

/// `INTERFACE`: the bytes of a burst; 1 if the version does not report it.
#[must_use]
pub(crate) const fn burst(interface: u32) -> usize {
    1 << (interface >> 16 & 0xF)
}

/// The message for values that this core's registers never have.
pub(crate) const GONE: &str = "bits that it never sets: its clock stands, or the fabric was \
    loaded anew; load the fabric and open the core again";
