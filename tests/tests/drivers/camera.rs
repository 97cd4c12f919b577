//! A camera that never waits, on a descriptor ring: a stream loses nothing, also after a fault or a
//! panic.

mod panics;

use crate::prelude::*;
use contigo::Stream;
use contigo::drivers::axi_dma::{AxiDmaChannel, AxiDmaConfig, PacketReport, Side};
use contigo::job::Frame;
use contigo::sim::axi_dma::{AxiDmaModel, CoreSpec};
use contigo_testkit::conformance::mutant::{Mutant, Mutation, REFUSAL};

const PACKETS: u32 = 2_000;
const PACKET: usize = 4096;
const WORK_US: u32 = 5;
/// Longer than a packet takes, and a camera that is silent is silent then.
const A_WHILE: Duration = Duration::from_micros(100);

type Window = SimWindow<AxiDmaModel>;
type Camera = AxiDmaChannel<Window>;
fn report(frame: &Frame) -> PacketReport {
    PacketReport::of(frame.status, frame.words)
}

/// A camera with a FIFO of 512 bytes.
fn spec(source: SourceConfig) -> CoreSpec {
    CoreSpec::camera(source, 512)
}

fn camera(spec: CoreSpec, board: &SimBoard, port: Port) -> SimDevice<AxiDmaModel> {
    SimDevice::with_model(board, port, AxiDmaModel::new(spec))
}

/// The driver of a receive channel, with so many descriptors.
fn camera_of(device: &SimDevice<AxiDmaModel>, memory: CpuBuf, depth: usize) -> Result<Camera> {
    let config = AxiDmaConfig { depth: Some(depth), ..AxiDmaConfig::default() };
    device.window()?.channel(Side::S2mm, config, Some(memory))
}

/// Descriptors for a ring of `depth`, a line each.
fn lines(region: &Region, depth: usize) -> CpuBuf {
    region.alloc(depth * 64.max(region.line().bytes()), Align::LINE).unwrap()
}

#[track_caller]
fn is_packet(number: u32, frame: &Frame) {
    assert!(packet::is(number, frame.buf.view::<u8>().unwrap()), "packet {number}");
}

/// The outcome of a run.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    right: u64,
    lost: u64,
    underruns: u64,
    /// By the model.
    model_dry: u64,
    frame_syncs: u64,
    descriptor_writes: u64,
    /// For one packet.
    most_looks: u64,
}

/// A camera of 2,000 packets, `depth` buffers in flight, 5 µs of work a packet and 20 for every
/// 16th.
fn run(depth: usize, gap_ns: u64, port: fn(&SimBoard) -> Port) -> Row {
    let board = SimBoard::new(depth as u64);
    let (frames, descriptors) = (region(&board, 64 * 1024), region(&board, 4096));
    let pool = frames.pool(depth, PACKET).unwrap();
    let source = SourceConfig { packets: PACKETS, gap_ns, ..SourceConfig::default() };
    let device = camera(spec(source), &board, port(&board));
    let driver = camera_of(&device, lines(&descriptors, depth), depth).unwrap();
    let before = [frames.stats().syncs, descriptors.stats().syncs];
    let mut stream = Stream::new(driver, pool.clone(), depth, &[]).unwrap();
    assert_eq!(stream.start(), Ok(depth), "every place has a buffer from the beginning");
    let (mut right, mut expected, mut most_looks, mut looks) = (0, 0, 0, 0);
    while let Some(frame) = stream.next(A_WHILE).unwrap() {
        let seen = frame.buf.view::<u8>().unwrap();
        let number = packet::number(seen).unwrap();
        assert!(
            number >= expected && report(&frame).first && report(&frame).last,
            "packet {number} after {expected}"
        );
        assert!(seen.len() == PACKET && packet::is(number, seen), "packet {number}");
        (right, expected) = (right + 1, number + 1);
        (most_looks, looks) = (
            most_looks.max(stream.queue().driver().looks() - looks),
            stream.queue().driver().looks(),
        );
        device.run_for(if right % 16 == 0 { 4 * WORK_US } else { WORK_US }).unwrap();
        stream.give_back(frame.buf).unwrap();
    }
    let [frame_syncs, ring_syncs] =
        [frames.stats().syncs - before[0], descriptors.stats().syncs - before[1]];
    let (counts, model) = (
        stream.counts(),
        device
            .model(|model| (model.written(), model.stream.counts.lost, model.underruns()))
            .unwrap(),
    );
    assert_eq!((counts.completed, counts.pushed), (right, right + depth as u64));
    assert_eq!(model.0, right);
    clean(&board);
    let all_looks = stream.queue().driver().looks();
    stream.stop().unwrap();
    drop(stream);
    assert_eq!((pool.taken(), descriptors.free_bytes()), (0, 4096));
    let looks_that_sync = if port(&board).coherent { 0 } else { all_looks };
    Row {
        right,
        lost: model.1,
        underruns: counts.underruns,
        model_dry: model.2,
        frame_syncs,
        descriptor_writes: ring_syncs - looks_that_sync,
        most_looks,
    }
}

