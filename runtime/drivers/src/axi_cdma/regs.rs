//! The registers of an AXI CDMA and its descriptors in memory, by AMD PG034 (AXI Central Direct
//! Memory Access v4.1), "Register Space" and "Scatter Gather Transfer Descriptor Definition".
//!
//! Linux `drivers/dma/xilinx/xilinx_dma.c` has the same numbers (`XILINX_CDMA_REG_…`,
//! `XILINX_CDMA_CR_SGMODE`, `struct xilinx_cdma_desc_hw`, and the registers that its cores share).

use contigo_core::hw::mmio::{Pointer, ReadOnly, ReadWrite, Register, WriteOneToggles};

/// The window: up to BTT, 28h (PG034, "Register Address Map").
pub(crate) const WINDOW_BYTES: usize = 0x2C;

/// CDMACR, 00h: control. R/W.
pub(crate) const CDMACR: Register<ReadWrite> = Register::at(0x00);
/// CDMASR, 04h: status. RO, except for the interrupts: writing 1 clears one.
pub(crate) const CDMASR: Register<WriteOneToggles> = Register::at(0x04);
/// `CURDESC_PNTR` and its upper half, 08h and 0Ch: the descriptor under way. R/W while idle, in
/// scatter-gather mode; else RO.
pub(crate) const CURDESC: Pointer = Pointer::at(0x08);
/// The lower half of [`CURDESC`], read-only.
pub(crate) const CURDESC_LOW: Register<ReadOnly> = Register::at(0x08);
/// The upper half.
pub(crate) const CURDESC_HIGH: Register<ReadOnly> = Register::at(0x0C);
/// `TAILDESC_PNTR` and its upper half, 10h and 14h: the last descriptor, and the doorbell. Writing
/// the lower half rings it with 32-bit addresses, and writing the upper half with wider ones.
pub(crate) const TAILDESC: Pointer = Pointer::at(0x10);
/// The lower half of [`TAILDESC`]: the doorbell of a core with 32 address bits.
pub(crate) const TAILDESC_LOW: Register<ReadWrite> = Register::at(0x10);
/// The upper half: the doorbell of a core with more.
pub(crate) const TAILDESC_HIGH: Register<ReadWrite> = Register::at(0x14);
/// SA and its upper half, 18h and 1Ch: where simple mode reads. R/W while idle.
pub(crate) const SA: Pointer = Pointer::at(0x18);
/// The upper half of [`SA`], which reads as 0 in a core with 32 address bits.
pub(crate) const SA_HIGH: Register<ReadWrite> = Register::at(0x1C);
/// DA and its upper half, 20h and 24h: where simple mode writes. R/W while idle.
pub(crate) const DA: Pointer = Pointer::at(0x20);
/// BTT, 28h: bytes to transfer, in 26 bits, 23 before version 4.1. Writing it is simple mode's
/// doorbell. R/W while idle.
pub(crate) const BTT: Register<ReadWrite> = Register::at(0x28);

/// CDMACR, bit 2, Reset: soft reset. Started bursts end, then it clears itself.
pub(crate) const RESET: u32 = 1 << 2;
/// CDMACR, bit 3, `SGMode`: scatter-gather. It may change only while the core is idle, and stays 0
/// without the engine. Only its rise makes the engine take `CURDESC`.
pub(crate) const SG_MODE: u32 = 1 << 3;
/// CDMACR, bit 4, Key Hole Read: the source's address does not move (FIXED bursts).
pub(crate) const KEYHOLE_READ: u32 = 1 << 4;
/// CDMACR, bit 5, Key Hole Write: the destination's address does not move.
pub(crate) const KEYHOLE_WRITE: u32 = 1 << 5;
/// CDMACR bit 12, `IOC_IrqEn`, and CDMASR bit 12, `IOC_Irq`: a transfer is complete.
pub(crate) const IOC: u32 = 1 << 12;
/// CDMACR bit 13 and CDMASR bit 13, `Dly_Irq`: no further descriptor ended for `IRQDelay`.
pub(crate) const DELAY: u32 = 1 << 13;
/// CDMACR bit 14 and CDMASR bit 14, `Err_Irq`: an error.
pub(crate) const ERROR: u32 = 1 << 14;
/// CDMACR, bits 23:16, `IRQThreshold`: the descriptors per interrupt; 1 after reset, and 0 is not
/// allowed.
pub(crate) const THRESHOLD_SHIFT: u32 = 16;
/// CDMACR, bits 31:24, `IRQDelay`: in units of 125 clocks; 0: none.
pub(crate) const DELAY_SHIFT: u32 = 24;
/// CDMACR: bits that read as zero.
pub(crate) const CDMACR_ZEROES: u32 = 1 << 0 | 0x1F << 7 | 1 << 15;

