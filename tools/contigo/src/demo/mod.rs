//! `contigo demo`: classifies real handwritten digits on the simulated engine, through real or
//! simulated memory.

mod report;
mod sheet;
mod trace;

use crate::failure::Failure;
use crate::{memory, output};
use clap::Args;
use contigo::Backend;
use contigo::names::{DeviceName, MemoryName, OpenDevice};
use contigo::sim::{OnBoard, SimBoard};
use contigo_bringup::machine::Machine;
use contigo_bringup::power::{self, Monitor, Rail};
use contigo_gemm8::demo::{
    self, HELD_OUT, Measured, Outcome, PIXELS, REGION_BYTES, Reference, Task,
};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use report::{Asked, Energies, Report};
use sheet::Picture;
use std::convert::Infallible;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use trace::Trace;

const AFTER: &str = "\
Bytes copied and synced are the runtime's own count. Latency is wall \
time from an image being parsed into its slot to its scores being visible to the CPU, its wait for \
the engine included. Device time is the simulated board's.

Under a profiler that loads a tool for NVTX (`nsys profile -t nvtx`), the run's jobs, copies and \
syncs are its ranges, in the domain contigo.

The images are from Optical Recognition of Handwritten Digits by E. Alpaydin and C. Kaynak, UCI \
Machine Learning Repository, 1998, doi:10.24432/C50P49, CC BY 4.0.";

#[derive(Args, Debug)]
#[command(after_long_help = AFTER)]
pub(crate) struct Options {
    /// The memory, by its name
    ///
    /// sim is the simulated board's own memory, behind caches that are not coherent. The others are
    /// this machine's real memory, at its real addresses, with the simulated engine working on it;
    /// `contigo info` lists them. cuda is what CUDA pins for GPU 0 or N, and the engine is that
    /// GPU; so are vulkan and opencl, on GPUs of every maker.
    #[arg(long, value_name = "NAME", default_value = "sim", value_parser = memory::memory_name)]
    memory: MemoryName,

    /// How many images, 1 to 897: the first N of those that the network has not seen in training
    #[arg(
        long, value_name = "N", default_value_t = HELD_OUT,
        allow_negative_numbers = true, value_parser = images
    )]
    images: usize,

    /// Decides what the simulated board leaves to chance; the same seed gives the same run
    #[arg(
        long, value_name = "S", default_value_t = 1,
        allow_negative_numbers = true, value_parser = seed
    )]
    seed: u64,

    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,

    /// Where to write the contact sheet of the first 200 images
    #[arg(long, value_name = "PATH", default_value = "contigo-demo.png")]
    png: PathBuf,

    /// Record every copy, sync and job: a table by line of the program, and a timeline
    /// in PATH
    ///
    /// The timeline is in Chrome's trace event format: open it in ui.perfetto.dev or
    /// chrome://tracing. Latencies then include the recording.
    #[arg(long, value_name = "PATH")]
    trace: Option<PathBuf>,

    /// Read the board's power monitors while the images run: the energy of an image, for each rail
    ///
    /// contigo power lists them. An idle board's power is in it, and is shown beside.
    #[arg(long)]
    power: bool,

    /// With --power: a monitor that the kernel has no driver for, as contigo power takes it
    #[arg(long, value_name = "MONITOR", requires = "power")]
    monitor: Vec<Monitor>,

    /// Nothing that the demo has: an engine in Verilog is another program's
    #[arg(long, value_name = "NAME", hide = true, value_parser = elsewhere)]
    device: Option<Infallible>,
}

fn images(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(images) if (1..=HELD_OUT).contains(&images) => Ok(images),
        _ => Err(format!(
            "there are {HELD_OUT} held-out images: write a number from 1 to {HELD_OUT}"
        )),
    }
}

fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("a seed is a number from 0 to {}", u64::MAX))
}

/// The rails for `--power`. An error if there is none.
fn rails(machine: &Machine, monitors: &[Monitor]) -> Result<Vec<Rail>, Failure> {
    let rails = crate::power::rails(machine, monitors);
    if rails.is_empty() {
        return Err(Failure::Usage(
            "--power: no rail is measured here (contigo power); leave --power out".to_owned(),
        ));
    }
    Ok(rails)
}

/// Where the demo of the device of this name is: Verilator is for developers, and not for boards.
fn elsewhere(name: &str) -> Result<Infallible, String> {
    Err(if name.starts_with("rtl:") {
        format!(
            "the demo in Verilog is `cargo run -p contigo-rtl --bin rtl-demo -- --device {name}`, \
             in Contigo's sources"
        )
    } else {
        "the engine is the simulated gemm8, or the GPU of --memory cuda, vulkan or opencl; in \
         Verilog it is rtl:gemm8"
            .to_owned()
    })
}

