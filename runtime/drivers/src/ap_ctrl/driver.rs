#![allow(unsafe_code, reason = "implementing `Driver` is a promise about the hardware")]
//! The driver of any kernel that HLS made: which jobs are in flight, in which order they end, and
//! how it is stopped.

use super::regs::{self, acknowledge, release, results, start};
use crate::checks::{has_window, outside, stops, within};
use contigo_core::forward;
use contigo_core::hw::Device;
use contigo_core::hw::wait::poll_until;
use contigo_core::job::{Completion, Driver, MAX_OPERANDS, OperandSpec, StopProgram, StopStep};
use contigo_core::mem::DevSlice;
use contigo_core::types::platform::forward_as_fd;
use contigo_core::types::{DevAddr, Error, Result, timeout_us};
use contigo_design::kernel::{KernelMap, MAX_SCALARS, Protocol};
use core::time::Duration;
use heapless::{Deque, Vec};

/// The most jobs in flight: one that the kernel has taken, and one that waits behind it.
const CHAIN: usize = 2;
/// How long a stop waits for the end of the jobs under way, unless the program sets it. 200 MB take
/// this long at the slowest port here (Zynq HP at 100 MHz, 0.4 GB/s).
const STOP_US: u32 = 500_000;
/// The polls of a stop program may last a second together; the longest here has three.
const PROGRAM_US: u32 = 1_000_000 / 3;
/// The time between two polls of a wait: a job that hangs raises no interrupt.
const STOP_STEP_US: u32 = 50;

/// The most argument words of a job: each scalar may have two.
const MAX_WORDS: usize = 2 * MAX_SCALARS;
/// The name of a scalar in an error.
const SCALARS: [&str; MAX_SCALARS] = [
    "scalar 0",
    "scalar 1",
    "scalar 2",
    "scalar 3",
    "scalar 4",
    "scalar 5",
    "scalar 6",
    "scalar 7",
    "scalar 8",
    "scalar 9",
    "scalar 10",
    "scalar 11",
    "scalar 12",
    "scalar 13",
    "scalar 14",
    "scalar 15",
];

/// The driver of one kernel, over a [`KernelMap`].
///
/// ```
/// use contigo::{Align, OperandSpec, sim::SimBoard, Queue, Region};
/// use core::time::Duration;
/// use contigo::{drivers::ap_ctrl::ApCtrl, sim::{SimDevice, ap_ctrl::{ApCtrlModel, KernelCall}}};
/// use contigo::design::kernel::{KernelMap, Protocol};
///
/// /// `int invert(const char *from, char *to, int n)`: it returns how many bytes it wrote.
/// const INVERT: KernelMap = {
///     let map = KernelMap::named("invert", Protocol::Hs)
///         .result("ap_return", 0x10, 32)
///         .pointer("from", 0x18, OperandSpec::to_device(), "n")
///         .pointer("to", 0x24, OperandSpec::from_device(), "n")
///         .scalar("n", 0x30, 32);
///     match map.build() { Ok(map) => map, Err(_) => panic!("the table is wrong") }
/// };
/// let board = SimBoard::new(1);
/// let region = Region::new(board.memory(64 * 1024)?)?;
/// let pool = region.pool(4, 1024)?;
/// let kernel = SimDevice::with_model(&board, board.port(), ApCtrlModel::new(INVERT, |call: &mut KernelCall<'_, '_>| {
///     for at in 0..call.scalar(0) {
///         let mut byte = [0];
///         call.read(0, at, &mut byte)?;
///         call.write(1, at, &[!byte[0]])?;
///     }
///     Ok([call.scalar(0) as u32, 0, 0, 0])
/// })?);
/// // On a board: `unsafe { ApCtrl::open(device, map)? }`.
/// let mut queue = Queue::new(kernel.window()?.driver()?, 1)?;
/// let mut from = pool.take()?;
/// from.view_mut::<u8>()?.fill(1);
/// let done = queue.run([from.to_device(..100), pool.take()?.from_device(..100)], &[100], Duration::from_millis(20))?;
/// assert_eq!(done.buffers[1].view_at::<u8>(..100)?, [!1; 100]);
/// assert_eq!(done.words[0], 100); // what the kernel returned
/// # Ok::<(), contigo::Error>(())
/// ```
#[derive(Debug)]
pub struct ApCtrl<D> {
    device: D,
    map: KernelMap,
    name: &'static str,
    stop_us: u32,
    /// The slots of the jobs in flight, the oldest first. A job in `waiting` is the last, behind
    /// one that the kernel has not taken yet.
    slots: Deque<usize, CHAIN>,
    /// A job whose registers cannot be written yet: the kernel has not taken the one before.
    waiting: Option<Waiting>,
    /// Jobs that ended while the kernel was being stopped.
    ended: Deque<Completion, CHAIN>,
    /// The kernel was seen to end a job as its protocol requires.
    proved: bool,
}

/// The values that a job will write into the kernel's registers.
#[derive(Clone, Debug)]
struct Waiting {
    addrs: Vec<DevAddr, MAX_OPERANDS>,
    words: Vec<u32, MAX_WORDS>,
}

