//! TAILDESC in two halves, and descriptors of jobs that a stop took back.

use super::super::stays_in_flight;
use super::*;
use contigo::{Backend, Direction, forward};
use contigo_testkit::lent::Preempted;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A copy of 1,000 bytes takes 0.8 us. The ring has room for 63 jobs, and 8 are in flight at most.
#[test]
fn wide_address_core_never_passes_tail() {
    // A setting that forgot the width changes nothing.
    for (built_bits, address_bits) in [(32, 32), (40, 40), (40, 32), (64, 64)] {
        for (for_us, in_flight) in (0..12).flat_map(|us| [(us, 1), (us, 2), (us, 3), (us, 8)]) {
            let case = format!("{built_bits} bits, {for_us} us, {in_flight} in flight");
            let (board, region, pool) = bench(7, 16, 1024);
            let spec = AxiCdmaSpec { address_bits: built_bits, ..AxiCdmaSpec::default() };
            let slow =
                Preempted::new(&core(&board, spec), regs::TAILDESC.offset(), for_us).unwrap();
            let config = AxiCdmaConfig { address_bits, ..DRE };
            // SAFETY: the model is built so.
            let driver = unsafe { AxiCdma::sg(slow, config, ring(&region)) }.unwrap();
            let mut queue = Queue::new(driver, 8).unwrap();
            stays_in_flight(&mut queue, (in_flight, 60), || copies(&pool, ..1000, ..), None, &case);
            assert_eq!(board.counts().unowned_accesses, 0, "{case}");
        }
    }
}

/// Of 16 descriptors the first alone is open: one that is complete makes a core that fetches it
/// halt with `SGIntErr` (PG034).
fn only_the_first_is_open(rings: &Pool) {
    let memory = rings.take().unwrap();
    let is_complete = |bd: &[u32]| bd[regs::STATUS_AT / 4] & regs::COMPLETE != 0;
    let complete: Vec<_> = memory.view::<u32>().unwrap().chunks(16).map(is_complete).collect();
    assert_eq!((complete[0], &complete[1..]), (false, &[true; 15][..]));
}

#[test]
fn taken_back_descriptors_are_complete() {
    let (board, region, pool) = bench(8, 10, 1024);
    let rings = region.pool(1, 1024).unwrap();
    let device = core(&board, AxiCdmaSpec::default());
    let cdma = device.window().unwrap().sg(DRE, rings.take().unwrap()).unwrap();
    let mut queue = Queue::new(cdma, 8).unwrap();
    for jobs in [5, 1] {
        for _ in 0..jobs {
            queue.give(copies(&pool, .., ..));
        }
        queue.stop().unwrap();
        queue.drain::<2>();
    }
    drop(queue);
    only_the_first_is_open(&rings);
}

/// Of a job of three descriptors the third could not be handed over.
#[test]
fn unstarted_jobs_descriptors_are_complete() {
    let (board, _, pool) = bench(8, 2, 4096);
    let left = Arc::new(AtomicUsize::new(usize::MAX));
    let own = Region::new(Refusing { inner: board.memory(1024).unwrap(), left: Arc::clone(&left) })
        .unwrap();
    let rings = own.pool(1, 1024).unwrap();
    let device = core(&board, AxiCdmaSpec::default());
    let config = AxiCdmaConfig { length_bits: 10, depth: Some(3), ..DRE };
    let cdma = device.window().unwrap().sg(config, rings.take().unwrap()).unwrap();
    let mut queue = Queue::new(cdma, 8).unwrap();
    // Two may succeed of the three hand-overs after those of the one that was taken back.
    for (len, may, taken) in [(1000, usize::MAX, true), (3000, 3, false), (1000, usize::MAX, true)]
    {
        left.store(may, Ordering::Relaxed);
        let is_taken = queue.submit(copies(&pool, ..len, ..), &[]).is_ok();
        assert_eq!(is_taken, taken, "{len} bytes");
        queue.stop().unwrap();
        queue.drain::<2>();
    }
    drop(queue);
    only_the_first_is_open(&rings);
}

/// Memory of which `left` hand-overs to a device succeed, and the others fail.
struct Refusing<B> {
    inner: B,
    left: Arc<AtomicUsize>,
}

// SAFETY: `inner` keeps all of it, and a hand-over that fails was not done.
unsafe impl<B: Backend> Backend for Refusing<B> {
    forward!(|this| this.inner => name, mapping, segment, sync_for_cpu, held_by, wrong_accesses);
    unsafe fn sync_for_device(&self, range: Range<usize>, direction: Direction) -> Result<()> {
        let took = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        took.map_err(|_| Error::Contended { tries: 1 })?;
        // SAFETY: the caller's promise.
        unsafe { self.inner.sync_for_device(range, direction) }
    }
}
