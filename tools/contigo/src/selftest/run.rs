#![allow(
    unsafe_code,
    reason = "which engine is at a window, and how it is wired, are facts about its board, claimed \
              here"
)]
//! The measured part: memory, engine, and jobs in every mode that the engine has.

use super::engine::{Chosen, Registers};
use crate::failure::Failure;
use crate::memory;
use contigo::job::{Descriptors, Parts, Settings};
use contigo::linux::device::Registers as Window;
use contigo::names::{AnyDevice, AnyMemory, Attach, DriverRow, OpenDevice};
use contigo::sim::OnBoard;
use contigo::types::BaseAddr;
use contigo::{
    Align, Backend as _, Device as _, Driver, Error, OperandSpec, PhysAddr, Port, Queue, Region,
};
use contigo_exerciser::{Budget, Exerciser, Ground, IrqEvents, Limits, Line, Outcome, Tried};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The settings of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task<'t> {
    pub(crate) seed: u64,
    /// The most jobs in each mode.
    pub(crate) jobs: u64,
    /// The time for all modes together, if a time ends them.
    pub(crate) time: Option<Duration>,
    /// The driver's settings.
    pub(crate) settings: &'t str,
}

/// The result of all modes.
#[derive(Clone, Debug)]
pub(crate) struct Tested {
    pub(crate) backend: &'static str,
    pub(crate) base: BaseAddr,
    pub(crate) len_bytes: usize,
    pub(crate) port: Port,
    pub(crate) slot_bytes: usize,
    /// `None`: the driver has no memory of its own.
    pub(crate) descriptors: Option<Descriptors>,
    pub(crate) has_interrupt: bool,
    /// The outcome of each mode.
    pub(crate) outcomes: Vec<Outcome>,
    pub(crate) tried: Tried,
}

/// Runs a simulated engine on its board's memory, or on real memory, which is on the board's bus at
/// its own address.
pub(crate) fn simulated(
    memory: AnyMemory,
    device: &OpenDevice,
    driver: &DriverRow,
    task: &Task<'_>,
) -> Result<Tested, Failure> {
    let mapping = memory.mapping();
    match device.board() {
        Some(board) if mapping.bus != board.bus() => {
            let region = Region::new(OnBoard::new(board, memory)?)?;
            let attached = attach(device, Some(memory::simulated_port(&mapping)))?;
            with_driver(&region, attached, driver, Some(device), task)
        }
        Some(board) => {
            let region = Region::new(memory)?;
            with_driver(&region, attach(device, Some(board.port()))?, driver, Some(device), task)
        }
        None => Err(Error::NotFound { what: "simulated board", among: 0.into() }.into()),
    }
}

/// Runs a real engine.
pub(crate) fn real(
    memory: AnyMemory,
    engine: &Chosen,
    device: Option<&OpenDevice>,
    port: Option<Port>,
    task: &Task<'_>,
) -> Result<Tested, Failure> {
    let region = Region::new(memory)?;
    let failed = |error| Failure::Engine { engine: engine.label(), error };
    let done = match (engine.registers, device, port) {
        (Registers::DevMem(addr), _, Some(port)) => {
            let registers = dev_mem(addr).map_err(failed)?;
            with_driver(&region, of_registers(registers, port), engine.driver, None, task)
        }
        (_, Some(opened), port) => {
            let attached = attach(opened, port).map_err(failed)?;
            with_driver(&region, attached, engine.driver, Some(opened), task)
        }
        _ => Err(Failure::NoMemory),
    };
    // The memory is open here, so an error concerns the engine, or the engine with the memory.
    done.map_err(|failure| match failure {
        Failure::Runtime(error) => failed(error),
        other => other,
    })
}

/// The number of interrupts of a device that has no file for them.
static CAME: AtomicU64 = AtomicU64::new(0);

