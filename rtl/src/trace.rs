//! The runtime beside a core, in the core's waveforms.

use contigo::trace::{self, Event, Listener};
use std::panic::Location;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

/// The runtime's signals in a trace, under `runtime`. The names are `MARK_NAMES` in shim/ports.h.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// The number of the last job that was given to a device.
    pub job: u32,
    /// 1: it has neither ended nor been stopped.
    pub runs: u32,
    /// The jobs that ended without a result.
    pub stops: u32,
    /// The bytes that were made visible to devices.
    pub bytes_for_device: u32,
    /// The bytes of devices that were made visible to the CPU.
    pub bytes_for_cpu: u32,
    /// 1: a register is read; 2: one is written.
    pub access: u32,
    /// The register.
    pub offset: u32,
    /// The value that is written, or that was read last.
    pub value: u32,
    /// 1: the driver waits for the interrupt.
    pub waits: u32,
}

impl Marks {
    pub(crate) const fn words(&self) -> [u32; 9] {
        let Self {
            job,
            runs,
            stops,
            bytes_for_device,
            bytes_for_cpu,
            access,
            offset,
            value,
            waits,
        } = *self;
        [job, runs, stops, bytes_for_device, bytes_for_cpu, access, offset, value, waits]
    }
}

/// The events of the runtime in this program, which has one listener.
struct Heard {
    job: AtomicU32,
    runs: AtomicU32,
    stops: AtomicU32,
    bytes_for_device: AtomicU32,
    bytes_for_cpu: AtomicU32,
}

static HEARD: Heard = Heard {
    job: AtomicU32::new(0),
    runs: AtomicU32::new(0),
    stops: AtomicU32::new(0),
    bytes_for_device: AtomicU32::new(0),
    bytes_for_cpu: AtomicU32::new(0),
};

#[allow(clippy::cast_possible_truncation, reason = "signals have 32 bits, and wrap")]
fn add(sum: &AtomicU32, bytes: usize) {
    sum.fetch_add(bytes as u32, Relaxed);
}

#[allow(clippy::cast_possible_truncation, reason = "signals have 32 bits, and wrap")]
impl Listener for Heard {
    fn happened(&self, event: &Event, _site: Option<&'static Location<'static>>) {
        match *event {
            Event::Submit { job, .. } => {
                self.job.store(job as u32, Relaxed);
                self.runs.store(1, Relaxed);
            }
            Event::Complete { .. } => self.runs.store(0, Relaxed),
            Event::Stop { .. } => {
                self.runs.store(0, Relaxed);
                self.stops.fetch_add(1, Relaxed);
            }
            Event::SyncForDevice { len_bytes, .. } => add(&self.bytes_for_device, len_bytes),
            Event::SyncForCpu { len_bytes, .. } => add(&self.bytes_for_cpu, len_bytes),
            _ => {}
        }
    }
}

/// Hears the runtime from here on, unless the program has a listener of its own: then these signals
/// stay as they are.
pub(crate) fn listen() {
    let _ = trace::set_listener(&HEARD);
}

/// The runtime's signals now, with those of registers as they are in `marks`.
pub(crate) fn heard(marks: Marks) -> Marks {
    Marks {
        job: HEARD.job.load(Relaxed),
        runs: HEARD.runs.load(Relaxed),
        stops: HEARD.stops.load(Relaxed),
        bytes_for_device: HEARD.bytes_for_device.load(Relaxed),
        bytes_for_cpu: HEARD.bytes_for_cpu.load(Relaxed),
        ..marks
    }
}
