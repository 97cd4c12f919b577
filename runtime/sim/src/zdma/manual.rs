//! A channel's numbers for the model, transcribed separately from the driver's, from UG1087, module
//! ZDMA, whose names they have.

pub(super) const WINDOW_BYTES: usize = 0x204; // Up to ZDMA_CH_CTRL2, the last register

pub(super) const ZDMA_CH_ISR: usize = 0x100;
pub(super) const ZDMA_CH_IMR: usize = 0x104;
pub(super) const ZDMA_CH_IEN: usize = 0x108;
pub(super) const ZDMA_CH_IDS: usize = 0x10C;
pub(super) const ZDMA_CH_CTRL0: usize = 0x110;
pub(super) const ZDMA_CH_CTRL1: usize = 0x114;
pub(super) const ZDMA_CH_STATUS: usize = 0x11C;
pub(super) const ZDMA_CH_DATA_ATTR: usize = 0x120;
pub(super) const ZDMA_CH_SRC_DSCR_WORD0: usize = 0x128;
pub(super) const ZDMA_CH_DST_DSCR_WORD0: usize = 0x138;
pub(super) const ZDMA_CH_SRC_START_LSB: usize = 0x158;
pub(super) const ZDMA_CH_DST_START_LSB: usize = 0x160;
pub(super) const ZDMA_CH_TOTAL_BYTE: usize = 0x188;
pub(super) const ZDMA_CH_CTRL2: usize = 0x200;

/// ZDMA_CH_ISR, IMR, IEN and IDS, from bit 11 down. INV_APB is bit 0.
pub(super) const DMA_PAUSE: u32 = 0x800;
pub(super) const DMA_DONE: u32 = 0x400;
pub(super) const AXI_WR_DATA: u32 = 0x200;
pub(super) const AXI_RD_DATA: u32 = 0x100;
pub(super) const AXI_RD_DST_DSCR: u32 = 0x080;
pub(super) const AXI_RD_SRC_DSCR: u32 = 0x040;
pub(super) const BYTE_CNT_OVRFL: u32 = 0x008;
pub(super) const INTERRUPTS: u32 = 0xFFF; // All twelve interrupts

/// ZDMA_CH_CTRL0: its value after reset is OVR_FETCH.
pub(super) const OVR_FETCH: u32 = 0x80;
pub(super) const POINT_TYPE: u32 = 0x40;
pub(super) const CONT: u32 = 0x02;
pub(super) const CTRL1_RESET: u32 = 0x3FF; // ZDMA_CH_CTRL1 after reset
pub(super) const DATA_ATTR_RESET: u32 = 0x0483_D20F; // ZDMA_CH_DATA_ATTR after reset
pub(super) const EN: u32 = 0x1; // ZDMA_CH_CTRL2

/// ZDMA_CH_STATUS, STATE: "done, no error", "paused", "busy", "done with error".
pub(super) const DONE: u32 = 0b00;
pub(super) const PAUSED: u32 = 0b01;
pub(super) const BUSY: u32 = 0b10;
pub(super) const DONE_WITH_ERROR: u32 = 0b11;

/// UG1085, "Buffer Descriptor Format": a linked-list descriptor, its SIZE of 30 bits, and its
/// address of 32 and 12 bits.
pub(super) const DESCRIPTOR_BYTES: usize = 0x20;
pub(super) const SIZE: u32 = (1 << 30) - 1;
pub(super) const ADDRESS: u64 = (1 << (32 + 12)) - 1;
pub(super) const LINKED_LIST: u32 = 0x02; // Word 3, TYPE: 1 is a linked list
/// Word 3, CMD, bits 4:3: pause after it, stop after it.
pub(super) const CMD_PAUSE: u32 = 0x08;
pub(super) const CMD_STOP: u32 = 0x10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver_regs::{agree, zdma as regs};

    #[test]
    fn driver_and_model_agree() {
        agree(&[
            (regs::ISR.offset(), ZDMA_CH_ISR),
            (regs::IEN.offset(), ZDMA_CH_IEN),
            (regs::IDS.offset(), ZDMA_CH_IDS),
            (regs::CTRL0.offset(), ZDMA_CH_CTRL0),
            (regs::CTRL1.offset(), ZDMA_CH_CTRL1),
            (regs::STATUS.offset(), ZDMA_CH_STATUS),
            (regs::DATA_ATTR.offset(), ZDMA_CH_DATA_ATTR),
            (regs::SRC_ADDR.offset(), ZDMA_CH_SRC_DSCR_WORD0),
            (regs::DST_ADDR.offset(), ZDMA_CH_DST_DSCR_WORD0),
            (regs::SRC_START.offset(), ZDMA_CH_SRC_START_LSB),
            (regs::DST_START.offset(), ZDMA_CH_DST_START_LSB),
            (regs::TOTAL_BYTE.offset(), ZDMA_CH_TOTAL_BYTE),
            (regs::CTRL2.offset(), ZDMA_CH_CTRL2),
            (regs::WINDOW_BYTES, WINDOW_BYTES),
            (regs::DESCRIPTOR_BYTES, DESCRIPTOR_BYTES),
        ]);
        agree(&[
            (regs::INT_PAUSE, DMA_PAUSE),
            (regs::INT_DONE, DMA_DONE),
            (regs::INT_WRITE, AXI_WR_DATA),
            (regs::INT_READ, AXI_RD_DATA),
            (regs::INT_DST_DESCRIPTOR, AXI_RD_DST_DSCR),
            (regs::INT_SRC_DESCRIPTOR, AXI_RD_SRC_DSCR),
            (regs::INT_BYTE_COUNT, BYTE_CNT_OVRFL),
            (regs::INT_ALL, INTERRUPTS),
            (regs::CONTINUE, CONT),
            (regs::ISSUE_MOST, CTRL1_RESET),
            (regs::SIZE_MAX, SIZE),
            (regs::WORD3_LINKED, LINKED_LIST),
            (regs::WORD3_STOP, CMD_STOP),
            (regs::POINT_TYPE_MEMORY, POINT_TYPE),
            (regs::ENABLE, EN),
            (regs::DATA_PLAIN, DATA_ATTR_RESET),
            (regs::STATE_DONE, DONE),
            (regs::STATE_PAUSED, PAUSED),
            (regs::STATE_BUSY, BUSY),
            (regs::STATE_FAILED, DONE_WITH_ERROR),
        ]);
        assert_eq!((1 << regs::ADDR_BITS) - 1, ADDRESS);
    }
}
