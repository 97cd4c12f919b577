//! The registers of the core and of the model, read and written.

use super::bench::{
    ABORT, BYTES_OUT, CTRL, DONE, GIE, IDLE, IER, ISR, LEN_BYTES, MODE, POINTERS, READY, Rig,
    SIZES, START, STATUS, core, oracle, settings,
};
use super::job::Job;
use contigo::sim::Model;
use fastrand::Rng;

const ID: usize = 0x88;
const STATUS_VLD: usize = 0x6C;
const BYTES_OUT_VLD: usize = 0x7C;
/// Words that the table leaves out.
const RESERVED: [usize; 12] =
    [0x18, 0x24, 0x30, 0x3C, 0x44, 0x4C, 0x54, 0x5C, 0x64, 0x70, 0x74, 0x80];

fn as_after_reset<M: Model>(bench: &mut Rig<M>) {
    assert_eq!((bench.read(CTRL), bench.read(ID)), (IDLE, 0x474D_3801));
    for offset in POINTERS {
        assert_eq!(
            (bench.read(offset), bench.read(offset + 4)),
            (u32::MAX, u32::MAX),
            "{offset:#x}"
        );
    }
    for offset in SIZES.into_iter().chain([GIE, IER, ISR, MODE, ABORT, STATUS, BYTES_OUT]) {
        assert_eq!(bench.read(offset), 0, "{offset:#x}");
    }
}

fn hold_what_they_have<M: Model>(bench: &mut Rig<M>) {
    let bits = [(GIE, 1), (IER, 3), (MODE, 0x31F), (ABORT, 1)];
    let words = SIZES
        .into_iter()
        .chain(POINTERS)
        .chain(POINTERS.map(|offset| offset + 4))
        .map(|offset| (offset, u32::MAX));
    for (offset, mask) in words.chain(bits) {
        for value in [0x5A5A_5A5A, 0xA5A5_A5A5, u32::MAX, 0] {
            bench.write(offset, value);
            assert_eq!(bench.read(offset), value & mask, "{offset:#x}");
        }
    }
    for offset in RESERVED.into_iter().chain([STATUS, BYTES_OUT]) {
        bench.write(offset, u32::MAX);
        assert_eq!(bench.read(offset), 0, "{offset:#x}");
    }
}

/// AP_START stays until the job is done, AP_DONE and AP_READY are gone when they are read, and ISR
/// toggles.
fn a_job_shows<M: Model>(bench: &mut Rig<M>, job: &Job) {
    job.prepare(bench);
    bench.write(IER, 3);
    bench.write(CTRL, START);
    assert_eq!(bench.read(CTRL), START);
    // A start meanwhile is ignored: there is one end.
    bench.write(CTRL, START);
    bench.wait();
    assert_eq!(bench.read(ISR), 3);
    bench.write(ISR, 2);
    assert_eq!(bench.read(ISR), 1);
    bench.write(ISR, 3);
    assert_eq!(bench.read(ISR), 2);
    bench.write(ISR, 2);
    assert_eq!(bench.read(CTRL), DONE | IDLE | READY);
    assert_eq!(bench.read(CTRL), IDLE);
    bench.pass_ns(1_000_000);
    assert_eq!((bench.read(CTRL), bench.read(ISR)), (IDLE, 0));
}

fn all<M: Model>(bench: &mut Rig<M>, job: &Job) {
    as_after_reset(bench);
    hold_what_they_have(bench);
    a_job_shows(bench, job);
    // The second job begins before the end of the first was read.
    bench.write(IER, 0);
    bench.write(CTRL, START);
    bench.pass_ns(1_000_000);
    bench.model.reset();
    as_after_reset(bench);
}

#[test]
fn the_model_has_the_contracts_registers() {
    let mut rng = Rng::with_seed(1);
    all(&mut oracle(vec![0; LEN_BYTES]), &Job::of([20, 32, 64], 5, &mut rng));
}

#[test]
fn the_core_has_the_contracts_registers() {
    let job = Job::of([20, 32, 64], 5, &mut Rng::with_seed(1));
    for seed in 0..6 {
        let Some(mut bench) = core(settings(seed), vec![0; LEN_BYTES], seed) else { return };
        all(&mut bench, &job);
        assert!(bench.model.findings().is_empty(), "{:#x?}", bench.model.findings());
    }
}

/// The valid words clear when they are read. The driver does not look at them.
#[test]
fn outputs_say_that_they_were_written() {
    let job = Job::of([1, 16, 16], 0, &mut Rng::with_seed(2));
    let Some(mut bench) = core(settings(0), vec![0; LEN_BYTES], 2) else { return };
    for _ in 0..2 {
        assert_eq!((bench.read(STATUS_VLD), bench.read(BYTES_OUT_VLD)), (0, 0));
        job.start(&mut bench);
        bench.end();
        assert_eq!((bench.read(STATUS_VLD), bench.read(BYTES_OUT_VLD)), (1, 1));
    }
}
