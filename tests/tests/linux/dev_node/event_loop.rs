//! The guide's program for tokio, with a device that raises its interrupt later.

#[allow(clippy::all, unsafe_code, reason = "quoted by the guide")]
#[path = "../../../../docs/examples/event_loop.rs"]
mod program;

use super::plain;
use contigo::drivers::zdma::Zdma;
use contigo::hw::Wired;
use contigo::sim::zdma::ZdmaModel;
use contigo::sim::{SimBoard, SimDevice};
use contigo::{Queue, Region};
use std::thread;
use std::time::Duration;

#[test]
fn event_loop_of_the_guide_takes_every_end() {
    let (kernel, dev_node) = plain();
    let board = SimBoard::new(1);
    let region = Region::new(board.memory(64 << 10).unwrap()).unwrap();
    let pool = region.pool(8, 4096).unwrap();
    let device = SimDevice::<ZdmaModel>::new(&board, board.port());
    let (window, irq) = (device.window().unwrap(), dev_node.irq(0).unwrap());
    // SAFETY: the window is a simulated ZDMA's, whose interrupt this test raises.
    let driver = unsafe { Zdma::simple(Wired::new(window, irq, board.port())) }.unwrap();
    let mut queue = Queue::new(driver, 4).unwrap();
    for job in 0..3_u8 {
        let mut from = pool.take().unwrap();
        from.view_mut::<u8>().unwrap().fill(job);
        queue.submit([from.to_device(..2048), pool.take().unwrap().from_device(..)], &[]).unwrap();
    }
    let mut ended = Vec::new();
    thread::scope(|scope| {
        let worker = scope.spawn(|| {
            for _ in 0..3 {
                thread::sleep(Duration::from_millis(5));
                device.run_for(1_000).unwrap();
                kernel.interrupt(0);
            }
        });
        let runtime = ::tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let all = program::until_empty(&mut queue, |[_, to]| {
            ended.push(to.view_at::<u8>(..1).unwrap()[0])
        });
        // The program has no end where no interrupt and no look finds the ends.
        let limit = Duration::from_secs(20);
        runtime.block_on(async { ::tokio::time::timeout(limit, all).await }).unwrap().unwrap();
        worker.join().unwrap();
    });
    assert_eq!((ended, pool.taken()), (vec![0, 1, 2], 0));
}
