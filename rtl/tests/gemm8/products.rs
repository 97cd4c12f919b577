//! Random products by the core and by the model: the same memory, STATUS and BYTES_OUT.

use super::bench::{core, oracle, settings};
use super::job::Job;
use fastrand::Rng;

/// Without `CONTIGO_SEEDS`. All take some seconds.
const SEEDS: u64 = 200;

#[test]
fn products_are_the_models() {
    for seed in super::seeds(SEEDS) {
        let mut rng = Rng::with_seed(seed);
        // Two jobs follow each other: nothing of the first is left in the second.
        let jobs = [Job::random(&mut rng), Job::random(&mut rng)];
        let bytes = jobs[0].memory(&mut rng);
        let Some(mut core) = core(settings(seed), bytes.clone(), seed) else { return };
        let mut oracle = oracle(bytes);
        for job in jobs {
            job.start(&mut oracle);
            job.start(&mut core);
            let (expected, ended) = (oracle.end(), core.end());
            assert_eq!(ended, expected, "seed {seed}: STATUS and BYTES_OUT of {job:x?}");
            assert_eq!(expected, (0, u32::try_from(job.len(3)).unwrap()));
            let differs = core
                .memory
                .bytes
                .iter()
                .zip(&oracle.memory.bytes)
                .position(|(core, oracle)| core != oracle);
            assert!(
                differs.is_none(),
                "seed {seed}: byte {:x?} of memory, C is {:x?}, of {job:x?}",
                differs,
                job.range(3)
            );
            assert!(core.model.findings().is_empty(), "seed {seed}: {:#x?}", core.model.findings());
            let counts = core.model.counts(0).unwrap();
            assert!(counts.most_reads + counts.most_writes <= 16, "seed {seed}: {counts:?}");
            assert_eq!(counts.narrow + counts.not_rising, 0, "seed {seed}: {counts:?}");
        }
    }
}