pub(crate) fn demo(options: &Options) -> Result<(), Failure> {
    let reference = Reference::new()?;
    let mut tasks = Vec::with_capacity(options.images);
    let mut pictures = Vec::with_capacity(options.images);
    for digit in demo::held_out().take(options.images) {
        let mut pixels = [0; PIXELS];
        digit.decode(&mut pixels)?;
        tasks.push(Task { digit, expected: reference.scores(&pixels)? });
        pictures.push(Picture { pixels, label: digit.label(), answer: 0 });
    }
    let memory = options.memory;
    let seeded = memory::seeded(&memory, options.seed);
    // The name may have its own seed: the report shows the seed that repeats this run.
    let seed = if seeded.kind() == "sim" {
        seeded.argument().parse().unwrap_or(options.seed)
    } else {
        options.seed
    };
    let mut outcomes = vec![Outcome::default(); tasks.len()];

    let trace = options.trace.as_deref().map(|path| (path, Trace::listening()));
    if trace.is_none() {
        crate::nvtx::listen();
    }
    let done = AtomicUsize::new(0);
    let rails = if options.power { rails(&Machine::this(), &options.monitor)? } else { Vec::new() };
    let (measured, energies) = power::beside(&rails, power::STEP, || {
        with_progress(&done, tasks.len(), || measure(&seeded, seed, &tasks, &mut outcomes, &done))
    });
    let measured = measured?;

    for (picture, outcome) in pictures.iter_mut().zip(&outcomes) {
        picture.answer = outcome.answer;
    }
    let labels: Vec<_> = pictures.iter().map(|picture| picture.label).collect();
    let asked = Asked { memory: &memory, seed, sheet: &options.png };
    let audit = trace.map(|(_, trace)| trace.rows());
    let energies =
        options.power.then(|| Energies::new(&energies, outcomes.len(), measured.jobs.completed));
    let mut report = Report::new(&asked, &labels, &outcomes, &measured, energies, audit);
    let drawn = sheet::write(&options.png, &report.title(), &pictures);
    if drawn.is_err() {
        report.sheet = None;
    }
    let traced = trace.map_or(Ok(()), |(path, trace)| trace.write(path));
    output::report(options.json, &report, ToString::to_string)?;
    report.verdict().and(drawn).and(traced)
}

/// Runs the demo on the GPU that has the memory. The driver's own allocations from the C library's
/// heap are not counted.
#[cfg(all(feature = "cuda", target_pointer_width = "64"))]
fn on_gpu<B: Backend + 'static>(
    memory: B,
    gpu: &contigo::cuda::Gpu,
    tasks: &[Task],
    outcomes: &mut [Outcome],
    done: &AtomicUsize,
) -> Result<Measured, Failure> {
    let mut log = contigo::cuda::Log::new();
    let module = contigo_gemm8::cuda::Gemm8Module::load(gpu, &mut log)
        .map_err(|error| Failure::Image { error, log: log.as_str().to_owned() })?;
    Ok(demo::stream_on_gpu(
        memory,
        module.kernel()?,
        "gemm8 as a CUDA kernel",
        tasks,
        outcomes,
        done,
    )?)
}

/// Runs the demo through Vulkan or OpenCL.
#[cfg(feature = "gpu")]
fn on_other_gpu<B: Backend + 'static>(
    memory: B,
    device: &DeviceName,
    tasks: &[Task],
    outcomes: &mut [Outcome],
    done: &AtomicUsize,
) -> Result<Measured, Failure> {
    use contigo_gemm8::{opencl, vulkan};
    use contigo_gpu::opencl::{Log, OpenClGpu};
    use contigo_gpu::vulkan::VulkanGpu;
    if device.kind() == "vulkan" {
        let module = vulkan::Gemm8Module::load(VulkanGpu::open(device.ordinal())?)?;
        return Ok(demo::stream_on_gpu(
            memory,
            module.kernel()?,
            "gemm8 as a compute shader",
            tasks,
            outcomes,
            done,
        )?);
    }
    let mut log = Log::new();
    let module = opencl::Gemm8Module::build(OpenClGpu::open(device.ordinal())?, &mut log)
        .map_err(|error| Failure::Image { error, log: log.as_str().to_owned() })?;
    Ok(demo::stream_on_gpu(
        memory,
        module.kernel()?,
        "gemm8 as an OpenCL kernel",
        tasks,
        outcomes,
        done,
    )?)
}

