//! A healthy engine passes, and each of a set of broken ones is caught: without that, the
//! exerciser's word is worth nothing.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that panics has failed, which is its purpose"
)]

mod copy;

use super::ground::PLACES;
use super::*;
use contigo::sim::{SimBoard, SimDevice, SimWindow};
use contigo::{Error, Port, Queue, Region};
use copy::{Bug, Copy, CopyModel, Forgetful};
use core::sync::atomic::{AtomicU64, Ordering};
use std::string::ToString;
use std::time::Duration;

const WAITING: Mode<'_> = Mode::Waiting(Duration::from_millis(10));

#[derive(Clone, Copy)]
struct Trial {
    bug: Bug,
    seed: u64,
    jobs: u64,
    mode: Mode<'static>,
    /// Does the port snoop?
    snoops: bool,
    /// Does the driver take its port for one that snoops?
    believed_coherent: bool,
    region_bytes: usize,
    limits: Limits,
}

const SMALL: Trial = Trial {
    bug: Bug::None,
    seed: 1,
    jobs: 300,
    mode: Mode::Polled,
    snoops: false,
    believed_coherent: false,
    region_bytes: 72 * 1024,
    limits: Limits::NONE,
};
/// Slots of 8 KiB: there are pages to cross.
const LARGE: Trial = Trial { region_bytes: Ground::WHOLE_BYTES + 4096, ..SMALL };

fn region(board: &SimBoard, len_bytes: usize) -> Region {
    Region::new(board.memory(len_bytes).unwrap()).unwrap()
}

fn window(board: &SimBoard, port: Port, bug: Bug) -> SimWindow<CopyModel> {
    SimDevice::with_model(board, port, CopyModel::new(bug)).window().unwrap()
}

/// An engine on the board's port, with room for one job.
fn queue(board: &SimBoard, bug: Bug) -> Queue<Copy<SimWindow<CopyModel>>> {
    Queue::new(Copy::open(window(board, board.port(), bug)), 1).unwrap()
}

fn exerciser(region: &Region, seed: u64) -> Exerciser {
    Exerciser::new(Ground::new(region).unwrap(), Limits::NONE, seed).unwrap()
}

impl Trial {
    fn run(self) -> (Result<(), Stopped>, Tally) {
        let board = SimBoard::new(self.seed);
        // The exerciser must find by itself what a real board would not say.
        board.allow_wrong_accesses(true).unwrap();
        let port = if self.snoops { board.coherent_port() } else { board.port() };
        let region = region(&board, self.region_bytes);
        let window = window(&board, port, self.bug);
        let driver = if self.believed_coherent {
            Copy::believed_coherent(window)
        } else {
            Copy::open(window)
        };
        let mut queue = Queue::new(driver, 1).unwrap();
        let ground = Ground::new(&region).unwrap();
        let mut exerciser = Exerciser::new(ground, self.limits, self.seed).unwrap();
        let ended = exerciser.run(&mut queue, self.mode, Budget::jobs(self.jobs));
        (ended, exerciser.tally())
    }

    fn tally(self) -> Tally {
        let (ended, tally) = self.run();
        ended.unwrap();
        tally
    }
}

#[test]
fn healthy_engine_passes_every_case() {
    for mode in [Mode::Polled, WAITING] {
        for snoops in [false, true] {
            let tally = Trial { jobs: 1_000, mode, snoops, ..LARGE }.tally();
            assert_eq!(
                (tally.jobs, tally.mismatches, tally.canary_hits, tally.first_wrong),
                (1_000, 0, 0, None)
            );
            for (case, count) in tally.tried.cases() {
                assert!(count >= 10, "{case}: {count}, {mode:?}");
            }
            assert!(tally.bytes > 1_000_000 && tally.compared > 10 * tally.bytes, "{tally:?}");
        }
    }
}

#[test]
fn every_broken_engine_is_caught() {
    for (bug, sizes) in [
        (Bug::Overrun, &[SMALL, LARGE] as &[Trial]),
        (Bug::Underrun, &[SMALL, LARGE]),
        (Bug::Early, &[SMALL, LARGE]),
        (Bug::ToShifted, &[SMALL]),
        (Bug::FromShifted, &[LARGE]),
        (Bug::Neighbour(1024), &[SMALL]),
        (Bug::Neighbour(8192), &[LARGE]),
        (Bug::Words(4), &[SMALL]),
        (Bug::Words(64), &[LARGE]),
    ] {
        for (seed, size) in (1..=5).flat_map(|seed| sizes.iter().map(move |size| (seed, size))) {
            for (snoops, mode) in [(false, Mode::Polled), (true, WAITING)] {
                let tally = Trial { bug, seed, snoops, mode, jobs: 60, ..*size }.tally();
                let Some(first) = tally.first_wrong else {
                    panic!("{bug:?}, seed {seed}, snoops {snoops}: not caught")
                };
                assert!(first.job.number <= 10, "{bug:?} was seen only by {first}");
                assert!(tally.mismatches + tally.canary_hits > 0);
            }
        }
    }
}

