//! The model's own numbers, from another source than the driver's: Altera's HAL
//! (`altera_msgdma_csr_regs.h`, `altera_msgdma_descriptor_regs.h`, `altera_msgdma_response_regs.h`,
//! `altera_msgdma_prefetcher_regs.h`) and the core's Verilog (`csr_block`, `dispatcher`,
//! `altera_msgdma_prefetcher_csr`, `altera_msgdma_prefetcher_write_back`).

pub(super) const CSR_STATUS: usize = 0x0;
pub(super) const CSR_CONTROL: usize = 0x4;
pub(super) const CSR_FILL_LEVEL: usize = 0x8;
pub(super) const CSR_RESPONSE_FILL_LEVEL: usize = 0xC;
pub(super) const CSR_SEQUENCE: usize = 0x10;
/// `csr_address` 5, 6 and 7.
pub(super) const CSR_CONFIG_1: usize = 5 * 4;
pub(super) const CSR_CONFIG_2: usize = 6 * 4;
pub(super) const CSR_TYPE_VERSION: usize = 7 * 4;

/// The HAL's masks.
pub(super) const STATUS_BUSY: u32 = 0x001;
pub(super) const STATUS_DESCRIPTORS_EMPTY: u32 = 0x002;
pub(super) const STATUS_DESCRIPTORS_FULL: u32 = 0x004;
pub(super) const STATUS_RESPONSES_EMPTY: u32 = 0x008;
pub(super) const STATUS_RESPONSES_FULL: u32 = 0x010;
pub(super) const STATUS_STOP_STATE: u32 = 0x020;
pub(super) const STATUS_RESET_STATE: u32 = 0x040;
pub(super) const STATUS_STOPPED_ON_ERROR: u32 = 0x080;
pub(super) const STATUS_STOPPED_ON_EARLY: u32 = 0x100;
pub(super) const STATUS_IRQ: u32 = 0x200;

pub(super) const CONTROL_STOP: u32 = 0x01;
pub(super) const CONTROL_RESET: u32 = 0x02;
pub(super) const CONTROL_STOP_ON_ERROR: u32 = 0x04;
pub(super) const CONTROL_STOP_ON_EARLY: u32 = 0x08;
pub(super) const CONTROL_GLOBAL_INTERRUPT: u32 = 0x10;
pub(super) const CONTROL_STOP_DESCRIPTORS: u32 = 0x20;

/// `comp_config_1`: 15 bits of buffers and widths, three of depth, then the mode.
pub(super) const CONFIG_1_MODE_SHIFT: u32 = 1 + 1 + 1 + 3 + 4 + 3 + 3;
pub(super) const CONFIG_1_ENHANCED: u32 = 1 << (CONFIG_1_MODE_SHIFT + 2);
/// `comp_config_2`: one bit, 15 bits of strides, the packet bit, then the prefetcher's.
pub(super) const CONFIG_2_PREFETCHER: u32 = 1 << (1 + 15 + 1);
pub(super) const TYPE_VERSION: u32 = 0x0000_DA01;

pub(super) const DESCRIPTOR_READ_ADDRESS: usize = 0x0;
pub(super) const DESCRIPTOR_WRITE_ADDRESS: usize = 0x4;
pub(super) const DESCRIPTOR_LENGTH: usize = 0x8;
pub(super) const DESCRIPTOR_CONTROL_STANDARD: usize = 0xC;
pub(super) const DESCRIPTOR_SEQUENCE: usize = 0xC;
pub(super) const DESCRIPTOR_STRIDES: usize = 0x10;
pub(super) const DESCRIPTOR_READ_ADDRESS_HIGH: usize = 0x14;
pub(super) const DESCRIPTOR_WRITE_ADDRESS_HIGH: usize = 0x18;
pub(super) const DESCRIPTOR_CONTROL_ENHANCED: usize = 0x1C;

