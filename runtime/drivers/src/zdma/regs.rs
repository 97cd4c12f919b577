//! The registers of one ZDMA channel. Names, offsets, widths and reset values come from UG1087,
//! module ZDMA. Their meaning comes from UG1085, chapter "DMA Controller", or else from AMD's own
//! driver (embeddedsw, `xzdma_hw.h`).

use contigo_core::hw::mmio::{Pointer, ReadOnly, ReadWrite, Register, WriteOneToggles};

/// The used bytes of the window, which is within one 4 KiB page.
pub(crate) const WINDOW_BYTES: usize = 0x204;
/// A side's descriptor in memory begins at a multiple of its own size (UG1085, "Buffer Descriptor
/// Summary").
pub(crate) const DESCRIPTOR_BYTES: usize = 32;
/// The address bits of a descriptor: 32 in word 0, 12 in word 1 (UG1085, table "Buffer Descriptor
/// Format"). The registers have 49 (UG1087), of which the interconnect drives 40 to memory.
pub(crate) const ADDR_BITS: u32 = 44;
/// The most bytes of one descriptor: its SIZE field has 30 bits.
pub(crate) const SIZE_MAX: u32 = 0x3FFF_FFFF;

/// ZDMA_CH_ISR, 0x100: what happened; sticky, writing 1 clears a bit.
pub(crate) const ISR: Register<WriteOneToggles> = Register::at(0x100);
/// ZDMA_CH_IEN, 0x108: writing 1 unmasks. Write only, reads 0.
pub(crate) const IEN: Register<ReadWrite> = Register::at(0x108);
/// ZDMA_CH_IDS, 0x10C: writing 1 masks. Write only, reads 0.
pub(crate) const IDS: Register<ReadWrite> = Register::at(0x10C);
/// ZDMA_CH_CTRL0, 0x110: mode. Reset value 0x80. Stable while enabled, except for CONT.
pub(crate) const CTRL0: Register<ReadWrite> = Register::at(0x110);
/// ZDMA_CH_CTRL1, 0x114: how many transactions may be outstanding on each side.
pub(crate) const CTRL1: Register<ReadWrite> = Register::at(0x114);
/// ZDMA_CH_FCI, 0x118: flow control by the fabric.
pub(crate) const FCI: Register<ReadWrite> = Register::at(0x118);
/// ZDMA_CH_STATUS, 0x11C: bits 1..0 are the channel's state.
pub(crate) const STATUS: Register<ReadOnly> = Register::at(0x11C);
/// ZDMA_CH_DATA_ATTR, 0x120: how payload is read and written. Stable while the channel is enabled.
pub(crate) const DATA_ATTR: Register<ReadWrite> = Register::at(0x120);
/// ZDMA_CH_DSCR_ATTR, 0x124: how descriptors are read. Stable while the channel is enabled.
pub(crate) const DSCR_ATTR: Register<ReadWrite> = Register::at(0x124);
/// ZDMA_CH_SRC_DSCR_WORD0 and WORD1, 0x128 and 0x12C: where simple mode reads.
pub(crate) const SRC_ADDR: Pointer = Pointer::at(0x128);
/// ZDMA_CH_SRC_DSCR_WORD2, 0x130: how many bytes simple mode copies, bits 29..0.
pub(crate) const SRC_SIZE: Register<ReadWrite> = Register::at(0x130);
/// ZDMA_CH_SRC_DSCR_WORD3, 0x134: [`WORD3_COHERENT`]; the other bits count in memory only.
pub(crate) const SRC_WORD3: Register<ReadWrite> = Register::at(0x134);
/// ZDMA_CH_DST_DSCR_WORD0 and WORD1, 0x138 and 0x13C: where simple mode writes.
pub(crate) const DST_ADDR: Pointer = Pointer::at(0x138);
/// ZDMA_CH_DST_DSCR_WORD2, 0x140: simple mode uses the source's size only (UG1085, "Simple DMA
/// Mode").
pub(crate) const DST_SIZE: Register<ReadWrite> = Register::at(0x140);
/// ZDMA_CH_DST_DSCR_WORD3, 0x144: as [`SRC_WORD3`].
pub(crate) const DST_WORD3: Register<ReadWrite> = Register::at(0x144);
/// ZDMA_CH_SRC_START_LSB and MSB, 0x158 and 0x15C: the first source descriptor.
pub(crate) const SRC_START: Pointer = Pointer::at(0x158);
/// ZDMA_CH_DST_START_LSB and MSB, 0x160 and 0x164: the first destination descriptor.
pub(crate) const DST_START: Pointer = Pointer::at(0x160);
/// ZDMA_CH_TOTAL_BYTE, 0x188: bytes whose writes were answered since it was cleared, also after an
/// error (UG1085, "Total Transferred Bytes Overflow"). Writing 1 clears a bit.
pub(crate) const TOTAL_BYTE: Register<WriteOneToggles> = Register::at(0x188);
/// ZDMA_CH_CTRL2, 0x200: bit 0 enables the channel; the channel clears it at its end.
pub(crate) const CTRL2: Register<ReadWrite> = Register::at(0x200);

