//! The model's own register numbers, transcribed separately from the driver's `regs`: from AMD's
//! embeddedsw, `XilinxProcessorIPLib/drivers/axicdma/src/xaxicdma_hw.h`. Each number names its
//! macro; the names are PG034's.

pub(super) const CDMACR: usize = 0x00; // XAXICDMA_CR_OFFSET
pub(super) const CDMASR: usize = 0x04; // XAXICDMA_SR_OFFSET
pub(super) const CURDESC: usize = 0x08; // XAXICDMA_CDESC_OFFSET
pub(super) const CURDESC_MSB: usize = 0x0C; // XAXICDMA_CDESC_MSB_OFFSET
pub(super) const TAILDESC: usize = 0x10; // XAXICDMA_TDESC_OFFSET
pub(super) const TAILDESC_MSB: usize = 0x14; // XAXICDMA_TDESC_MSB_OFFSET
pub(super) const SA: usize = 0x18; // XAXICDMA_SRCADDR_OFFSET
pub(super) const SA_MSB: usize = 0x1C; // XAXICDMA_SRCADDR_MSB_OFFSET
pub(super) const DA: usize = 0x20; // XAXICDMA_DSTADDR_OFFSET
pub(super) const DA_MSB: usize = 0x24; // XAXICDMA_DSTADDR_MSB_OFFSET
pub(super) const BTT: usize = 0x28; // XAXICDMA_BTT_OFFSET

pub(super) const CR_RESET: u32 = 0x0000_0004; // Reset (XAXICDMA_CR_RESET_MASK)
pub(super) const CR_SG_MODE: u32 = 0x0000_0008; // SGMode (XAXICDMA_CR_SGMODE_MASK)
pub(super) const CR_KEYHOLE_READ: u32 = 0x0000_0010; // Key Hole Read (XAXICDMA_CR_KHOLE_RD_MASK)
pub(super) const CR_KEYHOLE_WRITE: u32 = 0x0000_0020; // Key Hole Write (XAXICDMA_CR_KHOLE_WR_MASK)
/// `TailPntrEn`, bit 1, which is fixed to 1 where scatter-gather is built in (PG034, "CDMACR").
pub(super) const CR_TAIL_POINTER: u32 = 0x0000_0002;
pub(super) const IRQ_IOC: u32 = 0x0000_1000; // XAXICDMA_XR_IRQ_IOC_MASK
pub(super) const IRQ_DELAY: u32 = 0x0000_2000; // XAXICDMA_XR_IRQ_DELAY_MASK
pub(super) const IRQ_ERROR: u32 = 0x0000_4000; // XAXICDMA_XR_IRQ_ERROR_MASK
pub(super) const IRQ_ALL: u32 = 0x0000_7000; // XAXICDMA_XR_IRQ_ALL_MASK
pub(super) const THRESHOLD_SHIFT: u32 = 16; // XAXICDMA_COALESCE_SHIFT
pub(super) const DELAY_SHIFT: u32 = 24; // XAXICDMA_DELAY_SHIFT
pub(super) const COUNT_MAX: u32 = 0xFF; // XAXICDMA_COALESCE_MAX, XAXICDMA_DELAY_MAX

pub(super) const SR_IDLE: u32 = 0x0000_0002; // Idle (XAXICDMA_SR_IDLE_MASK)
pub(super) const SR_SG_INCLUDED: u32 = 0x0000_0008; // SGIncld (XAXICDMA_SR_SGINCLD_MASK)
pub(super) const SR_DMA_INT: u32 = 0x0000_0010; // DMAIntErr (XAXICDMA_SR_ERR_INTERNAL_MASK)
pub(super) const SR_DMA_SLV: u32 = 0x0000_0020; // DMASlvErr (XAXICDMA_SR_ERR_SLAVE_MASK)
pub(super) const SR_DMA_DEC: u32 = 0x0000_0040; // DMADecErr (XAXICDMA_SR_ERR_DECODE_MASK)
pub(super) const SR_SG_INT: u32 = 0x0000_0100; // SGIntErr (XAXICDMA_SR_ERR_SG_INT_MASK)
pub(super) const SR_SG_SLV: u32 = 0x0000_0200; // SGSlvErr (XAXICDMA_SR_ERR_SG_SLV_MASK)
pub(super) const SR_SG_DEC: u32 = 0x0000_0400; // SGDecErr (XAXICDMA_SR_ERR_SG_DEC_MASK)

