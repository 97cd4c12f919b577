#![allow(unsafe_code, reason = "a model promises to touch only what it was told of")]
//! A model of any kernel that HLS made: the control block by its table (`manual.rs`), and a
//! function that computes what the kernel computes.
//!
//! | file | what it is |
//! |---|---|
//! | `job` | a job's way: AP_START, taken, ended, and the interrupt |
//! | `call` | one job, as the kernel's function sees it, and the kernel that a model is by default |
//! | `manual` | the control block's numbers, apart from the driver's |

mod call;
mod job;
mod manual;

pub use self::call::{KernelCall, KernelError};
use crate::faults::{Fate, GARBAGE};
use crate::{Model, SimBus, SimWindow};
use contigo_core::job::MAX_OPERANDS;
use contigo_core::types::{DevAddr, Error, Result};
use contigo_design::kernel::{KernelMap, MAX_RESULTS, MAX_SCALARS, Protocol};
use contigo_drivers::ap_ctrl::ApCtrl;
use core::{fmt, mem};
use job::Job;
use manual as regs;

/// The window: the size that Vivado gives a kernel by default.
const WINDOW_BYTES: usize = 65_536;
/// The most jobs in a chain: one that is accepted, and one that is being accepted.
const STAGES: usize = 2;

/// The computation of a simulated kernel: it reads and writes its operands, and returns its
/// results' words.
pub type KernelFn = fn(&mut KernelCall<'_, '_>) -> Result<[u32; MAX_RESULTS], KernelError>;

impl<F> SimWindow<ApCtrlModel<F>>
where
    F: FnMut(&mut KernelCall<'_, '_>) -> Result<[u32; MAX_RESULTS], KernelError> + Send,
{
    /// As [`open`](ApCtrl::open), but safe: the window's type proves that the model is behind it,
    /// and the map is the model's.
    ///
    /// # Errors
    /// [`Error::Contended`].
    pub fn driver(self) -> Result<ApCtrl<Self>> {
        let map = self.ask(|model| model.map.clone())?;
        // SAFETY: 1. The map is the model's own. 2. `KernelCall` keeps its function inside what the
        // map's rules say, which `check` compares with the operands. 3. The model's contract. 4.
        // `SimDevice::window` gives one window at a time.
        unsafe { ApCtrl::open(self, map) }
    }
}

/// A model of one kernel.
///
/// Interrupts come late or get lost, and jobs hang or keep writing for ever
/// ([`Faults`](crate::Faults)). Error bits and short transfers do not occur: a kernel has no
/// register for them.
pub struct ApCtrlModel<F = KernelFn> {
    map: KernelMap,
    compute: F,
    pointers: [u64; MAX_OPERANDS],
    scalars: [u64; MAX_SCALARS],
    results: [u32; MAX_RESULTS],
    gie: u32,
    ier: u32,
    isr: u32,
    done: bool,
    ready: bool,
    /// AP_CONTINUE was written and no register read since: AP_CTRL may still show the old AP_DONE.
    stale: bool,
    /// Reading its ISR clears it, and writing still toggles it (`COR/TOW` in the header, in place
    /// of `Read/TOW`).
    pub clears_on_read: bool,
    /// AP_START is set again when a job is taken.
    restarts: bool,
    /// AP_START is set: when the kernel accepts the job. Register writes count until then.
    start: Option<u64>,
    /// How many jobs it has accepted since it was made: a reset leaves it.
    accepted: u64,
    /// The jobs that the kernel has accepted, oldest first.
    jobs: [Option<Job>; STAGES],
    /// When ISR gets each event's bits, which may be late.
    raise: [(u64, u32); 2],
}

impl<F> ApCtrlModel<F> {
    const fn as_reset(map: KernelMap, compute: F) -> Self {
        Self {
            map,
            compute,
            pointers: [u64::MAX; MAX_OPERANDS],
            scalars: [0; MAX_SCALARS],
            results: [0; MAX_RESULTS],
            gie: 0,
            ier: 0,
            isr: 0,
            done: false,
            ready: false,
            stale: false,
            clears_on_read: false,
            restarts: false,
            start: None,
            accepted: 0,
            jobs: [None; STAGES],
            raise: [(u64::MAX, 0); 2],
        }
    }
}

