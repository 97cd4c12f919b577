#![allow(
    unsafe_code,
    reason = "how a core is built is the program's word, and a window of a dead core is a promise"
)]
//! AXI DMA: its registers, its edges, its errors, and both channels side by side.

mod errors;
mod held;
mod side_by_side;
mod tail;

use crate::prelude::*;
use contigo::drivers::axi_dma::{AxiDma, AxiDmaChannel, AxiDmaConfig, AxiDmaCore, Side};
use contigo::job::CoreChannel;
use contigo::sim::axi_dma::{AxiDmaModel, CoreSpec};

const DIRECT: CoreSpec = CoreSpec {
    sg: false,
    has_mm2s: true,
    has_s2mm: true,
    length_bits: 14,
    address_bits: 32,
    stream: StreamConfig { end: contigo::sim::stream::StreamEnd::Loopback, fifo_bytes: 2048 },
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

/// A core that receives packets of so many bytes.
fn receiver(packet_bytes: usize, spec: CoreSpec) -> CoreSpec {
    let source = SourceConfig { packet_bytes, ..SourceConfig::default() };
    CoreSpec { stream: StreamConfig::source(source, 2048), ..spec }
}

type Window = SimWindow<AxiDmaModel>;

/// The driver of one channel, and of both as one.
fn alone(
    device: &SimDevice<AxiDmaModel>,
    region: &Region,
    side: Side,
    config: AxiDmaConfig,
) -> Queue<AxiDmaChannel<Window>> {
    let channel = device.window().unwrap().channel(side, config, Some(ring(region))).unwrap();
    Queue::new(channel, 4).unwrap()
}

fn as_one(
    device: &SimDevice<AxiDmaModel>,
    region: &Region,
    config: AxiDmaConfig,
) -> Queue<AxiDma<Window>> {
    Queue::new(device.window().unwrap().driver(config, Some(ring(region))).unwrap(), 4).unwrap()
}

/// Both channels of a core, each with its driver: the one that sends, and the one that receives.
fn pair<D: Device>(
    whole: &AxiDmaCore<D>,
    region: &Region,
    config: AxiDmaConfig,
) -> [Queue<AxiDmaChannel<CoreChannel<D>>>; 2] {
    [Side::Mm2s, Side::S2mm].map(|side| {
        // SAFETY: the model is built so, but for bits of lengths that it may cut off.
        let channel = unsafe { whole.channel(side, config, Some(ring(region))) }.unwrap();
        Queue::new(channel, 4).unwrap()
    })
}

#[test]
fn ends_of_a_burst_are_read_from_descriptors() {
    for (port, most_reads) in
        [(SimBoard::port as fn(&SimBoard) -> Port, 1), (SimBoard::coherent_port, 0)]
    {
        let (board, region, pool) = bench(11, 4, 256);
        let model = AxiDmaModel::new(receiver(256, WITH_SG));
        let device = SimDevice::with_model(&board, port(&board), model);
        let mut queue = alone(&device, &region, Side::S2mm, AxiDmaConfig::default());
        for _ in 0..4 {
            queue.submit([pool.take().unwrap().from_device(..)], &[]).unwrap();
        }
        device.run_for(100).unwrap();
        let before = device.accesses().reads;
        for job in 0..4 {
            let done = queue.wait::<1>(Duration::ZERO).unwrap().unwrap();
            assert_eq!((done.job, done.bytes), (job, Some(256)));
        }
        assert_eq!(device.accesses().reads - before, most_reads, "{}", port(&board).name);
        // A poll that finds nothing reads a register, and so the next one's end is found.
        queue.submit([pool.take().unwrap().from_device(..)], &[]).unwrap();
        assert!(queue.wait::<1>(Duration::from_millis(1)).unwrap().is_some());
    }
}
