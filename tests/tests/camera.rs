//! A stream loses nothing: a camera that never waits, on a descriptor ring. And every state of a
//! queue, on the same ring.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that panics has failed, which is its purpose")]

#[path = "camera/states.rs"]
mod states;

use contigo::{
    Align, CpuBuf, Driver as _, Engine, Error, LocalPool, Pool, Port, Queue, Region, Stream,
    sim::{Sim, SimBoard, SimDevice, SimSpec, SimWindow},
};
use contigo_testkit::camera::{Camera, CameraConfig, CameraModel, manual, packet, regs};
use std::{fmt::Write as _, time::Duration};

const PACKETS: u32 = 2_000;
const PACKET: usize = 4096;
const WORK_US: u32 = 5;
/// Longer than a packet takes, and a camera that is silent is silent then.
const A_WHILE: Duration = Duration::from_micros(100);

type Window<'d> = SimWindow<'d, CameraModel>;
type CameraStream<'p, 'd> = Stream<'p, Camera<'p, Window<'d>>, &'p Pool<'p, 9>, 8>;
type CameraQueue<'p, 'd> = Queue<'p, Camera<'p, Window<'d>>, 8>;

fn camera(config: CameraConfig, board: &SimBoard, port: Port) -> SimDevice<'_, CameraModel> {
    SimDevice::with_model(board, port, CameraModel::new(config))
}

/// Descriptors for a ring of `depth`, a line each.
fn ring<'r>(region: &'r Region<Sim<'_>>, depth: usize) -> CpuBuf<'r> {
    region.carve(depth * 64.max(region.line().bytes()), Align::LINE).unwrap().into_buf()
}

/// The outcome of a run.
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

