//! A stream loses nothing: a camera that never waits, on a descriptor ring. And every state of a
//! queue, on the same ring.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that panics has failed, which is its purpose")]

use contigo::{
    Align, CpuBuf, Driver as _, Error, LocalPool, Pool, Port, Queue, Region, Stream, Timeout,
    sim::{Faults, Sim, SimBoard, SimConfig, SimDevice, SimSpec, SimWindow},
};
use contigo_testkit::camera::{Camera, CameraConfig, CameraModel, manual, packet, regs};
use std::fmt::Write as _;

const PACKETS: u32 = 2_000;
const PACKET: usize = 4096;
const WORK_US: u32 = 5;
/// Longer than a packet takes, and a camera that is silent is silent then.
const A_WHILE: Timeout = Timeout::us(100);

type Window<'d> = SimWindow<'d, CameraModel>;
type CameraStream<'p, 'd> = Stream<'p, Camera<'p, Window<'d>>, &'p Pool<'p, 8>, 8>;
type CameraQueue<'p, 'd> = Queue<'p, Camera<'p, Window<'d>>, 8>;

fn camera(config: CameraConfig, board: &SimBoard, port: Port) -> SimDevice<'_, CameraModel> {
    SimDevice::with_model(board, port, CameraModel::new(config))
}

/// Descriptors for a ring of `depth`, a line each.
fn ring<'r>(region: &'r Region<Sim<'_>>, depth: usize) -> CpuBuf<'r> {
    region.carve(depth * 64.max(region.line().bytes()), Align::LINE).unwrap().into_buf()
}

/// What a run came to.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    right: u64,
    lost: u64,
    ran_dry: u64,
    /// By the model.
    model_dry: u64,
    frame_syncs: u64,
    descriptor_writes: u64,
    looks: u64,
    /// The most for one packet.
    most_looks: u64,
}

/// A camera of 2,000 packets, `depth` buffers in flight, 5 µs of work a packet and 20 for every 16th.
fn run(depth: usize, gap_ns: u64, port: fn(&SimBoard) -> Port) -> Row {
    let board = SimBoard::new(depth as u64);
    let (frames, descriptors) = (Region::new(board.memory(64 * 1024).unwrap()).unwrap(), Region::new(board.memory(4096).unwrap()).unwrap());
    let pool = Pool::<8>::with_slots(frames.carve(8 * PACKET, Align::PAGE).unwrap(), PACKET, depth).unwrap();
    let device = camera(CameraConfig { packets: PACKETS, gap_ns, ..CameraConfig::default() }, &board, port(&board));
    let driver = Camera::open_simulated(device.window().unwrap(), ring(&descriptors, depth), depth).unwrap();
    let before = [frames.stats().syncs, descriptors.stats().syncs];
    let mut stream: CameraStream<'_, '_> = Stream::new(driver, &pool, &()).unwrap();
    assert_eq!(stream.start(), Ok(depth), "every place has a buffer from the beginning");
    let (mut right, mut expected, mut most_looks, mut looks) = (0, 0, 0, 0);
    while let Some(frame) = stream.next(A_WHILE).unwrap() {
        let seen = frame.buf.view::<u8>().unwrap();
        let number = packet::number(seen).unwrap();
        assert!(number >= expected && frame.report.first && frame.report.last, "packet {number} after {expected}");
        assert!(seen.len() == PACKET && packet::is(number, seen), "packet {number}");
        (right, expected) = (right + 1, number + 1);
        (most_looks, looks) = (most_looks.max(stream.queue().driver().looks() - looks), stream.queue().driver().looks());
        device.run_for(if right % 16 == 0 { 4 * WORK_US } else { WORK_US }).unwrap();
        stream.give_back(frame.buf).unwrap();
    }
    let [frame_syncs, ring_syncs] = [frames.stats().syncs - before[0], descriptors.stats().syncs - before[1]];
    let (counts, model) = (stream.counts(), device.model(CameraModel::counts).unwrap());
    assert_eq!((counts.completed, counts.pushed), (right, right + depth as u64));
    assert_eq!(model.written, right);
    let seen = board.counts();
    assert_eq!([seen.unowned_accesses, seen.stray_accesses, seen.evictions, seen.lost_writes], [0; 4]);
    stream.stop().unwrap();
    drop(stream);
    assert_eq!((pool.taken(), descriptors.free_bytes()), (0, 4096 - 64 * depth));
    let looks_that_sync = if port(&board).coherent { 0 } else { looks };
    Row {
        right,
        lost: model.lost,
        ran_dry: counts.ran_dry,
        model_dry: model.ran_dry,
        frame_syncs,
        descriptor_writes: ring_syncs - looks_that_sync,
        looks,
        most_looks,
    }
}

#[test]
fn eight_in_flight_lose_nothing_and_where_it_runs_dry_is_counted() {
    let mut table =
        String::from("in flight  gap ns   right    lost  ran dry  most looks  looks/packet  frame syncs/packet  descriptor writes\n");
    for (depth, gap_ns) in [(1, 0), (2, 0), (3, 0), (4, 0), (8, 0), (1, 20_000), (2, 20_000)] {
        let row = run(depth, gap_ns, SimBoard::port);
        let packets = row.right as f64;
        let (per_packet, syncs) = (row.looks as f64 / packets, row.frame_syncs as f64 / packets);
        let Row { right, lost, ran_dry, most_looks, descriptor_writes, .. } = row;
        writeln!(
            table,
            "{depth:9}  {gap_ns:6}  {right:6}  {lost:6}  {ran_dry:7}  {most_looks:10}  {per_packet:12.2}  {syncs:18.2}  {descriptor_writes:17}"
        )
        .unwrap();
        assert_eq!(right + lost, u64::from(PACKETS), "no packet is lost silently");
        assert_eq!(ran_dry, row.model_dry, "{depth} in flight: the count is the channel's own");
        assert_eq!(lost > 0, ran_dry > 0 && gap_ns == 0, "{depth} in flight");
        // Frame out 1, frame back 1, descriptor write 1; the first ones are armed once.
        let depth = depth as u64;
        assert_eq!((row.frame_syncs, descriptor_writes), (2 * right + depth, right + depth));
        assert!(most_looks <= 2, "{depth} in flight: {most_looks} looks at one packet");
    }
    print!("{table}");
}

#[test]
fn where_the_port_snoops_nothing_is_synced() {
    let row = run(8, 0, SimBoard::coherent_port);
    assert_eq!((row.right, row.lost, row.frame_syncs, row.descriptor_writes), (2_000, 0, 0, 0));
}
