#![allow(unsafe_code, reason = "which engine is at a window is known here, and claimed")]
//! The measured part: memory, engine, and jobs in every mode that the engine has.

use super::{
    engine::{Chosen, Registers},
    wiring,
};
use crate::{alloc_counter, failure::Failure, memory};
use contigo::{
    Align, Backend, BaseAddr, Device, Engine, Error, Port, Region, Timeout, TypedDriver,
    drivers::{
        pl330::{PROGRAM_BYTES, Pl330},
        zdma::Zdma,
    },
    names::{AnyMemory, OpenDevice},
    sim::OnBoard,
};
use contigo_boards::DmaKind;
use contigo_testkit::exercise::{Budget, Counted, Exerciser, Ground, Limits, Mode, Stopped, Tally, Tried, UioEvents};
use std::{
    os::fd::AsFd,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

/// For one job, interrupt or not: the slowest engine here takes 200 ms in an emulator on a busy machine.
const JOB_TIMEOUT: Timeout = Timeout::ms(5_000);

/// What is to be done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task {
    pub(crate) seed: u64,
    /// In each mode, at most.
    pub(crate) jobs: u64,
    /// For all modes together, where that is what ends them.
    pub(crate) time: Option<Duration>,
}

/// What came of one mode.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) mode: &'static str,
    pub(crate) tally: Tally,
    pub(crate) seconds: f64,
    /// `None`: none was asked for, or this engine has none.
    pub(crate) interrupts: Option<u64>,
    pub(crate) allocations: u64,
}

/// What came of all of it.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) backend: &'static str,
    pub(crate) base: BaseAddr,
    pub(crate) len_bytes: usize,
    pub(crate) port: Port,
    pub(crate) slot_bytes: usize,
    pub(crate) has_interrupt: bool,
    pub(crate) rows: Vec<Row>,
    pub(crate) tried: Tried,
    pub(crate) stopped: Option<Stopped>,
}

/// What is known of an engine's interrupt.
pub(crate) enum Line<'l> {
    /// It has none here.
    None,
    /// It can be waited for before the engine is looked at.
    Events(&'l UioEvents),
    /// Waits that it ended are counted.
    Counted(&'l AtomicU64),
}

impl Line<'_> {
    /// How the interrupt is waited for, where there is one.
    fn mode(&self) -> Option<Mode<'_>> {
        match self {
            Self::None => None,
            Self::Events(events) => Some(Mode::Events(*events, JOB_TIMEOUT)),
            Self::Counted(_) => Some(Mode::Waiting(JOB_TIMEOUT)),
        }
    }

    /// How many interrupts ended a wait so far.
    fn came(&self) -> u64 {
        match self {
            Self::None => 0,
            Self::Events(events) => events.came(),
            Self::Counted(count) => count.load(Ordering::Relaxed),
        }
    }
}

/// A simulated engine, on its board's memory, or on real memory, which goes on the board's bus at
/// its own address.
pub(crate) fn simulated(memory: AnyMemory<'_>, device: &OpenDevice, kind: DmaKind, task: &Task) -> Result<Outcome, Failure> {
    let mapping = memory.mapping();
    match device.board() {
        Some(board) if mapping.bus != board.bus() => {
            let memory = OnBoard::new(board, memory)?;
            on_model(memory, device, memory::simulated_port(&mapping), kind, task)
        }
        Some(board) => on_model(memory, device, board.port(), kind, task),
        None => Err(Error::NotFound { what: "simulated board", among: 0 }.into()),
    }
}

fn on_model<B: Backend>(memory: B, device: &OpenDevice, port: Port, kind: DmaKind, task: &Task) -> Result<Outcome, Failure> {
    let region = Region::new(memory)?;
    let came = AtomicU64::new(0);
    let device = wiring::attach(device, Some(port))?;
    // SAFETY: the model is a `kind`: its name says so.
    unsafe { with_driver(&region, Counted::new(device, &came), kind, &Line::Counted(&came), task) }
}

