//! A camera behind an AXI DMA, as a stream over a pool. None of 2,000 packets is lost at its rate.
//! Where the program is late, each loss is counted.

use contigo::{
    Align, Region, Stream,
    drivers::axi_dma::{AxiDmaConfig, Side},
    sim::{
        SimBoard, SimDevice,
        axi_dma::{AxiDmaModel, CoreSpec},
        stream::{SourceConfig, StreamCounts, packet},
    },
};
use std::time::Duration;

const PACKET: usize = 4096;

/// `frames` frames with `depth` buffers at the core; the program takes `late_us` for each. How many
/// numbers are missing, how often the core ran dry, and the camera's own counts.
fn watched(frames: u32, depth: usize, late_us: impl Fn(u32) -> u32) -> (u32, u64, StreamCounts) {
    let board = SimBoard::new(1);
    let region = Region::new(board.memory(1 << 20).unwrap()).unwrap();
    let pool = region.pool(10, PACKET).unwrap();
    let ring = region.alloc(4096, Align::PAGE).unwrap();
    let model = AxiDmaModel::new(CoreSpec::camera(SourceConfig::default(), 512));
    let device = SimDevice::with_model(&board, board.port(), model);
    let config = AxiDmaConfig { depth: Some(depth), ..AxiDmaConfig::default() };
    let channel = device.window().unwrap().channel(Side::S2mm, config, Some(ring)).unwrap();
    let mut camera = Stream::new(channel, pool.clone(), 8, &[]).unwrap();
    camera.start().unwrap();
    let (mut lost, mut expected) = (0, 0);
    for frame in 0..frames {
        let taken = camera.next(Duration::from_millis(1)).unwrap().unwrap();
        let number = packet::number(taken.buf.view::<u8>().unwrap()).unwrap();
        assert!(
            packet::is(number, taken.buf.view::<u8>().unwrap()),
            "frame {frame} has wrong bytes"
        );
        (lost, expected) = (lost + number - expected, number + 1);
        camera.give_back(taken.buf).unwrap();
        device.run_for(late_us(frame)).unwrap();
    }
    let ran_dry = camera.counts().ran_dry;
    let counts = device.model(AxiDmaModel::stream).unwrap();
    drop(camera);
    let seen = board.counts();
    assert_eq!(
        (seen.unowned_accesses, seen.stray_accesses, seen.evictions, seen.lost_writes),
        (0, 0, 0, 0)
    );
    (lost, ran_dry, counts)
}

/// A packet takes 10.24 µs.
#[test]
fn none_of_2000_packets_is_lost_at_the_cameras_rate() {
    let (lost, ran_dry, counts) = watched(2_000, 8, |_| 9);
    assert_eq!((lost, ran_dry, counts.lost, counts.cut), (0, 0, 0, 0));
    // Now and then the program is away for six packets.
    let (lost, ran_dry, counts) = watched(2_000, 8, |frame| if frame % 100 == 0 { 60 } else { 5 });
    assert_eq!((lost, ran_dry, counts.lost, counts.cut), (0, 0, 0, 0));
}

#[test]
fn each_loss_is_counted_where_the_program_is_late() {
    for (depth, late_us) in [(1, 15), (2, 30), (8, 200)] {
        let (lost, ran_dry, counts) = watched(300, depth, |_| late_us);
        assert!(
            lost > 0 && ran_dry > 0,
            "{depth} buffers, {late_us} us late: {lost} lost, dry {ran_dry} times"
        );
        assert!(
            u64::from(lost) <= counts.lost + counts.cut,
            "no packet that the camera delivered is missing: {lost}, {counts:?}"
        );
    }
}
