//! How much of the array's peak is reached: a beat of B each cycle.

use super::bench::{CTRL, START, core};
use super::job::Job;
use contigo_rtl::RtlConfig;
use contigo_rtl::axi::SlaveConfig;
use fastrand::Rng;

/// 8 rows of 16.
const MACS_PER_CYCLE: f64 = 128.0;

/// M, N, K and MODE, and the least share of the peak in % with memory that answers after 0, 20 and
/// 100 cycles. `examples/gemm8/README.md` has the table that this prints.
const SHAPES: [([u32; 3], u32, [f64; 3]); 6] = [
    ([128, 256, 256], 5, [95.0, 95.0, 95.0]),
    ([128, 256, 256], 1 << 9, [95.0, 95.0, 94.0]),
    ([64, 64, 64], 5, [80.0, 79.0, 74.0]),
    ([64, 16, 64], 5, [55.0, 52.0, 44.0]),
    ([1, 256, 256], 5, [11.0, 11.0, 11.0]),
    ([1, 32, 64], 5, [7.0, 5.0, 3.0]),
];

#[test]
#[allow(clippy::cast_precision_loss, reason = "counts of some thousands")]
fn the_array_is_busy() {
    for (sizes, mode, least) in SHAPES {
        for (latency, least) in [0, 20, 100].into_iter().zip(least) {
            let mut rng = Rng::with_seed(1);
            let job = Job::of(sizes, mode, &mut rng);
            let cycles = latency..=latency;
            let memory = SlaveConfig {
                read_cycles: cycles.clone(),
                write_cycles: cycles,
                outstanding: 16,
                ..SlaveConfig::CALM
            };
            let config = RtlConfig { memory, ..RtlConfig::default() };
            let Some(mut core) = core(config, job.memory(&mut rng), 1) else { return };
            job.prepare(&mut core);
            core.write(CTRL, START);
            let from = core.model.cycle();
            core.wait_us(50_000);
            let cycles = core.model.cycle() - from;
            let macs = sizes.into_iter().map(u64::from).product::<u64>();
            let share = 100.0 * macs as f64 / (cycles as f64 * MACS_PER_CYCLE);
            println!("{sizes:?}, mode {mode:#x}, latency {latency}: {cycles} cycles, {share:.1} %");
            assert!(
                share >= least,
                "{sizes:?}, latency {latency}: {share:.1} % of the peak, and {least} % were \
                 promised"
            );
            assert_eq!(core.end().0, 0);
        }
    }
}
