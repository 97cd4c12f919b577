//! The model's own numbers, from another source than the driver's: ADI's register map
//! (`docs/regmap/adi_regmap_dmac.txt`), whose addresses count words, and the core's Verilog
//! (`axi_dmac_regmap.v`, `axi_dmac_reset_manager.v`, `dmac_sg.v`).

/// A register's offset, from the number of its word.
const fn word(number: usize) -> usize {
    4 * number
}

pub(super) const VERSION: usize = word(0x000);
pub(super) const SCRATCH: usize = word(0x002);
pub(super) const IDENTIFICATION: usize = word(0x003);
pub(super) const INTERFACE_DESCRIPTION_1: usize = word(0x004);
pub(super) const INTERFACE_DESCRIPTION_2: usize = word(0x005);
pub(super) const IRQ_MASK: usize = word(0x020);
pub(super) const IRQ_PENDING: usize = word(0x021);
pub(super) const IRQ_SOURCE: usize = word(0x022);
pub(super) const CONTROL: usize = word(0x100);
pub(super) const TRANSFER_ID: usize = word(0x101);
pub(super) const TRANSFER_SUBMIT: usize = word(0x102);
pub(super) const FLAGS: usize = word(0x103);
pub(super) const DEST_ADDRESS: usize = word(0x104);
pub(super) const SRC_ADDRESS: usize = word(0x105);
pub(super) const X_LENGTH: usize = word(0x106);
pub(super) const Y_LENGTH: usize = word(0x107);
pub(super) const DEST_STRIDE: usize = word(0x108);
pub(super) const SRC_STRIDE: usize = word(0x109);
pub(super) const TRANSFER_DONE: usize = word(0x10A);
pub(super) const ACTIVE_TRANSFER_ID: usize = word(0x10B);
/// `dbg_status`.
pub(super) const DEBUG_STATUS: usize = word(0x10F);
pub(super) const PARTIAL_TRANSFER_LENGTH: usize = word(0x113);
pub(super) const PARTIAL_TRANSFER_ID: usize = word(0x114);
pub(super) const SG_ADDRESS: usize = word(0x11F);
pub(super) const DEST_ADDRESS_HIGH: usize = word(0x124);
pub(super) const SRC_ADDRESS_HIGH: usize = word(0x125);
pub(super) const SG_ADDRESS_HIGH: usize = word(0x12F);

/// `'D', 'M', 'A', 'C'`.
pub(super) const IDENTITY: u32 = u32::from_be_bytes(*b"DMAC");
pub(super) const TRANSFER_QUEUED: u32 = 0b01;
pub(super) const TRANSFER_COMPLETED: u32 = 0b10;
pub(super) const ENABLE: u32 = 0b001;
pub(super) const PAUSE: u32 = 0b010;
pub(super) const HWDESC: u32 = 0b100;
pub(super) const FLAG_TLAST: u32 = 0b010;
pub(super) const FLAG_PARTIAL_REPORTING: u32 = 0b100;
pub(super) const PARTIAL_TRANSFER_DONE: u32 = 0x8000_0000;
pub(super) const CACHE_COHERENT: u32 = 1;

/// `STATE_RESET`, `STATE_ENABLED`, `STATE_SHUTDOWN` and `STATE_STARTUP`.
pub(super) const STATE_RESET: u32 = 1;
pub(super) const STATE_STARTUP: u32 = 3;
pub(super) const STATE_ENABLED: u32 = 4;
pub(super) const STATE_SHUTDOWN: u32 = 5;
// `dbg_status` has 12 bits, from the highest one on: `needs_reset`; the `resetn` of `req`, `src`,
// `dest`, `sg`; `req_enabled`, `enabled_src`, `enabled_dest`, `enabled_sg`; three bits of `state`.

pub(super) const SIDES_ENABLED: u32 = 0b0000_0111_0000; // req_enabled, enabled_src, enabled_dest
pub(super) const SG_ENABLED: u32 = 0b0000_0000_1000; // enabled_sg, only with DMA_SG_TRANSFER
pub(super) const RESETS_RELEASED: u32 = 0b0111_0000_0000; // req_resetn, src_resetn, dest_resetn
pub(super) const SG_RESET_RELEASED: u32 = 0b0000_1000_0000; // sg_resetn, only with DMA_SG_TRANSFER

