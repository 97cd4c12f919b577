//! The events of one job, as a listener hears them:
//! `cargo test --package contigo --features log --test events`.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, which is its purpose")]

use contigo::drivers::zdma::Zdma;
use contigo::sim::zdma::ZdmaModel;
use contigo::sim::{SimBoard, SimDevice};
use contigo::{Queue, Region};
use core::time::Duration;
use std::sync::Mutex;

static HEARD: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Listener;

impl log::Log for Listener {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.target() == "contigo"
    }
    fn log(&self, record: &log::Record<'_>) {
        HEARD.lock().unwrap().push(record.args().to_string());
    }
    fn flush(&self) {}
}

#[test]
fn every_step_of_a_job_is_an_event() {
    log::set_logger(&Listener).unwrap();
    log::set_max_level(log::LevelFilter::Trace);

    let board = SimBoard::new(1);
    let region = Region::new(board.memory(4096).unwrap()).unwrap();
    let pool = region.pool(4, 256).unwrap();
    let core = SimDevice::<ZdmaModel>::new(&board, board.port());
    let mut queue = Queue::new(core.window().unwrap().simple().unwrap(), 1).unwrap();
    let [mut from, _, _, to] = [(); 4].map(|()| pool.take().unwrap());
    from.copy_from_slice(&[1; 16]).unwrap();
    drop(
        queue
            .run([from.to_device(..16), to.from_device(..64)], &[], Duration::from_millis(1))
            .unwrap(),
    );

    let heard = HEARD.lock().unwrap().join("\n");
    for event in [
        "sync for device 0..4096", // the first touch
        "map 4096 bytes",
        "carve 1024 bytes at 0",
        "take slot 0",
        "copy 16 bytes",
        "sync for device 0..16", // the bytes that the job reads, and no more
        "sync for device 768..832",
        "submit job 1",
        "complete job 1",
        "sync for cpu 768..832",
        "release slot 3",
    ] {
        assert!(heard.contains(event), "{event:?} was not heard:\n{heard}");
    }
}