/// A real engine.
pub(crate) fn real(
    memory: AnyMemory<'_>,
    engine: &Chosen,
    device: Option<&OpenDevice>,
    port: Option<Port>,
    task: &Task,
) -> Result<Outcome, Failure> {
    let region = Region::new(memory)?;
    let failed = |error| Failure::Engine { engine: engine.label(), error };
    let done = match (engine.registers, device, port) {
        (Registers::DevMem(addr), _, Some(port)) => {
            let device = wiring::dev_mem(addr, port).map_err(failed)?;
            // SAFETY: --dev-mem is the user's word that the engine is there, and nobody else drives
            // it.
            unsafe { with_driver(&region, device, engine.kind, &Line::None, task) }
        }
        (_, Some(opened), port) => {
            let device = wiring::attach(opened, port).map_err(failed)?;
            let came = AtomicU64::new(0);
            match device.uio_irq().map_err(failed)? {
                Some(irq) => {
                    let events = UioEvents::new(irq.as_fd()).map_err(failed)?;
                    // SAFETY: `kind` is what its node or its address says, or the user's word; an
                    // opened device is locked.
                    unsafe { with_driver(&region, device, engine.kind, &Line::Events(&events), task) }
                }
                // SAFETY: as above.
                None => unsafe { with_driver(&region, Counted::new(device, &came), engine.kind, &Line::Counted(&came), task) },
            }
        }
        _ => Err(Failure::NoMemory),
    };
    // From here on the memory is open, so what is wrong is the engine, or the two together.
    done.map_err(|failure| match failure {
        Failure::Runtime(error) => failed(error),
        other => other,
    })
}

/// The engine's driver, and then the jobs.
///
/// # Safety
/// `device` is a `kind`, and nobody else drives it.
unsafe fn with_driver<B: Backend, D: Device>(
    region: &Region<B>,
    device: D,
    kind: DmaKind,
    line: &Line<'_>,
    task: &Task,
) -> Result<Outcome, Failure> {
    match kind {
        DmaKind::Pl330 => {
            let program = region.carve(PROGRAM_BYTES, Align::PAGE)?.into_buf();
            // SAFETY: the caller's promise.
            drive(region, Engine::new(unsafe { Pl330::open(device, program)? })?, line, task)
        }
        // SAFETY: the caller's promise.
        DmaKind::Zdma => drive(region, Engine::new(unsafe { Zdma::simple(device)? })?, line, task),
    }
}

/// Every mode, one after the other, on the same slots.
pub(crate) fn drive<B: Backend, D>(region: &Region<B>, mut engine: Engine<D, 2>, line: &Line<'_>, task: &Task) -> Result<Outcome, Failure>
where
    D: TypedDriver<2, Args = ()>,
{
    let mut ground = Ground::new(region)?;
    let mut exerciser = Exerciser::new(&mut ground, Limits::NONE, task.seed)?;
    let modes = [("polled", Some(Mode::Polled)), ("interrupt", line.mode())];
    let modes = modes.into_iter().filter_map(|(name, mode)| Some((name, mode?)));
    let share = task.time.map(|time| time / if line.mode().is_some() { 2 } else { 1 });
    let (mut rows, mut tried, mut stopped) = (Vec::with_capacity(2), Tried::default(), None);
    for (name, mode) in modes {
        // Each mode is the same jobs, from the first: so `--jobs` meets a failure again that a time had met.
        exerciser.restart()?;
        let came = line.came();
        let begun = Instant::now();
        let budget = share.map_or(Budget::jobs(task.jobs), |share| Budget::until(begun + share, task.jobs));
        let allocated = alloc_counter::on_this_thread();
        let ended = exerciser.run(&mut engine, mode, budget);
        let allocations = alloc_counter::on_this_thread() - allocated;
        let seconds = begun.elapsed().as_secs_f64();
        let interrupts = (!matches!(mode, Mode::Polled)).then(|| line.came() - came);
        let tally = exerciser.tally();
        tried = tried.and(tally.tried);
        rows.push(Row { mode: name, tally, seconds, interrupts, allocations });
        if let Err(failed) = ended {
            stopped = Some(failed);
            break;
        }
    }
    Ok(Outcome {
        backend: region.name(),
        base: region.base(),
        len_bytes: region.len_bytes(),
        port: *engine.port(),
        slot_bytes: exerciser.slot_bytes(),
        has_interrupt: line.mode().is_some(),
        rows,
        tried,
        stopped,
    })
}