pub(super) const CONTROL_GENERATE_SOP: u32 = 0x0000_0100;
pub(super) const CONTROL_GENERATE_EOP: u32 = 0x0000_0200;
pub(super) const CONTROL_END_ON_EOP: u32 = 0x0000_1000;
pub(super) const CONTROL_TRANSFER_COMPLETE_IRQ: u32 = 0x0000_4000;
pub(super) const CONTROL_EARLY_TERMINATION_IRQ: u32 = 0x0000_8000;
pub(super) const CONTROL_ERROR_IRQ: u32 = 0x00FF_0000;
/// `snk_descriptor`: the bit after "early done".
pub(super) const CONTROL_WAIT_WRITE_RESPONSE: u32 = 0x0200_0000;
pub(super) const CONTROL_OWN_BY_HW: u32 = 0x4000_0000;
pub(super) const CONTROL_GO: u32 = 0x8000_0000;

pub(super) const RESPONSE_ACTUAL_BYTES: usize = 0x0;
pub(super) const RESPONSE_ERRORS: usize = 0x4;
pub(super) const RESPONSE_ERROR_MASK: u32 = 0xFF;
pub(super) const RESPONSE_EARLY_TERMINATION: u32 = 0x100;

/// `mm_csr_address` by words.
pub(super) const PREFETCHER_CONTROL: usize = 0;
pub(super) const PREFETCHER_NEXT_LOW: usize = 4;
pub(super) const PREFETCHER_NEXT_HIGH: usize = 2 * 4;
pub(super) const PREFETCHER_POLL_FREQUENCY: usize = 3 * 4;
pub(super) const PREFETCHER_STATUS: usize = 4 * 4;
pub(super) const PREFETCHER_RUN: u32 = 0x01;
pub(super) const PREFETCHER_POLL_EN: u32 = 0x02;
pub(super) const PREFETCHER_RESET: u32 = 0x04;
pub(super) const PREFETCHER_GLOBAL_INTERRUPT: u32 = 0x08;
pub(super) const PREFETCHER_PARK: u32 = 0x10;
pub(super) const PREFETCHER_STATUS_IRQ: u32 = 0x01;

