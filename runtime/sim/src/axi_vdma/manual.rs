//! The model's own register numbers, transcribed separately from the driver's `regs`: from AMD's
//! embeddedsw, `XilinxProcessorIPLib/drivers/axivdma/src/xaxivdma_hw.h`. Each names its macro.

pub(super) const CHANNELS: [usize; 2] = [0x00, 0x30]; // XAXIVDMA_TX_OFFSET and XAXIVDMA_RX_OFFSET
/// `XAXIVDMA_MM2S_ADDR_OFFSET` and `XAXIVDMA_S2MM_ADDR_OFFSET`.
pub(super) const SIZES: [usize; 2] = [0x50, 0xA0];
pub(super) const VERSION: usize = 0x2C; // XAXIVDMA_VERSION_OFFSET
/// `XAXIVDMA_VFLIP_OFFSET`: the first register after the start addresses.
pub(super) const END: usize = 0xEC;

pub(super) const CR: usize = 0x00; // XAXIVDMA_CR_OFFSET
pub(super) const SR: usize = 0x04; // XAXIVDMA_SR_OFFSET
pub(super) const INDEX: usize = 0x14; // XAXIVDMA_HI_FRMBUF_OFFSET
pub(super) const VSIZE: usize = 0x00; // XAXIVDMA_VSIZE_OFFSET
pub(super) const HSIZE: usize = 0x04; // XAXIVDMA_HSIZE_OFFSET
pub(super) const STRIDE: usize = 0x08; // XAXIVDMA_STRD_FRMDLY_OFFSET
pub(super) const START: usize = 0x0C; // XAXIVDMA_START_ADDR_OFFSET
pub(super) const BANK: usize = 16; // Half of XAXIVDMA_MAX_FRAMESTORE
#[cfg(test)]
const STORES_WIDE: usize = 16; // XAXIVDMA_MAX_FRAMESTORE_64

pub(super) const CR_RUN: u32 = 0x0000_0001; // XAXIVDMA_CR_RUNSTOP_MASK
pub(super) const CR_CIRCULAR: u32 = 0x0000_0002; // XAXIVDMA_CR_TAIL_EN_MASK: 0 parks the channel
pub(super) const CR_RESET: u32 = 0x0000_0004; // XAXIVDMA_CR_RESET_MASK
pub(super) const CR_FRAME_COUNT: u32 = 0x0000_0010; // XAXIVDMA_CR_FRMCNT_EN_MASK
pub(super) const COUNT_SHIFT: u32 = 16; // XAXIVDMA_FRMCNT_SHIFT
pub(super) const IRQ_FRAMES: u32 = 0x0000_1000; // XAXIVDMA_IXR_FRMCNT_MASK
pub(super) const IRQ_DELAY: u32 = 0x0000_2000; // XAXIVDMA_IXR_DELAYCNT_MASK
pub(super) const IRQ_ERROR: u32 = 0x0000_4000; // XAXIVDMA_IXR_ERROR_MASK
pub(super) const SR_HALTED: u32 = 0x0000_0001; // XAXIVDMA_SR_HALTED_MASK
pub(super) const SR_INTERNAL: u32 = 0x0000_0010; // XAXIVDMA_SR_ERR_INTERNAL_MASK
pub(super) const SR_SLAVE: u32 = 0x0000_0020; // XAXIVDMA_SR_ERR_SLAVE_MASK
pub(super) const SR_DECODE: u32 = 0x0000_0040; // XAXIVDMA_SR_ERR_DECODE_MASK
pub(super) const SR_SOF_EARLY: u32 = 0x0000_0080; // XAXIVDMA_SR_ERR_FSZ_LESS_MASK: SOFEarlyErr
pub(super) const SR_EOL_EARLY: u32 = 0x0000_0100; // XAXIVDMA_SR_ERR_LSZ_LESS_MASK: EOLEarlyErr
pub(super) const SR_SOF_LATE: u32 = 0x0000_0800; // XAXIVDMA_SR_ERR_FSZ_MORE_MASK: SOFLateErr
/// `EOLLateErr`, bit 15, which the header lacks (PG020, "`S2MM_VDMASR`").
pub(super) const SR_EOL_LATE: u32 = 0x0000_8000;
pub(super) const HSIZE_MASK: u32 = 0x0000_FFFF; // XAXIVDMA_HSIZE_MASK, XAXIVDMA_STRIDE_MASK
pub(super) const VSIZE_MASK: u32 = 0x0000_1FFF; // XAXIVDMA_VSIZE_MASK

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver_regs::{agree, axi_vdma as regs};

    #[test]
    fn both_tables_say_the_same() {
        for (side, channel) in [regs::MM2S, regs::S2MM].into_iter().enumerate() {
            let [base, sizes] =
                [CHANNELS, SIZES].map(|offsets| offsets.get(side).copied().unwrap_or(0));
            assert_eq!(
                [channel.control.offset(), channel.status.offset(), channel.index.offset()],
                [CR, SR, INDEX].map(|at| base + at)
            );
            let driver = [
                channel.vsize.offset(),
                channel.hsize.offset(),
                channel.stride.offset(),
                channel.start,
            ];
            assert_eq!(driver, [VSIZE, HSIZE, STRIDE, START].map(|at| sizes + at));
        }
        assert_eq!((regs::VERSION.offset(), regs::WINDOW_BYTES, regs::BANK), (VERSION, END, BANK));
        assert_eq!((regs::STORES_MAX, regs::STORES_WIDE_MAX), (2 * BANK, STORES_WIDE));
        agree(&[
            (regs::RUN, CR_RUN),
            (regs::CIRCULAR, CR_CIRCULAR),
            (regs::RESET, CR_RESET),
            (regs::FRAME_COUNT, CR_FRAME_COUNT),
            (regs::COUNT_SHIFT, COUNT_SHIFT),
            (regs::FRAMES, IRQ_FRAMES),
            (regs::DELAY, IRQ_DELAY),
            (regs::ERROR, IRQ_ERROR),
            (regs::HALTED, SR_HALTED),
            (regs::INTERNAL, SR_INTERNAL),
            (regs::SLAVE, SR_SLAVE),
            (regs::DECODE, SR_DECODE),
            (regs::SOF_EARLY, SR_SOF_EARLY),
            (regs::EOL_EARLY, SR_EOL_EARLY),
            (regs::SOF_LATE, SR_SOF_LATE),
            (regs::EOL_LATE, SR_EOL_LATE),
            (regs::HSIZE_MAX, HSIZE_MASK),
            (regs::VSIZE_MAX, VSIZE_MASK),
        ]);
    }
}