/// ISR: the channel has paused.
pub(crate) const INT_PAUSE: u32 = 1 << 11;
/// ISR: the channel is done, with an error or without.
pub(crate) const INT_DONE: u32 = 1 << 10;
/// ISR: a write of payload was answered with SLVERR or DECERR.
pub(crate) const INT_WRITE: u32 = 1 << 9;
/// ISR: a read of payload was answered with SLVERR or DECERR.
pub(crate) const INT_READ: u32 = 1 << 8;
/// ISR: a destination descriptor could not be read.
pub(crate) const INT_DST_DESCRIPTOR: u32 = 1 << 7;
/// ISR: a source descriptor could not be read.
pub(crate) const INT_SRC_DESCRIPTOR: u32 = 1 << 6;
/// ISR: more destination interrupts than 8 bits count.
pub(crate) const INT_DST_ACCT: u32 = 1 << 5;
/// ISR: more source interrupts than 8 bits count.
pub(crate) const INT_SRC_ACCT: u32 = 1 << 4;
/// ISR: [`TOTAL_BYTE`] overflowed.
pub(crate) const INT_BYTE_COUNT: u32 = 1 << 3;
/// ISR: a register that does not exist was accessed.
pub(crate) const INT_REGISTER: u32 = 1 << 0;
/// ISR, IMR, IEN, IDS: every bit that exists.
pub(crate) const INT_ALL: u32 = 0xFFF;
/// ISR: the errors that end a job. The four put the channel into its disabled state (UG1085,
/// "Channel Disabled").
pub(crate) const INT_FATAL: u32 = INT_WRITE | INT_READ | INT_DST_DESCRIPTOR | INT_SRC_DESCRIPTOR;

/// CTRL0: descriptors are in memory, not in registers.
pub(crate) const POINT_TYPE_MEMORY: u32 = 1 << 6;
/// CTRL0: leave the paused state, for the disabled one if [`CTRL2`] is 0.
pub(crate) const CONTINUE: u32 = 1 << 1;
/// CTRL1: the maximum, as after reset: 32 transactions on each side.
pub(crate) const ISSUE_MOST: u32 = 0x3FF;
/// CTRL2: rings the doorbell.
pub(crate) const ENABLE: u32 = 1 << 0;

/// STATUS: the channel's state.
pub(crate) const STATE: u32 = 0x3;
/// STATE: done, or never started. The channel gets there only after the last write was answered.
pub(crate) const STATE_DONE: u32 = 0;
/// STATE: paused by a descriptor.
pub(crate) const STATE_PAUSED: u32 = 1;
/// STATE: at work.
pub(crate) const STATE_BUSY: u32 = 2;
/// STATE: done, with an error.
pub(crate) const STATE_FAILED: u32 = 3;

/// DATA_ATTR for a port that does not snoop, as after reset: incrementing bursts of 16 beats,
/// ARCACHE and AWCACHE 0b0010. That is normal memory, neither cached nor buffered, so memory itself
/// answers a write (Arm IHI 0022, "Memory types").
pub(crate) const DATA_PLAIN: u32 = 0x0483_D20F;
/// DATA_ATTR for a port that snoops: the same bursts, ARCACHE and AWCACHE 0b1111, write-back with
/// allocation.
pub(crate) const DATA_COHERENT: u32 = DATA_PLAIN | 0xF << 22 | 0xF << 8;
/// DSCR_ATTR for a port that does not snoop, as after reset.
pub(crate) const DSCR_PLAIN: u32 = 0;
/// DSCR_ATTR for a port that snoops: AXCOHRNT, and AXCACHE 0b1111.
pub(crate) const DSCR_COHERENT: u32 = 1 << 8 | 0xF << 4;

