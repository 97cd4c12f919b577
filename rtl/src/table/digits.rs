#![allow(unsafe_code, reason = "a driver is opened on a core")]
//! The demo's digits through the network that NNgen made, alone or behind the gate.

use super::jobs::{self, Bytes, Job, Plan};
use super::{Setting, TableError, Tally};
use crate::RtlModel;
use crate::nngen::{NnGen, OPERAND_BYTES, WINDOW_BYTES};
use contigo::drivers::axi_gate::{AxiGate, Gated, Part, WINDOW_BYTES as GATE_BYTES};
use contigo::sim::{SimBoard, SimDevice};
use contigo::{CpuBuf, Driver};
use contigo_gemm8::demo::{PIXELS, Reference, SCORES, held_out};
use fastrand::Rng;
use std::fs;

/// The core with the gate before its master.
const GATED: &str = "nngen_gated";
/// The gate's registers.
const GATE: usize = 0x1000;
const SLOT_BYTES: usize = 4096;

/// The scores of one image.
pub type Scores = [i32; SCORES];

/// So many digits through `core`, which is `nngen` or `nngen_gated`; after the last comes the first
/// again. One more of `stop_every` is stopped, and none where that is 0. `seen` gets the scores of
/// each.
///
/// The core alone keeps a driver's rules after a stop only in quick memory ([`NnGen::open`]).
///
/// # Errors
/// As [`jobs::run`].
pub fn run(
    core: &str,
    setting: &Setting,
    jobs: u64,
    stop_every: u64,
    seen: impl FnMut(Scores),
) -> Result<Tally, TableError> {
    let board = SimBoard::new(setting.seed);
    board.allow_wrong_accesses(true)?;
    let window_bytes = if core == GATED { GATE + GATE_BYTES } else { WINDOW_BYTES };
    let device = setting.device(&board, core, window_bytes, true)?;
    let (window, on) = (device.window()?, (&board, &device));
    let plan = Plan { jobs, stop_every, slot_bytes: SLOT_BYTES };
    // SAFETY: each part has one owner. All that the core does to memory passes the gate, which
    // resets it; after a reset it waits for START. Alone, it is stopped where the caller asks for
    // it, on a board where no other code has memory.
    unsafe {
        if core == GATED {
            let driver = NnGen::open(Part::new(&window, 0, WINDOW_BYTES)?)?;
            let gate = AxiGate::open(Part::new(&window, GATE, GATE_BYTES)?)?;
            through(Gated::new(driver, gate), setting, on, &plan, seen)
        } else {
            through(NnGen::open(window)?, setting, on, &plan, seen)
        }
    }
}

fn through(
    driver: impl Driver,
    setting: &Setting,
    on: (&SimBoard, &SimDevice<RtlModel>),
    plan: &Plan,
    mut seen: impl FnMut(Scores),
) -> Result<Tally, TableError> {
    // The weights as the core wants them in memory.
    let weights = fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/cores/nngen/made/mlp.bin"))?;
    let reference = Reference::new()?;
    let digits: Vec<_> = held_out().collect();
    let mut digits = digits.iter().cycle();
    let draw = |_: &mut Rng, _| {
        let mut pixels = [0; PIXELS];
        if let Some(digit) = digits.next() {
            digit.decode(&mut pixels)?;
        }
        let scores =
            reference.scores(&pixels)?.iter().flat_map(|score| score.to_le_bytes()).collect();
        let given = Bytes::Given(pixels.map(i8::cast_unsigned).to_vec());
        Ok(Job {
            words: vec![],
            operands: [
                Bytes::Any(OPERAND_BYTES[0]),
                Bytes::Expected(scores),
                given,
                Bytes::Given(weights.clone()),
            ],
        })
    };
    let look = |[_, scores, ..]: &[CpuBuf; 4]| {
        let scores = scores.view_at::<i32>(..OPERAND_BYTES[1])?;
        seen(scores.first_chunk().copied().unwrap_or_default());
        Ok(())
    };
    jobs::run(setting, on, driver, plan, draw, look)
}
