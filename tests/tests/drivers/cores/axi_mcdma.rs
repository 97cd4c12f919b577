//! AXI MCDMA on its model: numbers, jobs, what the core drops, errors and refusals, and channels
//! that share the reset.

mod channels;
mod jobs;
mod refusals;

use crate::regs::axi_mcdma as regs;
use contigo::{
    Region,
    drivers::axi_mcdma::{Mcdma, McdmaChannel, McdmaConfig, Way},
    sim::{
        Faults, SimBoard, SimConfig, SimDevice,
        axi_mcdma::{McdmaModel, McdmaSpec},
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
    StreamConfig::source(
        SourceConfig { packet_bytes: 1000, gap_ns: 2_000, ..SourceConfig::default() },
        2048,
    )
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
