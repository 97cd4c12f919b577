#![allow(unsafe_code, reason = "a model promises to touch only what it was told of")]
//! A model of any kernel that HLS made: the control block by its table ([`numbers`]), and a function
//! for what the kernel computes.

mod call;
mod numbers;

pub use self::call::KernelCall;
use super::{
    ApCtrl, KernelMap, Protocol,
    map::{MAX_RESULTS, MAX_SCALARS},
};
use crate::{
    job::{MAX_OPERANDS, OperandSpec},
    sim::{BusError, Model, SimBus, SimDevice, SimWindow},
    types::{DevAddr, Error, Result},
};
use core::{fmt, mem};
use numbers as regs;

/// The window: a page, which is the least that Vivado gives.
const WINDOW_BYTES: usize = 4096;
/// From AP_START to the end of a job that has no bytes.
const LATENCY_NS: u64 = 2_000;
/// What a kernel moves in a nanosecond.
const BYTES_PER_NS: u64 = 2;
/// What a stuck kernel keeps writing.
const GARBAGE: u8 = 0xEE;
/// The jobs that a chain works on: one that was taken and ends, and one that is being taken.
const STAGES: usize = 2;

/// What a simulated kernel computes: it reads and writes its operands, and answers its results' words.
pub type KernelFn = fn(&mut KernelCall<'_, '_>) -> Result<[u32; MAX_RESULTS], BusError>;

/// A simulated kernel.
pub type SimApCtrl<'b, F = KernelFn> = SimDevice<'b, ApCtrlModel<F>>;

impl<'d, F> ApCtrl<SimWindow<'d, ApCtrlModel<F>>>
where
    F: FnMut(&mut KernelCall<'_, '_>) -> Result<[u32; MAX_RESULTS], BusError> + Send,
{
    /// As [`open`](ApCtrl::open), and safe: the type of the window says what is behind it, and the map
    /// is the model's.
    ///
    /// # Errors
    /// [`Error::Contended`].
    pub fn open_simulated(window: SimWindow<'d, ApCtrlModel<F>>) -> Result<Self> {
        let map = window.ask(|model| model.map.clone())?;
        // SAFETY: 1. The map is the model's own. 2. `KernelCall` keeps its function inside what the map's
        // rules say, which `check` compares with the operands. 3. The model's contract. 4.
        // `SimDevice::window` gives one window at a time.
        unsafe { Self::open(window, map) }
    }
}

/// A model of one kernel.
///
/// Interrupts come late or get lost, and jobs hang or keep writing for ever
/// ([`Faults`](crate::sim::Faults)). Error bits and short transfers do not happen: a kernel has no
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
    /// AP_START, and when the kernel takes that job: until then its registers count.
    start: Option<u64>,
    /// The jobs that were taken, the oldest first.
    jobs: [Option<Job>; STAGES],
    /// When ISR gets its bits of what happened; they may be late.
    raise: [(u64, u32); 2],
}

/// `int copy(const char *from, char *to, unsigned n)`, which returns `n`: a kernel for tests.
const COPIER: KernelMap = {
    let map = KernelMap::named("copy", Protocol::Chain)
        .interrupt(true)
        .result("ap_return", 0x10, 32)
        .pointer("from", 0x18, OperandSpec::to_device(), "n")
        .pointer("to", 0x24, OperandSpec::from_device(), "n")
        .scalar("n", 0x30, 32);
    match map.build() {
        Ok(map) => map,
        Err(_) => panic!("the table is wrong"),
    }
};
/// One burst: 16 beats of 128 bits.
const BURST_BYTES: usize = 256;

impl Default for ApCtrlModel {
    /// `int copy(const char *from, char *to, unsigned n)`, a chain that copies `n` bytes and returns
    /// `n`. Its operands are `from` and `to`, its argument word is `n`.
    fn default() -> Self {
        Self::as_reset(COPIER, |call| {
            let len_bytes = call.len_bytes(0);
            for at in (0..len_bytes).step_by(BURST_BYTES) {
                let mut beats = [0; BURST_BYTES];
                let burst = len_bytes.saturating_sub(at).min(BURST_BYTES as u64);
                #[allow(clippy::cast_possible_truncation, reason = "256 at most")]
                let bytes = beats.get_mut(..burst as usize).unwrap_or_default();
                call.read(0, at, bytes)?;
                call.write(1, at, bytes)?;
            }
            #[allow(clippy::cast_possible_truncation, reason = "the scalar has 32 bits")]
            Ok([call.scalar(0) as u32, 0, 0, 0])
        })
    }
}

/// A job that was taken.
#[derive(Clone, Copy, Debug)]
struct Job {
    pointers: [u64; MAX_OPERANDS],
    scalars: [u64; MAX_SCALARS],
    ends_at_ns: u64,
    fate: Fate,
}

/// How a job will end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Good,
    /// Never ends.
    Hang,
    /// Never ends, and writes garbage to its first output meanwhile.
    Stuck,
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
            start: None,
            jobs: [None; STAGES],
            raise: [(u64::MAX, 0); 2],
        }
    }
}