/// A camera of 2,000 packets, `depth` buffers in flight, 5 µs of work a packet and 20 for every
/// 16th.
fn run(depth: usize, gap_ns: u64, port: fn(&SimBoard) -> Port) -> Row {
    let board = SimBoard::new(depth as u64);
    let (frames, descriptors) = (Region::new(board.memory(64 * 1024).unwrap()).unwrap(), Region::new(board.memory(4096).unwrap()).unwrap());
    let pool = Pool::<9>::with_slots(frames.carve(8 * PACKET, Align::PAGE).unwrap(), PACKET, depth).unwrap();
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

#[test]
fn the_drivers_registers_are_the_manuals() {
    let drivers = [regs::DMACR.offset(), regs::DMASR.offset(), regs::CURDESC.offset(), regs::TAILDESC.offset(), regs::CONTROL.offset()];
    assert_eq!(drivers, [manual::DMACR, manual::DMASR, manual::CURDESC, manual::TAILDESC, manual::DMACR]);
    assert_eq!(
        [regs::RUN, regs::RESET, regs::IRQ_ENABLE],
        [manual::CR_RS, manual::CR_RESET, manual::CR_IOC_IRQ_EN | manual::CR_ERR_IRQ_EN]
    );
    let errors = [
        manual::SR_DMA_INT_ERR,
        manual::SR_DMA_SLV_ERR,
        manual::SR_DMA_DEC_ERR,
        manual::SR_SG_INT_ERR,
        manual::SR_SG_SLV_ERR,
        manual::SR_SG_DEC_ERR,
    ];
    assert_eq!(regs::ERRORS, errors.iter().sum());
    assert_eq!(errors.map(regs::describe).iter().collect::<std::collections::HashSet<_>>().len(), 6, "a text for each");
    assert_eq!([regs::HALTED, regs::IDLE, regs::IRQS], [manual::SR_HALTED, manual::SR_IDLE, manual::SR_IOC_IRQ | manual::SR_ERR_IRQ]);
    let known = manual::SR_HALTED | manual::SR_IDLE | manual::SR_SG_INCLUDED | regs::ERRORS | regs::IRQS | manual::THRESHOLD;
    assert_eq!(regs::RESERVED & known, 0);
    assert_eq!(
        [regs::BYTES_MASK, regs::FIRST, regs::LAST, regs::COMPLETE],
        [manual::BD_BYTES, manual::BD_SOF, manual::BD_EOF, manual::BD_CMPLT]
    );
    assert_eq!(regs::FAILED, manual::BD_INT_ERR | manual::BD_SLV_ERR | manual::BD_DEC_ERR);
    assert_eq!((regs::STATUS_AT as u64, regs::DESCRIPTOR_BYTES as u64), (manual::BD_STATUS, manual::BD_ALIGN));
    assert_eq!((regs::WINDOW_BYTES, regs::THRESHOLD_1), (manual::END, manual::THRESHOLD_RESET));
}

#[test]
fn a_frame_is_exactly_the_bytes_received() {
    let board = SimBoard::new(3);
    let (frames, descriptors) = (Region::new(board.memory(64 * 1024).unwrap()).unwrap(), Region::new(board.memory(4096).unwrap()).unwrap());
    let pool = Pool::<9>::new(frames.carve(9 * PACKET, Align::PAGE).unwrap(), PACKET).unwrap();
    let device = camera(CameraConfig { short_every: Some(3), ..CameraConfig::default() }, &board, board.port());
    let driver = Camera::open_simulated(device.window().unwrap(), ring(&descriptors, 8), 8).unwrap();
    let mut stream: CameraStream<'_, '_> = Stream::new(driver, &pool, &()).unwrap();
    stream.start().unwrap();
    for number in 0..50 {
        let before = frames.stats().bytes_synced_for_cpu;
        let frame = stream.next(A_WHILE).unwrap().unwrap();
        let expected = if number % 3 == 0 { PACKET / 12 * 4 } else { PACKET };
        assert_eq!((frame.buf.len_bytes(), frame.completion.bytes), (expected, Some(expected)));
        assert!(packet::is(number, frame.buf.view::<u8>().unwrap()), "packet {number}");
        let synced = frames.stats().bytes_synced_for_cpu - before;
        assert_eq!(synced, expected.next_multiple_of(64) as u64, "the lines received, and no others");
        let before = frames.stats().bytes_synced_for_device;
        stream.give_back(frame.buf).unwrap();
        assert_eq!(frames.stats().bytes_synced_for_device - before, PACKET as u64, "the device gets all of it again");
    }
}

/// Everything in one structure, with no lifetime: what a program keeps in a field.
struct Kept {
    stream: Stream<'static, Camera<'static, Window<'static>>, &'static LocalPool<'static, 6>, 4>,
    frames: u32,
}

impl Kept {
    fn start() -> Result<Self, Error> {
        let board: &'static SimBoard = Box::leak(Box::new(SimBoard::new(4)));
        let region: &'static Region<Sim<'static>> = Box::leak(Box::new(Region::new(board.memory(64 * 1024)?)?));
        let pool: &'static LocalPool<'static, 6> = Box::leak(Box::new(LocalPool::new(region.carve(6 * PACKET, Align::PAGE)?, PACKET)?));
        let device: &'static SimDevice<'static, CameraModel> = Box::leak(Box::new(SimDevice::new(board, board.port())));
        let driver = Camera::open_simulated(device.window()?, ring(region, 4), 4)?;
        let mut stream = Stream::new(driver, pool, &())?;
        stream.start()?;
        Ok(Self { stream, frames: 0 })
    }

    fn one(&mut self) -> Result<(), Error> {
        let frame = self.stream.next(A_WHILE)?.ok_or(Error::Busy)?;
        assert!(packet::is(self.frames, frame.buf.view::<u8>()?));
        self.frames += 1;
        // Two of three are dropped: the pool has them, and so has the device at the next call.
        if self.frames.is_multiple_of(3) { self.stream.give_back(frame.buf) } else { Ok(()) }
    }
}

#[test]
fn a_stream_lives_in_a_structure_and_a_dropped_frame_comes_back() {
    let mut kept = Kept::start().unwrap();
    for _ in 0..100 {
        kept.one().unwrap();
    }
    assert_eq!((kept.stream.queue().len(), kept.stream.counts().ran_dry), (3, 0));
}

#[test]
fn what_does_not_fit_is_refused_before_anything_is_started() {
    let board = SimBoard::new(9);
    let region = Region::new(board.memory(64 * 1024).unwrap()).unwrap();
    let device = camera(CameraConfig::default(), &board, board.port());
    let open =
        |bytes: usize, depth| Camera::open_simulated(device.window().unwrap(), region.carve(bytes, Align::LINE).unwrap().into_buf(), depth);
    assert_eq!(open(512, 9).unwrap_err(), Error::BlockSize { len_bytes: 512, need_bytes: 576, line_bytes: 64 });
    assert_eq!(open(512, 0).unwrap_err(), Error::Argument { name: "depth", value: 0, min: 1, max: 8, multiple_of: 1 });
    // A line of 128 bytes: a descriptor each.
    let long =
        Region::new(board.memory_with(SimSpec { len_bytes: 4096, line: Align::new(128).unwrap(), ..SimSpec::default() }).unwrap()).unwrap();
    let camera = Camera::open_simulated(device.window().unwrap(), ring(&long, 2), 2).unwrap();
    assert_eq!(camera.depth(), 2);
    drop(camera);
    // A packet that is longer than its buffer writes nothing behind it.
    let pool = Pool::<2>::new(region.carve(2 * 2048, Align::PAGE).unwrap(), 2048).unwrap();
    let mut queue: CameraQueue<'_, '_> = Queue::new(open(128, 2).unwrap()).unwrap();
    queue.push([pool.take().unwrap().from_device(..)], &()).unwrap();
    let error = queue.next(A_WHILE).unwrap_err().error;
    assert!(
        matches!(error, Error::Fault { what: "internal error of the data mover: a length of 0, or a buffer too short", .. }),
        "{error}"
    );
    assert_eq!(board.counts().unowned_accesses, 0);
}

/// A ring's descriptors follow each other: an engine names them in a circle too, one job at a time.
#[test]
fn an_engine_over_a_ring_goes_round_it() {
    let board = SimBoard::new(3);
    let (frames, descriptors) = (Region::new(board.memory(64 * 1024).unwrap()).unwrap(), Region::new(board.memory(4096).unwrap()).unwrap());
    let pool = Pool::<2>::new(frames.carve(2 * PACKET, Align::PAGE).unwrap(), PACKET).unwrap();
    let device = camera(CameraConfig { gap_ns: 50_000, ..CameraConfig::default() }, &board, board.port());
    let driver = Camera::open_simulated(device.window().unwrap(), ring(&descriptors, 4), 4).unwrap();
    let mut engine = Engine::new(driver).unwrap();
    for number in 0..10 {
        let done = engine.start([pool.take().unwrap().from_device(..)], &()).unwrap().wait(Duration::from_millis(1)).unwrap();
        let [frame] = done.buffers;
        assert_eq!(done.completion.slot, number % 4);
        assert!(packet::number(frame.view::<u8>().unwrap()).is_some());
    }
    assert_eq!(board.counts().unowned_accesses, 0);
}
