#![allow(unsafe_code, reason = "a driver is opened on a core")]
//! A network that NNgen made of the demo's weights, behind a driver and the engine: every digit,
//! and stops at every moment. Its own reset is no quiesce, and the checks say so.

use crate::skip;
use contigo::{
    Align, Engine, Pool, Region,
    sim::{SimBoard, SimDevice},
};
use contigo_gemm8::demo::{HELD_OUT, Reference, held_out};
use contigo_rtl::{
    RtlConfig, RtlModel,
    axi::{Breach, SlaveConfig},
    nngen::{NnGen, OPERAND_BYTES, WINDOW_BYTES},
};
use std::{fs, time::Duration};

const SLOT_BYTES: usize = 4096;

/// The weights as the core wants them in memory.
fn weights() -> Vec<u8> {
    let weights = fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/cores/nngen/made/mlp.bin")).unwrap();
    assert_eq!(weights.len(), OPERAND_BYTES[3]);
    weights
}

fn model(test: &str, memory: SlaveConfig) -> Option<RtlModel> {
    let config = RtlConfig { window_bytes: WINDOW_BYTES, memory, has_irq: true, ..RtlConfig::default() };
    skip::or_skip(&format!("nngen::{test}"), RtlModel::new("nngen", config))
}

/// The first so many digits, bit for bit; the cycles that each took.
fn digits(test: &str, memory: SlaveConfig, digits: usize) -> Option<u64> {
    let model = model(test, memory)?;
    let (weights, reference, board) = (weights(), Reference::new().unwrap(), SimBoard::new(7));
    let region = Region::new(board.memory(64 << 10).unwrap()).unwrap();
    let pool = Pool::<4>::new(region.carve(4 * SLOT_BYTES, Align::PAGE).unwrap(), SLOT_BYTES).unwrap();
    let core = SimDevice::with_model(&board, board.port(), model);
    // SAFETY: the window is the core's, and no job is stopped.
    let mut engine = Engine::new(unsafe { NnGen::open(core.window().unwrap()) }.unwrap()).unwrap();
    let [mut scratch, mut out, mut input, mut held] = [(); 4].map(|()| pool.take().unwrap());
    held.copy_from_slice(&weights).unwrap();
    for (number, digit) in held_out().take(digits).enumerate() {
        let mut pixels = [0; 64];
        digit.decode(&mut pixels).unwrap();
        input.copy_from_slice(&pixels.map(i8::cast_unsigned)).unwrap();
        let operands = [scratch.from_device(..64), out.from_device(..64), input.to_device(..64), held.to_device(..weights.len())];
        [scratch, out, input, held] = engine.start(operands, &()).unwrap().wait(Duration::from_millis(20)).unwrap().buffers;
        assert_eq!(out.view_at::<i32>(..64).unwrap(), reference.scores(&pixels).unwrap(), "digit {number}");
    }
    drop((scratch, out, input, held, engine));
    core.model(|model| {
        assert_eq!(model.findings(), []);
        assert_eq!((board.counts().unowned_accesses, board.counts().evictions), (0, 0));
        Some(model.cycle() / digits as u64)
    })
    .unwrap()
}

#[test]
fn every_digit_is_numpys_bit_for_bit() {
    let Some(cycles) = digits("every_digit_is_numpys_bit_for_bit", SlaveConfig::CALM, HELD_OUT) else { return };
    assert!((3_000..5_000).contains(&cycles), "{cycles} cycles a digit");
}

#[test]
fn digits_are_right_in_memory_that_does_all_that_axi_allows() {
    digits("digits_are_right_in_memory_that_does_all_that_axi_allows", SlaveConfig::HOSTILE, 100);
}

/// Stops after 0 to 59 µs: how many of them were followed by writes, and by a breach of idleness
/// with writes under way.
fn stops(test: &str, memory: SlaveConfig) -> Option<(usize, usize)> {
    let model = model(test, memory)?;
    let (weights, board) = (weights(), SimBoard::new(7));
    let region = Region::new(board.memory(64 << 10).unwrap()).unwrap();
    let pool = Pool::<4>::new(region.carve(4 * SLOT_BYTES, Align::PAGE).unwrap(), SLOT_BYTES).unwrap();
    let core = SimDevice::with_model(&board, board.port(), model);
    // SAFETY: it is not: that is shown here, in memory that nobody else has.
    let mut engine = Engine::new(unsafe { NnGen::open(core.window().unwrap()) }.unwrap()).unwrap();
    let mut late = 0;
    for us in 0..60 {
        let [scratch, out, mut input, mut held] = [(); 4].map(|()| pool.take().unwrap());
        held.copy_from_slice(&weights).unwrap();
        input.copy_from_slice(&[9; 64]).unwrap();
        let operands = [scratch.from_device(..64), out.from_device(..64), input.to_device(..64), held.to_device(..weights.len())];
        let job = engine.start(operands, &()).unwrap();
        core.run_for(us).unwrap();
        drop(job);
        let before = board.counts().bytes_written;
        core.run_for(50).unwrap();
        late += usize::from(board.counts().bytes_written > before);
    }
    core.model(|model| {
        let owed = |breach: &Breach| matches!(breach, Breach::IdleWhileOwed { writes: 1.., .. });
        assert!(model.findings().iter().all(|finding| owed(&finding.breach)), "{:?}", model.findings());
        Some((late, model.findings().len()))
    })
    .unwrap()
}

/// NNgen's reset looks at the bursts that it sends, and not at their answers: the place of a gate.
#[test]
fn its_own_reset_is_no_quiesce() {
    let slow = SlaveConfig { write_cycles: 400..=400, ..SlaveConfig::CALM };
    let Some((late, found)) = stops("its_own_reset_is_no_quiesce", slow) else { return };
    println!("{late} of 60 stops were followed by writes, {found} were found");
    assert!(late > 0 && found >= late, "{late} of 60 stops were followed by writes, {found} were found");
}
