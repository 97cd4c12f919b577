#![allow(unsafe_code, reason = "models, and drivers that are opened over them, are promises")]
//! AXI MCDMA on its model: numbers, jobs, what the core drops, errors and refusals, and channels
//! that share the reset.

mod bursts;
mod channels;
mod jobs;
mod refusals;
mod threads;

use crate::prelude::*;
use crate::regs::axi_mcdma as regs;
use contigo::drivers::axi_mcdma::{Mcdma, McdmaChannel, McdmaConfig, PacketReport, Way};
use contigo::job::CoreChannel;
use contigo::sim::axi_mcdma::{McdmaModel, McdmaSpec};

/// Its memory ports take any address.
const DRE: McdmaConfig = McdmaConfig {
    address_bits: 32,
    length_bits: 14,
    mm2s_data_bits: 32,
    mm2s_dre: true,
    s2mm_data_bits: 32,
    s2mm_dre: true,
    stop_us: 1_000,
    sideband: false,
};

fn model(config: McdmaConfig, stream: StreamConfig) -> McdmaModel {
    McdmaModel::new(McdmaSpec { config, streams: [stream; 2] })
}

fn core(board: &SimBoard, config: McdmaConfig, stream: StreamConfig) -> SimDevice<McdmaModel> {
    SimDevice::<McdmaModel>::with_model(board, board.port(), model(config, stream))
}

/// A camera: packets of 1,000 bytes with a pause after each.
fn source() -> StreamConfig {
    StreamConfig::source(
        SourceConfig { packet_bytes: 1000, gap_ns: 2_000, ..SourceConfig::default() },
        2048,
    )
}

/// A board with memory for descriptors and packets.
fn ground(faults: Faults) -> (SimBoard, Pool, Pool) {
    let (board, region, pool) = faulty(1, faults, 16, 4096);
    let rings = region.pool(5, 1024).unwrap();
    (board, rings, pool)
}

/// One channel of a core.
fn open<D: Device>(core: &Mcdma<D>, way: Way, rings: &Pool) -> Queue<McdmaChannel<CoreChannel<D>>> {
    Queue::new(core.channel(way, rings.take().unwrap()).unwrap(), 8).unwrap()
}