impl<F> ApCtrlModel<F>
where
    F: FnMut(&mut KernelCall<'_, '_>) -> Result<[u32; MAX_RESULTS], BusError> + Send,
{
    /// The kernel that `map` describes and that computes `compute`, as after power-on.
    ///
    /// # Errors
    /// [`Error::RegisterWindow`] where the map's window is longer than the model's, 4 KiB.
    pub fn new(map: KernelMap, compute: F) -> Result<Self> {
        let (need_bytes, have_bytes) = (map.window_bytes(), WINDOW_BYTES);
        if need_bytes > have_bytes {
            return Err(Error::RegisterWindow { device: "ap_ctrl", need_bytes, have_bytes });
        }
        Ok(Self::as_reset(map, compute))
    }

    /// How many jobs are in the kernel: taken and not ended.
    #[must_use]
    pub fn jobs_inside(&self) -> usize {
        self.jobs.iter().flatten().count()
    }

    const fn chain(&self) -> bool {
        matches!(self.map.protocol(), Protocol::Chain)
    }

    /// How long a job takes: its bytes, by the map's rules.
    fn busy_ns(&self, scalars: &[u64]) -> u64 {
        let bytes = (0..self.map.pointers().len()).map(|index| self.map.need_bytes(index, scalars));
        LATENCY_NS.saturating_add(bytes.fold(0, u64::saturating_add) / BYTES_PER_NS)
    }

    /// AP_START was written. A chain takes a job in a quarter of the time that it works on one; otherwise
    /// a job is taken when it ends.
    fn rings(&mut self, bus: &mut SimBus<'_>) {
        if self.start.is_some() {
            return;
        }
        let busy_ns = if self.chain() { self.busy_ns(&self.scalars) / 4 } else { 0 };
        let jitter_ns = bus.rng().u64(..=busy_ns / 8);
        self.start = Some(bus.now_ns().saturating_add(busy_ns).saturating_add(jitter_ns));
    }

    /// The kernel takes the job whose registers are written, where it has room.
    fn take(&mut self, bus: &mut SimBus<'_>) {
        let Some(at_ns) = self.start.filter(|at| *at <= bus.now_ns()) else { return };
        let room = if self.chain() { STAGES } else { 1 };
        let inside = self.jobs_inside();
        if inside >= room {
            return;
        }
        let busy_ns = self.busy_ns(&self.scalars);
        let faults = *bus.faults();
        let fate = if bus.strikes(faults.stuck) {
            Fate::Stuck
        } else if bus.strikes(faults.hang) {
            Fate::Hang
        } else {
            Fate::Good
        };
        let jitter_ns = bus.rng().u64(..=busy_ns / 8);
        let ends_at_ns = at_ns.saturating_add(busy_ns).saturating_add(jitter_ns);
        let job = Job { pointers: self.pointers, scalars: self.scalars, ends_at_ns, fate };
        if let Some(place) = self.jobs.get_mut(inside) {
            *place = Some(job);
        }
        if self.chain() {
            self.taken(at_ns, bus);
        }
    }

    /// AP_READY.
    fn taken(&mut self, at_ns: u64, bus: &mut SimBus<'_>) {
        self.start = None;
        self.ready = true;
        self.raises(at_ns, regs::CHANNEL_READY, bus);
    }

    /// ISR will get `bits`: at once, late or never.
    fn raises(&mut self, at_ns: u64, bits: u32, bus: &mut SimBus<'_>) {
        let faults = *bus.faults();
        let at_ns = if bus.strikes(faults.lost_irq) {
            u64::MAX
        } else if bus.strikes(faults.late_irq) {
            at_ns + bus.rng().u64(..=LATENCY_NS * 10)
        } else {
            at_ns
        };
        let [done, ready] = &mut self.raise;
        *(if bits == regs::CHANNEL_DONE { done } else { ready }) = (at_ns, bits);
    }

    /// The oldest job ends: all that it writes is written now.
    fn run(&mut self, job: Job, bus: &mut SimBus<'_>) {
        let Self { map, compute, .. } = self;
        let mut call = KernelCall { map, pointers: &job.pointers, scalars: &job.scalars, bus: &mut *bus };
        // A kernel does not tell what its master was answered.
        self.results = compute(&mut call).unwrap_or_default();
        let [oldest, next] = &mut self.jobs;
        *oldest = next.take();
        self.done = true;
        self.raises(job.ends_at_ns, regs::CHANNEL_DONE, bus);
        if !self.chain() {
            self.taken(job.ends_at_ns, bus);
        }
    }

    /// The first operand that the kernel writes.
    fn output(&self) -> Option<usize> {
        self.map.operands().iter().position(|spec| spec.direction.device_writes())
    }

    /// The word of an argument at `offset`: its value, and whether it is the upper half.
    fn argument(&mut self, offset: usize) -> Option<(&mut u64, bool)> {
        let pointers = self.map.pointers().iter().map(|each| (each.offset(), each.bits())).zip(&mut self.pointers);
        let scalars = self.map.scalars().iter().map(|each| (each.offset(), each.bits())).zip(&mut self.scalars);
        pointers.chain(scalars).find_map(|((at, bits), value)| match offset.checked_sub(at)? {
            0 => Some((value, false)),
            4 if bits > 32 => Some((value, true)),
            _ => None,
        })
    }

    /// The word of a result at `offset`.
    fn result(&self, offset: usize) -> u32 {
        let mut index = 0;
        for result in self.map.results() {
            for word in 0..result.words() {
                if offset == result.offset() + 4 * word {
                    return self.results.get(index).copied().unwrap_or(0);
                }
                index += 1;
            }
        }
        0
    }
}

