//! The model's own register numbers, transcribed separately from the driver's `regs`: from AMD's
//! embeddedsw, `XilinxProcessorIPLib/drivers/mcdma/src/xmcdma_hw.h`; each number names its macro.
//! Numbers that this file lacks come from the comments of MKIDGen3's driver for PYNQ
//! (`mkidgen3/drivers/mcdma.py`), which quotes PG288. A test compares the two.

pub(super) const RX: usize = 0x500; // S2MM's registers: XMCDMA_RX_OFFSET
pub(super) const NEXT_CHANNEL: usize = 0x40; // From one channel to the next: XMCDMA_NXTCHAN_OFFSET
/// The end of the registers of S2MM's channel 16, the last.
pub(super) const END: usize = RX + 17 * NEXT_CHANNEL;

pub(super) const CCR: usize = 0x00; // XMCDMA_CCR_OFFSET
pub(super) const CSR: usize = 0x04; // XMCDMA_CSR_OFFSET
pub(super) const CHEN: usize = 0x08; // XMCDMA_CHEN_OFFSET
pub(super) const CHSER: usize = 0x0C; // XMCDMA_CHSER_OFFSET
pub(super) const ERR: usize = 0x10; // XMCDMA_ERR_OFFSET
pub(super) const ALL_PKTDROP: usize = 0x14; // XMCDMA_CPKTDROP_OFFSET, of S2MM
/// `XMCDMA_TXCH_SERV_OFFSET` and `XMCDMA_RXCH_SER_OFFSET`.
pub(super) const SERVED: [usize; 2] = [0x20, 0x18];
/// `XMCDMA_TXINT_SER_OFFSET` and `XMCDMA_RXINT_SER_OFFSET`.
pub(super) const INT_SER: [usize; 2] = [0x28, 0x20];

pub(super) const CR: usize = 0x40; // The channel's control: XMCDMA_CR_OFFSET
pub(super) const SR: usize = 0x44; // XMCDMA_SR_OFFSET
pub(super) const CDESC: usize = 0x48; // XMCDMA_CDESC_OFFSET
pub(super) const CDESC_MSB: usize = 0x4C; // XMCDMA_CDESC_MSB_OFFSET
pub(super) const TDESC: usize = 0x50; // XMCDMA_TDESC_OFFSET
pub(super) const TDESC_MSB: usize = 0x54; // XMCDMA_TDESC_MSB_OFFSET
/// `XMCDMA_PKTDROP_OFFSET`: reading it clears it (MKIDGen3, `s2mm_packets_dropped`).
pub(super) const PKTDROP: usize = 0x58;

/// `XMCDMA_CCR_RUNSTOP_MASK`, of the common control and of the channel's.
pub(super) const RUNSTOP: u32 = 0x0000_0001;
pub(super) const CCR_RESET: u32 = 0x0000_0004; // XMCDMA_CCR_RESET_MASK
pub(super) const CSR_HALTED: u32 = 0x0000_0001; // XMCDMA_CSR_HALTED_MASK
pub(super) const CSR_IDLE: u32 = 0x0000_0002; // XMCDMA_CSR_IDLE_MASK

/// The channel's status: the queue is empty (MKIDGen3, `s2mm_channel_status`, bit 0).
pub(super) const SR_IDLE: u32 = 0x0000_0001;
/// The queue ran empty during a packet (same register, bit 1).
pub(super) const SR_SHORTFALL: u32 = 0x0000_0002;
pub(super) const IRQ_OTHER: u32 = 0x0000_0008; // An error on another channel (same register, bit 3)
pub(crate) const IRQ_PKTDROP: u32 = 0x0000_0010; // XMCDMA_IRQ_PKTDROP_MASK
pub(super) const IRQ_IOC: u32 = 0x0000_0020; // XMCDMA_IRQ_IOC_MASK
pub(crate) const IRQ_DELAY: u32 = 0x0000_0040; // XMCDMA_IRQ_DELAY_MASK
pub(super) const IRQ_ERROR: u32 = 0x0000_0080; // XMCDMA_IRQ_ERROR_MASK
/// All interrupts of a channel.
pub(crate) const IRQ_ALL: u32 = IRQ_OTHER | IRQ_PKTDROP | IRQ_IOC | IRQ_DELAY | IRQ_ERROR;
/// `XMCDMA_COALESCE_MASK`, 1 after a reset (MKIDGen3, `gen_s2mm_control_reg`).
pub(super) const CR_RESET_VALUE: u32 = 0x0001_0000;
/// The bits of the channel's control that can be read back.
pub(crate) const CR_BITS: u32 = RUNSTOP | IRQ_ALL | 0xFFFF_FF00;

pub(crate) const ERR_INTERNAL: u32 = 0x0000_0001; // XMCDMA_ERR_INTERNAL_MASK
pub(super) const ERR_SLAVE: u32 = 0x0000_0002; // XMCDMA_ERR_SLAVE_MASK
pub(crate) const ERR_DECODE: u32 = 0x0000_0004; // XMCDMA_ERR_DECODE_MASK
pub(crate) const ERR_SG_INT: u32 = 0x0000_0010; // XMCDMA_ERR_SG_INT_MASK
pub(crate) const ERR_SG_DEC: u32 = 0x0000_0040; // XMCDMA_ERR_SG_DEC_MASK

