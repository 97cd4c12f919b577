#![allow(unsafe_code, reason = "a model promises to touch only its operands")]
//! A model of `gemm8` (`examples/gemm8/README.md`): what its registers do, and what it does to
//! memory.

use crate::{Gemm, Gemm8, Output, regs, requantize};
use contigo::{
    DevAddr, Result,
    sim::{BusError, Model, SimBus, SimDevice, SimWindow},
};

const TILE: usize = regs::TILE as usize;
const ROW_MAX: usize = regs::DIM_MAX as usize;
/// From the doorbell to the first burst.
const LATENCY_NS: u64 = 500;
/// 256 products in each cycle of 200 MHz, as products in 10 ns.
const MACS_PER_10_NS: u64 = 512;
/// The byte that a stuck engine keeps writing.
const GARBAGE: u8 = 0xEE;

/// A simulated `gemm8`.
pub type SimGemm8 = SimDevice<Gemm8Model>;

impl Gemm8<SimWindow<Gemm8Model>> {
    /// As [`open`](Gemm8::open), but safe: the window's type proves that a gemm8 is behind it.
    ///
    /// # Errors
    /// As [`open`](Gemm8::open).
    pub fn open_simulated(window: SimWindow<Gemm8Model>) -> Result<Self> {
        // SAFETY: the model is a gemm8, and `SimDevice::window` gives one window at a time.
        unsafe { Self::open(window) }
    }
}

/// A job's arguments: the start latches these registers.
#[derive(Clone, Copy, Debug)]
struct Arguments {
    pointers: [u64; 4],
    m: u32,
    n: u32,
    k: u32,
    mode: u32,
}

/// The engine's state.
#[derive(Debug)]
pub struct Gemm8Model {
    arguments: Arguments,
    abort: bool,
    status: u32,
    bytes_out: u32,
    gie: u32,
    ier: u32,
    isr: u32,
    done: bool,
    ready: bool,
    job: Option<Job>,
    /// When the interrupt of the last job rises: it may be late, or never come.
    irq_at_ns: Option<u64>,
    /// The engine's buffer of one row of A.
    row: [u8; ROW_MAX],
}

/// A job under way.
#[derive(Clone, Copy, Debug)]
struct Job {
    arguments: Arguments,
    ends_at_ns: u64,
    irq_delay_ns: Option<u64>,
    fate: Fate,
}

/// How the job will end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Good,
    /// Ends with an error bit.
    Error,
    /// Reports its end after this many bytes.
    Short(u32),
    /// Never ends; can be stopped.
    Hang,
    /// Never ends, keeps writing garbage into C, and only a reset stops it.
    Stuck,
}

/// Why a job ended before all of C was written.
enum Stopped {
    Read,
    Write,
    Short,
}

