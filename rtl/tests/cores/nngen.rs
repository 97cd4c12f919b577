#![allow(unsafe_code, reason = "a driver is opened on a core")]
//! A network that NNgen made of the demo's weights, behind a driver and the queue: every digit,
//! and stops at every moment. Its own reset is no quiesce, and the checks say so. With the gate
//! before its master, nothing is written after a stop.

use crate::cores::skip;
use contigo::drivers::axi_gate::{AxiGate, Gated, Part, WINDOW_BYTES as GATE_BYTES};
use contigo::sim::{SimBoard, SimDevice, SimWindow};
use contigo::{Driver, Queue, Region};
use contigo_gemm8::demo::HELD_OUT;
use contigo_rtl::axi::{Breach, Finding, SlaveConfig};
use contigo_rtl::nngen::{NnGen, OPERAND_BYTES, WINDOW_BYTES};
use contigo_rtl::table::{self, Setting, TableError};
use contigo_rtl::{RtlConfig, RtlModel};
use std::fs;

const SLOT_BYTES: usize = 4096;
/// The core alone, and with the gate before its master.
const ALONE: &str = "nngen";
const GATED: &str = "nngen_gated";
/// The gate's registers.
const GATE: usize = 0x1000;
const STOPS: u32 = 60;
/// Writes are answered after 2 µs: the core's reset does not wait for that.
const SLOW: SlaveConfig = SlaveConfig { write_cycles: 400..=400, ..SlaveConfig::CALM };

/// The weights as the core wants them in memory.
fn weights() -> Vec<u8> {
    let weights =
        fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/cores/nngen/made/mlp.bin")).unwrap();
    assert_eq!(weights.len(), OPERAND_BYTES[3]);
    weights
}

/// The core in slow memory.
fn model(core: &str) -> Option<RtlModel> {
    let window_bytes = if core == GATED { GATE + GATE_BYTES } else { WINDOW_BYTES };
    let config = RtlConfig { window_bytes, memory: SLOW, has_irq: true, ..RtlConfig::default() };
    skip::or_skip(RtlModel::new(core, config))
}

/// The driver of the core that has a gate.
fn gated(window: &SimWindow<RtlModel>) -> impl Driver {
    // SAFETY: each part has one owner. All that the core does to memory passes the gate, which
    // resets it; after a reset it waits for START.
    unsafe {
        let driver = NnGen::open(Part::new(window, 0, WINDOW_BYTES).unwrap()).unwrap();
        Gated::new(driver, AxiGate::open(Part::new(window, GATE, GATE_BYTES).unwrap()).unwrap())
    }
}

/// The first so many digits by this core; the cycles that each took.
fn digits(core: &str, setting: &Setting, digits: usize) -> Option<u64> {
    let jobs = digits as u64;
    let tally = match table::digits::run(core, setting, jobs, 0, |_| {}) {
        Err(TableError::NoCore(why)) => return skip::or_skip(Err(why)),
        tally => tally.unwrap(),
    };
    assert!(tally.is_good() && tally.jobs == jobs, "{tally:?}");
    Some(tally.cycles / jobs)
}

#[test]
fn every_digit_is_numpys_bit_for_bit() {
    let Some(cycles) = digits(ALONE, &Setting::calm(7), HELD_OUT) else { return };
    assert!((3_000..5_000).contains(&cycles), "{cycles} cycles a digit");
}

/// The gate changes no digit, and costs few cycles.
#[test]
fn every_digit_is_the_same_behind_the_gate() {
    let Some(cycles) = digits(GATED, &Setting::calm(7), HELD_OUT) else { return };
    assert!((3_000..5_000).contains(&cycles), "{cycles} cycles a digit");
}

/// Stops after 0 to 59 µs: how many of them were followed by writes.
fn late_writes(board: &SimBoard, device: &SimDevice<RtlModel>, driver: impl Driver) -> u32 {
    let weights = weights();
    let region = Region::new(board.memory(64 << 10).unwrap()).unwrap();
    let pool = region.pool(4, SLOT_BYTES).unwrap();
    let mut queue = Queue::new(driver, 1).unwrap();
    let mut late = 0;
    for us in 0..STOPS {
        let [scratch, out, mut input, mut held] = [(); 4].map(|()| pool.take().unwrap());
        held.copy_from_slice(&weights).unwrap();
        input.copy_from_slice(&[9; 64]).unwrap();
        let operands = [
            scratch.from_device(..64),
            out.from_device(..64),
            input.to_device(..64),
            held.to_device(..weights.len()),
        ];
        queue.submit(operands, &[]).unwrap();
        device.run_for(us).unwrap();
        queue.clear().unwrap();
        let before = board.counts().bytes_written;
        device.run_for(50).unwrap();
        late += u32::from(board.counts().bytes_written > before);
    }
    late
}

/// The stops of this core that were followed by writes, and the rules that it broke.
fn stops(core: &str) -> Option<(u32, Vec<Finding>)> {
    let (model, board) = (model(core)?, SimBoard::new(7));
    let device = SimDevice::with_model(&board, board.port(), model);
    let window = device.window().unwrap();
    let late = if core == GATED {
        late_writes(&board, &device, gated(&window))
    } else {
        // SAFETY: it is not: that is shown here, in memory that no other code has.
        late_writes(&board, &device, unsafe { NnGen::open(window) }.unwrap())
    };
    println!("{core}: {late} of {STOPS} stops were followed by writes");
    Some((late, device.model(|model| model.findings().to_vec()).unwrap()))
}

/// NNgen's reset looks at the bursts that it sends, and not at their answers: the place of a gate.
#[test]
fn its_own_reset_is_no_quiesce() {
    let Some((late, found)) = stops(ALONE) else { return };
    let owed = |breach: &Breach| matches!(breach, Breach::IdleWhileOwed { writes: 1.., .. });
    assert!(found.iter().all(|finding| owed(&finding.breach)), "{found:?}");
    assert!(
        late > 0 && found.len() >= late as usize,
        "{late} of {STOPS} stops were followed by writes, {} were found",
        found.len()
    );
}

#[test]
fn nothing_written_behind_gate_after_stop() {
    let Some(stops) = stops(GATED) else { return };
    assert_eq!(stops, (0, vec![]));
}
