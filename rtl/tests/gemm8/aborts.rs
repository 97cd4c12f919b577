//! ABORT at any time, in slow memory. The core goes idle, and from then on touches nothing.

use super::bench::{ABORT, CTRL, IDLE, START, STATUS, core, oracle};
use super::job::Job;
use contigo_rtl::RtlConfig;
use contigo_rtl::axi::{Landing, SlaveConfig};
use fastrand::Rng;

const ABORTED: u32 = 16;
const SEEDS: u64 = 150;
/// From the write of ABORT until the core has seen it; a burst takes two cycles at least.
const LATE_BURSTS: u64 = 16;

#[test]
fn an_abort_ends_in_silence() {
    let mut aborted = 0;
    for seed in super::seeds(SEEDS) {
        let mut rng = Rng::with_seed(seed);
        let job =
            Job::of([40, 16 * rng.u32(1..=40), 16 * rng.u32(1..=24)], rng.u32(..1024), &mut rng);
        let memory = SlaveConfig {
            read_cycles: 1..=300,
            write_cycles: 100..=800,
            landing: Landing::Random,
            outstanding: 16,
            ..SlaveConfig::CALM
        };
        let config = RtlConfig { memory, has_irq: true, ..RtlConfig::default() };
        let Some(mut core) = core(config, job.memory(&mut rng), seed) else { return };
        let untouched = core.memory.bytes.clone();
        job.start(&mut core);
        core.pass_ns([0, rng.u64(..2_000), rng.u64(..40_000)][rng.usize(..3)]);
        let bursts = |core: &super::rig::Rig| {
            core.model.counts(0).map_or(0, |counts| counts.reads + counts.writes)
        };
        let before = bursts(&core);
        core.write(ABORT, 1);
        let mut looks = 0;
        while core.read(CTRL) & (START | IDLE) != IDLE {
            looks += 1;
            assert!(looks < 1_000, "seed {seed}: not idle after {looks} looks");
        }
        let silent = core.memory.bytes.clone();
        core.memory.accesses = 0;
        assert_eq!(core.model.owed(), (0, 0), "seed {seed}: answers are owed");
        core.pass_ns(100_000);
        assert_eq!(
            (core.memory.accesses, core.memory.bytes == silent),
            (0, true),
            "seed {seed}: an access after idle"
        );
        assert!(core.model.findings().is_empty(), "seed {seed}: {:#x?}", core.model.findings());
        let beside = |bytes: &[u8]| {
            [bytes[..job.range(3).start].to_vec(), bytes[job.range(3).end..].to_vec()]
        };
        assert!(beside(&silent) == beside(&untouched), "seed {seed}: a byte beside C changed");
        let status = core.read(STATUS);
        assert!([0, ABORTED].contains(&status), "seed {seed}: {status:#x}");
        if status == ABORTED {
            aborted += 1;
            assert!(
                bursts(&core) - before <= LATE_BURSTS,
                "seed {seed}: {} bursts after ABORT",
                bursts(&core) - before
            );
        }
        // The driver's next job, with what is left of this one acknowledged.
        core.write(ABORT, 0);
        let left = core.read(super::bench::ISR);
        core.write(super::bench::ISR, left);
        let next = Job::of([9, 48, 32], 3, &mut rng);
        let mut oracle = oracle(silent);
        next.start(&mut oracle);
        next.start(&mut core);
        assert_eq!(core.end(), oracle.end(), "seed {seed}");
        assert!(core.memory.bytes == oracle.memory.bytes, "seed {seed}: the next job is wrong");
    }
    assert!(aborted > SEEDS / 4 || super::seeds(SEEDS).count() < 20, "{aborted} jobs were aborted");
}

/// A job that is started while ABORT is set ends at once, and reads nothing.
#[test]
fn no_job_begins_under_abort() {
    let mut rng = Rng::with_seed(1);
    let job = Job::of([4, 64, 64], 0, &mut rng);
    let Some(mut core) = core(RtlConfig::default(), job.memory(&mut rng), 1) else { return };
    core.write(ABORT, 1);
    job.start(&mut core);
    assert_eq!(core.end(), (ABORTED, 0));
    assert_eq!((core.memory.accesses, core.model.counts(0).unwrap().reads), (0, 0));
}
