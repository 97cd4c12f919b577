#![allow(unsafe_code, reason = "opening a driver is a claim about the device behind its window")]
//! The digits of `cargo demo` through gemm8's Verilog: the same driver, engine and memory, every
//! score compared.
//!
//! ```text
//! cargo run -p contigo-rtl --bin rtl-demo                 # 897 images
//! cargo run -p contigo-rtl --bin rtl-demo -- --images 20
//! ```

use contigo::{
    Engine,
    sim::{SimBoard, SimDevice},
};
use contigo_gemm8::{
    Gemm8,
    demo::{HELD_OUT, Outcome, PIXELS, REGION_BYTES, Reference, SCORES, Task, held_out, stream_through},
};
use contigo_rtl::{RtlConfig, RtlModel};
use std::{env, error::Error, process::ExitCode, sync::atomic::AtomicUsize, time::Duration};

/// Hidden values of the network: 64 to 32 to 16.
const HIDDEN: u64 = 32;
/// Virtual time that one job may take: a job here takes some microseconds.
const JOB_TIMEOUT: Duration = Duration::from_millis(100);
const USAGE: &str = "usage: rtl-demo [--device rtl:gemm8] [--images N]";

fn main() -> ExitCode {
    match images().and_then(run) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("rtl-demo: {error}");
            ExitCode::from(2)
        }
    }
}

/// The number of images that the command line asks for.
fn images() -> Result<usize, Box<dyn Error>> {
    let (mut images, mut words) = (HELD_OUT, env::args().skip(1));
    while let Some(word) = words.next() {
        match (word.as_str(), words.next()) {
            ("--device", Some(name)) if name == "rtl:gemm8" => {}
            ("--images", Some(count)) => images = count.parse()?,
            _ => return Err(USAGE.into()),
        }
    }
    if (1..=HELD_OUT).contains(&images) { Ok(images) } else { Err(format!("there are {HELD_OUT} held-out images").into()) }
}

/// Was every score right, and no rule of the bus broken?
fn run(images: usize) -> Result<bool, Box<dyn Error>> {
    let reference = Reference::new()?;
    let mut tasks = Vec::with_capacity(images);
    for digit in held_out().take(images) {
        let mut pixels = [0; PIXELS];
        digit.decode(&mut pixels)?;
        tasks.push(Task { digit, expected: reference.scores(&pixels)? });
    }
    let mut outcomes = vec![Outcome::default(); images];

    let board = SimBoard::new(1);
    let model = RtlModel::new("gemm8", RtlConfig { has_irq: true, ..RtlConfig::default() })?;
    let device = SimDevice::with_model(&board, board.port(), model);
    // SAFETY: the core behind the window is gemm8's Verilog, and this is the only window.
    let driver = unsafe { Gemm8::open(device.window()?)? };
    let memory = board.memory(REGION_BYTES)?;
    let engine = Engine::new(driver).map_err(|refused| refused.error)?;
    stream_through(memory, engine, JOB_TIMEOUT, &tasks, &mut outcomes, &AtomicUsize::new(0))?;

    let (cycles, findings) = device.model(|model| (model.cycle(), model.findings().to_vec()))?;
    let right = tasks.iter().zip(&outcomes).filter(|(task, outcome)| task.digit.label() == outcome.answer).count();
    let wrong: usize = outcomes.iter().map(|outcome| outcome.wrong_scores).sum();
    let images = u64::try_from(images)?;
    let macs = (PIXELS as u64 + SCORES as u64) * HIDDEN;
    let (each, hundredths) = (cycles / images, 100 * cycles / (images * macs));
    println!("device        rtl:gemm8, 200 MHz, memory answers after 20 cycles");
    println!("right         {right} of {images} images");
    println!("wrong scores  {wrong} of {} compared with the reference", images * SCORES as u64);
    println!("cycles        {cycles}, {each} an image of two jobs, register accesses included");
    println!("cycles/MAC    {}.{:02} of {macs} MACs an image", hundredths / 100, hundredths % 100);
    println!("bus rules     {} broken", findings.len());
    findings.iter().for_each(|finding| println!("              {finding}"));
    Ok(wrong == 0 && findings.is_empty())
}