impl<F> ApCtrlModel<F>
where
    F: FnMut(&mut KernelCall<'_, '_>) -> Result<[u32; MAX_RESULTS], KernelError> + Send,
{
    /// A model of the kernel that `map` describes and `compute` computes, as after power-on.
    ///
    /// # Errors
    /// [`Error::RegisterWindow`] if the map's window is longer than the model's, 64 KiB.
    pub fn new(map: KernelMap, compute: F) -> Result<Self> {
        let (need_bytes, have_bytes) = (map.window_bytes(), WINDOW_BYTES);
        if need_bytes > have_bytes {
            return Err(Error::RegisterWindow { device: "ap_ctrl", need_bytes, have_bytes });
        }
        Ok(Self::as_reset(map, compute))
    }

    /// How many jobs the kernel has accepted and not finished.
    #[must_use]
    pub(crate) fn jobs_inside(&self) -> usize {
        self.jobs.iter().flatten().count()
    }

    const fn chain(&self) -> bool {
        matches!(self.map.protocol, Protocol::Chain)
    }
}

/// One register of an argument.
struct Word<'m> {
    /// The whole argument.
    word: &'m mut u64,
    /// The register is the upper half.
    high: bool,
    /// The argument has two registers.
    wide: bool,
}

impl<F> ApCtrlModel<F> {
    /// Finds the argument whose register is at `offset`.
    fn argument(&mut self, offset: usize) -> Option<Word<'_>> {
        let pointers = self
            .map
            .pointers()
            .iter()
            .map(|each| (each.offset as usize, each.bits))
            .zip(&mut self.pointers);
        let scalars = self
            .map
            .scalars()
            .iter()
            .map(|each| (each.offset as usize, each.bits))
            .zip(&mut self.scalars);
        pointers.chain(scalars).find_map(|((at, bits), word)| {
            match (offset.checked_sub(at)?, bits > 32) {
                (0, wide) => Some(Word { word, high: false, wide }),
                (4, true) => Some(Word { word, high: true, wide: true }),
                _ => None,
            }
        })
    }

    /// Returns the word of a result at `offset`.
    fn result(&self, offset: usize) -> u32 {
        let mut index = 0;
        for result in self.map.results() {
            for word in 0..result.words() {
                if offset == result.offset as usize + 4 * word {
                    return self.results.get(index).copied().unwrap_or(0);
                }
                index += 1;
            }
        }
        0
    }
}

