//! A camera behind an AXI DMA's receive channel, by the name `camera`, and what goes wrong with it,
//! as settings of its driver:
//!
//! | setting | what happens |
//! |---|---|
//! | `depth` | so many buffers in flight; 8 where nothing is said |
//! | `packets` | so many packets come, and then none |
//! | `short_every` | each packet of this number and its multiples is shorter |
//! | `error_at` | the write of this packet is answered with an error: the channel fails |
//! | `refuses_at` | the device is given this job, from 0, and its driver says that it refused it |
//! | `silent_at` | this doorbell of a burst, from 0, is not taken |
//! | `stuck` | 1: it does not stop before its reset line is pulled |
//! | `fails_at` | this end, from 0, is that of a job that failed alone |
//! | `twice_at` | this end is the one before it, told again |
//! | `unknown_at` | before this end comes one of a job that there is not |
//! | `too_long_at` | this end says a byte more than the largest buffer has |
//! | `taken` | 1: it has an interrupt, which another thread has always taken |

use contigo::drivers::axi_dma::{AxiDmaChannel, AxiDmaConfig, Side};
use contigo::job::{AnyDriver, Parts, Settings};
use contigo::mem::DevSlice;
use contigo::names::{AnyDevice, DriverRow};
use contigo::sim::axi_dma::{AxiDmaModel, CoreSpec};
use contigo::sim::stream::SourceConfig;
use contigo::sim::{AnyModel, Model, SimBus};
use contigo::{Completion, Driver, Error, Result};
use pyo3::prelude::*;
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A descriptor has a line of 64 bytes.
const LINE: usize = 64;
const DEPTH_MAX: u64 = 32;
/// Behind the channel's own registers: what goes wrong.
const WRONG: usize = 0x100;
/// The widest length register that a core has.
const LENGTH_BITS: u32 = 26;
/// The receiver's status, and its lowest bit: halted (AMD PG021).
const DMASR: usize = 0x34;
const HALTED: u32 = 1;
/// A setting that is not there.
const NEVER: u32 = u32::MAX;

pub(crate) static ROW: DriverRow = DriverRow {
    settings: Some(&[
        "depth",
        "packets",
        "short_every",
        "error_at",
        "stuck",
        "refuses_at",
        "silent_at",
        "fails_at",
        "twice_at",
        "unknown_at",
        "too_long_at",
        "taken",
    ]),
    memory_bytes: DEPTH_MAX as usize * LINE,
    ..DriverRow::new("camera", "a camera: its jobs have one operand, a packet that it writes", open)
};

/// `sim:camera`.
pub(crate) fn model() -> AnyModel {
    AnyModel::new(Watched {
        camera: AxiDmaModel::new(spec(SourceConfig::default())),
        wrong: [NEVER; 4],
    })
}

/// The receive channel, behind a FIFO of 512 bytes.
fn spec(source: SourceConfig) -> CoreSpec {
    CoreSpec { length_bits: LENGTH_BITS, ..CoreSpec::camera(source, 512) }
}

/// Whether a camera's channel is at work, by the last access to the registers of any camera.
static RUNS: AtomicBool = AtomicBool::new(false);

/// Whether the channel of the camera that was used last is at work.
#[pyfunction]
pub(crate) fn camera_runs() -> bool {
    RUNS.load(Ordering::Relaxed)
}

/// # Safety
/// As [`AxiDmaChannel::alone`]; and there are registers behind the channel's, at [`WRONG`].
unsafe fn open(parts: Parts<'_, AnyDevice>) -> Result<AnyDriver> {
    use contigo::Mmio;
    let Parts { device, memory, settings, .. } = parts;
    let number = |name| number(settings, name);
    for (index, name) in ["packets", "short_every", "error_at", "stuck"].into_iter().enumerate() {
        // SAFETY: no register there starts anything.
        unsafe { device.write32(WRONG + 4 * index, number(name)?) };
    }
    let (fails_at, twice_at) = (number("fails_at")?, number("twice_at")?);
    let lies = Lies {
        fails_at,
        twice_at,
        unknown_at: number("unknown_at")?,
        too_long_at: number("too_long_at")?,
    };
    let depth = settings.number("depth", 1, DEPTH_MAX)?.unwrap_or(8) as usize;
    // A descriptor for each job.
    let memory = memory.map(|memory| memory.slice(..depth * LINE)).transpose()?;
    let config = AxiDmaConfig {
        depth: Some(depth),
        length_bits: LENGTH_BITS,
        s2mm_dre: true,
        ..AxiDmaConfig::default()
    };
    // SAFETY: the caller's promise.
    let camera = unsafe { AxiDmaChannel::alone(device, Side::S2mm, config, memory)? };
    let taken = (number("taken")? == 1).then(io::pipe).transpose();
    let taken = taken
        .map_err(|error| Error::Os { call: "pipe", errno: error.raw_os_error().unwrap_or(0) })?;
    AnyDriver::new(Lying {
        camera,
        lies,
        refuses_at: number("refuses_at")?,
        silent_at: number("silent_at")?,
        jobs: 0,
        doorbells: 0,
        ends: 0,
        last: None,
        held: None,
        taken,
    })
}