/// A descriptor's word 3: its payload is coherent. The FPD DMA ignores it.
pub(crate) const WORD3_COHERENT: u32 = 1 << 0;
/// A descriptor's word 3: it has 256 bits, with the next one's address in words 4 and 5.
pub(crate) const WORD3_LINKED: u32 = 1 << 1;
/// A source descriptor's word 3, bits 4..3: the last one.
pub(crate) const WORD3_STOP: u32 = 0b10 << 3;

/// Bits that read as zero by UG1087, in registers without read side effects. They distinguish a
/// ZDMA from most other cores.
pub(crate) const ZEROES: [(&str, Register<ReadOnly>, u32); 8] = [
    ("ZDMA_ERR_CTRL", Register::at(0x000), !0x1),
    ("ZDMA_CH_ISR", Register::at(0x100), !INT_ALL),
    ("ZDMA_CH_IMR", Register::at(0x104), !INT_ALL),
    ("ZDMA_CH_CTRL0", Register::at(0x110), !0xFE),
    ("ZDMA_CH_CTRL1", Register::at(0x114), !0x3FF),
    ("ZDMA_CH_STATUS", Register::at(0x11C), !STATE),
    ("ZDMA_CH_DATA_ATTR", Register::at(0x120), !0x0FFF_FFFF),
    ("ZDMA_CH_DSCR_ATTR", Register::at(0x124), !0x1FF),
];

/// Returns whether STATUS shows that the channel accesses nothing. All ones, from an absent device,
/// do not.
#[must_use]
pub(crate) const fn is_idle(status: u32) -> bool {
    matches!(status & STATE, STATE_DONE | STATE_FAILED) && status != u32::MAX
}

/// The most important bit of ISR, in words.
#[must_use]
pub(crate) const fn describe(isr: u32) -> &'static str {
    if isr == u32::MAX {
        "that it is gone (all ones)"
    } else if isr & INT_WRITE != 0 {
        "a bus error while writing (AXI_WR_DATA)"
    } else if isr & INT_READ != 0 {
        "a bus error while reading (AXI_RD_DATA)"
    } else if isr & INT_SRC_DESCRIPTOR != 0 {
        "a source descriptor that cannot be read (AXI_RD_SRC_DSCR)"
    } else if isr & INT_DST_DESCRIPTOR != 0 {
        "a destination descriptor that cannot be read (AXI_RD_DST_DSCR)"
    } else if isr & INT_BYTE_COUNT != 0 {
        "a byte count that overflowed (BYTE_CNT_OVRFL)"
    } else if isr & INT_SRC_ACCT != 0 {
        "more source interrupts than it can count (IRQ_SRC_ACCT_ERR)"
    } else if isr & INT_DST_ACCT != 0 {
        "more destination interrupts than it can count (IRQ_DST_ACCT_ERR)"
    } else if isr & INT_REGISTER != 0 {
        "an access to a register that it lacks (INV_APB)"
    } else if isr & INT_PAUSE != 0 {
        "that it paused (DMA_PAUSE)"
    } else {
        "an error without a name"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_of_the_status_has_its_word() {
        let names = [
            (INT_WRITE, "AXI_WR_DATA"),
            (INT_READ, "AXI_RD_DATA"),
            (INT_SRC_DESCRIPTOR, "AXI_RD_SRC_DSCR"),
            (INT_DST_DESCRIPTOR, "AXI_RD_DST_DSCR"),
            (INT_BYTE_COUNT, "BYTE_CNT_OVRFL"),
            (INT_SRC_ACCT, "IRQ_SRC_ACCT_ERR"),
            (INT_DST_ACCT, "IRQ_DST_ACCT_ERR"),
            (INT_REGISTER, "INV_APB"),
            (INT_PAUSE, "DMA_PAUSE"),
            (INT_DONE, "without a name"),
            (u32::MAX, "all ones"),
        ];
        for (bit, name) in names {
            assert!(describe(bit).contains(name), "{name}");
            assert!(describe(bit | INT_DONE).contains(name), "{name}, and done");
        }
        let every =
            names.iter().fold(
                1 << 1 | 1 << 2,
                |bits, (bit, _)| if *bit == u32::MAX { bits } else { bits | bit },
            );
        assert_eq!(every, INT_ALL);
    }

    #[test]
    fn only_two_states_are_idle() {
        let idle = [STATE_DONE, STATE_PAUSED, STATE_BUSY, STATE_FAILED, u32::MAX].map(is_idle);
        assert_eq!(idle, [true, false, false, true, false]);
    }
}
