#![allow(
    unsafe_code,
    reason = "how a core is built is the program's word, and a window of a dead core is a promise"
)]
//! AXI DMA: its registers, its edges, its errors, and both channels side by side.

mod coherent;
mod errors;
mod held;
mod interrupts;
mod side_by_side;
mod tail;

use crate::prelude::*;
use contigo::drivers::axi_dma::{AxiDma, AxiDmaChannel, AxiDmaConfig, AxiDmaCore, Side};
use contigo::job::{AnyDriver, CoreChannel};
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

/// The last end's interrupt is acknowledged; behind a port that does not snoop a register shows
/// first that there are ends.
#[test]
fn ends_of_a_burst_are_read_from_descriptors() {
    for (port, most_reads) in
        [(SimBoard::port as fn(&SimBoard) -> Port, 2), (SimBoard::coherent_port, 1)]
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

#[test]
fn burst_rings_one_doorbell() {
    let (board, region, pool) = bench(12, 5, 256);
    let device = core(&board, receiver(256, WITH_SG));
    let channel = device
        .window()
        .unwrap()
        .channel(Side::S2mm, AxiDmaConfig::default(), Some(ring(&region)))
        .unwrap();
    // By name, as C and Python have it.
    let mut queue = Queue::new(AnyDriver::new(channel).unwrap(), 4).unwrap();
    for (round, by_wait) in [(0, false), (1, true), (2, false)] {
        let before = (device.accesses(), device.model(AxiDmaModel::written).unwrap());
        queue.hold_doorbell();
        for job in 0..4 {
            let operand = pool.take().unwrap().from_device(..);
            assert_eq!(queue.submit([operand], &[]).unwrap(), 4 * round + job);
        }
        let refused = queue.submit([pool.take().unwrap().from_device(..)], &[]).unwrap_err();
        assert_eq!(refused.error, Error::QueueFull { depth: 4 });
        assert!(refused.buffers.is_some(), "what does not fit comes back");
        drop(refused);
        device.run_for(100).unwrap();
        assert_eq!(device.model(AxiDmaModel::written).unwrap(), before.1, "no doorbell yet");
        if !by_wait {
            queue.ring_doorbell().unwrap();
            // All of them end before the first poll.
            device.run_for(100).unwrap();
        }
        for job in 0..4 {
            let done = queue.wait::<1>(Duration::from_millis(1)).unwrap().unwrap();
            assert_eq!((done.job, done.last), (4 * round + job, Some(true)));
        }
        if round > 0 && !by_wait {
            let now = device.accesses();
            // The doorbell, and an interrupt that was acknowledged.
            assert_eq!(now.writes - before.0.writes, 2, "{now:?} {before:?}");
        }
    }
}

/// With wide addresses a doorbell that follows another job's writes half of the tail alone.
#[test]
fn stop_forgets_an_owed_doorbell() {
    let (board, region, pool) = bench(13, 3, 256);
    let device = core(&board, CoreSpec { address_bits: 64, ..receiver(256, WITH_SG) });
    let config = AxiDmaConfig { address_bits: 64, ..AxiDmaConfig::default() };
    let mut queue = alone(&device, &region, Side::S2mm, config);
    let operand = || pool.take().unwrap().from_device(..);
    queue.submit([operand()], &[]).unwrap();
    queue.hold_doorbell();
    queue.submit([operand()], &[]).unwrap();
    queue.clear().unwrap();
    let again = queue.submit([operand()], &[]).unwrap();
    assert_eq!(
        queue.wait::<1>(Duration::from_millis(1)).unwrap().map(|done| done.job),
        Some(again)
    );
}

/// The buffers of a burst come at its doorbell: a channel that ran out of them after the burst's
/// first job, but before that, has lost something.
#[test]
fn underrun_within_a_burst_is_counted() {
    for port in [SimBoard::port as fn(&SimBoard) -> Port, SimBoard::coherent_port] {
        let (board, region, pool) = bench(14, 4, 256);
        let source = SourceConfig { packet_bytes: 256, gap_ns: 10_000, ..SourceConfig::default() };
        let spec = CoreSpec { stream: StreamConfig::source(source, 2048), ..WITH_SG };
        let device = SimDevice::with_model(&board, port(&board), AxiDmaModel::new(spec));
        let mut queue = alone(&device, &region, Side::S2mm, AxiDmaConfig::default());
        let mut told = Vec::new();
        queue.give(receives(&pool, ..));
        // In time, and then too late.
        for late_us in [0, 50] {
            assert!(queue.try_next::<1>().unwrap().is_none());
            queue.hold_doorbell();
            queue.give(receives(&pool, ..));
            device.run_for(late_us).unwrap();
            queue.give(receives(&pool, ..));
            queue.ring_doorbell().unwrap();
            while device.model(AxiDmaModel::written).unwrap() < queue.counts().pushed - 1 {
                device.run_for(1).unwrap();
            }
            told.push((queue.counts().underruns, device.model(AxiDmaModel::underruns).unwrap()));
            while queue.len() > 1 {
                assert!(queue.try_next::<1>().unwrap().is_some());
            }
        }
        assert_eq!(told, [(0, 0), (1, 1)], "{}", port(&board).name);
    }
}
