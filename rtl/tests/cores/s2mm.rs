#![allow(unsafe_code, reason = "a driver is opened on a core")]
//! A camera that never waits, through the project's own core in Verilog, as a stream over a pool:
//! each loss is counted, and each frame that comes is whole. The model of AXI DMA loses as many.

use crate::cores::{skip, suite};
use contigo::drivers::axi_dma::{AxiDmaConfig, Side};
use contigo::sim::axi_dma::{AxiDmaModel, CoreSpec};
use contigo::sim::stream::{SourceConfig, StreamConfig, StreamCounts, packet};
use contigo::sim::{Model, SimBoard, SimDevice, SimWindow};
use contigo::{Align, CpuBuf, Driver, Error, Region, Stream};
use contigo_exerciser::Limits;
use contigo_rtl::axi::SlaveConfig;
use contigo_rtl::s2mm::{DEPTH, S2mm, WINDOW_BYTES};
use contigo_rtl::{RtlConfig, RtlModel};
use contigo_testkit::suite::{Kind, Subject};
use std::time::Duration;

/// 4 KiB each, 400 bytes a microsecond: 10.24 µs.
const PACKETS: u32 = 400;
const PACKET: usize = 4096;
/// Longer than a packet takes, and a camera that is silent is silent then.
const A_WHILE: Duration = Duration::from_micros(100);
/// Memory that answers after so many cycles of 10 ns; four bursts of 128 bytes are under way.
const fn late(cycles: u32) -> SlaveConfig {
    SlaveConfig { write_cycles: cycles..=cycles, ..SlaveConfig::CALM }
}

fn source(gap_ns: u64) -> SourceConfig {
    SourceConfig { packets: PACKETS, gap_ns, ..SourceConfig::default() }
}

/// The core at 100 MHz, behind a camera that keeps nothing: it loses nothing itself.
fn config(memory: SlaveConfig, source: SourceConfig) -> RtlConfig {
    let stream = StreamConfig::source(source, 64);
    RtlConfig {
        cycle_ns: 10,
        window_bytes: WINDOW_BYTES,
        memory,
        stream,
        has_irq: true,
        ..RtlConfig::default()
    }
}

/// The outcome of a run, as the stream and the frames' numbers tell it.
#[derive(Debug, Default)]
struct Row {
    right: u32,
    /// Numbers that are missing.
    missing: u32,
    failed: u64,
    underruns: u64,
    /// Packets that the core itself says are lost, and cut.
    lost: u32,
    cut: u32,
}

/// Watches the camera with `depth` buffers at the core, until it is silent. The program works for
/// `late_us` on each frame, and four times as long on every 16th.
fn watched<M: Model, D: Driver>(
    board: &SimBoard,
    device: &SimDevice<M>,
    driver: D,
    losses: impl Fn(&D) -> (u32, u32),
    packets: u32,
    (depth, late_us): (usize, u32),
) -> Row {
    let region = Region::new(board.memory(64 << 10).unwrap()).unwrap();
    let mut camera = Stream::new(driver, region.pool(depth, PACKET).unwrap(), depth, &[]).unwrap();
    assert_eq!(camera.start(), Ok(depth));
    let (mut row, mut expected) = (Row::default(), 0);
    loop {
        let frame = match camera.next(A_WHILE) {
            Ok(Some(frame)) => frame,
            Ok(None) => break,
            Err(_) if camera.is_running() => continue,
            Err(error) => panic!("{error}"),
        };
        let seen = frame.buf.view::<u8>().unwrap();
        let number = packet::number(seen).unwrap();
        assert!(
            number >= expected && seen.len() == PACKET && frame.last == Some(true),
            "packet {number} after {expected}"
        );
        assert!(packet::is(number, seen), "packet {number} has wrong bytes");
        (row.missing, row.right, expected) =
            (row.missing + number - expected, row.right + 1, number + 1);
        device.run_for(if row.right % 16 == 0 { 4 * late_us } else { late_us }).unwrap();
        camera.give_back(frame.buf).unwrap();
    }
    row.missing += packets - expected;
    let counts = camera.counts();
    assert_eq!(counts.completed, u64::from(row.right));
    (row.failed, row.underruns) = (counts.failed, counts.underruns);
    (row.lost, row.cut) = losses(camera.queue().driver());
    camera.stop().unwrap();
    drop(camera);
    let seen = board.counts();
    assert_eq!(
        [seen.unowned_accesses, seen.stray_accesses, seen.evictions, seen.lost_writes],
        [0; 4]
    );
    row
}