#[test]
fn what_is_wrong_is_told_apart() {
    let overrun = Trial { bug: Bug::Overrun, ..SMALL }.tally();
    // In a slot that stayed the device's, what one job writes too much may be what an earlier one
    // wrote.
    assert!(overrun.canary_hits > 100 && overrun.mismatches < 30, "{overrun:?}");
    assert_eq!(overrun.first_wrong.map(|first| first.blame), Some(Blame::CanaryHit));
    let underrun = Trial { bug: Bug::Underrun, ..SMALL }.tally();
    assert!(underrun.mismatches > 100 && underrun.canary_hits == 0, "{underrun:?}");
}

#[test]
fn byte_changed_far_away_is_found_at_end() {
    // Twenty slots further, where no neighbour is: found by the comparison of everything after the
    // last job. A job that writes above slot 45 has its echo outside of all memory.
    for snoops in [false, true] {
        let trial = Trial { bug: Bug::Echo(20 * 1024), jobs: 3, snoops, ..SMALL };
        let found = |seed: &u64| Trial { seed: *seed, ..trial }.tally().canary_hits > 0;
        assert!((1..=20).filter(found).count() >= 15, "snoops {snoops}");
    }
}

#[test]
fn byte_changed_in_next_slot_is_found() {
    for seed in 1..=20 {
        for snoops in [false, true] {
            let tally = Trial { bug: Bug::Echo(1024), jobs: 100, snoops, seed, ..SMALL }.tally();
            let Some(first) = tally.first_wrong else { panic!("seed {seed}: not caught") };
            // Not after the very first one where that slot was the CPU's to write, or the device's
            // still.
            assert!(
                first.job.number <= 4 && first.blame == Blame::CanaryHit,
                "seed {seed}, snoops {snoops}: {first}"
            );
        }
    }
}

#[test]
fn missing_invalidation_is_caught() {
    for seed in 1..=5 {
        let board = SimBoard::new(seed);
        let memory = board.memory(SMALL.region_bytes).unwrap();
        let region = Region::new(Forgetful { memory, slot_bytes: 1024 }).unwrap();
        let mut queue = queue(&board, Bug::None);
        let mut exerciser = exerciser(&region, seed);
        assert_eq!(exerciser.slot_bytes(), 1024);
        exerciser.run(&mut queue, Mode::Polled, Budget::jobs(20)).unwrap();
        let first = exerciser.tally().first_wrong.unwrap();
        // Not after the very first one where its destination stayed the device's.
        assert!(first.job.number <= 10 && first.blame == Blame::Mismatch, "{first}");
    }
}

#[test]
fn one_bit_in_a_thousand_jobs_is_caught() {
    for seed in 1..=5 {
        let tally = Trial { bug: Bug::Flip(1_000), seed, jobs: 1_050, ..SMALL }.tally();
        // More than one where the wrong byte was copied on before the CPU saw it.
        assert!(
            (1..=10).contains(&tally.mismatches) && tally.canary_hits == 0,
            "seed {seed}: {tally:?}"
        );
        let first = tally.first_wrong.unwrap();
        assert_eq!((first.blame, first.expected ^ first.found), (Blame::Mismatch, 0x10));
        assert!((1_000..=1_050).contains(&first.job.number), "{first}");
    }
}

#[test]
fn a_missing_sync_is_caught() {
    for seed in 1..=5 {
        let tally = Trial { believed_coherent: true, seed, ..SMALL }.tally();
        assert!(tally.mismatches > 0, "seed {seed}: {tally:?}");
    }
}

#[test]
fn the_same_seed_meets_the_same_failure_again() {
    let trial = Trial { bug: Bug::Flip(97), seed: 3, jobs: 400, ..SMALL };
    let first = trial.tally();
    assert_eq!(trial.tally(), first);
    let shown = first.first_wrong.unwrap();
    // To the job that the failure names, and with the other way to wait.
    let again =
        Trial { jobs: shown.job.number, mode: WAITING, ..trial }.tally().first_wrong.unwrap();
    assert_eq!(
        (again.slot, again.offset, again.expected, again.found),
        (shown.slot, shown.offset, shown.expected, shown.found)
    );
    assert_ne!(Trial { seed: 4, ..trial }.tally().first_wrong, first.first_wrong);
}

#[test]
fn a_new_beginning_is_the_first_one_again() {
    let board = SimBoard::new(1);
    let region = region(&board, SMALL.region_bytes);
    let (mut queue, mut exerciser) = (queue(&board, Bug::None), exerciser(&region, 5));
    exerciser.run(&mut queue, Mode::Polled, Budget::jobs(150)).unwrap();
    let first = exerciser.tally();
    exerciser.restart().unwrap();
    exerciser.run(&mut queue, WAITING, Budget::jobs(150)).unwrap();
    assert_eq!(exerciser.tally(), first);
}