impl Gemm8Model {
    /// As after power-on.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            arguments: Arguments { pointers: [u64::MAX; 4], m: 0, n: 0, k: 0, mode: 0 },
            abort: false,
            status: 0,
            bytes_out: 0,
            gie: 0,
            ier: 0,
            isr: 0,
            done: false,
            ready: false,
            job: None,
            irq_at_ns: None,
            row: [0; ROW_MAX],
        }
    }

    fn start(&mut self, bus: &mut SimBus<'_>) {
        let arguments @ Arguments { pointers, m, n, k, .. } = self.arguments;
        self.status = 0;
        self.bytes_out = 0;
        let tiles = |value: u32| value.is_multiple_of(regs::TILE);
        let small = |value: u32| (1..=regs::DIM_MAX).contains(&value);
        if ![m, n, k].into_iter().all(small) || !tiles(n) || !tiles(k) {
            self.status |= regs::STATUS_DIMENSION;
        }
        if !pointers.iter().all(|pointer| pointer.is_multiple_of(regs::POINTER_ALIGN as u64)) {
            self.status |= regs::STATUS_ALIGNMENT;
        }
        let macs = u64::from(m).saturating_mul(u64::from(n)).saturating_mul(u64::from(k));
        let busy_ns = LATENCY_NS + macs.saturating_mul(10) / MACS_PER_10_NS;
        let faults = *bus.faults();
        let fate = if bus.strikes(faults.stuck) {
            Fate::Stuck
        } else if bus.strikes(faults.hang) {
            Fate::Hang
        } else if bus.strikes(faults.error) {
            Fate::Error
        } else if bus.strikes(faults.short) {
            Fate::Short(bus.rng().u32(..m.saturating_mul(n).max(1)))
        } else {
            Fate::Good
        };
        let irq_delay_ns = if bus.strikes(faults.lost_irq) {
            None
        } else if bus.strikes(faults.late_irq) {
            Some(bus.rng().u64(..=busy_ns * 10))
        } else {
            Some(0)
        };
        let jitter_ns = bus.rng().u64(..=busy_ns / 8);
        self.job = Some(Job {
            arguments,
            ends_at_ns: bus.now_ns() + busy_ns + jitter_ns,
            irq_delay_ns,
            fate,
        });
    }

    /// Returns a word of a pointer, or 0 if there is none.
    fn pointer_word(&self, offset: usize) -> u32 {
        let words =
            self.arguments.pointers.iter().zip(regs::POINTERS).flat_map(|(&pointer, register)| {
                let at = register.offset();
                [(at, pointer & 0xFFFF_FFFF), (at + 4, pointer >> 32)]
            });
        let mut words = words.filter(|(at, _)| *at == offset);
        words.next().map_or(0, |(_, word)| u32::try_from(word).unwrap_or_default())
    }

    /// Ends the job, whatever its result.
    fn finish(&mut self, at_ns: u64, irq_delay_ns: Option<u64>) {
        self.job = None;
        self.done = true;
        self.ready = true;
        self.irq_at_ns = irq_delay_ns.map(|delay| at_ns + delay);
    }

    fn run(&mut self, job: Job, bus: &mut SimBus<'_>) {
        if self.status == 0 {
            let limit = match job.fate {
                Fate::Short(bytes) => bytes,
                Fate::Error => 0,
                _ => u32::MAX,
            };
            let ended = self.multiply(job.arguments, limit, bus);
            self.status |= match ended {
                Err(Stopped::Read) => regs::STATUS_READ,
                Err(Stopped::Write) => regs::STATUS_WRITE,
                _ if job.fate == Fate::Error => regs::STATUS_READ,
                _ => 0,
            };
        }
        self.finish(job.ends_at_ns, job.irq_delay_ns);
    }

    /// C = A·B + bias, a row and a tile of columns at a time, up to `limit` bytes of C.
    fn multiply(
        &mut self,
        arguments: Arguments,
        limit: u32,
        bus: &mut SimBus<'_>,
    ) -> Result<(), Stopped> {
        let Arguments { pointers: [a, b, bias, c], m, n, k, mode } = arguments;
        let output = Gemm::from_words(&[m, n, k, mode]).output;
        let (n, k) = (u64::from(n), u64::from(k));
        for row in 0..u64::from(m) {
            let buffered = self.row.get_mut(..arguments.k as usize).unwrap_or_default();
            bus.read(DevAddr(a.wrapping_add(row * k)), buffered)
                .map_err(|_: BusError| Stopped::Read)?;
            for first in (0..n).step_by(TILE) {
                let mut sums = read_sums(bus, bias.wrapping_add(4 * first))?;
                for (inner, &left) in (0..k).zip(self.row.iter()) {
                    let mut tile = [0; TILE];
                    bus.read(DevAddr(b.wrapping_add(inner * n + first)), &mut tile)
                        .map_err(|_| Stopped::Read)?;
                    for (sum, right) in sums.iter_mut().zip(tile) {
                        *sum = sum.wrapping_add(
                            i32::from(left.cast_signed()) * i32::from(right.cast_signed()),
                        );
                    }
                }
                for (column, sum) in (first..).zip(sums) {
                    let value = requantize(sum, output).to_le_bytes();
                    let (bytes, wrote) = match output {
                        Output::Int8 { .. } => (&value[..1], 1),
                        Output::Int32 { .. } => (&value[..], 4),
                    };
                    if self.bytes_out.saturating_add(4) > limit {
                        return Err(Stopped::Short);
                    }
                    let at = c.wrapping_add((row * n + column) * u64::from(wrote));
                    bus.write(DevAddr(at), bytes).map_err(|_| Stopped::Write)?;
                    self.bytes_out += wrote;
                }
            }
        }
        Ok(())
    }
}

fn read_sums(bus: &mut SimBus<'_>, addr: u64) -> Result<[i32; TILE], Stopped> {
    let mut raw = [0; 4 * TILE];
    bus.read(DevAddr(addr), &mut raw).map_err(|_| Stopped::Read)?;
    let mut sums = [0; TILE];
    for (sum, word) in sums.iter_mut().zip(raw.as_chunks::<4>().0) {
        *sum = i32::from_le_bytes(*word);
    }
    Ok(sums)
}

impl Default for Gemm8Model {
    fn default() -> Self {
        Self::new()
    }
}

