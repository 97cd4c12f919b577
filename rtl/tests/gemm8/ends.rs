//! Jobs that fail: where no memory is, where memory answers with an error, and with arguments that
//! are refused.

use super::bench::{BASE, core, oracle, settings};
use super::job::Job;
use contigo::sim::Faults;
use fastrand::Rng;

const DIMENSION: u32 = 1;
const ALIGNMENT: u32 = 2;
const READ: u32 = 4;
const WRITE: u32 = 8;

const SEEDS: u64 = 100;

/// After a failure the next job is right.
fn is_well(bench: &mut super::rig::Rig, rng: &mut Rng, seed: u64) {
    let job = Job::of([3, 32, 32], 4, rng);
    let mut oracle = oracle(bench.memory.bytes.clone());
    job.start(&mut oracle);
    job.start(bench);
    assert_eq!(bench.end(), oracle.end(), "seed {seed}");
    assert!(bench.memory.bytes == oracle.memory.bytes, "seed {seed}: the next job is wrong");
    assert!(bench.model.findings().is_empty(), "seed {seed}: {:#x?}", bench.model.findings());
}

/// DECERR for one beat of one operand. BYTES_OUT counts the bursts that were answered OKAY: all of
/// those that were sent, but the one with the hole.
#[test]
fn a_hole_in_memory_is_told() {
    for seed in super::seeds(SEEDS) {
        let mut rng = Rng::with_seed(seed);
        let job = Job::random(&mut rng);
        let bytes = job.memory(&mut rng);
        let operand = rng.usize(..4);
        let hole =
            BASE + (job.range(operand).start + 16 * rng.usize(..job.len(operand) / 16)) as u64;
        let Some(mut core) = core(settings(seed), bytes.clone(), seed) else { return };
        let mut oracle = oracle(bytes);
        (core.memory.hole, oracle.memory.hole) = (hole..hole + 16, hole..hole + 16);
        job.start(&mut oracle);
        job.start(&mut core);
        let ((status, _), (ended, bytes_out)) = (oracle.end(), core.end());
        assert_eq!(
            (ended, status),
            if operand == 3 { (WRITE, WRITE) } else { (READ, READ) },
            "seed {seed}: operand {operand} of {job:x?}"
        );
        let sent = 16 * core.model.counts(0).unwrap().write_beats;
        let lost = sent - u64::from(bytes_out);
        assert!(
            if operand == 3 { (16..=256).contains(&lost) } else { lost == 0 },
            "seed {seed}: {bytes_out} of {sent} bytes"
        );
        let after = core.memory.bytes.clone();
        core.memory.accesses = 0;
        core.pass_ns(100_000);
        assert!(
            core.memory.accesses == 0 && core.memory.bytes == after,
            "seed {seed}: an access after the end"
        );
        core.memory.hole = 0..0;
        is_well(&mut core, &mut rng, seed);
    }
}

/// SLVERR for any one of the first bursts: the job says it, or it had no such burst.
#[test]
fn an_error_of_memory_is_told() {
    let mut failed = [0; 2];
    for seed in super::seeds(SEEDS) {
        let mut rng = Rng::with_seed(seed);
        let job = Job::random(&mut rng);
        let Some(mut core) = core(settings(seed), job.memory(&mut rng), seed) else { return };
        core.faults = Faults { error: 1000, ..Faults::NONE };
        job.start(&mut core);
        let (status, bytes_out) = core.end();
        let counts = *core.model.counts(0).unwrap();
        assert_eq!(status != 0, counts.errors > 0, "seed {seed}: {status:#x}, {counts:?}");
        assert!([0, READ, WRITE].contains(&status), "seed {seed}: {status:#x}");
        assert!(
            (status == WRITE) == (u64::from(bytes_out) < 16 * counts.write_beats),
            "seed {seed}: {bytes_out}, {counts:?}"
        );
        failed[usize::from(status == WRITE)] += u32::from(status != 0);
        core.faults = Faults::NONE;
        is_well(&mut core, &mut rng, seed);
    }
    assert!(
        failed.iter().all(|count| *count > 0) || super::seeds(SEEDS).count() < 20,
        "reads and writes: {failed:?}"
    );
}

/// Sizes and pointers that are refused, by the same bits as in the model, and with no burst.
#[test]
fn bad_arguments_touch_no_memory() {
    let mut rng = Rng::with_seed(3);
    let good = Job::of([4, 32, 48], 0, &mut rng);
    let bytes = good.memory(&mut rng);
    let Some(mut core) = core(settings(0), bytes.clone(), 3) else { return };
    let mut oracle = oracle(bytes);
    let sizes = [0, 8, 17, 4097, 4112, 8192, 0x1_0000, 0x8000_0010, u32::MAX];
    let bad_sizes = (0..3).flat_map(|place| {
        let good = good.clone();
        sizes.into_iter().filter(move |size| place > 0 || *size == 0 || *size > 4096).map(
            move |size| {
                let mut job = good.clone();
                job.sizes[place] = size;
                (job, DIMENSION)
            },
        )
    });
    let bad_pointers = (0..4).flat_map(|place| {
        let good = good.clone();
        (0..6).map(move |bit| {
            let mut job = good.clone();
            job.pointers[place] |= 1 << bit;
            (job, ALIGNMENT)
        })
    });
    let mut both = good.clone();
    (both.sizes[1], both.pointers[0]) = (0, u64::MAX);
    for (job, bits) in bad_sizes.chain(bad_pointers).chain([(both, DIMENSION | ALIGNMENT)]) {
        core.memory.accesses = 0;
        job.start(&mut core);
        job.start(&mut oracle);
        assert_eq!((core.end(), oracle.end()), ((bits, 0), (bits, 0)), "{job:x?}");
        assert_eq!((core.memory.accesses, core.model.counts(0).unwrap().reads), (0, 0), "{job:x?}");
    }
    is_well(&mut core, &mut rng, 3);
}

/// The largest sizes that there are, one at a time.
#[test]
fn the_limits_themselves_are_allowed() {
    for (seed, sizes) in
        [(0, [4096, 16, 16]), (1, [1, 4096, 16]), (2, [1, 16, 4096]), (5, [9, 2048, 64])]
    {
        let mut rng = Rng::with_seed(seed);
        let job = Job::of(sizes, 7, &mut rng);
        let bytes = job.memory(&mut rng);
        let Some(mut core) = core(settings(seed), bytes.clone(), seed) else { return };
        let mut oracle = oracle(bytes);
        job.start(&mut core);
        job.start(&mut oracle);
        assert_eq!(core.end(), oracle.end(), "{job:x?}");
        assert!(core.memory.bytes == oracle.memory.bytes, "{job:x?}");
        assert!(core.model.findings().is_empty(), "{:#x?}", core.model.findings());
    }
}