/// CDMASR, bit 1, Idle: the transfer is over, or in scatter-gather mode the descriptor in TAILDESC.
/// The core is also idle once an error has halted it.
pub(crate) const IDLE: u32 = 1 << 1;
/// CDMASR, bit 3, `SGIncld`: the scatter-gather engine is built in.
pub(crate) const SG_INCLUDED: u32 = 1 << 3;
/// CDMASR, bit 4, `DMAIntErr`.
pub(crate) const DMA_INTERNAL: u32 = 1 << 4;
/// CDMASR, bit 5, `DMASlvErr`.
pub(crate) const DMA_SLAVE: u32 = 1 << 5;
/// CDMASR, bit 6, `DMADecErr`.
pub(crate) const DMA_DECODE: u32 = 1 << 6;
/// CDMASR, bit 8, `SGIntErr`.
pub(crate) const SG_INTERNAL: u32 = 1 << 8;
/// CDMASR, bit 9, `SGSlvErr`.
pub(crate) const SG_SLAVE: u32 = 1 << 9;
/// CDMASR, bit 10, `SGDecErr`.
pub(crate) const SG_DECODE: u32 = 1 << 10;
/// CDMASR: every error. Any one halts the core until a reset.
pub(crate) const ERRORS: u32 = DMA_INTERNAL | DMA_SLAVE | DMA_DECODE | SG_ERRORS;
/// CDMASR: errors of the descriptors' own port.
pub(crate) const SG_ERRORS: u32 = SG_INTERNAL | SG_SLAVE | SG_DECODE;
/// CDMASR: the interrupts, which writing 1 clears.
pub(crate) const IRQS: u32 = IOC | DELAY | ERROR;
/// CDMASR: bits that read as zero. They reveal an absent core.
pub(crate) const CDMASR_ZEROES: u32 = 1 << 0 | 1 << 2 | 1 << 7 | 1 << 11 | 1 << 15;

/// A descriptor begins at a multiple of 16 words.
pub(crate) const DESCRIPTOR_ALIGN: usize = 64;
/// The bytes of a descriptor in use: eight words.
pub(crate) const DESCRIPTOR_BYTES: usize = 32;
/// The offset of a descriptor's status: 1Ch.
pub(crate) const STATUS_AT: usize = 0x1C;
/// Status, bit 31, Cmplt: the core is done with it.
pub(crate) const COMPLETE: u32 = 1 << 31;
/// Status, bits 30:28, `DMADecErr`, `DMASlvErr`, `DMAIntErr`.
pub(crate) const FAILED: u32 = 0b111 << 28;

/// The widest length there is: bits 25:0 of BTT and of a descriptor's control word.
pub(crate) const LENGTH_BITS_MAX: u32 = 26;
/// The narrowest that was ever built.
pub(crate) const LENGTH_BITS_MIN: u32 = 8;
/// The width that every version has: `XAXICDMA_MAX_TRANSFER_LEN` of AMD's own driver, and what
/// Linux takes.
pub(crate) const LENGTH_BITS_ANY: u32 = 23;
/// AXI4's FIXED bursts have 16 beats at most (Arm IHI 0022, A3.4.1).
pub(crate) const KEYHOLE_BEATS_MAX: u32 = 16;

/// A descriptor's words: `NXTDESC_PNTR`, SA, DA, each in two halves, CONTROL, STATUS.
#[must_use]
#[allow(clippy::cast_possible_truncation, reason = "the halves of an address")]
pub(crate) const fn descriptor(next: u64, from: u64, to: u64, len_bytes: u32) -> [u32; 8] {
    [
        next as u32,
        (next >> 32) as u32,
        from as u32,
        (from >> 32) as u32,
        to as u32,
        (to >> 32) as u32,
        len_bytes,
        0,
    ]
}

/// Whether CDMASR shows that simple mode's transfer ended well. `IOC_Irq` was clear before it; Idle
/// alone is also set before it began.
#[must_use]
pub(crate) const fn ended_well(status: u32) -> bool {
    status & (IDLE | IOC | ERRORS | CDMASR_ZEROES) == IDLE | IOC
}

/// The most important error of CDMASR in words.
#[must_use]
pub(crate) const fn describe(status: u32) -> &'static str {
    match status {
        u32::MAX => "all ones: it is gone, or has no clock; check the bitstream and its clocks",
        _ if status & SG_DECODE != 0 => {
            "SGDecErr: m_axi_sg reaches no memory at this descriptor; connect that port to the \
             memory"
        }
        _ if status & SG_SLAVE != 0 => {
            "SGSlvErr: memory refused an access to this descriptor; is its block one that \
             m_axi_sg may use?"
        }
        _ if status & SG_INTERNAL != 0 => {
            "SGIntErr: this descriptor was complete already when it was fetched; other code than \
             this driver drives the core"
        }
        _ if status & DMA_DECODE != 0 => {
            "DMADecErr: this copy, which reads from here, uses an address where m_axi reaches no \
             memory; check the port and the address map"
        }
        _ if status & DMA_SLAVE != 0 => {
            "DMASlvErr: memory refused an access of this copy, which reads from here; is every \
             slave on its way clocked and open?"
        }
        _ if status & DMA_INTERNAL != 0 => {
            "DMAIntErr: the length of this copy, which reads from here, is 0 in its register, or \
             a bus word is not aligned; check length_bits, data_bits and dre"
        }
        _ => "that it halted, and no error; did something other than this driver reset it?",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_has_its_sentence() {
        let names = [
            (DMA_INTERNAL, "DMAIntErr"),
            (DMA_SLAVE, "DMASlvErr"),
            (DMA_DECODE, "DMADecErr"),
            (SG_INTERNAL, "SGIntErr"),
            (SG_SLAVE, "SGSlvErr"),
            (SG_DECODE, "SGDecErr"),
            (0, "no error"),
            (u32::MAX, "all ones"),
        ];
        for (bit, name) in names {
            assert!(
                describe(bit).contains(name) && describe(bit | IDLE | ERROR).contains(name),
                "{name}"
            );
        }
        assert_eq!(
            names.iter().filter(|(bit, _)| *bit != u32::MAX).fold(0, |bits, (bit, _)| bits | bit),
            ERRORS
        );
        assert_eq!(CDMASR_ZEROES & (ERRORS | IRQS | IDLE | SG_INCLUDED), 0);
    }
}