pub(super) const BD_ALIGN: u64 = 0x40; // XAXICDMA_BD_MINIMUM_ALIGNMENT
/// `XAXICDMA_BD_HW_NUM_BYTES`. The words are NXTDESC 0 and 1, source 2 and 3, destination 4 and 5,
/// control 6, status 7 (`XAXICDMA_BD_NDESC_OFFSET` to `XAXICDMA_BD_STS_OFFSET`).
pub(super) const BD_BYTES: usize = 32;
pub(super) const BD_STATUS: u64 = 0x1C; // XAXICDMA_BD_STS_OFFSET
pub(super) const BD_COMPLETE: u32 = 0x8000_0000; // XAXICDMA_BD_STS_COMPLETE_MASK
pub(super) const BD_DEC: u32 = 0x4000_0000; // XAXICDMA_BD_STS_DEC_ERR_MASK
pub(super) const BD_SLV: u32 = 0x2000_0000; // XAXICDMA_BD_STS_SLV_ERR_MASK
pub(super) const BD_INT: u32 = 0x1000_0000; // XAXICDMA_BD_STS_INT_ERR_MASK

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver_regs::{agree, axi_cdma as regs};

    #[test]
    fn both_tables_say_the_same() {
        agree(&[
            (regs::CDMACR.offset(), CDMACR),
            (regs::CDMASR.offset(), CDMASR),
            (regs::CURDESC.offset(), CURDESC),
            (regs::CURDESC_LOW.offset(), CURDESC),
            (regs::CURDESC_HIGH.offset(), CURDESC_MSB),
            (regs::TAILDESC.offset(), TAILDESC),
            (regs::TAILDESC.offset() + 4, TAILDESC_MSB),
            (regs::SA.offset(), SA),
            (regs::SA.offset() + 4, SA_MSB),
            (regs::DA.offset(), DA),
            (regs::DA.offset() + 4, DA_MSB),
            (regs::BTT.offset(), BTT),
            (regs::WINDOW_BYTES, BTT + 4),
            (regs::STATUS_AT, usize::try_from(BD_STATUS).unwrap_or(0)),
            (regs::DESCRIPTOR_BYTES, BD_BYTES),
            (regs::DESCRIPTOR_ALIGN, usize::try_from(BD_ALIGN).unwrap_or(0)),
        ]);
        agree(&[
            (regs::RESET, CR_RESET),
            (regs::SG_MODE, CR_SG_MODE),
            (regs::KEYHOLE_READ, CR_KEYHOLE_READ),
            (regs::KEYHOLE_WRITE, CR_KEYHOLE_WRITE),
            (regs::IOC, IRQ_IOC),
            (regs::DELAY, IRQ_DELAY),
            (regs::ERROR, IRQ_ERROR),
            (regs::IRQS, IRQ_ALL),
            (regs::THRESHOLD_SHIFT, THRESHOLD_SHIFT),
            (regs::DELAY_SHIFT, DELAY_SHIFT),
            (regs::IDLE, SR_IDLE),
            (regs::SG_INCLUDED, SR_SG_INCLUDED),
            (regs::DMA_INTERNAL, SR_DMA_INT),
            (regs::DMA_SLAVE, SR_DMA_SLV),
            (regs::DMA_DECODE, SR_DMA_DEC),
            (regs::SG_INTERNAL, SR_SG_INT),
            (regs::SG_SLAVE, SR_SG_SLV),
            (regs::SG_DECODE, SR_SG_DEC),
            (regs::COMPLETE, BD_COMPLETE),
            (regs::FAILED, BD_DEC | BD_SLV | BD_INT),
        ]);
        assert_eq!(
            regs::descriptor(0x1_0000_0040, 0x2_0000_0003, 0x3_0000_0004, 5),
            [0x40, 1, 3, 2, 4, 3, 5, 0]
        );
    }
}
