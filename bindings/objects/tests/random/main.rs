//! Buffers that are leaked, and random calls on buffers, tensors and the jobs of a driver, against
//! a model of the rules. The fuzz target `objects` finds calls by coverage, and this test those of
//! a few seeds.

mod leaks;
mod world;

#[test]
fn random_calls_keep_the_rules() {
    for seed in 0..1_000 {
        let mut random = fastrand::Rng::with_seed(seed);
        let calls: Vec<u8> = (0..random.usize(1..2_000)).map(|_| random.u8(..)).collect();
        // The seed is in the output where it fails.
        println!("seed {seed}: {} calls", calls.len());
        world::run(&calls);
    }
}
