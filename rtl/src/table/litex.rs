#![allow(unsafe_code, reason = "a driver is opened on a core")]
//! Copies by LiteX's reader and writer, alone or behind the gate.

use super::jobs::{self, Bytes, Job, Plan, STOP_EVERY};
use super::{Setting, TableError, Tally};
use crate::litex::{LitexDma, WINDOW_BYTES};
use contigo::drivers::axi_gate::{AxiGate, Gated, Part, WINDOW_BYTES as GATE_BYTES};
use contigo::sim::SimBoard;
use fastrand::Rng;

/// The gate's registers.
const GATE: usize = 0x1000;
const WORD_BYTES: usize = 4;
/// The core has one word under way at a time.
const SLOT_BYTES: usize = 512;

/// Copies of random lengths by the core alone. None is stopped: its stop is no quiesce.
///
/// # Errors
/// As [`jobs::run`].
pub fn alone(setting: &Setting, jobs: u64) -> Result<Tally, TableError> {
    let board = SimBoard::new(setting.seed);
    board.allow_wrong_accesses(true)?;
    let device = setting.device(&board, "litex", WINDOW_BYTES, false)?;
    // SAFETY: the window is the core's, and no job is stopped.
    let driver = unsafe { LitexDma::open(device.window()?)? };
    jobs::run(
        setting,
        (&board, &device),
        driver,
        &Plan { jobs, stop_every: 0, slot_bytes: SLOT_BYTES },
        copy,
        |_| Ok(()),
    )
}

/// The same behind the gate; one in [`STOP_EVERY`] more is stopped.
///
/// # Errors
/// As [`jobs::run`].
pub fn gated(setting: &Setting, jobs: u64) -> Result<Tally, TableError> {
    let board = SimBoard::new(setting.seed);
    board.allow_wrong_accesses(true)?;
    let device = setting.device(&board, "litex_gated", GATE + GATE_BYTES, false)?;
    let window = device.window()?;
    // SAFETY: each part has one owner. All that the core does to memory passes the gate, which
    // resets it; after a reset both of its halves are off.
    let driver = unsafe {
        let driver = LitexDma::open(Part::new(&window, 0, WINDOW_BYTES)?)?;
        Gated::new(driver, AxiGate::open(Part::new(&window, GATE, GATE_BYTES)?)?)
    };
    jobs::run(
        setting,
        (&board, &device),
        driver,
        &Plan { jobs, stop_every: STOP_EVERY, slot_bytes: SLOT_BYTES },
        copy,
        |_| Ok(()),
    )
}

fn copy(rng: &mut Rng, _: u64) -> Result<Job<2>, TableError> {
    let mut bytes = vec![0; WORD_BYTES * rng.usize(1..=SLOT_BYTES / WORD_BYTES)];
    rng.fill(&mut bytes);
    Ok(Job { words: vec![], operands: [Bytes::Given(bytes.clone()), Bytes::Expected(bytes)] })
}