/// Opens the engine's driver, and runs the jobs. Where the module contigo has the device, the
/// kernel stops it when this program is killed.
fn with_driver(
    region: &Region,
    mut device: AnyDevice,
    driver: &DriverRow,
    opened: Option<&OpenDevice>,
    task: &Task<'_>,
) -> Result<Tested, Failure> {
    let events = IrqEvents::of(&device)?;
    let line = match &events {
        Some(events) => Line::Events(events),
        None if device.has_interrupt() => Line::Counted(&CAME),
        None => Line::None,
    };
    CAME.store(0, Ordering::Relaxed);
    device.count_in(&CAME);
    let memory = match driver.memory_bytes {
        0 => None,
        bytes => Some(region.alloc(bytes, Align::PAGE)?),
    };
    let settings = Settings(task.settings);
    driver.settings.map_or(Ok(()), |known| settings.only(known))?;
    let (memory, descriptors) = match opened {
        Some(opened) => opened.driver_memory(driver, settings, device.port(), memory)?,
        None => (memory, None),
    };
    let parts = Parts { device, memory, settings, map: None };
    // SAFETY: the name of the device's model, its node, its address or the user's options assign
    // the device to this driver; an opened device is locked.
    let queue = Queue::new(unsafe { (driver.open)(parts)? }, 1)?;
    if let Some(dev_node) = opened.and_then(OpenDevice::dev_node) {
        // SAFETY: the driver's program only stops its device (`Driver`, 7), whose registers are the
        // contigo device's first window. A driver without a program disarms the contigo device.
        unsafe { dev_node.arm(&queue.driver().stop_program(), 0)? };
    }
    Ok(Tested { descriptors, ..drive(region, queue, line, task)? })
}

/// The copies that a driver takes, derived from its operands.
fn limits(operands: &[OperandSpec]) -> Limits {
    let offset_align_bytes = operands.iter().map(|spec| spec.align_bytes).max().unwrap_or(1);
    let len_max_bytes = operands.iter().map(|spec| spec.max_bytes).min().unwrap_or(usize::MAX);
    // A core whose copies begin at words gets whole words: it need not end inside of one.
    Limits { offset_align_bytes, len_align_bytes: offset_align_bytes, len_max_bytes }
}

/// Runs every mode, one after the other, on the same slots.
pub(crate) fn drive<D: Driver>(
    region: &Region,
    mut queue: Queue<D>,
    line: Line<'_>,
    task: &Task<'_>,
) -> Result<Tested, Failure> {
    let mut exerciser =
        Exerciser::new(Ground::new(region)?, limits(queue.driver().operands()), task.seed)?;
    let has_interrupt = line.came().is_some();
    let modes: &[bool] = if has_interrupt { &[false, true] } else { &[false] };
    let share = task.time.map(|time| time / if has_interrupt { 2 } else { 1 });
    let (mut outcomes, mut tried) = (Vec::with_capacity(2), Tried::default());
    for interrupt in modes {
        // Each mode runs the same jobs, from the first on, so `--jobs` reproduces a failure that a
        // run by time found.
        exerciser.restart()?;
        let budget = share.map_or(Budget::jobs(task.jobs), |share| {
            Budget::until(Instant::now() + share, task.jobs)
        });
        let outcome = exerciser.measure(&mut queue, line, *interrupt, budget);
        tried = tried.and(outcome.tally.tried);
        outcomes.push(outcome);
        if outcome.ended.is_err() {
            break;
        }
    }
    Ok(Tested {
        backend: region.name(),
        base: region.base(),
        len_bytes: region.len_bytes(),
        port: *queue.port(),
        slot_bytes: exerciser.slot_bytes(),
        descriptors: None,
        has_interrupt,
        outcomes,
        tried,
    })
}

/// One page: no engine here has more registers.
const WINDOW_BYTES: usize = 4096;

/// An opened engine, with its interrupt; `None`: the kernel knows its port.
fn attach(device: &OpenDevice, port: Option<Port>) -> contigo::Result<AnyDevice> {
    match port {
        // SAFETY: the port comes from the board's constant, found by the address of these
        // registers, or from the user, who named it for them with --port. With --lab-port the user
        // states that there is no cache here. A model has its board's port.
        Some(port) => unsafe { device.attach_wired(port, Attach::default()) },
        None => device.attach(Attach::default()),
    }
}

/// The registers at `addr`, through `/dev/mem`.
fn dev_mem(addr: u64) -> contigo::Result<Window> {
    // SAFETY: with --dev-mem the user guarantees that the registers of this engine are there, and
    // that no other code drives it.
    unsafe { Window::from_dev_mem(PhysAddr(addr), WINDOW_BYTES) }
}

/// The engine with these registers: it is polled.
const fn of_registers(registers: Window, port: Port) -> AnyDevice {
    // SAFETY: as in `attach`, and as in `dev_mem`.
    unsafe { AnyDevice::of_registers(registers, port) }
}
