//! What a listener hears of one job: `cargo test --package contigo --features log --test events`.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, which is its purpose")]

use contigo::{
    Align, Engine, Pool, Region, Timeout,
    drivers::gemm8::{Gemm, Gemm8, Output, SimGemm8},
    sim::SimBoard,
};
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
    let pool = Pool::<4>::new(region.carve(1024, Align::LINE).unwrap(), 256).unwrap();
    let core = SimGemm8::new(&board, board.port());
    let mut engine = Engine::new(Gemm8::open_simulated(core.window().unwrap()).unwrap()).unwrap();
    let [mut a, b, bias, c] = [(); 4].map(|()| pool.take().unwrap());
    a.copy_from_slice(&[1; 16]).unwrap();
    let gemm = Gemm { m: 1, n: 16, k: 16, output: Output::Int32 { relu: false } };
    let job = engine.start([a.to_device(..16), b.to_device(..), bias.to_device(..64), c.from_device(..64)], &gemm).unwrap();
    drop(job.wait(Timeout::ms(1)).unwrap());

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
