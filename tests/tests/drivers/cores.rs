//! The drivers of cores that block designs are made of, each on its own model: registers compared
//! with the model's table, modes, edges, errors, and how they end.

mod after_a_stop;
mod axi_cdma;
mod axi_dma;
mod axi_dmac;
mod axi_mcdma;
mod axi_vdma;
mod litepcie;
mod msgdma;
mod whole_words;

use crate::prelude::*;

/// Keeps so many jobs in flight for `rounds` ends, which all come with `bytes`, with a stop after
/// every tenth.
fn stays_in_flight<D: Driver, const N: usize>(
    queue: &mut Queue<D>,
    (in_flight, rounds): (usize, usize),
    job: impl Fn() -> [Operand; N],
    bytes: Option<usize>,
    case: &str,
) {
    for round in 0..rounds {
        while queue.len() < in_flight {
            queue.give(job());
        }
        let done = queue.wait::<N>(LIMIT).map_err(|failed| failed.error);
        let came = done.map(|done| done.map(|done| done.bytes));
        assert_eq!(came, Ok(Some(bytes)), "{case}, round {round}");
        if round % 10 == 9 {
            queue.stop().unwrap();
            queue.drain::<N>();
        }
    }
}

/// Waits 5 ms for a job that ends in that time, or does not. The driver looks where an interrupt
/// tells it to, and `most` times at most.
fn wakes_for_an_end<D: Driver, const N: usize>(
    queue: &mut Queue<D>,
    watch: &Watch,
    job: [Operand; N],
    (ends, most): (bool, u32),
    case: &str,
) {
    queue.give(job);
    watch.waits.set(0);
    let found = queue.wait::<N>(Duration::from_millis(5)).unwrap().is_some();
    let waits = watch.waits.get();
    assert_eq!(found, ends, "{case}");
    assert!(waits <= most, "{case}: it woke {waits} times in 5 ms");
}