// SAFETY: the model touches memory in `run`, where `KernelCall` keeps it inside the operands, and,
// while stuck, one byte of an operand. `DONE` rises after `run`, and `IDLE` is set when there is no
// job; without a job it touches nothing.
unsafe impl<F> Model for ApCtrlModel<F>
where
    F: FnMut(&mut KernelCall<'_, '_>) -> Result<[u32; MAX_RESULTS], KernelError> + Send,
{
    const WINDOW_BYTES: usize = WINDOW_BYTES;

    fn fits(&self, number: &str, nth: usize) -> Option<(u64, u64)> {
        let mut all = self.map.layout();
        // A map may leave out a result; a result that the kernel lacks is at no offset.
        let found = all
            .find(|(name, at, _)| (*name, *at) == (number, nth))
            .map(|(.., value)| (value, value));
        found.or_else(|| (number == KernelMap::RESULT).then_some((0, 0)))
    }

    fn advance(&mut self, bus: &mut SimBus<'_>) {
        // Both may have happened since the last poll: a job's end makes room for the next.
        for _ in 0..=STAGES {
            self.take(bus);
            match self.jobs {
                [Some(Job { fate: Fate::Stuck, pointers, .. }), _] => {
                    if let Some(addr) = self.output().and_then(|index| pointers.get(index).copied())
                    {
                        let _ = bus.write(DevAddr(addr), &[GARBAGE]);
                    }
                }
                // In a chain a job ends only when the driver has seen the previous end.
                [Some(job), _]
                    if job.fate == Fate::Good
                        && job.ends_at_ns <= bus.now_ns()
                        && !(self.chain() && self.done) =>
                {
                    self.run(job, bus);
                }
                _ => {}
            }
        }
        for (at_ns, bits) in &mut self.raise {
            if *at_ns <= bus.now_ns() {
                self.isr |= self.ier & *bits;
                *at_ns = u64::MAX;
            }
        }
    }

    fn read32(&mut self, offset: usize, _bus: &mut SimBus<'_>) -> u32 {
        let bit = |set: bool, mask: u32| if set { mask } else { 0 };
        let stale = mem::take(&mut self.stale);
        match offset {
            regs::AP_CTRL => {
                let busy = self.start.is_some() || self.jobs_inside() > 0;
                let done =
                    if self.chain() { self.done || stale } else { mem::take(&mut self.done) };
                let ready = mem::take(&mut self.ready);
                let restarts = bit(self.restarts, regs::AUTO_RESTART);
                bit(self.start.is_some(), regs::START)
                    | bit(done, regs::DONE)
                    | bit(!busy, regs::IDLE)
                    | bit(ready, regs::READY)
                    | restarts
            }
            _ if offset <= regs::ISR && !self.map.interrupt => 0,
            regs::GIE => self.gie,
            regs::IER => self.ier,
            regs::ISR if self.clears_on_read => mem::take(&mut self.isr),
            regs::ISR => self.isr,
            _ => match self.argument(offset) {
                #[allow(clippy::cast_possible_truncation, reason = "one half")]
                Some(Word { word, high, .. }) => (if high { *word >> 32 } else { *word }) as u32,
                None => self.result(offset),
            },
        }
    }

    fn write32(&mut self, offset: usize, value: u32, bus: &mut SimBus<'_>) {
        match offset {
            regs::AP_CTRL => {
                self.restarts = value & regs::AUTO_RESTART != 0;
                if value & regs::START != 0 {
                    self.rings(bus);
                }
                if value & regs::CONTINUE != 0 && self.chain() {
                    (self.done, self.stale) = (false, true);
                }
            }
            _ if offset <= regs::ISR && !self.map.interrupt => {}
            regs::GIE => self.gie = value & 1,
            regs::IER => self.ier = value & (regs::CHANNEL_DONE | regs::CHANNEL_READY),
            regs::ISR => self.isr ^= value & (regs::CHANNEL_DONE | regs::CHANNEL_READY),
            _ => {
                if let Some(Word { word, high, wide }) = self.argument(offset) {
                    let value = u64::from(value);
                    *word = match (high, wide) {
                        (true, _) => *word & 0xFFFF_FFFF | value << 32,
                        (false, true) => *word & !0xFFFF_FFFF | value,
                        (false, false) => value,
                    };
                }
            }
        }
    }

    fn irq_at_ns(&self) -> Option<u64> {
        if self.gie == 0 {
            return None;
        }
        if self.isr & self.ier != 0 {
            return Some(0);
        }
        // Three events raise ISR without an access: a late event, the end of the oldest job, and
        // the start of the next.
        let raised = self.raise.iter().filter(|(_, bits)| self.ier & bits != 0).map(|(at, _)| *at);
        let ends = match self.jobs {
            [Some(Job { fate: Fate::Good, ends_at_ns, .. }), _] if !(self.chain() && self.done) => {
                Some(ends_at_ns)
            }
            _ => None,
        };
        let taken = self.start.filter(|_| {
            self.chain() && self.jobs_inside() < STAGES && self.ier & regs::CHANNEL_READY != 0
        });
        raised.chain(ends).chain(taken).filter(|at| *at < u64::MAX).min()
    }

    fn reset(&mut self) {
        self.pointers = [u64::MAX; MAX_OPERANDS];
        (self.scalars, self.results) = ([0; MAX_SCALARS], [0; MAX_RESULTS]);
        (self.gie, self.ier, self.isr) = (0, 0, 0);
        (self.done, self.ready, self.stale, self.restarts, self.start) =
            (false, false, false, false, None);
        (self.jobs, self.raise) = ([None; STAGES], [(u64::MAX, 0); 2]);
    }
}

impl<F> fmt::Debug for ApCtrlModel<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApCtrlModel")
            .field("map", &self.map.name)
            .field("jobs", &self.jobs)
            .finish_non_exhaustive()
    }
}
