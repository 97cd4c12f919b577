#![allow(unsafe_code, reason = "a driver is opened on a core")]
//! gemm8's Verilog against its model: random products by both.

use super::jobs::{self, Bytes, Job, Plan, STOP_EVERY};
use super::{Setting, TableError, Tally};
use contigo::sim::SimBoard;
use contigo::{Queue, Region};
use contigo_gemm8::{Gemm, Gemm8, Output, SimGemm8, regs};
use fastrand::Rng;

/// B of the largest product that is drawn has 240 KiB.
const SLOT_BYTES: usize = 256 << 10;

/// Random products through gemm8's driver, by the Verilog and by the model; one in
/// [`STOP_EVERY`] more is aborted.
///
/// # Errors
/// As [`jobs::run`].
pub fn run(setting: &Setting, jobs: u64) -> Result<Tally, TableError> {
    let board = SimBoard::new(setting.seed);
    board.allow_wrong_accesses(true)?;
    let device = setting.device(&board, "gemm8", regs::WINDOW_BYTES, true)?;
    // SAFETY: the core behind the window is gemm8's Verilog, and this is the only window.
    let driver = unsafe { Gemm8::open(device.window()?)? };

    let apart = SimBoard::new(setting.seed);
    apart.allow_wrong_accesses(true)?;
    let oracle = SimGemm8::new(&apart, apart.coherent_port());
    let mut oracle = Queue::new(Gemm8::open_simulated(oracle.window()?)?, 1)?;
    let region = Region::new(apart.memory(4 * SLOT_BYTES)?)?;
    let pool = region.pool(4, SLOT_BYTES)?;
    let draw = |rng: &mut Rng, _| {
        let (gemm, [a, b, bias]) = product(rng);
        let [.., c_bytes] = gemm.operand_bytes();
        let c_bytes = usize::try_from(c_bytes).unwrap_or(SLOT_BYTES);
        let given = [a, b, bias, Bytes::Any(c_bytes)];
        let [.., c] = jobs::once(&mut oracle, jobs::operands(&pool, &given, rng)?, &gemm.words())?;
        let [a, b, bias, _] = given;
        let expected = Bytes::Expected(c.view_at::<u8>(..c_bytes)?.to_vec());
        Ok(Job { words: gemm.words().to_vec(), operands: [a, b, bias, expected] })
    };
    let plan = Plan { jobs, stop_every: STOP_EVERY, slot_bytes: SLOT_BYTES };
    jobs::run(setting, (&board, &device), driver, &plan, draw, |_| Ok(()))
}

/// Mostly small ones. One in four has rows longer than a block, one in four long sums. Half of the
/// biases are small, so that sums of all sizes come.
fn product(rng: &mut Rng) -> (Gemm, [Bytes; 3]) {
    let n = 16 * if rng.u8(..4) == 0 { rng.u32(17..=40) } else { rng.u32(1..=8) };
    let k = 16 * if rng.u8(..4) == 0 { rng.u32(7..=24) } else { rng.u32(1..=6) };
    let relu = rng.bool();
    let output = if rng.bool() {
        Output::Int32 { relu }
    } else {
        Output::Int8 { relu, shift: rng.u32(..32) }
    };
    let args = Gemm { m: rng.u32(1..=40), n, k, output };
    let [a, b, bias, _] = args.operand_bytes().map(|bytes| {
        let mut operand = vec![0; usize::try_from(bytes).unwrap_or(SLOT_BYTES)];
        rng.fill(&mut operand);
        operand
    });
    let small = if rng.bool() { rng.u32(8..24) } else { 0 };
    let bias = bias
        .as_chunks()
        .0
        .iter()
        .flat_map(|word| (i32::from_le_bytes(*word) >> small).to_le_bytes())
        .collect();
    (args, [a, b, bias].map(Bytes::Given))
}