/// Runs the demo with a simulated engine on real memory: `memory` is on the board's bus, at its own
/// address.
fn on_board<B: Backend + 'static>(
    memory: B,
    board: &SimBoard,
    tasks: &[Task],
    outcomes: &mut [Outcome],
    done: &AtomicUsize,
) -> Result<Measured, Failure> {
    let port = memory::simulated_port(&memory.mapping());
    Ok(demo::stream(OnBoard::new(board, memory)?, board, port, tasks, outcomes, done)?)
}

/// Measures from before the memory is opened until it has been given back.
fn measure(
    name: &MemoryName,
    seed: u64,
    tasks: &[Task],
    outcomes: &mut [Outcome],
    done: &AtomicUsize,
) -> Result<Measured, Failure> {
    let owner = name.device().map(|owner| owner.open()).transpose();
    let device = owner.map_err(|error| Failure::Memory { name: *name, error })?;
    let memory = memory::open(name, device.as_ref(), REGION_BYTES)?;
    let run = || {
        #[cfg(all(feature = "cuda", target_pointer_width = "64"))]
        if let Some(gpu) = device.as_ref().and_then(OpenDevice::gpu) {
            return on_gpu(memory, gpu, tasks, outcomes, done);
        }
        #[cfg(feature = "gpu")]
        if let Some(gpu) = device
            .as_ref()
            .map(OpenDevice::name)
            .filter(|name| ["vulkan", "opencl"].contains(&name.kind()))
        {
            return on_other_gpu(memory, gpu, tasks, outcomes, done);
        }
        match device.as_ref().and_then(OpenDevice::board) {
            Some(board) => Ok(demo::stream(memory, board, board.port(), tasks, outcomes, done)?),
            None => on_board(memory, &SimBoard::new(seed), tasks, outcomes, done),
        }
    };
    run().map_err(|failure| match failure {
        Failure::Runtime(error) => Failure::Memory { name: *name, error },
        other => other,
    })
}

/// A shorter run shows no progress bar. The bar has its own thread, and the thread's allocations do
/// not count as the run's.
const PATIENCE: Duration = Duration::from_secs(1);
/// The time between two polls of the count.
const STEP: Duration = Duration::from_millis(100);

/// Runs `work` on this thread. If standard error is a terminal, another thread shows how far `done`
/// is on the way to `of`. That thread starts before `work`, and is joined after it.
fn with_progress<R>(done: &AtomicUsize, of: usize, work: impl FnOnce() -> R) -> R {
    if !io::stderr().is_terminal() {
        return work();
    }
    let finished = AtomicBool::new(false);
    thread::scope(|scope| {
        let bar = scope.spawn(|| show(done, of, &finished));
        let _ends = Ends { finished: &finished, bar: bar.thread().clone() };
        work()
    })
}

/// Ends the bar when it is dropped, also after a panic of the work: otherwise the scope would hang.
struct Ends<'a> {
    finished: &'a AtomicBool,
    bar: thread::Thread,
}

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.finished.store(true, Ordering::Release);
        self.bar.unpark();
    }
}

fn show(done: &AtomicUsize, of: usize, finished: &AtomicBool) {
    let begun = Instant::now();
    let mut bar = None;
    while !finished.load(Ordering::Acquire) {
        if begun.elapsed() >= PATIENCE {
            let bar = bar.get_or_insert_with(|| new_bar(of));
            bar.set_position(done.load(Ordering::Relaxed) as u64);
        }
        thread::park_timeout(STEP);
    }
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
}

fn new_bar(of: usize) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(of as u64), ProgressDrawTarget::stderr());
    match ProgressStyle::with_template("{bar:40} {pos} of {len} images, {eta} left") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Another board's simulated memory stands for real memory here, on the engine's board's bus.
    #[test]
    fn memory_with_syncs_gets_unsnooping_port() -> Result<(), Failure> {
        let (elsewhere, board, mut outcomes) =
            (SimBoard::new(1), SimBoard::new(2), [Outcome::default(); 2]);
        let (reference, done) = (Reference::new()?, AtomicUsize::new(0));
        let mut tasks = Vec::new();
        for digit in demo::held_out().take(2) {
            let mut pixels = [0; PIXELS];
            digit.decode(&mut pixels)?;
            tasks.push(Task { digit, expected: reference.scores(&pixels)? });
        }
        let measured =
            on_board(elsewhere.memory(REGION_BYTES)?, &board, &tasks, &mut outcomes, &done)?;
        assert_eq!(
            (measured.port.name, measured.jobs.completed, done.into_inner()),
            ("sim-wide", 4, 2)
        );
        Ok(())
    }
}
