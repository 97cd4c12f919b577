//! How an mSGDMA stops: by its driver, by its program, and what a stop in the middle of a copy
//! costs.

use super::*;
use std::panic::{self, AssertUnwindSafe};

type Watching<'w> = Watched<'w, SimWindow<MsgdmaModel>>;

/// A core in a copy that never ends.
struct Hung<'t, 'w> {
    board: &'t SimBoard,
    core: &'t SimDevice<MsgdmaModel>,
    pool: &'t Pool,
    window: &'w SimWindow<MsgdmaModel>,
    watch: &'w Watch,
    queue: &'t mut Queue<Msgdma<Watching<'w>>>,
}

impl Hung<'_, '_> {
    /// The core's register has these bits too, until this time.
    fn bits(&self, register: usize, bits: u32, until_us: u64) {
        self.watch.bits.set((register, bits, until_us));
    }

    fn run_program(&self) -> Result<(), u32> {
        let window = Watched::new(self.window, self.watch);
        // SAFETY: the steps stop.
        unsafe { self.queue.driver().stop_program().run(&window, 5) }
    }

    /// A stop fails, again and again.
    fn will_not_stop(&mut self, case: &str) {
        for _ in 0..2 {
            let stopped = self.queue.stop();
            let is_refused = matches!(stopped, Err(Error::WillNotStop { device: "msgdma", .. }));
            assert!(is_refused, "{case}: {stopped:?}");
        }
    }
}

/// After `act` the core is reset from outside, and its stop succeeds.
fn hung(config: MsgdmaConfig, act: impl FnOnce(&mut Hung<'_, '_>)) {
    with(HANG, |board, pool, own| {
        let core = core(board, config, StreamConfig::sink());
        let (window, watch) = (&core.window()?, &Watch::default());
        let queue = &mut driver(Watched::new(window, watch), config, own)?;
        queue.give(copies(pool, .., ..));
        core.run_for(5)?;
        act(&mut Hung { board, core: &core, pool, window, watch, queue });
        watch.bits.set((0, 0, 0));
        core.reset()?;
        queue.stop_one::<2>();
        Ok(())
    });
}

const STATUS: usize = COPY.csr_at + regs::STATUS.offset();

#[test]
fn endless_copy_needs_a_reset_from_outside() {
    for way in WAYS {
        let config = MsgdmaConfig { write_responses: true, ..way };
        hung(config, |hung| {
            hung.will_not_stop("by a reset of its own");
            // Who opens it anew learns it too, also where the kernel stopped it.
            let csr = config.csr_at + regs::CONTROL.offset();
            assert_eq!(hung.window.read32(csr) & regs::STOP, regs::STOP);
            let anew = MsgdmaConfig { prefetcher_at: None, ..config };
            // SAFETY: nothing is read or written by a driver that is refused.
            let refused = unsafe { Msgdma::open(Lent::new(hung.window), anew) }.map(drop);
            cases! { refused => Err(Error::Setting { .. }) }
            assert_eq!(hung.run_program(), Ok(()));
            hung.core.reset().unwrap();
            hung.queue.stop_one::<2>();
            hung.queue.give(copies(hung.pool, .., ..));
            hung.core.run_for(5).unwrap();
            assert_eq!(hung.run_program(), Ok(()));
            assert_eq!(hung.window.read32(csr) & regs::STOP, regs::STOP);
        });
        // The masters were stopped in a copy, and then the reset took too long: the next stop finds
        // a core at rest, which is spoilt.
        hung(config, |hung| {
            hung.bits(STATUS, regs::RESETTING, u64::MAX);
            cases! { hung.queue.stop() => Err(Error::WillNotStop { .. }) }
            hung.bits(0, 0, 0);
            hung.will_not_stop("after a late reset");
        });
    }
}

/// The same where the program's own wait panicked, in any of a stop's waits.
#[test]
fn spoilt_core_after_a_panic_stays_unusable() {
    let stop = |panics: Option<u32>| {
        let mut waits = 0;
        hung(MsgdmaConfig { write_responses: true, ..COPY }, |hung| {
            let before = hung.watch.waits.get();
            hung.bits(STATUS, regs::RESETTING, u64::MAX);
            hung.watch.panics.set(panics.map_or(0, |wait| before + wait));
            let stopped = panic::catch_unwind(AssertUnwindSafe(|| hung.queue.stop()));
            assert_eq!(stopped.is_err(), panics.is_some());
            waits = hung.watch.waits.get() - before;
            hung.bits(0, 0, 0);
            hung.will_not_stop(&format!("the panic was in wait {panics:?}"));
        });
        waits
    };
    let waits = stop(None);
    for wait in (1..=waits).rev().step_by((waits as usize).div_ceil(8)) {
        stop(Some(wait));
    }
}

/// A core whose reset ends only after the last poll but one of the kernel's program has not waited
/// for its writes.
#[test]
fn stop_program_waits_for_the_settle_time() {
    for (late_us, stopped) in [(0, true), (200_000, true), (265_000, false)] {
        hung(MsgdmaConfig { settle_us: 2_000, ..COPY }, |hung| {
            let until_us = hung.board.now_ns() / 1_000 + late_us;
            hung.bits(STATUS, regs::RESETTING, until_us);
            let answer = hung.run_program();
            let waited_us = (hung.board.now_ns() / 1_000).saturating_sub(until_us);
            let case = format!("late by {late_us} us: {answer:?}, it waited {waited_us} us");
            assert_eq!(answer.is_ok(), stopped, "{case}");
            assert!(answer.is_err() || waited_us >= 2_000, "{case}");
        });
    }
}

/// Nor a prefetcher that still fetches: its descriptors begin when they come.
#[test]
fn stop_program_sees_a_running_prefetcher() {
    for write_responses in [false, true] {
        hung(MsgdmaConfig { write_responses, settle_us: 2_000, ..FETCHED }, |hung| {
            hung.bits(0x60 + regs::FETCH_CONTROL.offset(), regs::RUN, u64::MAX);
            assert!(hung.run_program().is_err(), "write_responses {write_responses}");
        });
    }
}

/// It waits for room in the dispatcher's FIFO, and sees its reset only behind that.
#[test]
fn prefetcher_stops_with_a_shallow_fifo() {
    for by_program in [false, true] {
        with(HANG, |board, pool, own| {
            let core = core(board, MsgdmaConfig { depth: 8, ..FETCHED }, StreamConfig::sink());
            let window = core.window()?;
            let mut queue = driver(Lent::new(&window), FETCHED, own)?;
            for _ in 0..12 {
                queue.give(copies(pool, ..64, ..64));
            }
            // The first one alone was launched; a look launches the others.
            core.run_for(100)?;
            assert!(queue.wait::<2>(Duration::from_micros(100))?.is_none());
            if by_program {
                // SAFETY: the steps stop.
                assert_eq!(unsafe { queue.driver().stop_program().run(&window, 5) }, Ok(()));
            }
            queue.stop()?;
            assert_eq!(queue.drain::<2>(), 12);
            Ok(())
        });
    }
}

#[test]
fn irq_file_error_is_what_stop_answers() {
    for config in WAYS {
        with(Faults::NONE, |board, pool, own| {
            let core = core(board, config, StreamConfig::sink());
            let (window, watch) = (core.window()?, Watch::default());
            let mut queue = driver(Watched::new(&window, &watch), config, own)?;
            queue.give(copies(pool, .., ..));
            watch.fails.set(Some(Error::Contended { tries: 1 }));
            assert_eq!(queue.stop(), Err(Error::Contended { tries: 1 }), "{config:?}");
            watch.fails.set(None);
            queue.clear()
        });
    }
}