// SAFETY: it reads and writes only at its pointers, in `multiply` and while it is stuck. `AP_DONE`
// and `AP_IDLE` rise in `finish`, after which there is no job, and nothing is touched without one.
unsafe impl Model for Gemm8Model {
    const WINDOW_BYTES: usize = regs::WINDOW_BYTES;

    fn advance(&mut self, bus: &mut SimBus<'_>) {
        match self.job {
            Some(Job {
                fate: Fate::Stuck, arguments: Arguments { pointers: [.., c], .. }, ..
            }) => {
                // It goes on writing into its last buffer, which the CPU may own by now.
                let _ = bus.write(DevAddr(c), &[GARBAGE; TILE]);
            }
            Some(Job { irq_delay_ns, .. }) if self.abort => {
                self.status |= regs::STATUS_ABORTED;
                self.finish(bus.now_ns(), irq_delay_ns);
            }
            Some(job) if job.fate != Fate::Hang && job.ends_at_ns <= bus.now_ns() => {
                self.run(job, bus)
            }
            _ => {}
        }
        if self.irq_at_ns.is_some_and(|at| at <= bus.now_ns()) {
            self.irq_at_ns = None;
            // Both bits: it takes a job when it has done one.
            self.isr |= self.ier;
        }
    }

    fn read32(&mut self, offset: usize, _bus: &mut SimBus<'_>) -> u32 {
        let bit = |set: bool, mask: u32| if set { mask } else { 0 };
        match offset {
            o if o == regs::CTRL.offset() => {
                let busy = self.job.is_some();
                let (done, ready) =
                    (core::mem::take(&mut self.done), core::mem::take(&mut self.ready));
                bit(busy, regs::AP_START)
                    | bit(done, regs::AP_DONE)
                    | bit(!busy, regs::AP_IDLE)
                    | bit(ready, regs::AP_READY)
            }
            o if o == regs::GIE.offset() => self.gie,
            o if o == regs::IER.offset() => self.ier,
            o if o == regs::ISR.offset() => self.isr,
            o if o == regs::M.offset() => self.arguments.m,
            o if o == regs::N.offset() => self.arguments.n,
            o if o == regs::K.offset() => self.arguments.k,
            o if o == regs::MODE.offset() => self.arguments.mode,
            o if o == regs::ABORT.offset() => u32::from(self.abort),
            o if o == regs::STATUS.offset() => self.status,
            o if o == regs::BYTES_OUT.offset() => self.bytes_out,
            o if o == regs::ID.offset() => regs::ID_VALUE,
            _ => self.pointer_word(offset),
        }
    }

    fn write32(&mut self, offset: usize, value: u32, bus: &mut SimBus<'_>) {
        match offset {
            o if o == regs::CTRL.offset() => {
                if value & regs::AP_START != 0 && self.job.is_none() {
                    self.start(bus);
                }
            }
            o if o == regs::GIE.offset() => self.gie = value & 1,
            o if o == regs::IER.offset() => self.ier = value & 3,
            o if o == regs::ISR.offset() => self.isr ^= value & 3,
            o if o == regs::M.offset() => self.arguments.m = value,
            o if o == regs::N.offset() => self.arguments.n = value,
            o if o == regs::K.offset() => self.arguments.k = value,
            o if o == regs::MODE.offset() => {
                self.arguments.mode = value & (regs::MODE_SHIFT | regs::MODE_RELU | regs::MODE_RAW)
            }
            o if o == regs::ABORT.offset() => self.abort = value & 1 == 1,
            _ => {
                for (pointer, register) in self.arguments.pointers.iter_mut().zip(regs::POINTERS) {
                    if offset == register.offset() {
                        *pointer = *pointer & !0xFFFF_FFFF | u64::from(value);
                    } else if offset == register.offset() + 4 {
                        *pointer = *pointer & 0xFFFF_FFFF | u64::from(value) << 32;
                    }
                }
            }
        }
    }

    fn irq_at_ns(&self) -> Option<u64> {
        let enabled = self.gie != 0 && self.ier & regs::INT_DONE != 0;
        if !enabled {
            return None;
        }
        if self.isr & self.ier != 0 {
            return Some(0);
        }
        match self.job {
            Some(Job { fate: Fate::Hang | Fate::Stuck, .. }) => None,
            Some(Job { ends_at_ns, irq_delay_ns: Some(delay), .. }) => Some(ends_at_ns + delay),
            Some(_) => None,
            None => self.irq_at_ns,
        }
    }

    fn reset(&mut self) {
        *self = Self::new();
    }
}