fn number(settings: Settings<'_>, name: &'static str) -> Result<u32> {
    // Below `NEVER`, it has 32 bits.
    Ok(settings.number(name, 0, u64::from(NEVER) - 1)?.map_or(NEVER, |value| value as u32))
}

/// Which ends are lies.
struct Lies {
    fails_at: u32,
    twice_at: u32,
    unknown_at: u32,
    too_long_at: u32,
}

/// The camera's driver, which says now and then what is not so.
struct Lying {
    camera: AxiDmaChannel<AnyDevice>,
    lies: Lies,
    refuses_at: u32,
    silent_at: u32,
    jobs: u32,
    doorbells: u32,
    ends: u32,
    last: Option<Completion>,
    /// The end that comes after a lie.
    held: Option<Completion>,
    /// An interrupt's file, which is never readable.
    taken: Option<(PipeReader, PipeWriter)>,
}

impl Lying {
    /// Counts a job that the channel has taken, and refuses the one that was asked for.
    fn count_job(&mut self) -> Result<()> {
        let this = self.jobs;
        self.jobs += 1;
        let what = "it was asked to refuse this job";
        let refusal = Error::Fault { device: "camera", status: this, what };
        if this == self.refuses_at { Err(refusal) } else { Ok(()) }
    }
}

// SAFETY: the channel belongs to the camera, and every method is its own. Only `poll` may lie about
// an end that there was: a job that failed, another slot, or more bytes. A lie of these kinds
// does no harm: the queue must find it.
unsafe impl Driver for Lying {
    contigo::forward!(|this| this.camera => port, simulated, addr_bits, operands, depth);
    contigo::forward!(|this| this.camera => in_order, check, stop_program, underruns, stop);

    fn name(&self) -> &'static str {
        "camera"
    }

    fn arm_irq(&self) -> Result<Option<i32>> {
        Ok(self.taken.as_ref().map(|(file, _)| file.as_raw_fd()))
    }

    unsafe fn submit(&mut self, slot: usize, operands: &[DevSlice], args: &[u32]) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.camera.submit(slot, operands, args)? };
        self.count_job()
    }

    unsafe fn submit_more(&mut self, slot: usize, given: &[DevSlice], args: &[u32]) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.camera.submit_more(slot, given, args)? };
        self.count_job()
    }

    fn doorbell(&mut self) -> Result<()> {
        let this = self.doorbells;
        self.doorbells += 1;
        let what = "it was asked to take no such doorbell";
        let silence = Error::Fault { device: "camera", status: this, what };
        if this == self.silent_at { Err(silence) } else { self.camera.doorbell() }
    }

    fn poll(&mut self, timeout: Duration) -> Result<Option<Completion>> {
        if let Some(end) = self.held.take() {
            return Ok(Some(end));
        }
        let Some(end) = self.camera.poll(timeout)? else { return Ok(None) };
        let this = self.ends;
        self.ends += 1;
        let before = self.last.replace(end);
        Ok(Some(match self.lies {
            Lies { fails_at, .. } if fails_at == this => {
                Completion { failed: Some("asked for"), ..end }
            }
            Lies { twice_at, .. } if twice_at == this => before.unwrap_or(end),
            Lies { unknown_at, .. } if unknown_at == this => {
                self.held = Some(end);
                Completion::of(usize::MAX)
            }
            Lies { too_long_at, .. } if too_long_at == this => {
                Completion { bytes: Some(1 << LENGTH_BITS), ..end }
            }
            _ => end,
        }))
    }
}

/// The camera's model, with registers for what goes wrong.
struct Watched {
    camera: AxiDmaModel,
    wrong: [u32; 4],
}

impl Watched {
    fn look(&mut self, bus: &mut SimBus<'_>) {
        let status = self.camera.read32(DMASR, bus);
        RUNS.store(status & HALTED == 0, Ordering::Relaxed);
    }
}

// SAFETY: as the camera's, which does everything that touches memory.
unsafe impl Model for Watched {
    const WINDOW_BYTES: usize = WRONG + 4 * 4;

    fn advance(&mut self, bus: &mut SimBus<'_>) {
        self.camera.advance(bus);
        self.look(bus);
    }
    fn read32(&mut self, offset: usize, bus: &mut SimBus<'_>) -> u32 {
        self.camera.read32(offset, bus)
    }
    fn write32(&mut self, offset: usize, value: u32, bus: &mut SimBus<'_>) {
        match offset.checked_sub(WRONG).and_then(|at| self.wrong.get_mut(at / 4)) {
            Some(wrong) => {
                *wrong = value;
                let [packets, short_every, error_at, stuck] =
                    self.wrong.map(|value| (value != NEVER).then_some(value));
                let packets = packets.unwrap_or(NEVER);
                let source = SourceConfig { packets, short_every, ..SourceConfig::default() };
                self.camera = AxiDmaModel::new(CoreSpec {
                    error_at,
                    stuck: stuck == Some(1),
                    ..spec(source)
                });
            }
            None => self.camera.write32(offset, value, bus),
        }
        self.look(bus);
    }
    fn irq_at_ns(&self) -> Option<u64> {
        self.camera.irq_at_ns()
    }
    fn reset(&mut self) {
        self.camera.reset();
        RUNS.store(false, Ordering::Relaxed);
    }
}