#[test]
fn limits_are_kept() {
    let limits = Limits { offset_align_bytes: 16, len_align_bytes: 4, len_max_bytes: 256 };
    let tally = Trial { limits, ..SMALL }.tally();
    assert_eq!(
        (tally.jobs, tally.tried.odd_address, tally.tried.odd_length, tally.tried.one_byte),
        (300, 0, 0, 0)
    );
    // An engine that can write whole words only is healthy when it is asked for no less.
    let words = Limits { offset_align_bytes: 4, len_align_bytes: 4, ..Limits::NONE };
    let tally = Trial { bug: Bug::Words(4), limits: words, ..SMALL }.tally();
    assert_eq!((tally.mismatches, tally.canary_hits), (0, 0), "{:?}", tally.first_wrong);
}

#[test]
fn a_job_that_fails_ends_the_run_and_is_named() {
    let (ended, tally) = Trial { bug: Bug::HangsAt(33), mode: WAITING, ..SMALL }.run();
    let stopped = ended.unwrap_err();
    // The model cannot be stopped either.
    assert!(matches!(stopped.error, Error::WillNotStop { device: "copy", .. }), "{stopped}");
    assert_eq!((stopped.job.number, tally.jobs), (33, 32));
    assert!(stopped.to_string().starts_with("seed 1, job 33, "), "{stopped}");
}

#[test]
fn a_job_that_polls_found_no_end_of_says_how_many() {
    let (job, error) = (tally::Job::none(2), Error::Timeout { timeout_us: 0 });
    let text = |polls| Stopped { seed: 1, job, error, polls }.to_string();
    let polled = text(3_000);
    assert!(
        polled.contains("3000 polls found no end") && !polled.contains("more time"),
        "{polled}"
    );
    assert!(text(0).contains("more time"), "{}", text(0));
}

#[test]
fn interrupts_are_counted_only_where_they_came() {
    let board = SimBoard::new(1);
    let region = region(&board, SMALL.region_bytes);
    let mut exerciser = exerciser(&region, 1);
    let came = AtomicU64::new(0);
    let counted = |bug| {
        let driver = Copy::open(Counted::new(window(&board, board.port(), bug), &came));
        Queue::new(driver, 1).unwrap()
    };
    let mut queue = counted(Bug::None);
    exerciser.run(&mut queue, Mode::Polled, Budget::jobs(50)).unwrap();
    assert_eq!(came.load(Ordering::Relaxed), 0);
    exerciser.run(&mut queue, WAITING, Budget::jobs(50)).unwrap();
    assert_eq!((came.swap(0, Ordering::Relaxed), exerciser.tally().jobs), (50, 100));
    // A wait that its time ended is no interrupt.
    assert!(exerciser.run(&mut counted(Bug::HangsAt(6)), WAITING, Budget::jobs(50)).is_err());
    assert_eq!(came.load(Ordering::Relaxed), 5);
}

#[test]
fn too_small_memory_says_what_it_takes() {
    let board = SimBoard::new(1);
    let refused = Ground::new(&region(&board, 64 * 1024)).err();
    assert_eq!(refused, Some(Error::Exhausted { need_bytes: 71_680, capacity_bytes: 65_536 }));
}

#[test]
fn all_of_the_ground_comes_back_to_the_region() {
    let board = SimBoard::new(1);
    let region = region(&board, SMALL.region_bytes);
    for seed in 1..=2 {
        let exerciser = exerciser(&region, seed);
        let left = SMALL.region_bytes - PLACES * 1024;
        assert_eq!((exerciser.slot_bytes(), region.free_bytes()), (1024, left));
        drop(exerciser);
        assert_eq!((region.free_bytes(), region.users()), (SMALL.region_bytes, 1));
    }
}

/// What was another job's end would be taken for the exerciser's own.
#[test]
fn a_queue_with_jobs_of_others_is_refused() {
    let board = SimBoard::new(1);
    let own = region(&board, SMALL.region_bytes);
    let mut exerciser = exerciser(&own, 1);
    let others = region(&board, 4096).pool(2, 64).unwrap();
    let [from, to] = [others.take().unwrap(), others.take().unwrap()];
    let driver = Copy::open(window(&board, board.port(), Bug::None));
    let mut queue = Queue::new(driver, 2).unwrap();
    queue.submit([from.to_device(..), to.from_device(..)], &[]).unwrap();
    let refused = exerciser.run(&mut queue, Mode::Polled, Budget::jobs(1)).unwrap_err();
    assert_eq!((refused.error, queue.len(), exerciser.tally().jobs), (Error::Busy, 1, 0));
    queue.clear().unwrap();
    exerciser.run(&mut queue, Mode::Polled, Budget::jobs(20)).unwrap();
    assert_eq!(exerciser.tally().jobs, 20);
}
