//! TAILDESC in two halves, and descriptors of jobs that a stop took back.
#![allow(unsafe_code, reason = "how a core is built is the program's word")]

use super::{DRE, LIMIT, carve};
use crate::regs::axi_cdma as regs;
use contigo::{
    Backend, Direction, Error, Queue, Region, Result,
    drivers::axi_cdma::{AxiCdma, AxiCdmaConfig},
    forward,
    sim::{
        SimBoard, SimDevice,
        axi_cdma::{AxiCdmaModel, AxiCdmaSpec},
    },
};
use contigo_testkit::lent::Preempted;
use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

/// A copy of 1,000 bytes takes 0.8 us. The ring has room for 63 jobs, and 8 are in flight at most.
#[test]
fn a_core_with_wide_addresses_never_passes_its_tail() {
    // A setting that forgot the width changes nothing.
    for (built_bits, address_bits) in [(32, 32), (40, 40), (40, 32), (64, 64)] {
        for (for_us, in_flight) in
            (0..12).flat_map(|for_us| [(for_us, 1), (for_us, 2), (for_us, 3), (for_us, 8)])
        {
            let board = SimBoard::new(7);
            let region = Region::new(board.memory(64 * 1024).unwrap()).unwrap();
            let pool = region.pool(16, 1024).unwrap();
            let spec = AxiCdmaSpec { address_bits: built_bits, ..AxiCdmaSpec::default() };
            let device = SimDevice::with_model(&board, board.port(), AxiCdmaModel::new(spec));
            let slow = Preempted::new(&device, regs::TAILDESC.offset(), for_us).unwrap();
            let config = AxiCdmaConfig { address_bits, ..DRE };
            // SAFETY: the model is built so.
            let driver = unsafe { AxiCdma::sg(slow, config, carve!(region)(4096)) }.unwrap();
            let mut queue = Queue::new(driver, 8).unwrap();
            let mut open = 0;
            for round in 0..60 {
                while open < in_flight {
                    queue
                        .submit(
                            [
                                pool.take().unwrap().to_device(..1000),
                                pool.take().unwrap().from_device(..),
                            ],
                            &[],
                        )
                        .unwrap();
                    open += 1;
                }
                let done = queue.wait::<2>(LIMIT).map_err(|failed| failed.error);
                assert!(
                    matches!(done, Ok(Some(_))),
                    "{built_bits} {for_us} {in_flight} {round}: {done:?}"
                );
                open -= 1;
                if round % 10 == 9 {
                    queue.stop().unwrap();
                    while queue.wait::<2>(LIMIT).unwrap().is_some() {}
                    while queue.take_back::<2>().unwrap().is_some() {}
                    open = 0;
                }
            }
            assert_eq!(board.counts().unowned_accesses, 0, "{built_bits} {for_us} {in_flight}");
        }
    }
}

/// A descriptor that is complete makes a core that fetches it halt with `SGIntErr` (PG034).
#[test]
fn descriptors_of_jobs_that_a_stop_took_back_are_complete() {
    let board = SimBoard::new(8);
    let region = Region::new(board.memory(64 * 1024).unwrap()).unwrap();
    let rings = region.pool(1, 1024).unwrap();
    let device = SimDevice::<AxiCdmaModel>::new(&board, board.port());
    let cdma = device.window().unwrap().sg(DRE, rings.take().unwrap()).unwrap();
    let mut queue = Queue::new(cdma, 8).unwrap();
    for jobs in [5, 1] {
        for _ in 0..jobs {
            queue
                .submit(
                    [carve!(region)(1024).to_device(..), carve!(region)(1024).from_device(..)],
                    &[],
                )
                .unwrap();
        }
        queue.stop().unwrap();
        while queue.wait::<2>(LIMIT).unwrap().is_some() {}
        while queue.take_back::<2>().unwrap().is_some() {}
    }
    drop(queue);
    let memory = rings.take().unwrap();
    let complete = memory
        .view::<u32>()
        .unwrap()
        .chunks(16)
        .map(|bd| bd[regs::STATUS_AT / 4] & regs::COMPLETE != 0)
        .collect::<Vec<_>>();
    assert_eq!((complete[0], &complete[1..]), (false, &[true; 15][..]));
}

/// Of a job of three descriptors the third could not be handed over.
#[test]
fn descriptors_of_a_job_that_never_began_are_complete() {
    let (board, left) = (SimBoard::new(8), Arc::new(AtomicUsize::new(usize::MAX)));
    let region = Region::new(board.memory(64 * 1024).unwrap()).unwrap();
    let own = Region::new(Refusing { inner: board.memory(1024).unwrap(), left: Arc::clone(&left) })
        .unwrap();
    let rings = own.pool(1, 1024).unwrap();
    let device = SimDevice::<AxiCdmaModel>::new(&board, board.port());
    let config = AxiCdmaConfig { length_bits: 10, depth: Some(3), ..DRE };
    let cdma = device.window().unwrap().sg(config, rings.take().unwrap()).unwrap();
    let mut queue = Queue::new(cdma, 8).unwrap();
    let mut push = |len| {
        let refused = queue
            .submit(
                [carve!(region)(4096).to_device(..len), carve!(region)(4096).from_device(..)],
                &[],
            )
            .is_err();
        queue.stop().unwrap();
        while queue.wait::<2>(LIMIT).unwrap().is_some() {}
        while queue.take_back::<2>().unwrap().is_some() {}
        refused
    };
    assert!(!push(1000));
    // The one that was taken back, and the new job's first two.
    left.store(3, Ordering::Relaxed);
    assert!(push(3000));
    left.store(usize::MAX, Ordering::Relaxed);
    assert!(!push(1000));
    drop(queue);
    let memory = rings.take().unwrap();
    let complete = memory
        .view::<u32>()
        .unwrap()
        .chunks(16)
        .map(|bd| bd[regs::STATUS_AT / 4] & regs::COMPLETE != 0)
        .collect::<Vec<_>>();
    assert_eq!((complete[0], &complete[1..]), (false, &[true; 15][..]));
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
