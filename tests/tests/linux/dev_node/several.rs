//! The guide's program for several engines: two cameras and a copy, each with its own interrupt.

#[allow(clippy::all, unsafe_code, reason = "quoted by the guide")]
#[path = "../../../../docs/examples/several.rs"]
mod program;

use super::opened;
use contigo::drivers::axi_dma::{AxiDmaChannel, AxiDmaConfig, Side};
use contigo::drivers::zdma::Zdma;
use contigo::hw::Wired;
use contigo::sim::axi_dma::{AxiDmaModel, CoreSpec};
use contigo::sim::stream::{SourceConfig, packet};
use contigo::sim::zdma::ZdmaModel;
use contigo::sim::{SimBoard, SimDevice};
use contigo::{Align, Queue, Region};
use contigo_testkit::fake_dev_node::DevNodeConfig;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

const FRAMES: usize = 12;
const DEPTH: usize = 4;

#[test]
fn one_poll_for_two_cameras_and_a_copy() {
    let (kernel, dev_node) = opened(DevNodeConfig { interrupts: 3, ..DevNodeConfig::default() });
    let board = SimBoard::new(1);
    let region = Region::new(board.memory(256 << 10).unwrap()).unwrap();
    let pool = region.pool(32, 4096).unwrap();
    let source = SourceConfig { gap_ns: 1_000_000, ..SourceConfig::default() };
    let cameras = [0, 1].map(|_| {
        let model = AxiDmaModel::new(CoreSpec::camera(source, 512));
        SimDevice::with_model(&board, board.port(), model)
    });
    let copier = SimDevice::<ZdmaModel>::new(&board, board.port());
    let irq = |number| dev_node.irq(number).unwrap();
    let mut queues = [0, 1].map(|at| {
        let ring = region.alloc(4096, Align::PAGE).unwrap();
        let (window, irq) = (cameras[at].window().unwrap(), irq(at as u32));
        let config = AxiDmaConfig { depth: Some(DEPTH), ..AxiDmaConfig::default() };
        // SAFETY: the window is a simulated camera's, whose interrupt this test raises.
        let driver = unsafe {
            let device = Wired::new(window, irq, board.port());
            AxiDmaChannel::alone(device, Side::S2mm, config, Some(ring)).unwrap()
        };
        let mut queue = Queue::new(driver, DEPTH).unwrap();
        while !queue.is_full() {
            queue.submit([pool.take().unwrap().from_device(..)], &[]).unwrap();
        }
        queue
    });
    let window = copier.window().unwrap();
    // SAFETY: as above, for the copier.
    let driver = unsafe { Zdma::simple(Wired::new(window, irq(2), board.port())) }.unwrap();
    let mut copy = Queue::new(driver, DEPTH).unwrap();
    let (mut seen, is_over) = (0, AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(1));
                cameras.iter().for_each(|camera| camera.run_for(100).unwrap());
                copier.run_for(100).unwrap();
                (0..3).for_each(|number| kernel.interrupt(number));
            }
        });
        let ran = program::run(&mut queues, &mut copy, &pool, FRAMES, |frame| {
            let bytes = frame.view::<u8>().unwrap();
            let number = packet::number(bytes).unwrap();
            assert!(packet::is(number, bytes), "packet {number}");
            seen += 1;
        });
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(ran, Ok(()));
    });
    assert!(seen >= FRAMES && queues.iter().all(|queue| queue.counts().completed > 1));
    drop((queues, copy));
    assert_eq!((pool.taken(), board.counts().unowned_accesses), (0, 0));
}