impl<D: Device> ApCtrl<D> {
    /// The driver of `device`, whose registers `map` describes. No register identifies the kernel,
    /// and none is read or written here.
    ///
    /// # Errors
    /// [`Error::RegisterWindow`] if the window is smaller than the map's.
    ///
    /// # Safety
    /// 1. The device is a kernel that HLS made, and `map` is its own: protocol, offsets and widths,
    ///    and no pointer is left out or called a scalar.
    /// 2. The kernel reads and writes only through its pointers, in the direction that the map
    ///    gives. It stays inside the operands of each job that the map lets pass: the bytes from
    ///    the address on, for every value of its scalars. For an operand without a rule, the
    ///    program ensures that.
    /// 3. AP_DONE and AP_IDLE rise after its last write was answered, as HLS makes them.
    /// 4. No other code drives it while this value lives.
    pub unsafe fn open(device: D, map: KernelMap) -> Result<Self> {
        has_window(&device, "ap_ctrl", map.window_bytes())?;
        let (slots, ended) = (Deque::new(), Deque::new());
        let proved = map.protocol == Protocol::Chain;
        Ok(Self {
            device,
            map,
            name: "ap_ctrl",
            stop_us: STOP_US,
            slots,
            waiting: None,
            ended,
            proved,
        })
    }

    /// The same, by this name in messages.
    #[must_use]
    pub fn named(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    /// The same; a stop waits at most `limit` for the end of the jobs under way, by default half a
    /// second. Set it to the kernel's longest job.
    ///
    /// # Errors
    /// [`Error::Argument`]: `limit` is longer than an hour.
    pub fn stops_within(self, limit: Duration) -> Result<Self> {
        Ok(Self { stop_us: timeout_us(limit)?, ..self })
    }

    /// The device, to read registers that the map does not have.
    pub const fn device(&self) -> &D {
        &self.device
    }

    /// How many jobs can be in flight.
    const fn most(&self) -> usize {
        match self.map.protocol {
            Protocol::Hs => 1,
            Protocol::Chain => CHAIN,
        }
    }

    /// Ends the oldest job and returns its results; the kernel may end the next one.
    fn end(&mut self) -> Option<Completion> {
        let completion = Completion {
            words: results(&self.device, &self.map),
            ..Completion::of(self.slots.pop_front()?)
        };
        release(&self.device, &self.map);
        Some(completion)
    }
}

// SAFETY: by what `open` requires: 1. the kernel touches only its operands, and `check` compared
// them with the map. 2. AP_DONE means that the oldest job is done with its memory, AP_IDLE that all
// are; AP_IDLE counts only without AP_START. 4. `check` reads no register; `poll` starts only what
// was submitted and waits. 5. The port belongs to the device, and the map never changes. 7.
// AP_CONTINUE starts nothing that was not submitted, and the program ends at AP_IDLE without
// AP_START. 8. Every wait has a limit.
unsafe impl<D: Device> Driver for ApCtrl<D> {
    forward!(|this| this.device => port, simulated, arm_irq);

    fn name(&self) -> &'static str {
        self.name
    }

    fn addr_bits(&self) -> u32 {
        self.map.addr_bits()
    }

    fn operands(&self) -> &[OperandSpec] {
        self.map.operands()
    }

    fn depth(&self) -> usize {
        self.most()
    }

    fn check(&self, operands: &[DevSlice], args: &[u32]) -> Result<()> {
        let Some(values) = self.map.values(args) else {
            let (value, words) = (args.len() as u64, self.map.words() as u64);
            return Err(outside("the count of argument words", value, words, words));
        };
        for ((scalar, value), name) in self.map.scalars().iter().zip(values).zip(SCALARS) {
            let max = u64::MAX.checked_shr(u64::BITS - scalar.bits).unwrap_or(u64::MAX);
            within(name, value, 0_u8, max)?;
        }
        for (index, slice) in operands.iter().enumerate() {
            let need_bytes = self.map.need_bytes(index, &values);
            if (slice.len_bytes as u64) < need_bytes {
                return Err(Error::BufferSize { index, need_bytes, have_bytes: slice.len_bytes });
            }
        }
        Ok(())
    }

    unsafe fn submit(&mut self, slot: usize, operands: &[DevSlice], args: &[u32]) -> Result<()> {
        let first = self.slots.is_empty();
        if first {
            // Completions that a stop kept, and that no `poll` has taken.
            self.ended.clear();
        }
        if self.slots.len() >= self.most() || self.slots.push_back(slot).is_err() {
            return Err(Error::QueueFull { depth: self.most() });
        }
        let addrs = operands.iter().map(|slice| slice.addr);
        if !first {
            // This does not clear a chain's AP_DONE.
            let ctrl = regs::CTRL.read_and_clear(&self.device);
            if ctrl & regs::AP_START != 0 {
                // `check` found as many as the map has.
                self.waiting = Some(Waiting {
                    addrs: addrs.take(MAX_OPERANDS).collect(),
                    words: args.iter().copied().take(MAX_WORDS).collect(),
                });
                return Ok(());
            }
        }
        // SAFETY: the caller's promise. No job was taken, or AP_START says that the last one is.
        unsafe { start(&self.device, &self.map, addrs, args) };
        Ok(())
    }

