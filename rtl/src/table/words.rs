#![allow(unsafe_code, reason = "implementing `Driver` is a promise about the hardware")]
//! The cores that this crate has for its own tests: one that copies words, and one that cannot be
//! stopped, with the gate before its master and without.

use super::jobs::{self, Bytes, Job, Plan, STOP_EVERY};
use super::{Setting, TableError, Tally};
use contigo::drivers::axi_gate::{self, AxiGate, Gated, Part};
use contigo::hw::mmio::{ReadWrite, Register};
use contigo::hw::poll_every;
use contigo::job::exactly;
use contigo::mem::DevSlice;
use contigo::sim::SimBoard;
use contigo::{Align, Completion, Device, Driver, Error, OperandSpec, Result};
use fastrand::Rng;
use std::time::Duration;

/// W 1: a job begins. Bit 0: it runs.
const START: Register<ReadWrite> = Register::at(0x00);
/// An operand's sizes are multiples of this.
const UNIT_BYTES: usize = 64;
/// The longest operand: 64 bursts.
const SLOT_BYTES: usize = 64 * UNIT_BYTES;
/// One job of 4 KiB ends within a tenth of it, in hostile memory.
const STOP: Duration = Duration::from_millis(10);
/// The registers of a core; the gate's follow.
const WINDOW_BYTES: usize = 0x1000;
const OPERANDS: [OperandSpec; 2] = [
    OperandSpec::to_device().aligned(Align::LINE),
    OperandSpec::from_device().aligned(Align::LINE),
];

/// The registers of such a core.
#[derive(Debug)]
struct Map {
    name: &'static str,
    from: Register<ReadWrite>,
    to: Register<ReadWrite>,
    /// How many of `count_bytes` it does.
    count: Register<ReadWrite>,
    count_bytes: usize,
    /// W 1: its interrupt was seen.
    seen: Option<Register<ReadWrite>>,
    /// W: it forgets its job, in the middle of a burst; without, a stop waits for the job's end.
    reset: Option<Register<ReadWrite>>,
}

impl Map {
    /// `cores/broken`, with a bus of so many bytes.
    const fn copies(count_bytes: usize) -> Self {
        let [from, to, count] = [Register::at(0x04), Register::at(0x08), Register::at(0x10)];
        Self {
            name: "broken",
            from,
            to,
            count,
            count_bytes,
            seen: Some(Register::at(0x14)),
            reset: None,
        }
    }

    /// `cores/gated`.
    const fn writes() -> Self {
        let [from, to, count] = [Register::at(0x08), Register::at(0x04), Register::at(0x0C)];
        Self {
            name: "gated",
            from,
            to,
            count,
            count_bytes: UNIT_BYTES,
            seen: None,
            reset: Some(Register::at(0x10)),
        }
    }
}

/// The driver of such a core.
#[derive(Debug)]
struct Words<D> {
    device: D,
    map: Map,
}

// SAFETY: the core reads and writes the two operands, which have one length. START reads 0 after
// the last answer, and a stop waits for that. The core with a reset needs the gate, or breaks rule
// 2. The row `ungated` shows that, on a board where no other code has memory.
unsafe impl<D: Device> Driver for Words<D> {
    fn name(&self) -> &'static str {
        self.map.name
    }

    contigo::forward!(|this| this.device => port, simulated);

    fn addr_bits(&self) -> u32 {
        32
    }

    fn operands(&self) -> &[OperandSpec] {
        &OPERANDS
    }

    fn check(&self, operands: &[DevSlice], _words: &[u32]) -> Result<()> {
        let [from, to]: &[DevSlice; 2] = exactly(operands)?;
        if from.len_bytes == to.len_bytes && from.len_bytes.is_multiple_of(UNIT_BYTES) {
            return Ok(());
        }
        Err(Error::BufferSize {
            index: 1,
            need_bytes: from.len_bytes as u64,
            have_bytes: to.len_bytes,
        })
    }

    unsafe fn submit(&mut self, _slot: usize, operands: &[DevSlice], _words: &[u32]) -> Result<()> {
        let [from, to]: &[DevSlice; 2] = exactly(operands)?;
        let count = from.len_bytes / self.map.count_bytes;
        #[allow(
            clippy::cast_possible_truncation,
            reason = "`addr_bits` is 32, and a slot has 4 KiB"
        )]
        let words = [
            (&self.map.from, from.addr.0 as u32),
            (&self.map.to, to.addr.0 as u32),
            (&self.map.count, count as u32),
            (&START, 1),
        ];
        for (register, value) in words {
            // SAFETY: nothing runs before START, and then the operands were handed over.
            unsafe { register.write(&self.device, value) };
        }
        Ok(())
    }

    fn poll(&mut self, timeout: Duration) -> Result<Option<Completion>> {
        let done = poll_every(&self.device, 1, timeout, |device| START.read(device) == 0)?;
        if let Some(seen) = self.map.seen.as_ref().filter(|_| done) {
            // SAFETY: it starts nothing.
            unsafe { seen.write(&self.device, 1) };
        }
        Ok(done.then_some(Completion::of(0)))
    }

    fn stop(&mut self) -> Result<()> {
        if let Some(reset) = &self.map.reset {
            // SAFETY: it starts nothing.
            unsafe { reset.write(&self.device, 1) };
        }
        let waited_us = u32::try_from(STOP.as_micros()).unwrap_or(u32::MAX);
        self.poll(STOP)?.map(|_| ()).ok_or(Error::WillNotStop {
            device: self.map.name,
            status: START.read(&self.device),
            waited_us,
        })
    }
}

