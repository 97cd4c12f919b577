#![allow(unsafe_code, reason = "opening a driver is a claim about the device behind its window")]
//! The digits of `cargo demo` through a core in Verilog, on the simulated board: the same memory
//! and queue, every score compared.
//!
//! ```text
//! cargo run -p contigo-rtl --bin rtl-demo                               # gemm8, 897 images
//! cargo run -p contigo-rtl --bin rtl-demo -- --images 20 --trace demo.vcd
//! cargo run -p contigo-rtl --bin rtl-demo -- --device rtl:nngen --json
//! ```
//!
//! Exit status: 0 all is right; 1 a score is wrong, or a rule of the bus was broken; 2 wrong usage,
//! or the core is not here.

use contigo::Queue;
use contigo::sim::{SimBoard, SimDevice};
use contigo_gemm8::Gemm8;
use contigo_gemm8::demo::{
    HELD_OUT, Outcome, PIXELS, REGION_BYTES, Reference, SCORES, Task, answer, held_out,
    stream_through,
};
use contigo_rtl::table::{Setting, digits};
use contigo_rtl::{RtlConfig, RtlModel};
use std::env;
use std::error::Error;
use std::process::ExitCode;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

/// Multiplications for an image: the network has 64 values, then 32, then 16.
const MACS: u64 = (PIXELS as u64 + SCORES as u64) * 32;
/// Virtual time that one job may take: a job here takes some microseconds.
const JOB_TIMEOUT: Duration = Duration::from_millis(100);
/// The cores that have the demo's network.
const DEVICES: [&str; 3] = ["rtl:gemm8", "rtl:nngen", "rtl:nngen_gated"];
const USAGE: &str =
    "usage: rtl-demo [--device NAME] [--images N] [--seed S] [--trace FILE.vcd] [--json]";

/// The run that was asked for.
struct Asked {
    device: &'static str,
    images: usize,
    setting: Setting,
    json: bool,
}

/// The run as it was.
struct Ran {
    right: usize,
    wrong_scores: usize,
    cycles: u64,
    jobs: u64,
    findings: Vec<String>,
}

fn main() -> ExitCode {
    match asked().and_then(|asked| Ok((run(&asked)?, asked))) {
        Ok((ran, asked)) => {
            if asked.json {
                println!("{}", ran.json(&asked));
            } else {
                ran.print(&asked);
            }
            if ran.wrong_scores == 0 && ran.findings.is_empty() {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            }
        }
        Err(error) => {
            eprintln!("rtl-demo: {error}");
            ExitCode::from(2)
        }
    }
}

fn asked() -> Result<Asked, Box<dyn Error>> {
    let mut asked =
        Asked { device: DEVICES[0], images: HELD_OUT, setting: Setting::calm(1), json: false };
    let mut words = env::args().skip(1);
    while let Some(word) = words.next() {
        if word == "--json" {
            asked.json = true;
            continue;
        }
        if !["--device", "--images", "--seed", "--trace"].contains(&word.as_str()) {
            return Err(format!("{word} is no option; {USAGE}").into());
        }
        let value = words.next().ok_or_else(|| format!("{word} needs a value; {USAGE}"))?;
        match word.as_str() {
            "--device" => {
                let known = DEVICES.into_iter().find(|known| *known == value);
                asked.device = known.ok_or_else(|| {
                    format!("--device {value}: no such device; there are {}", DEVICES.join(", "))
                })?;
            }
            "--images" => {
                match value.parse() {
                    Ok(images) if (1..=HELD_OUT).contains(&images) => asked.images = images,
                    _ => return Err(format!(
                        "--images {value}: write a number from 1 to {HELD_OUT}, the held-out images"
                    )
                    .into()),
                }
            }
            "--seed" => {
                asked.setting.seed =
                    value.parse().map_err(|_| format!("--seed {value}: write a number"))?
            }
            _ => asked.setting.trace = Some(value.into()),
        }
    }
    Ok(asked)
}

fn run(asked: &Asked) -> Result<Ran, Box<dyn Error>> {
    match asked.device.strip_prefix("rtl:") {
        Some(core @ ("nngen" | "nngen_gated")) => network(core, asked),
        _ => products(asked),
    }
}