/// The same through the core in Verilog.
fn by_rtl(memory: SlaveConfig, source: SourceConfig, depth: usize, late_us: u32) -> Option<Row> {
    let model = skip::or_skip(RtlModel::new("s2mm", config(memory, source)))?;
    let board = SimBoard::new(7);
    let device = SimDevice::with_model(&board, board.port(), model);
    // SAFETY: the window is the core's.
    let core = unsafe { S2mm::open(device.window().unwrap()) }.unwrap();
    let packets = source.packets;
    let row = watched(&board, &device, core, S2mm::losses, packets, (depth, late_us));
    device
        .model(|model| {
            let counts = model.stream_counts().unwrap();
            assert_eq!(
                (counts.begun, counts.lost, counts.cut),
                (packets.into(), 0, 0),
                "the core takes every beat"
            );
            assert_eq!(model.findings(), []);
        })
        .unwrap();
    let Row { right, lost, cut, .. } = row;
    assert_eq!(
        (right + lost + cut, row.missing, row.failed),
        (packets, lost + cut, cut.into()),
        "no packet is lost silently"
    );
    Some(row)
}

/// The same through the model of AXI DMA, which keeps 512 bytes of the stream as the core does. It
/// has no register for losses: the camera's own count.
fn by_model(depth: usize, gap_ns: u64, late_us: u32) -> Row {
    let board = SimBoard::new(7);
    let device = SimDevice::with_model(
        &board,
        board.port(),
        AxiDmaModel::new(CoreSpec::camera(source(gap_ns), 512)),
    );
    let ring = Region::new(board.memory(4096).unwrap()).unwrap();
    let config = AxiDmaConfig { depth: Some(depth), ..AxiDmaConfig::default() };
    let descriptors = ring.alloc(4096, Align::LINE).unwrap();
    let channel = device.window().unwrap().channel(Side::S2mm, config, Some(descriptors)).unwrap();
    let counts = |_: &_| {
        let counts = device.model(|model| model.stream.counts).unwrap();
        (u32::try_from(counts.lost).unwrap(), u32::try_from(counts.cut).unwrap())
    };
    let row = watched(&board, &device, channel, counts, PACKETS, (depth, late_us));
    assert_eq!((row.missing, row.cut), (row.lost, 0));
    row
}

#[test]
fn model_counts_losses_like_the_core() {
    println!("buffers  gap us  late us  |  core: right  lost  dry  |  model: right  lost  dry");
    for (depth, gap_us, late_us) in [
        (1, 0, 5),
        (2, 0, 5),
        (3, 0, 5),
        (8, 0, 5),
        (8, 0, 9),
        (1, 20, 5),
        (2, 20, 5),
        (2, 0, 30),
        (8, 0, 30),
    ] {
        let Some(rtl) = by_rtl(SlaveConfig::CALM, source(gap_us * 1_000), depth, late_us) else {
            return;
        };
        let model = by_model(depth, gap_us * 1_000, late_us);
        println!(
            "{depth:7}  {gap_us:6}  {late_us:7}  |  {:11}  {:4}  {:3}  |  {:12}  {:4}  {:3}",
            rtl.right, rtl.lost, rtl.underruns, model.right, model.lost, model.underruns
        );
        assert_eq!((rtl.cut, rtl.lost > 0), (0, model.lost > 0));
        // Their registers take other times, which shows where the program is too slow.
        assert!(
            rtl.lost.abs_diff(model.lost) <= PACKETS / 20,
            "{} and {} are lost",
            rtl.lost,
            model.lost
        );
        assert!(rtl.lost == 0 || rtl.underruns > 0, "{rtl:?}");
    }
}