#[test]
fn eight_in_flight_lose_nothing() {
    for (depth, gap_ns) in [(1, 0), (2, 0), (3, 0), (4, 0), (8, 0), (1, 20_000), (2, 20_000)] {
        let row = run(depth, gap_ns, SimBoard::port);
        let Row { right, lost, underruns, most_looks, descriptor_writes, .. } = row;
        assert_eq!(right + lost, u64::from(PACKETS), "no packet is lost silently");
        // A packet may end between the look at Idle and the doorbell.
        assert!(
            row.model_dry.abs_diff(underruns) <= 1 + right / 1_000,
            "{depth} in flight: {underruns} of {}",
            row.model_dry
        );
        assert_eq!(lost > 0, underruns > 0 && gap_ns == 0, "{depth} in flight");
        // Frame out 1, unless several came at once; descriptor write 1; the first ones are armed by
        // one. A frame that was only read goes back without a sync.
        let depth = depth as u64;
        assert_eq!(descriptor_writes, right + depth);
        assert!(row.frame_syncs <= right + 1, "{depth} in flight: {} syncs", row.frame_syncs);
        assert!(most_looks <= 2, "{depth} in flight: {most_looks} looks at one packet");
    }
}

#[test]
fn where_the_port_snoops_nothing_is_synced() {
    let row = run(8, 0, SimBoard::coherent_port);
    assert_eq!((row.right, row.lost, row.frame_syncs, row.descriptor_writes), (2_000, 0, 0, 0));
}

#[test]
fn a_frame_is_exactly_the_bytes_received() {
    let board = SimBoard::new(3);
    let (frames, descriptors) = (region(&board, 64 * 1024), region(&board, 4096));
    let pool = frames.pool(9, PACKET).unwrap();
    let source = SourceConfig { short_every: Some(3), ..SourceConfig::default() };
    let device = camera(spec(source), &board, board.port());
    let driver = camera_of(&device, lines(&descriptors, 8), 8).unwrap();
    let mut stream = Stream::new(driver, pool.clone(), 8, &[]).unwrap();
    stream.start().unwrap();
    for number in 0..50 {
        let before = frames.stats().bytes_synced_for_cpu;
        let frame = stream.next(A_WHILE).unwrap().unwrap();
        let expected = if number % 3 == 0 { PACKET / 12 * 4 } else { PACKET };
        assert_eq!(frame.buf.len_bytes(), expected);
        is_packet(number, &frame);
        // The lines received, and no others. What was only read has no dirty line.
        let synced = frames.stats().bytes_synced_for_cpu - before;
        assert_eq!(synced, expected.next_multiple_of(64) as u64);
        let (before, mut buf) = (frames.stats().bytes_synced_for_device, frame.buf);
        let is_written = number % 2 == 0;
        if is_written {
            buf.view_mut::<u8>().unwrap().fill(0);
        }
        stream.give_back(buf).unwrap();
        let synced = frames.stats().bytes_synced_for_device - before;
        assert_eq!(synced, if is_written { PACKET as u64 } else { 0 });
    }
}

