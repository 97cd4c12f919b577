//! One buffer through random chains of jobs, over a port that snoops and one that does not, against
//! a plain model of its bytes. Whole and partial lines, parts of parts, read and written, with and
//! without a way back to the CPU.
//!
//! `gemm8` stands for any device: with B zero and a constant bias it writes 16 known bytes, with B
//! the identity it shows what it reads.

use contigo::{
    CpuBuf, DevBuf, Pool, Queue, Region,
    sim::{SimBoard, SimWindow},
};
use contigo_gemm8::{Gemm, Gemm8, Gemm8Model, Output, SimGemm8};
use contigo_testkit::emulated;
use fastrand::Rng;
use std::{ops::Range, time::Duration};

/// Each of them runs 12 hand-overs.
const SEEDS: u64 = 2_000;
const SLOT: usize = 1024;
const GEMM: Gemm = Gemm { m: 1, n: 16, k: 16, output: Output::Int8 { relu: false, shift: 0 } };
/// The bytes that one job reads or writes.
const STEP: usize = 16;

type Queues = [Queue<Gemm8<SimWindow<Gemm8Model>>>; 2];

enum Held {
    Cpu(CpuBuf),
    /// And which bytes of the buffer it was given.
    Dev(DevBuf, Range<usize>),
}

/// The expected bytes; `None` where a device was allowed to write and did not.
struct Model(Vec<Option<u8>>);

impl Model {
    fn check(&self, seen: &[u8], at: usize, what: &str) {
        for (index, (&seen, expected)) in seen.iter().zip(&self.0[at..]).enumerate() {
            assert!(
                expected.is_none_or(|expected| expected == seen),
                "{what}: byte {} is {seen:#x}, not {expected:x?}",
                at + index
            );
        }
    }
}

/// The CPU looks at everything, and writes somewhere.
fn cpu_turn(rng: &mut Rng, buf: &mut CpuBuf, model: &mut Model) {
    let view = buf.view_mut::<u8>().unwrap();
    model.check(view, 0, "the CPU reads");
    let start = rng.usize(..SLOT);
    let end = SLOT.min(start + rng.usize(..200));
    view[start..end].fill(rng.u8(..));
    for (expected, &byte) in model.0.iter_mut().zip(view.iter()) {
        *expected = Some(byte);
    }
}

/// A job that reads or writes the first 16 bytes of `range`, and is given all of it.
fn device_turn(
    rng: &mut Rng,
    queues: &mut Queues,
    pool: &Pool,
    held: Held,
    model: &mut Model,
) -> Held {
    let queue = &mut queues[rng.usize(..2)];
    let writes = rng.bool();
    let value = rng.u8(1..100);
    let [mut other, mut b, mut bias] = [(); 3].map(|()| pool.take().unwrap());
    other.view_mut::<u8>().unwrap().fill(0);
    b.view_mut::<u8>().unwrap().fill(0);
    if !writes {
        (0..STEP).for_each(|i| b.view_mut::<u8>().unwrap()[i * (STEP + 1)] = 1);
    }
    bias.view_mut::<i32>().unwrap().fill(if writes { i32::from(value) } else { 0 });

    // The device wants operands at multiples of 64; their ends may be anywhere.
    let (range, given, operand) = match held {
        Held::Cpu(buf) => {
            let start = 64 * rng.usize(..8);
            let range = start..start + rng.usize(STEP..=SLOT - start);
            (
                range.clone(),
                range.clone(),
                if writes { buf.from_device(range) } else { buf.to_device(range) },
            )
        }
        Held::Dev(buf, given) => {
            let start = 64 * rng.usize(..=(given.len() - STEP) / 64);
            let part = start..start + rng.usize(STEP..=given.len() - start);
            let range = given.start + part.start..given.start + part.end;
            (range, given, if writes { buf.from_device(part) } else { buf.to_device(part) })
        }
    };
    let (b, bias) = (b.to_device(..STEP * STEP), bias.to_device(..4 * STEP));
    if writes {
        queue.submit([other.to_device(..), b, bias, operand], &GEMM.words()).unwrap();
        model.0[range.clone()].fill(None);
        model.0[range.start..range.start + STEP].fill(Some(value));
        let [.., c]: [_; 4] = queue.wait_device(Duration::from_millis(5)).unwrap().unwrap().buffers;
        return Held::Dev(c, given);
    }
    queue.submit([operand, b, bias, other.from_device(..64)], &GEMM.words()).unwrap();
    let [a, _, _, c] = queue.wait_device(Duration::from_millis(5)).unwrap().unwrap().buffers;
    model.check(
        &c.into_cpu().unwrap().view::<u8>().unwrap()[..STEP],
        range.start,
        "the device reads",
    );
    Held::Dev(a, given)
}

fn run(seed: u64) {
    let mut rng = Rng::with_seed(seed);
    let board = SimBoard::new(seed);
    let region = Region::new(board.memory(8 * SLOT).unwrap()).unwrap();
    let pool = region.pool(8, SLOT).unwrap();
    let devices =
        [SimGemm8::new(&board, board.port()), SimGemm8::new(&board, board.coherent_port())];
    let mut queues: Queues = devices.each_ref().map(|device| {
        Queue::new(Gemm8::open_simulated(device.window().unwrap()).unwrap(), 1).unwrap()
    });

    let mut model = Model(vec![None; SLOT]);
    let mut held = Held::Cpu(pool.take().unwrap());
    for _ in 0..12 {
        held = match held {
            Held::Cpu(mut buf) => {
                cpu_turn(&mut rng, &mut buf, &mut model);
                device_turn(&mut rng, &mut queues, &pool, Held::Cpu(buf), &mut model)
            }
            Held::Dev(buf, _) if rng.u8(..4) == 0 => Held::Cpu(buf.into_cpu().unwrap()),
            dev @ Held::Dev(..) => device_turn(&mut rng, &mut queues, &pool, dev, &mut model),
        };
    }
    let buf = match held {
        Held::Cpu(buf) => buf,
        Held::Dev(buf, _) => buf.into_cpu().unwrap(),
    };
    model.check(buf.view::<u8>().unwrap(), 0, "at the end");
    assert_eq!(
        board.counts().unowned_accesses,
        0,
        "a device touched bytes that were not handed over"
    );
    assert_eq!(board.counts().evictions, 0, "a line was dirty while a device wrote it");
}

#[test]
fn every_byte_is_where_its_last_writer_put_it() {
    for seed in 0..emulated::fewer(SEEDS) {
        let ended = std::panic::catch_unwind(|| run(seed));
        assert!(ended.is_ok(), "seed {seed} of tests/chains.rs");
    }
}