pub(super) const BD_ALIGN: u64 = 0x40; // XMCDMA_BD_MINIMUM_ALIGNMENT of xmcdma.h
/// `XMCDMA_BD_NDESC_OFFSET`, as the number of a word; its upper half follows.
pub(super) const BD_NEXT: usize = 0;
/// `XMCDMA_BD_BUFA_OFFSET`, as the number of a word; its upper half follows.
pub(super) const BD_BUFFER: usize = 2;
pub(super) const BD_CTRL: usize = 5; // XMCDMA_BD_CTRL_OFFSET, as the number of a word
/// The status's offset in bytes. MM2S writes it where S2MM has its sideband (`XMcdma_BdChainFromHW`
/// reads it at `XMCDMA_BD_SIDEBAND_STS_OFFSET`), S2MM at `XMCDMA_BD_STS_OFFSET`.
pub(super) const BD_STS: [u64; 2] = [0x1C, 0x18];
#[cfg(test)]
pub(super) const BD_SIDEBAND: u64 = 0x1C; // XMCDMA_BD_SIDEBAND_STS_OFFSET, in bytes
#[cfg(test)]
pub(super) const BD_CTRL_SOF: u32 = 0x8000_0000; // XMCDMA_BD_CTRL_SOF_MASK
pub(super) const BD_CTRL_EOF: u32 = 0x4000_0000; // XMCDMA_BD_CTRL_EOF_MASK
pub(super) const BD_BYTES: u32 = 0x03FF_FFFF; // XMCDMA_MAX_TRANSFER_LEN
pub(super) const BD_COMPLETE: u32 = 0x8000_0000; // XMCDMA_BD_STS_COMPLETE_MASK
pub(super) const BD_DEC_ERR: u32 = 0x4000_0000; // XMCDMA_BD_STS_DEC_ERR_MASK
pub(super) const BD_SLV_ERR: u32 = 0x2000_0000; // XMCDMA_BD_STS_SLV_ERR_MASK
pub(super) const BD_INT_ERR: u32 = 0x1000_0000; // XMCDMA_BD_STS_INT_ERR_MASK
pub(super) const BD_RXSOF: u32 = 0x0800_0000; // XMCDMA_BD_STS_RXSOF_MASK
pub(super) const BD_RXEOF: u32 = 0x0400_0000; // XMCDMA_BD_STS_RXEOF_MASK
/// The lowest bit of `XMCDMA_BD_SIDEBAND_STS_TDEST_MASK`.
pub(crate) const SIDEBAND_TDEST_SHIFT: u32 = 16;

#[cfg(test)]
#[allow(clippy::indexing_slicing, reason = "a test that panics has failed, which is its purpose")]
mod tests {
    use super::*;
    use crate::driver_regs::{agree, axi_mcdma as regs};
    use contigo_core::hw::mmio::Register;

    #[test]
    fn the_drivers_numbers_are_the_models() {
        fn at<A: Copy>(register: Register<A>) -> usize {
            register.offset()
        }
        for (direction, common) in regs::COMMON.iter().enumerate() {
            let base = direction * RX;
            let found =
                [at(common.control), at(common.status), at(common.enable), at(common.error)];
            assert_eq!(found, [CCR, CSR, CHEN, ERR].map(|offset| base + offset));
            for number in 0..16 {
                let channel = &regs::CHANNELS[16 * direction + number];
                let base = base + number * NEXT_CHANNEL;
                let [[current, current_high], [tail, tail_high]] =
                    [channel.current, channel.tail].map(|halves| halves.map(at));
                let found = [
                    at(channel.control),
                    at(channel.status),
                    current,
                    current_high,
                    tail,
                    tail_high,
                    at(channel.dropped),
                ];
                let expected = [CR, SR, CDESC, CDESC_MSB, TDESC, TDESC_MSB, PKTDROP];
                assert_eq!(
                    found,
                    expected.map(|offset| base + offset),
                    "direction {direction}, channel {number}"
                );
            }
        }
        assert_eq!((at(regs::ALL_DROPPED), regs::WINDOW_BYTES), (RX + ALL_PKTDROP, END));
        agree(&[
            (regs::RUN, RUNSTOP),
            (regs::RESET, CCR_RESET),
            (regs::HALTED, CSR_HALTED),
            (regs::OTHER_ERROR, IRQ_OTHER),
            (regs::IOC, IRQ_IOC),
            (regs::ERROR, IRQ_ERROR),
            (regs::IDLE, SR_IDLE),
            (regs::SHORT_FALL, SR_SHORTFALL),
            (regs::THRESHOLD_1, CR_RESET_VALUE),
            (regs::SOF, BD_CTRL_SOF),
            (regs::EOF, BD_CTRL_EOF),
            (regs::BYTES, BD_BYTES),
            (regs::FIRST, BD_RXSOF),
            (regs::LAST, BD_RXEOF),
            (regs::FAILED, BD_DEC_ERR | BD_SLV_ERR | BD_INT_ERR),
            (regs::COMPLETE, BD_COMPLETE),
        ]);
        assert_eq!(regs::COMMON_RESERVED, !(CSR_HALTED | CSR_IDLE));
        let words = regs::descriptor(0x1_2345_6780, 0x9_ABCD_EF01, 77);
        let address = |word: usize| u64::from(words[word + 1]) << 32 | u64::from(words[word]);
        assert_eq!(
            (address(BD_NEXT), address(BD_BUFFER), words[BD_CTRL]),
            (0x1_2345_6780, 0x9_ABCD_EF01, 77)
        );
        assert_eq!(
            (regs::STATUS_AT.map(|at| at as u64), regs::SIDEBAND_AT as u64),
            (BD_STS, BD_SIDEBAND)
        );
        assert_eq!(
            (regs::DESCRIPTOR_BYTES as u64, regs::BUFFER_AT, regs::CONTROL_AT),
            (BD_ALIGN, 4 * BD_BUFFER, 4 * BD_CTRL)
        );
    }
}