    fn poll(&mut self, timeout: Duration) -> Result<Option<Completion>> {
        if let Some(ended) = self.ended.pop_front() {
            return Ok(Some(ended));
        }
        if self.slots.is_empty() {
            return Ok(None);
        }
        let Self { device, map, waiting, .. } = self;
        let mut waited = false;
        let ended = poll_until(&*device, timeout, |device| {
            let mut ctrl = regs::CTRL.read_and_clear(device);
            // A late interrupt, or the one of AP_READY, would end every wait at once. CTRL is read
            // again, for what happened before it was taken back.
            if core::mem::replace(&mut waited, true)
                && !regs::is_done(ctrl)
                && map.interrupt
                && acknowledge(device)
            {
                ctrl = regs::CTRL.read_and_clear(device);
            }
            if let Some(job) = waiting.take_if(|_| ctrl & regs::AP_START == 0) {
                // SAFETY: the job was submitted, and its end was not reported. AP_START shows that
                // the kernel has taken the job before it.
                unsafe { start(device, map, job.addrs.iter().copied(), &job.words) };
            }
            regs::is_done(ctrl)
        })?;
        if !ended {
            return Ok(None);
        }
        if !core::mem::replace(&mut self.proved, true) {
            // Once: reading has cleared AP_DONE. If it stays set, the next job would seem to be
            // done before it begins.
            let status = regs::CTRL.read_and_clear(&self.device);
            if regs::is_done(status) {
                self.proved = false;
                // The job counts as failed, even if the stop finds its end.
                self.slots.clear();
                // SAFETY: AP_CONTINUE starts nothing; it lets the kernel become idle.
                unsafe { regs::CTRL.write(&self.device, regs::AP_CONTINUE) };
                let what = "AP_DONE stays when it was read: the kernel is ap_ctrl_chain, and its \
                    map says ap_ctrl_hs";
                return Err(Error::Fault { device: self.name, status, what });
            }
        }
        Ok(self.end())
    }

    /// Waits for the end of the jobs under way, and keeps their results.
    fn stop(&mut self) -> Result<()> {
        if self.waiting.take().is_some() {
            let _ = self.slots.pop_back();
        }
        // Another program may have left AUTO_RESTART on: such a kernel is never idle. The rest of
        // CTRL ignores a 0.
        // SAFETY: it starts nothing, and the kernel starts nothing by itself any more.
        unsafe { regs::CTRL.write(&self.device, 0) };
        let Self { device, map, slots, ended, .. } = self;
        stops(&*device, self.name, STOP_STEP_US, self.stop_us, |device| {
            let ctrl = regs::CTRL.read_and_clear(device);
            if regs::is_done(ctrl) {
                let words = results(device, map);
                // There are at most as many as slots.
                let _ = slots
                    .pop_front()
                    .map(|slot| ended.push_back(Completion { words, ..Completion::of(slot) }));
                release(device, map);
            }
            (regs::is_idle(ctrl), ctrl)
        })?;
        self.slots.clear();
        if self.map.interrupt {
            acknowledge(&self.device);
            // AP_READY lets a waiting job start.
            let enabled = if self.map.protocol == Protocol::Chain {
                regs::INT_DONE | regs::INT_READY
            } else {
                regs::INT_DONE
            };
            // Also after a reset from outside, which turned the interrupts off.
            // SAFETY: interrupt enables move no data.
            unsafe {
                regs::IER.write(&self.device, enabled);
                regs::GIE.write(&self.device, 1);
            }
        }
        Ok(())
    }

    /// Waits for the end of the jobs under way, with the interrupt off: a kernel cannot be aborted.
    /// In a chain the first job's end must be seen before the second can end. It is polled twice,
    /// because the program may have died right after an AP_CONTINUE, when AP_DONE is read once
    /// more.
    fn stop_program(&self) -> StopProgram {
        let ctrl = regs::CTRL.offset();
        let limit_us = self.stop_us.min(PROGRAM_US);
        let mut steps = Vec::<_, { 2 * CHAIN + 2 }>::new();
        // There is room for all.
        if self.map.interrupt {
            let _ = steps.push(StopStep::write(regs::GIE.offset(), u32::MAX, 0));
        }
        if self.map.protocol == Protocol::Chain {
            for _ in 0..CHAIN {
                let _ = steps.push(StopStep::poll_while(
                    ctrl,
                    regs::AP_DONE | regs::AP_IDLE,
                    0,
                    limit_us,
                ));
                let _ = steps.push(StopStep::write(ctrl, u32::MAX, regs::AP_CONTINUE));
            }
        } else {
            // AUTO_RESTART off, as AP_CONTINUE's write does.
            let _ = steps.push(StopStep::write(ctrl, u32::MAX, 0));
        }
        let _ = steps.push(StopStep::poll_until(ctrl, regs::IDLE_MASK, regs::AP_IDLE, limit_us));
        StopProgram::new(&steps).unwrap_or_default()
    }
}

forward_as_fd!({D} ApCtrl<D>, device: D);