/// A camera does not wait for memory either: what memory was too slow for is cut, fails alone, and
/// is counted.
#[test]
fn slow_memory_cuts_packets_and_each_is_counted() {
    let mut all = (0, 0);
    println!("memory         bytes/us  right  lost  cut  dry");
    let memories = [
        ("answers in 1 us", late(100), 400),
        ("in 1.5 us", late(150), 400),
        ("hostile", SlaveConfig::HOSTILE, 200),
        ("hostile", SlaveConfig::HOSTILE, 50),
    ];
    for (name, memory, bytes_per_us) in memories {
        let source = SourceConfig { packets: 60, bytes_per_us, ..source(0) };
        let Some(row) = by_rtl(memory, source, DEPTH, 5) else { return };
        println!(
            "{name:15}  {bytes_per_us:6}  {:5}  {:4}  {:3}  {:3}",
            row.right, row.lost, row.cut, row.underruns
        );
        all = (all.0 + row.right, all.1 + row.cut);
    }
    assert!(all.0 > 60 && all.1 > 10, "{all:?} of 240 are right and cut");
}

/// Stops at every moment of a packet, and in slow memory: no write comes after one, and the first
/// frame of the next start is whole.
#[test]
fn a_stop_ends_when_all_is_answered() {
    let board = SimBoard::new(7);
    let source = SourceConfig {
        packets: u32::MAX,
        bytes_per_us: 60,
        packet_bytes: 1024,
        ..SourceConfig::default()
    };
    // No interrupt announces the end of a stop.
    let config = RtlConfig { has_irq: false, ..config(late(600), source) };
    let Some(model) = skip::or_skip(RtlModel::new("s2mm", config)) else { return };
    let device = SimDevice::with_model(&board, board.port(), model);
    let region = Region::new(board.memory(64 << 10).unwrap()).unwrap();
    // SAFETY: the window is the core's.
    let driver = unsafe { S2mm::open(device.window().unwrap()) }.unwrap();
    let mut camera = Stream::new(driver, region.pool(DEPTH, PACKET).unwrap(), DEPTH, &[]).unwrap();
    let mut frames = 0;
    for us in 0..60 {
        camera.start().unwrap();
        device.run_for(us).unwrap();
        camera.stop().unwrap();
        let before = board.counts().bytes_written;
        device.run_for(50).unwrap();
        assert_eq!(
            board.counts().bytes_written,
            before,
            "{us} us: nothing is written after a stop"
        );
        while let Some(frame) = camera.next(A_WHILE).unwrap() {
            let seen = frame.buf.view::<u8>().unwrap();
            assert!(packet::is(packet::number(seen).unwrap(), seen), "{us} us");
            frames += 1;
        }
    }
    assert!(frames > 20, "{frames} frames came before the stops");
    assert_eq!(device.model(|model| model.findings().to_vec()).unwrap(), []);
}

/// The core through the suite for drivers.
struct Suite;

/// The packets of the suite's source.
const SUITE_PACKET: usize = 1024;
const SEEDS: u64 = 16;

impl Subject for Suite {
    type Model = RtlModel;

    fn name(&self) -> &'static str {
        "s2mm's RTL"
    }
    fn kind(&self) -> Kind {
        Kind::Receive
    }
    fn model(&self) -> RtlModel {
        let source = SourceConfig {
            packet_bytes: SUITE_PACKET,
            bytes_per_us: 50,
            gap_ns: 500,
            ..SourceConfig::default()
        };
        let memory = SlaveConfig { stalls: 300, ..late(20) };
        // A lost answer keeps a stop for 10 ms: a slow clock, 12.5 MHz.
        RtlModel::new("s2mm", RtlConfig { has_irq: false, cycle_ns: 80, ..config(memory, source) })
            .unwrap()
    }
    fn stream(&self, model: &RtlModel) -> Option<StreamCounts> {
        model.stream_counts()
    }
    fn findings(&self, model: &RtlModel) -> Vec<String> {
        model.broken_rules().collect()
    }
    fn limits(&self) -> Limits {
        Limits { offset_align_bytes: 8, len_align_bytes: 8, len_max_bytes: PACKET }
    }
    fn packet_bytes(&self) -> usize {
        SUITE_PACKET
    }
    fn may_fail(&self, error: &Error) -> bool {
        matches!(error, Error::Fault { what, .. } if what.starts_with("memory answered") || what.starts_with("the packet's rest"))
    }
    fn open<R>(
        &self,
        window: SimWindow<RtlModel>,
        _: Option<CpuBuf>,
        act: impl FnOnce(&mut (dyn Driver + '_)) -> R,
    ) -> Result<R, Error> {
        // SAFETY: the window is the core's, and the only one.
        Ok(act(&mut unsafe { S2mm::open(window) }?))
    }
}

#[test]
fn the_suite_for_drivers() {
    suite::run("s2mm", &Suite, SEEDS);
}