/// `descriptor_internal`: words of 32 bits, standard and enhanced.
pub(super) const WORDS_STANDARD: usize = 8;
pub(super) const WORDS_ENHANCED: usize = 16;
pub(super) const WORD_NEXT: usize = 3;
pub(super) const WORD_SEQUENCE: usize = 7;
pub(super) const WORD_STRIDES: usize = 8;
pub(super) const WORD_READ_HIGH: usize = 9;
pub(super) const WORD_WRITE_HIGH: usize = 10;
pub(super) const WORD_NEXT_HIGH: usize = 11;
/// `mm_write_address_int`: the actual bytes, then the status.
pub(super) const WRITE_BACK_BYTES: u64 = 16;
pub(super) const WRITE_BACK_STATUS: u64 = 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver_regs::{agree, msgdma as regs};

    #[test]
    fn both_tables_say_the_same() {
        agree(&[
            (regs::STATUS.offset(), CSR_STATUS),
            (regs::CONTROL.offset(), CSR_CONTROL),
            (regs::RESPONSES.offset(), CSR_RESPONSE_FILL_LEVEL),
            (regs::COMPONENT_1.offset(), CSR_CONFIG_1),
            (regs::COMPONENT_2.offset(), CSR_CONFIG_2),
            (regs::COMPONENT_INFO.offset(), CSR_TYPE_VERSION),
            (regs::READ_ADDR.offset(), DESCRIPTOR_READ_ADDRESS),
            (regs::WRITE_ADDR.offset(), DESCRIPTOR_WRITE_ADDRESS),
            (regs::LENGTH.offset(), DESCRIPTOR_LENGTH),
            (regs::STANDARD_CONTROL.offset(), DESCRIPTOR_CONTROL_STANDARD),
            (regs::BURST_SEQUENCE.offset(), DESCRIPTOR_SEQUENCE),
            (regs::STRIDE.offset(), DESCRIPTOR_STRIDES),
            (regs::READ_ADDR_HIGH.offset(), DESCRIPTOR_READ_ADDRESS_HIGH),
            (regs::WRITE_ADDR_HIGH.offset(), DESCRIPTOR_WRITE_ADDRESS_HIGH),
            (regs::EXTENDED_CONTROL.offset(), DESCRIPTOR_CONTROL_ENHANCED),
            (regs::RESPONSE_LENGTH.offset(), RESPONSE_ACTUAL_BYTES),
            (regs::RESPONSE_STATUS.offset(), RESPONSE_ERRORS),
            (regs::FETCH_CONTROL.offset(), PREFETCHER_CONTROL),
            (regs::FETCH_NEXT.offset(), PREFETCHER_NEXT_LOW),
            (regs::FETCH_NEXT_HIGH.offset(), PREFETCHER_NEXT_HIGH),
            (regs::FETCH_STATUS.offset(), PREFETCHER_STATUS),
            (regs::STANDARD_WORDS, WORDS_STANDARD),
            (regs::EXTENDED_WORDS, WORDS_ENHANCED),
            (regs::STANDARD_CONTROL_AT, 4 * (WORDS_STANDARD - 1)),
            (regs::EXTENDED_CONTROL_AT, 4 * (WORDS_ENHANCED - 1)),
            (regs::ACTUAL_AT, usize::try_from(WRITE_BACK_BYTES).unwrap_or(0)),
            (regs::ACTUAL_AT + 4, usize::try_from(WRITE_BACK_STATUS).unwrap_or(0)),
        ]);
        agree(&[
            (regs::BUSY, STATUS_BUSY),
            (regs::EMPTY, STATUS_DESCRIPTORS_EMPTY),
            (regs::FULL, STATUS_DESCRIPTORS_FULL),
            (regs::STOPPED, STATUS_STOP_STATE),
            (regs::RESETTING, STATUS_RESET_STATE),
            (regs::IRQ, STATUS_IRQ),
            (regs::STOP, CONTROL_STOP),
            (regs::RESET, CONTROL_RESET),
            (regs::IRQ_ENABLE, CONTROL_GLOBAL_INTERRUPT),
            (regs::STOP_DESCRIPTORS, CONTROL_STOP_DESCRIPTORS),
            (regs::COMPONENT_MODE, 3 << CONFIG_1_MODE_SHIFT),
            (regs::COMPONENT_EXTENDED, CONFIG_1_ENHANCED),
            (regs::COMPONENT_PREFETCHER, CONFIG_2_PREFETCHER),
            (regs::COMPONENT_TYPE, TYPE_VERSION & regs::COMPONENT_TYPE_BITS),
            (regs::GENERATE_SOP, CONTROL_GENERATE_SOP),
            (regs::GENERATE_EOP, CONTROL_GENERATE_EOP),
            (regs::END_ON_EOP, CONTROL_END_ON_EOP),
            (regs::IRQ_ON_END, CONTROL_TRANSFER_COMPLETE_IRQ),
            (regs::IRQ_ON_EARLY, CONTROL_EARLY_TERMINATION_IRQ),
            (regs::IRQ_ON_ERROR, CONTROL_ERROR_IRQ),
            (regs::WAIT_FOR_WRITES, CONTROL_WAIT_WRITE_RESPONSE),
            (regs::OWNED, CONTROL_OWN_BY_HW),
            (regs::GO, CONTROL_GO),
            (regs::ERRORS, RESPONSE_ERROR_MASK),
            (regs::EARLY, RESPONSE_EARLY_TERMINATION),
            (regs::RUN, PREFETCHER_RUN),
            (regs::FETCH_RESET, PREFETCHER_RESET),
            (regs::FETCH_IRQ_ENABLE, PREFETCHER_GLOBAL_INTERRUPT),
            (regs::FETCH_IRQ, PREFETCHER_STATUS_IRQ),
        ]);
    }
}
