//! `contigo selftest`: checks that memory, addresses, caches and interrupts of this board work
//! together. It needs only a DMA engine that the board already has. On a machine without one it
//! uses the simulated engine, and the report states that.

#[cfg(test)]
mod broken;
mod engine;
mod report;
mod run;

use crate::failure::Failure;
use crate::{memory, output};
use clap::Args;
use contigo::Error;
use contigo::names::{DeviceName, MemoryName};
use contigo_exerciser::uio::ensure_at;
use contigo_exerciser::{Fault, Ground, Outcome};
use engine::{Asked, Chosen, DriverName};
use report::Report;
use run::{Task, Tested};
use std::time::Duration;

const AFTER: &str = "\
64 buffers of up to 8 KiB are alive at once, with a guard before and after them. A job copies a \
random part of one to a random part of another. Between jobs the CPU writes fresh bytes; some \
buffers stay the device's and go straight into the next job. After each job the whole destination \
and its neighbours are compared with the bytes that a program on the CPU expects. All buffers are \
compared after every 256 jobs and at the end. A mismatch is a wrong byte where a job wrote, a \
canary hit one where no job wrote. MB/s counts the writing and the comparing too.

--lab-port is for emulated boards: QEMU has no caches, so every port is coherent there. Memory \
whose caches the runtime cannot maintain (a dma-heap on armv7) works there too. On silicon the \
same claim corrupts data, and this test would find it.

Exit status: 0 passed, 1 failed or not possible, 2 wrong usage.";

/// The most jobs of one mode if only a time is given: more than any engine here does in an hour.
const JOBS_MAX: u64 = 1 << 40;
#[derive(Args, Debug)]
#[command(after_long_help = AFTER)]
pub(crate) struct Options {
    /// The memory, by its name: contigo info lists what this machine has; without it, the first
    /// that the engine can use
    #[arg(long, value_name = "NAME", value_parser = memory::memory_name)]
    memory: Option<MemoryName>,

    /// The engine's device, by its name: uio:NODE, contigo:DEVICE, vfio:ADDRESS, sim:zdma; without
    /// it, the first that this board has
    #[arg(long, value_name = "NAME", value_parser = memory::device_name)]
    device: Option<DeviceName>,

    /// The driver, by its name, where the board does not say which: pl330, zdma; alone, the first
    /// device of that kind
    #[arg(long, value_name = "DRIVER", value_parser = engine::driver_name)]
    driver: Option<DriverName>,

    /// The driver's settings, which no register tells: length_bits=23,mm2s_dre=1
    #[arg(long, value_name = "NAME=NUMBER,...", default_value = "", hide_default_value = true)]
    settings: String,

    /// Decides every job; the same seed gives the same jobs
    #[arg(long, value_name = "S", default_value_t = 1, allow_negative_numbers = true)]
    seed: u64,

    /// How long it may take, in seconds, 1 to 86400: shared by the modes
    #[arg(
        long, value_name = "N", default_value_t = 4, allow_negative_numbers = true,
        value_parser = clap::value_parser!(u32).range(1..=86_400)
    )]
    seconds: u32,

    /// How many jobs in each mode, instead of a time
    #[arg(
        long, value_name = "N", allow_negative_numbers = true, conflicts_with = "seconds",
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    jobs: Option<u64>,

    /// How the engine reaches memory, where this board is not one that Contigo knows: a name from
    /// contigo boards; refused for a simulated engine, which knows it
    #[arg(long, value_name = "PORT")]
    port: Option<String>,

    /// Take the engine's port for coherent, which is true of an emulator and of no silicon
    #[arg(long)]
    lab_port: bool,

    /// The physical address of the engine's registers, through /dev/mem: no interrupt, and no
    /// check for other users of them
    #[arg(long, value_name = "ADDR", value_parser = address)]
    dev_mem: Option<u64>,

    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

fn address(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix("0x").ok_or("write an address as 0xf8003000")?;
    u64::from_str_radix(digits, 16)
        .map_err(|error| format!("{error}; write an address as 0xf8003000"))
}

/// Chooses the engine, runs the test, and prints the report.
pub(crate) fn selftest(options: &Options) -> Result<(), Failure> {
    crate::nvtx::listen();
    let Options { port, lab_port, dev_mem, .. } = options;
    let (memory, device) = (options.memory, options.device);
    let driver = options.driver.map(|DriverName(row)| row);
    // A wrong port name is refused, even if the engine turns out to know its port.
    port.as_deref().map(engine::port_called).transpose()?;
    let asked =
        Asked { driver, device, port: port.as_deref(), lab_port: *lab_port, dev_mem: *dev_mem };
    let (engine, memory) = together(&asked, memory)?;
    if let (Some(name), None) = (port, engine.port) {
        let text = format!(
            "--port {name} is for a real engine whose port the kernel does not report; leave it \
             out for this one: {engine}"
        );
        return Err(Failure::Usage(text));
    }
    let task = Task {
        seed: options.seed,
        jobs: options.jobs.unwrap_or(JOBS_MAX),
        time: options.jobs.is_none().then(|| Duration::from_secs(options.seconds.into())),
        settings: &options.settings,
    };
    let tested = measure(&memory, &engine, &task)?;
    let report = Report::new(&memory, &engine, &task, &tested);
    output::report(options.json, &report, ToString::to_string)?;
    report.verdict()
}