/// Copies by `core`, which is `broken32` or `broken512`. With a `fault` it breaks that rule of AXI
/// (`cores/broken/top.v`), and with 0 none.
///
/// # Errors
/// As [`jobs::run`].
pub fn copies(core: &str, fault: u32, setting: &Setting, jobs: u64) -> Result<Tally, TableError> {
    const FAULT: Register<ReadWrite> = Register::at(0x18);
    let board = SimBoard::new(setting.seed);
    board.allow_wrong_accesses(true)?;
    let device = setting.device(&board, core, WINDOW_BYTES, false)?;
    let window = device.window()?;
    // SAFETY: nothing runs.
    unsafe { FAULT.write(&window, fault) };
    let map = Map::copies(if core == "broken512" { 64 } else { 4 });
    let draw = |rng: &mut Rng, _| {
        let mut bytes = vec![0; UNIT_BYTES * rng.usize(1..=SLOT_BYTES / UNIT_BYTES)];
        rng.fill(&mut bytes);
        Ok(Job { words: vec![], operands: [Bytes::Given(bytes.clone()), Bytes::Expected(bytes)] })
    };
    jobs::run(setting, (&board, &device), Words { device: window, map }, &plan(jobs), draw, |_| {
        Ok(())
    })
}

/// Words by the core that reads and writes without end in sight, with the gate before its master.
///
/// # Errors
/// As [`jobs::run`].
pub fn gated(setting: &Setting, jobs: u64) -> Result<Tally, TableError> {
    let board = SimBoard::new(setting.seed);
    board.allow_wrong_accesses(true)?;
    let device = setting.device(&board, "gated", WINDOW_BYTES + axi_gate::WINDOW_BYTES, false)?;
    let window = device.window()?;
    // SAFETY: each part has one owner. All that the core does to memory passes the gate, which
    // resets it; after a reset it waits for START.
    let driver = unsafe {
        let driver = Words { device: Part::new(&window, 0, WINDOW_BYTES)?, map: Map::writes() };
        Gated::new(
            driver,
            AxiGate::open(Part::new(&window, WINDOW_BYTES, axi_gate::WINDOW_BYTES)?)?,
        )
    };
    jobs::run(setting, (&board, &device), driver, &plan(jobs), counted, |_| Ok(()))
}

/// The same without the gate. Its own reset is no quiesce: stray writes are what this row is for.
///
/// # Errors
/// As [`jobs::run`].
pub fn ungated(setting: &Setting, jobs: u64) -> Result<Tally, TableError> {
    let board = SimBoard::new(setting.seed);
    board.allow_wrong_accesses(true)?;
    let device = setting.device(&board, "ungated", WINDOW_BYTES, false)?;
    let driver = Words { device: device.window()?, map: Map::writes() };
    jobs::run(setting, (&board, &device), driver, &plan(jobs), counted, |_| Ok(()))
}

const fn plan(jobs: u64) -> Plan {
    Plan { jobs, stop_every: STOP_EVERY, slot_bytes: SLOT_BYTES }
}

/// The core of the gate writes the number of words that are left.
fn counted(rng: &mut Rng, _: u64) -> Result<Job<2>, TableError> {
    let words = rng.u32(1..=64) * 16;
    let written: Vec<_> =
        (1..=words).rev().flat_map(|left| (0xC0D0_0000 + left).to_le_bytes()).collect();
    let mut read = vec![0; written.len()];
    rng.fill(&mut read);
    Ok(Job { words: vec![], operands: [Bytes::Given(read), Bytes::Expected(written)] })
}