/// By gemm8: two jobs for each image, chained on the device.
fn products(asked: &Asked) -> Result<Ran, Box<dyn Error>> {
    let reference = Reference::new()?;
    let mut tasks = Vec::with_capacity(asked.images);
    for digit in held_out().take(asked.images) {
        let mut pixels = [0; PIXELS];
        digit.decode(&mut pixels)?;
        tasks.push(Task { digit, expected: reference.scores(&pixels)? });
    }
    let mut outcomes = vec![Outcome::default(); asked.images];
    let (board, trace) = (SimBoard::new(asked.setting.seed), asked.setting.trace.as_deref());
    let mut model = RtlModel::new("gemm8", RtlConfig { has_irq: true, ..RtlConfig::default() })?;
    trace.map_or(Ok(()), |path| model.trace(path))?;
    let device = SimDevice::with_model(&board, board.port(), model);
    // SAFETY: the core behind the window is gemm8's Verilog, and this is the only window.
    let driver = unsafe { Gemm8::open(device.window()?)? };
    let queue = Queue::new(driver, 1).map_err(|refused| refused.error)?;
    let measured = stream_through(
        board.memory(REGION_BYTES)?,
        queue,
        JOB_TIMEOUT,
        &tasks,
        &mut outcomes,
        &AtomicUsize::new(0),
    )?;
    let (cycles, findings) = device.model(|model| {
        (model.cycle(), model.findings().iter().map(ToString::to_string).collect())
    })?;
    Ok(Ran {
        right: tasks
            .iter()
            .zip(&outcomes)
            .filter(|(task, outcome)| task.digit.label() == outcome.answer)
            .count(),
        wrong_scores: outcomes.iter().map(|outcome| outcome.wrong_scores).sum(),
        cycles,
        jobs: measured.jobs.completed,
        findings,
    })
}

/// By the network that NNgen made: one job for each image.
fn network(core: &str, asked: &Asked) -> Result<Ran, Box<dyn Error>> {
    let reference = Reference::new()?;
    let (mut right, mut wrong_scores, mut failed) = (0, 0, None);
    let mut digits = held_out();
    let seen = |scores: digits::Scores| {
        let Some(digit) = digits.next() else { return };
        let mut pixels = [0; PIXELS];
        match digit.decode(&mut pixels).and_then(|_| reference.scores(&pixels)) {
            Ok(expected) => {
                wrong_scores += scores
                    .iter()
                    .zip(&expected)
                    .filter(|(found, expected)| found != expected)
                    .count()
            }
            Err(error) => failed = Some(error),
        }
        right += usize::from(answer(&scores) == digit.label());
    };
    let tally = digits::run(core, &asked.setting, u64::try_from(asked.images)?, 0, seen)?;
    failed.map_or(Ok(()), Err)?;
    let findings = tally.findings.iter().map(ToString::to_string).collect();
    Ok(Ran { right, wrong_scores, cycles: tally.cycles, jobs: tally.jobs, findings })
}

impl Ran {
    fn print(&self, asked: &Asked) {
        let Self { right, wrong_scores, cycles, jobs, findings } = self;
        let images = asked.images as u64;
        let hundredths = 100 * cycles / (images * MACS);
        println!("device        {}, 200 MHz, memory answers after 20 cycles", asked.device);
        println!("right         {right} of {images} images");
        println!(
            "wrong scores  {wrong_scores} of {} compared with the reference",
            images * SCORES as u64
        );
        println!(
            "cycles        {cycles} for {jobs} jobs, {} an image, register accesses included",
            cycles / images
        );
        println!(
            "cycles/MAC    {}.{:02} of {MACS} MACs an image",
            hundredths / 100,
            hundredths % 100
        );
        println!("bus rules     {} broken", findings.len());
        findings.iter().for_each(|finding| println!("              {finding}"));
        if let Some(path) = &asked.setting.trace {
            println!("trace         {}: GTKWave and Surfer show it", path.display());
        }
    }

    /// The keys are those of `contigo demo --json`, where it has them.
    fn json(&self, asked: &Asked) -> String {
        let Self { right, wrong_scores, cycles, jobs, findings } = self;
        let (engine, images, seed) = (asked.device, asked.images, asked.setting.seed);
        format!(
            "{{\"engine\":\"{engine}\",\"seed\":{seed},\"images\":{images},\"correct\":{right},\"scores_checked\":{},\
             \"mismatches\":{wrong_scores},\"jobs\":{jobs},\"cycles\":{cycles},\"rules_broken\":{}}}",
            images * SCORES,
            findings.len()
        )
    }
}