/// The most jobs of a probe in each mode, and the time for all modes.
const PROBE: (u64, Duration) = (400, Duration::from_secs(2));

/// The measurement of a port.
pub(crate) struct Probed {
    /// Every job ended, with every byte right.
    pub(crate) right: bool,
    pub(crate) port: &'static str,
    /// The description of the measurement.
    pub(crate) found: String,
}

/// Copies through a real engine that no other program uses.
///
/// # Errors
/// The reason why nothing was measured: there is no engine, or it or its memory does not open.
pub(crate) fn probe() -> Result<Probed, String> {
    let words = |failure: Failure| failure.to_string();
    let (engine, memory) = together(&Asked::default(), None).map_err(words)?;
    if engine.is_simulated() {
        return Err(engine.why);
    }
    let task = Task { seed: 1, jobs: PROBE.0, time: Some(PROBE.1), settings: "" };
    let tested = measure(&memory, &engine, &task).map_err(words)?;
    let report = Report::new(&memory, &engine, &task, &tested);
    Ok(judged(&tested, &report, &format!("{engine}, {memory}")))
}

fn judged(tested: &Tested, report: &Report, what: &str) -> Probed {
    // The heap does not concern the port.
    let right = tested
        .outcomes
        .iter()
        .flat_map(Outcome::faults)
        .all(|fault| matches!(fault, Fault::Allocated(_)));
    let said = if right {
        String::new()
    } else {
        report.verdict().err().map_or_else(String::new, |failure| format!("; {failure}"))
    };
    let port = tested.port.name;
    Probed { right, port, found: format!("{what}, port {port}: {} copies{said}", report.jobs()) }
}

/// An engine, and memory that it can reach.
fn together(
    asked: &Asked<'_>,
    memory: Option<MemoryName>,
) -> Result<(Chosen, MemoryName), Failure> {
    let simulated = || "sim".parse().map_err(|error| Failure::Runtime(Error::from(error)));
    if let Some(gpu) = memory.filter(|memory| ["cuda", "vulkan", "opencl"].contains(&memory.kind()))
    {
        return Err(Failure::Usage(format!(
            "no engine here sees a GPU's memory: contigo demo --memory {gpu} runs on the GPU"
        )));
    }
    let engine = asked.choose(memory.as_ref())?;
    match memory {
        Some(memory) if memory.kind() == "sim" && !engine.is_simulated() => {
            Err(Failure::Usage("a real engine does not see --memory sim".into()))
        }
        Some(memory) => Ok((engine, memory)),
        None if engine.is_simulated() => Ok((engine, simulated()?)),
        None => match memory::first_for(engine.device()) {
            Some(memory) => Ok((engine, memory)),
            None if asked.driver.is_some() || asked.device.is_some() || asked.dev_mem.is_some() => {
                Err(Failure::NoMemory)
            }
            None => Ok((engine.without_memory()?, simulated()?)),
        },
    }
}

/// Opens the device and the memory, and runs the jobs.
fn measure(name: &MemoryName, engine: &Chosen, task: &Task<'_>) -> Result<Tested, Failure> {
    // A board has one seed, which its memory's name may contain.
    let seed = Some(name)
        .filter(|name| name.kind() == "sim")
        .and_then(|name| name.argument().parse().ok())
        .unwrap_or(task.seed);
    let mut device = None;
    if let Some(name) = engine.device() {
        let named = memory::seeded_device(name, seed);
        let refused = |error| Failure::Device { name: *name, error };
        let opened = named.open().map_err(refused)?;
        engine.addr.map_or(Ok(()), |addr| ensure_at(&opened, addr)).map_err(refused)?;
        device = Some(opened);
    }
    let memory = memory::open(name, device.as_ref(), Ground::REGION_BYTES)?;
    match (device.as_ref(), engine.port) {
        (Some(device), _) if engine.is_simulated() => {
            run::simulated(memory, device, engine.driver, task)
        }
        (device, port) => run::real(memory, engine, device, port, task),
    }
    .map_err(|failure| match failure {
        Failure::Runtime(error) => Failure::Memory { name: *name, error },
        other => other,
    })
}
