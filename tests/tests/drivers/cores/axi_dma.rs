#![allow(
    unsafe_code,
    reason = "how a core is built is the program's word, and a window of a dead core is a promise"
)]
//! AXI DMA: its registers, its edges, its errors, and both channels side by side.

mod errors;
mod held;
mod side_by_side;
mod tail;

use contigo::{
    CpuBuf, Region,
    drivers::axi_dma::{AxiDmaChannel, AxiDmaConfig, Side},
    sim::{
        SimBoard, SimDevice, SimWindow,
        axi_dma::{AxiDmaModel, CoreSpec},
    },
};
use std::time::Duration;

const SOON: Duration = Duration::from_millis(5);
const DIRECT: CoreSpec = CoreSpec {
    sg: false,
    has_mm2s: true,
    has_s2mm: true,
    length_bits: 14,
    address_bits: 32,
    stream: contigo::sim::stream::StreamConfig {
        end: contigo::sim::stream::StreamEnd::Loopback,
        fifo_bytes: 2048,
    },
    resets_stream: true,
    bytes_per_us: 800,
    error_at: None,
    fetch_error_at: None,
    stuck: false,
};
const WITH_SG: CoreSpec = CoreSpec { sg: true, ..DIRECT };

fn core(board: &SimBoard, spec: CoreSpec) -> SimDevice<AxiDmaModel> {
    SimDevice::with_model(board, board.port(), AxiDmaModel::new(spec))
}

fn ring(region: &Region) -> CpuBuf {
    region.alloc(4096, contigo::Align::PAGE).unwrap()
}

fn alone(
    device: &SimDevice<AxiDmaModel>,
    side: Side,
    memory: Option<CpuBuf>,
) -> AxiDmaChannel<SimWindow<AxiDmaModel>> {
    device.window().unwrap().channel(side, AxiDmaConfig::default(), memory).unwrap()
}
