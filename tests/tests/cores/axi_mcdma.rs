//! AXI MCDMA on its model: numbers, jobs, what the core drops, errors and refusals, and channels
//! that share the reset.

#[path = "axi_mcdma/channels.rs"]
mod channels;
#[path = "axi_mcdma/jobs.rs"]
mod jobs;
#[path = "axi_mcdma/refusals.rs"]
mod refusals;

use contigo::{
    Region,
    drivers::axi_mcdma::{Mcdma, McdmaChannel, McdmaConfig, McdmaModel, McdmaSpec, SimMcdma, Way, manual, regs},
    hw::mmio::Register,
    sim::{
        Faults, SimBoard, SimConfig,
        stream::{SourceConfig, StreamConfig, packet},
    },
};
use std::time::Duration;

const LIMIT: Duration = Duration::from_millis(5);

/// A core whose memory ports take any address, over `streams`.
fn model(streams: StreamConfig) -> McdmaModel {
    McdmaModel::new(McdmaSpec { config: dre(), streams: [streams; 2] })
}

fn dre() -> McdmaConfig {
    McdmaConfig { mm2s_dre: true, s2mm_dre: true, ..McdmaConfig::default() }
}

/// A camera: packets of 1,000 bytes with a pause after each.
fn source() -> StreamConfig {
    StreamConfig::source(SourceConfig { packet_bytes: 1000, gap_ns: 2_000, ..SourceConfig::default() }, 2048)
}

/// A board with memory for descriptors and packets.
macro_rules! ground {
    ($board:ident, $rings:ident, $pool:ident) => {
        let region = Region::new($board.memory(256 << 10).unwrap()).unwrap();
        let $rings = region.pool(5, 1024).unwrap();
        let $pool = region.pool(16, 4096).unwrap();
    };
}
use ground;

#[test]
fn the_drivers_numbers_are_the_models() {
    fn at<A: Copy>(register: Register<A>) -> usize {
        register.offset()
    }
    for (direction, common) in regs::COMMON.iter().enumerate() {
        let base = direction * manual::RX;
        let found = [at(common.control), at(common.status), at(common.enable), at(common.in_progress), at(common.error)];
        assert_eq!(found, [manual::CCR, manual::CSR, manual::CHEN, manual::CHSER, manual::ERR].map(|offset| base + offset));
        assert_eq!(at(common.completed), base + manual::SERVED[direction]);
        assert_eq!(at(common.interrupts), base + manual::INT_SER[direction]);
        for number in 0..16 {
            let channel = &regs::CHANNELS[16 * direction + number];
            let base = base + number * manual::NEXT_CHANNEL;
            let [[current, current_high], [tail, tail_high]] = [channel.current, channel.tail].map(|halves| halves.map(at));
            let found = [at(channel.control), at(channel.status), current, current_high, tail, tail_high, at(channel.dropped)];
            let expected = [manual::CR, manual::SR, manual::CDESC, manual::CDESC_MSB, manual::TDESC, manual::TDESC_MSB, manual::PKTDROP];
            assert_eq!(found, expected.map(|offset| base + offset), "direction {direction}, channel {number}");
        }
    }
    assert_eq!((at(regs::ALL_DROPPED), regs::WINDOW_BYTES), (manual::RX + manual::ALL_PKTDROP, manual::END));
    let bits = [
        (regs::RUN, manual::RUNSTOP),
        (regs::RESET, manual::CCR_RESET),
        (regs::HALTED, manual::CSR_HALTED),
        (regs::OTHER_ERROR, manual::IRQ_OTHER),
        (regs::IOC, manual::IRQ_IOC),
        (regs::ERROR, manual::IRQ_ERROR),
        (regs::IDLE, manual::SR_IDLE),
        (regs::SHORT_FALL, manual::SR_SHORTFALL),
        (regs::THRESHOLD_1, manual::CR_RESET_VALUE),
        (regs::SOF, manual::BD_CTRL_SOF),
        (regs::EOF, manual::BD_CTRL_EOF),
        (regs::BYTES, manual::BD_BYTES),
        (regs::FIRST, manual::BD_RXSOF),
        (regs::LAST, manual::BD_RXEOF),
        (regs::FAILED, manual::BD_DEC_ERR | manual::BD_SLV_ERR | manual::BD_INT_ERR),
        (regs::COMPLETE, manual::BD_COMPLETE),
    ];
    for (index, (driver, model)) in bits.into_iter().enumerate() {
        assert_eq!(driver, model, "bit {index}");
    }
    assert_eq!(regs::COMMON_RESERVED, !(manual::CSR_HALTED | manual::CSR_IDLE));
    let words = regs::descriptor(0x1_2345_6780, 0x9_ABCD_EF01, 77);
    let address = |word: usize| u64::from(words[word + 1]) << 32 | u64::from(words[word]);
    assert_eq!((address(manual::BD_NEXT), address(manual::BD_BUFFER), words[manual::BD_CTRL]), (0x1_2345_6780, 0x9_ABCD_EF01, 77));
    assert_eq!((regs::STATUS_AT.map(|at| at as u64), regs::SIDEBAND_AT as u64), (manual::BD_STS, manual::BD_SIDEBAND));
    assert_eq!(
        (regs::DESCRIPTOR_BYTES as u64, regs::BUFFER_AT, regs::CONTROL_AT),
        (manual::BD_ALIGN, 4 * manual::BD_BUFFER, 4 * manual::BD_CTRL)
    );
}