/// `last_req` (`dmac_2d_transfer.v`): how many rows under way have an ID of their own.
pub(super) const ROW_IDS: usize = 4;

/// `hwdesc_counter` 0 to 5: beats of 64 bits.
pub(super) const DESCRIPTOR_BEATS: usize = 6;
pub(super) const MASK_LAST_HWDESC: u32 = 1 << 0;
pub(super) const MASK_EOT_IRQ: u32 = 1 << 1;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver_regs::{agree, axi_dmac as regs};

    #[test]
    fn both_tables_say_the_same() {
        agree(&[
            (regs::VERSION.offset(), VERSION),
            (regs::IDENTIFICATION.offset(), IDENTIFICATION),
            (regs::INTERFACE.offset(), INTERFACE_DESCRIPTION_1),
            (regs::COHERENCY.offset(), INTERFACE_DESCRIPTION_2),
            (regs::IRQ_MASK.offset(), IRQ_MASK),
            (regs::IRQ_PENDING.offset(), IRQ_PENDING),
            (regs::CONTROL.offset(), CONTROL),
            (regs::TRANSFER_ID.offset(), TRANSFER_ID),
            (regs::SUBMIT.offset(), TRANSFER_SUBMIT),
            (regs::FLAGS.offset(), FLAGS),
            (regs::DEST_ADDR.offset(), DEST_ADDRESS),
            (regs::SRC_ADDR.offset(), SRC_ADDRESS),
            (regs::X_LENGTH.offset(), X_LENGTH),
            (regs::Y_LENGTH.offset(), Y_LENGTH),
            (regs::DEST_STRIDE.offset(), DEST_STRIDE),
            (regs::SRC_STRIDE.offset(), SRC_STRIDE),
            (regs::DONE.offset(), TRANSFER_DONE),
            (regs::STATE.offset(), DEBUG_STATUS),
            (regs::PARTIAL_LENGTH.offset(), PARTIAL_TRANSFER_LENGTH),
            (regs::PARTIAL_ID.offset(), PARTIAL_TRANSFER_ID),
            (regs::SG_ADDR.offset(), SG_ADDRESS),
            (regs::DEST_ADDR_HIGH.offset(), DEST_ADDRESS_HIGH),
            (regs::SRC_ADDR_HIGH.offset(), SRC_ADDRESS_HIGH),
            (regs::SG_ADDR_HIGH.offset(), SG_ADDRESS_HIGH),
            (4 * regs::DESCRIPTOR_WORDS, 8 * DESCRIPTOR_BEATS),
        ]);
        agree(&[
            (regs::DMAC, IDENTITY),
            (regs::IRQ_QUEUED, TRANSFER_QUEUED),
            (regs::IRQ_ENDED, TRANSFER_COMPLETED),
            (regs::ENABLE, ENABLE),
            (regs::HWDESC, HWDESC),
            (regs::LAST, FLAG_TLAST),
            (regs::REPORT, FLAG_PARTIAL_REPORTING),
            (regs::PARTIAL, PARTIAL_TRANSFER_DONE),
            (regs::COHERENT, CACHE_COHERENT),
            (regs::STATE_RESET, STATE_RESET),
            (regs::STATE_BITS, SIDES_ENABLED | SG_ENABLED | 7),
            (!regs::STATE_RESERVED, (1 << 12) - 1),
            (regs::DESCRIPTOR_LAST, MASK_LAST_HWDESC),
            (regs::DESCRIPTOR_END, MASK_EOT_IRQ),
        ]);
        for lists in [0, SG_RESET_RELEASED] {
            assert_eq!(
                (STATE_RESET | RESETS_RELEASED | lists) & (regs::STATE_BITS | regs::STATE_RESERVED),
                regs::STATE_RESET
            );
        }
    }
}
