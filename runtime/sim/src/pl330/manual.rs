//! The controller's numbers for the model, transcribed separately from the driver's, from Arm DDI
//! 0424C, tables 3-1 to 3-34, whose names they have.

pub(super) const WINDOW_BYTES: usize = 0x1000; // 3.1: one page
pub(super) const CHANNELS: usize = 8; // CR0.num_chnls has three bits

pub(super) const DSR: usize = 0x000;
pub(super) const INTEN: usize = 0x020;
pub(super) const INT_EVENT_RIS: usize = 0x024;
pub(super) const INTMIS: usize = 0x028;
pub(super) const INTCLR: usize = 0x02C;
pub(super) const FSRD: usize = 0x030;
pub(super) const FSRC: usize = 0x034;
pub(super) const FTRD: usize = 0x038;
pub(super) const FTR0: usize = 0x040; // One for each channel, 4 bytes apart
/// CSRn and CPCn; the next channel's are 8 bytes further.
pub(super) const CSR0: usize = 0x100;
pub(super) const CPC0: usize = 0x104;
/// These five are 0x20 bytes apart.
pub(super) const SAR0: usize = 0x400;
pub(super) const DAR0: usize = 0x404;
pub(super) const CCR0: usize = 0x408;
pub(super) const LC0_0: usize = 0x40C;
pub(super) const LC1_0: usize = 0x410;
pub(super) const DBGSTATUS: usize = 0xD00;
pub(super) const DBGCMD: usize = 0xD04;
pub(super) const DBGINST0: usize = 0xD08;
pub(super) const DBGINST1: usize = 0xD0C;
pub(super) const CR0: usize = 0xE00;
pub(super) const CR3: usize = 0xE0C;
pub(super) const CRD: usize = 0xE14;

/// CSRn.channel_status and DSR.dma_status.
pub(super) const STOPPED: u32 = 0b0000;
pub(super) const EXECUTING: u32 = 0b0001;
pub(super) const WAITING_FOR_EVENT: u32 = 0b0100;
pub(super) const AT_BARRIER: u32 = 0b0101;
pub(super) const KILLING: u32 = 0b1000;
pub(super) const COMPLETING: u32 = 0b1001;
pub(super) const FAULTING_COMPLETING: u32 = 0b1110;
pub(super) const FAULTING: u32 = 0b1111;
pub(super) const DNS: u32 = 0x200; // DSR.DNS
pub(super) const CNS: u32 = 0x20_0000; // CSRn.CNS

/// FTRn and FTRD.
pub(super) const UNDEF_INSTR: u32 = 0x1;
pub(super) const OPERAND_INVALID: u32 = 0x2;
pub(super) const DMAGO_ERR: u32 = 0x10;
pub(super) const CH_EVNT_ERR: u32 = 0x20;
pub(super) const CH_RDWR_ERR: u32 = 0x80;
pub(super) const MFIFO_ERR: u32 = 0x1000;
pub(super) const ST_DATA_UNAVAILABLE: u32 = 0x2000;
pub(super) const INSTR_FETCH_ERR: u32 = 0x1_0000;
pub(super) const DATA_WRITE_ERR: u32 = 0x2_0000;
pub(super) const DATA_READ_ERR: u32 = 0x4_0000;
pub(super) const DBG_INSTR: u32 = 0x4000_0000;
pub(super) const LOCKUP_ERR: u32 = 0x8000_0000;

/// periph_id_n: part 0x330, designer 0x41. The revision is in bits 23:20.
pub(super) const PERIPH_ID: u32 = 0x0004_1330;
pub(super) const PCELL_ID: u32 = 0xB105_F00D; // pcell_id_n

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver_regs::{agree, pl330 as regs};

    #[test]
    fn driver_and_model_agree() {
        let [first, second, ..] = regs::CHANNELS;
        agree(&[
            (regs::DSR.offset(), DSR),
            (regs::INTEN.offset(), INTEN),
            (regs::INT_EVENT_RIS.offset(), INT_EVENT_RIS),
            (regs::INTCLR.offset(), INTCLR),
            (regs::FSRD.offset(), FSRD),
            (regs::FTRD.offset(), FTRD),
            (regs::DBGSTATUS.offset(), DBGSTATUS),
            (regs::DBGCMD.offset(), DBGCMD),
            (regs::DBGINST0.offset(), DBGINST0),
            (regs::DBGINST1.offset(), DBGINST1),
            (regs::CR0.offset(), CR0),
            (regs::CR3.offset(), CR3),
            (regs::CRD.offset(), CRD),
            (regs::CHANNELS_MAX, CHANNELS),
            (first.ftr.offset(), FTR0),
            (first.csr.offset(), CSR0),
            (second.ftr.offset(), FTR0 + 4),
            (second.csr.offset(), CSR0 + 8),
            (regs::WINDOW_BYTES, WINDOW_BYTES),
        ]);
        agree(&[
            (regs::STOPPED, STOPPED),
            (regs::KILLING, KILLING),
            (regs::COMPLETING, COMPLETING),
            (regs::FAULTING_COMPLETING, FAULTING_COMPLETING),
            (regs::FAULTING, FAULTING),
            (regs::DSR_NONSECURE, DNS),
            (regs::FAULT_UNDEFINED, UNDEF_INSTR),
            (regs::FAULT_OPERAND, OPERAND_INVALID),
            (regs::FAULT_DMAGO, DMAGO_ERR),
            (regs::FAULT_EVENT, CH_EVNT_ERR),
            (regs::FAULT_CCR, CH_RDWR_ERR),
            (regs::FAULT_BUFFER, MFIFO_ERR),
            (regs::FAULT_NO_DATA, ST_DATA_UNAVAILABLE),
            (regs::FAULT_FETCH, INSTR_FETCH_ERR),
            (regs::FAULT_WRITE, DATA_WRITE_ERR),
            (regs::FAULT_READ, DATA_READ_ERR),
            (regs::FAULT_LOCKUP, LOCKUP_ERR),
            (regs::PERIPH_ID_VALUE, PERIPH_ID),
            (regs::PCELL_ID_VALUE, PCELL_ID),
        ]);
    }
}