// SAFETY: it touches memory in `run`, where `KernelCall` keeps it inside its operands, and while it is
// stuck, a byte of one of them. `DONE` rises after `run`, and `IDLE` is there without a job; nothing is
// touched without one.
unsafe impl<F> Model for ApCtrlModel<F>
where
    F: FnMut(&mut KernelCall<'_, '_>) -> Result<[u32; MAX_RESULTS], BusError> + Send,
{
    const WINDOW_BYTES: usize = WINDOW_BYTES;

    fn advance(&mut self, bus: &mut SimBus<'_>) {
        // Both may have happened since the last look, and the second only makes room for the first.
        for _ in 0..=STAGES {
            self.take(bus);
            match self.jobs {
                [Some(Job { fate: Fate::Stuck, pointers, .. }), _] => {
                    if let Some(addr) = self.output().and_then(|index| pointers.get(index).copied()) {
                        let _ = bus.write(DevAddr(addr), &[GARBAGE]);
                    }
                }
                // The end of a chain's job waits until the one before was seen.
                [Some(job), _] if job.fate == Fate::Good && job.ends_at_ns <= bus.now_ns() && !(self.chain() && self.done) => {
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
        match offset {
            regs::AP_CTRL => {
                let busy = self.start.is_some() || self.jobs_inside() > 0;
                let done = if self.chain() { self.done } else { mem::take(&mut self.done) };
                let ready = mem::take(&mut self.ready);
                bit(self.start.is_some(), regs::START) | bit(done, regs::DONE) | bit(!busy, regs::IDLE) | bit(ready, regs::READY)
            }
            _ if offset <= regs::ISR && !self.map.has_interrupt() => 0,
            regs::GIE => self.gie,
            regs::IER => self.ier,
            regs::ISR => self.isr,
            _ => match self.argument(offset) {
                #[allow(clippy::cast_possible_truncation, reason = "one half")]
                Some((value, high)) => (if high { *value >> 32 } else { *value }) as u32,
                None => self.result(offset),
            },
        }
    }

    fn write32(&mut self, offset: usize, value: u32, bus: &mut SimBus<'_>) {
        match offset {
            regs::AP_CTRL => {
                if value & regs::START != 0 {
                    self.rings(bus);
                }
                if value & regs::CONTINUE != 0 && self.chain() {
                    self.done = false;
                }
            }
            _ if offset <= regs::ISR && !self.map.has_interrupt() => {}
            regs::GIE => self.gie = value & 1,
            regs::IER => self.ier = value & (regs::CHANNEL_DONE | regs::CHANNEL_READY),
            regs::ISR => self.isr ^= value & (regs::CHANNEL_DONE | regs::CHANNEL_READY),
            _ => {
                if let Some((word, high)) = self.argument(offset) {
                    let value = u64::from(value);
                    *word = if high { *word & 0xFFFF_FFFF | value << 32 } else { *word & !0xFFFF_FFFF | value };
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
        // What will raise ISR by itself: what happened and is late, the end of the oldest job, and the
        // taking of the next.
        let raised = self.raise.iter().filter(|(_, bits)| self.ier & bits != 0).map(|(at, _)| *at);
        let ends = match self.jobs {
            [Some(Job { fate: Fate::Good, ends_at_ns, .. }), _] if !(self.chain() && self.done) => Some(ends_at_ns),
            _ => None,
        };
        let taken = self.start.filter(|_| self.chain() && self.jobs_inside() < STAGES && self.ier & regs::CHANNEL_READY != 0);
        raised.chain(ends).chain(taken).filter(|at| *at < u64::MAX).min()
    }

    fn reset(&mut self) {
        self.pointers = [u64::MAX; MAX_OPERANDS];
        (self.scalars, self.results) = ([0; MAX_SCALARS], [0; MAX_RESULTS]);
        (self.gie, self.ier, self.isr) = (0, 0, 0);
        (self.done, self.ready, self.start) = (false, false, None);
        (self.jobs, self.raise) = ([None; STAGES], [(u64::MAX, 0); 2]);
    }
}

impl<F> fmt::Debug for ApCtrlModel<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApCtrlModel").field("map", self.map.name()).field("jobs", &self.jobs).finish_non_exhaustive()
    }
}
