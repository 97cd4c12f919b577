#![allow(unsafe_code, reason = "how a core is built is the program's word")]
//! AXI CDMA: what it refuses, how it fails, what its registers do, and its keyhole.

mod bursts;
mod keyhole;
mod refused;
mod registers;
mod tail;

use crate::prelude::*;
use crate::regs::axi_cdma as regs;
use contigo::drivers::axi_cdma::{AxiCdma, AxiCdmaConfig, Keyhole};
use contigo::sim::axi_cdma::{AxiCdmaModel, AxiCdmaSpec, FIFO_ADDR};

/// Any byte.
const DRE: AxiCdmaConfig = AxiCdmaConfig { dre: true, ..DEFAULT };
const DEFAULT: AxiCdmaConfig = AxiCdmaConfig {
    length_bits: 23,
    address_bits: 32,
    data_bits: 32,
    dre: false,
    lite: false,
    burst_beats: 16,
    depth: None,
    irq_threshold: 1,
    irq_delay: 0,
    stop_us: 10_000,
};

fn core(board: &SimBoard, spec: AxiCdmaSpec) -> SimDevice<AxiCdmaModel> {
    SimDevice::<AxiCdmaModel>::with_model(board, board.port(), AxiCdmaModel::new(spec))
}