#[test]
fn misfits_are_refused_before_any_start() {
    let (board, region, pool) = bench(9, 2, 2048);
    let device = camera(spec(SourceConfig::default()), &board, board.port());
    let open =
        |bytes: usize, depth| camera_of(&device, region.alloc(bytes, Align::LINE).unwrap(), depth);
    cases! {
        open(512, 9) => Err(Error::BlockSize { len_bytes: 512, need_bytes: 576, line_bytes: 64 }),
        open(512, 0) => Err(Error::Argument { name: "depth", value: 0, min: 1, max: 256, .. }),
    }
    // A line of 128 bytes: a descriptor each.
    let line = Align::new(128).unwrap();
    let long = board.memory_with(SimSpec { len_bytes: 4096, line, ..SimSpec::default() }).unwrap();
    let long = Region::new(long).unwrap();
    assert_eq!(camera_of(&device, lines(&long, 2), 2).unwrap().depth(), 2);
    // A packet that is longer than its buffer writes nothing behind it: it goes on in the next.
    let mut queue = Queue::new(open(128, 2).unwrap(), 2).unwrap();
    for _ in 0..2 {
        queue.give(receives(&pool, ..));
    }
    let mut whole = vec![];
    for expected in [(true, false), (false, true)] {
        let half = queue.end::<1>();
        let report = PacketReport::of(half.status, half.words);
        assert_eq!((report.first, report.last), expected);
        whole.extend_from_slice(half.buffers[0].view::<u8>().unwrap());
    }
    assert!(packet::is(0, &whole), "both halves of it");
    clean(&board);
}

#[test]
fn frames_before_a_fault_come_first() {
    let config = CoreSpec { error_at: Some(20), ..spec(SourceConfig::default()) };
    let (board, region, pool) = bench(7, 9, PACKET);
    let device = camera(config, &board, board.port());
    let driver = camera_of(&device, lines(&region, 8), 8).unwrap();
    let mut stream = Stream::new(driver, pool.clone(), 8, &[]).unwrap();
    stream.start().unwrap();
    for number in 0..17 {
        let frame = stream.next(A_WHILE).unwrap().unwrap();
        is_packet(number, &frame);
        stream.give_back(frame.buf).unwrap();
    }
    // The fault is there already, and three packets before it were not fetched.
    device.run_for(200).unwrap();
    for number in 17..20 {
        let frame = stream.next(A_WHILE).unwrap().unwrap();
        is_packet(number, &frame);
        assert!(stream.is_running());
    }
    cases! {
        stream.next(A_WHILE).map(drop) => Err(Error::FaultAt { device: "axi_dma s2mm", what, .. })
            if what == "DMASlvErr: memory answered with an error; check that this address is \
                memory, and that its port is enabled",
    }
    assert!(!stream.is_running());
    // Nothing comes, and nothing is started by looking.
    assert!(stream.next(A_WHILE).unwrap().is_none());
    assert_eq!(stream.start(), Ok(8));
    let frame = stream.next(A_WHILE).unwrap().unwrap();
    let number = packet::number(frame.buf.view::<u8>().unwrap()).unwrap();
    assert!(number > 20, "packet {number}");
    is_packet(number, &frame);
    let counts = stream.counts();
    assert_eq!((counts.completed, counts.stopped, counts.underruns), (21, 1, 0));
    // Each frame came, was cancelled, or is in flight.
    assert_eq!(counts.pushed, counts.completed + counts.cancelled + 7);
    drop((frame, stream));
    assert_eq!((pool.taken(), board.counts().unowned_accesses), (0, 0));
}

/// The pool's last buffer is in the frame whose sync was refused once. The next call has it; or it
/// is the pool's again where the stream starts anew.
#[test]
fn frame_not_taken_back_comes_next() {
    for anew in [false, true] {
        let board = SimBoard::new(7);
        let own = region(&board, 4096);
        // Number 0 and 1 are the region's own syncs, and 2 the hand-over.
        let refusing = Mutant::new(board.memory(PACKET).unwrap(), Mutation::RefusedOnce(3));
        let region = Region::new(refusing).unwrap();
        let pool = region.pool(1, PACKET).unwrap();
        let device = camera(spec(SourceConfig::default()), &board, board.port());
        let driver = camera_of(&device, lines(&own, 8), 8).unwrap();
        let mut stream = Stream::new(driver, pool.clone(), 8, &[]).unwrap();
        assert_eq!(stream.start(), Ok(1));
        assert_eq!(stream.next(A_WHILE).unwrap_err(), REFUSAL);
        assert!(stream.is_running());
        if anew {
            stream.stop().unwrap();
            assert_eq!(stream.start(), Ok(1));
        }
        let frame = stream.next(A_WHILE).unwrap().unwrap();
        let number = packet::number(frame.buf.view::<u8>().unwrap()).unwrap();
        assert_eq!(number != 0, anew, "packet {number}");
        drop((frame, stream));
        assert_eq!((pool.taken(), board.counts().unowned_accesses), (0, 0));
    }
}
