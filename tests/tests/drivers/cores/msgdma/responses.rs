//! The ends of an mSGDMA's writes, with and without their answers: when a job's bytes are there,
//! and what a stop in the middle of one costs.

use super::{COPY, FETCHED, LIMIT, core, with};
use crate::regs::msgdma as regs;
use contigo::{
    CpuBuf, Driver, Error, Mmio, Pool, Queue, Result,
    drivers::msgdma::{Msgdma, MsgdmaConfig},
    sim::{Faults, SimDevice, SimWindow, msgdma::MsgdmaModel, stream::StreamConfig},
};
use contigo_testkit::lent::{Lent, Watch, Watched};
use std::{
    panic::{self, AssertUnwindSafe},
    time::Duration,
};

/// Copies with each way to their ends.
const WAYS: [MsgdmaConfig; 3] = [COPY, MsgdmaConfig { resp_at: Some(0x40), ..COPY }, FETCHED];
/// So many looks, a microsecond apart.
const LOOKS: usize = 2_000;

type Window<'w> = Lent<'w, SimWindow<MsgdmaModel>>;
type Copies<'w> = Queue<Msgdma<Window<'w>>>;

fn open(window: &SimWindow<MsgdmaModel>, config: MsgdmaConfig, own: CpuBuf) -> Result<Copies<'_>> {
    // SAFETY: the model is built so, or waits for more than that.
    let driver = unsafe {
        match config.prefetcher_at {
            Some(_) => Msgdma::prefetched(Lent::new(window), config, own)?,
            None => Msgdma::open(Lent::new(window), config)?,
        }
    };
    Ok(Queue::new(driver, 8)?)
}

fn push(queue: &mut Copies<'_>, pool: &Pool, byte: u8) -> Result<()> {
    let (mut from, mut to) = (pool.take()?, pool.take()?);
    from.view_mut::<u8>()?.fill(byte);
    to.view_mut::<u8>()?.fill(0);
    queue.submit([from.to_device(..), to.from_device(..)], &[])?;
    Ok(())
}

/// The next copy, which is polled for every microsecond, so that its end is reported at once.
fn next(queue: &mut Copies<'_>, core: &SimDevice<MsgdmaModel>) -> Result<Option<CpuBuf>> {
    for _ in 0..LOOKS {
        if let Some(done) = queue.wait::<2>(Duration::ZERO)? {
            let [_, to] = done.buffers;
            return Ok(Some(to));
        }
        core.run_for(1)?;
    }
    Ok(None)
}

#[test]
fn an_end_is_told_when_its_last_word_is_there() {
    for (config, write_responses) in WAYS.into_iter().flat_map(|way| [(way, false), (way, true)]) {
        with(Faults::NONE, |board, pool, own| {
            let config = MsgdmaConfig { write_responses, settle_us: 6, ..config };
            let core = core(board, config, StreamConfig::sink());
            let window = core.window()?;
            let mut queue = open(&window, config, own)?;
            for round in 0..6 {
                for job in 0..4 {
                    push(&mut queue, pool, 1 + 4 * round + job)?;
                }
                for job in 0..4 {
                    let to = next(&mut queue, &core)?
                        .unwrap_or_else(|| panic!("{config:?}: copy {job} never ends"));
                    let byte = 1 + 4 * round + job;
                    assert!(
                        to.view::<u8>()?.iter().all(|seen| *seen == byte),
                        "{config:?}: copy {job} is reported, and is not there"
                    );
                }
            }
            Ok(())
        });
    }
}

#[test]
fn stop_inside_a_copy_leaves_no_write_behind() {
    let ways = WAYS
        .into_iter()
        .flat_map(|way| [(way, false), (way, true)])
        .flat_map(|(way, responses)| [1, 2, 3, 5, 9].map(|us| (way, responses, us)));
    for (config, write_responses, us) in ways {
        for by_program in [false, true] {
            with(Faults::NONE, |board, pool, own| {
                let config = MsgdmaConfig { write_responses, ..config };
                let core = core(board, config, StreamConfig::sink());
                let window = core.window()?;
                let mut queue = open(&window, config, own)?;
                for byte in 1..=4 {
                    push(&mut queue, pool, byte)?;
                }
                core.run_for(us)?;
                if by_program {
                    assert_eq!(
                        // SAFETY: the steps stop.
                        unsafe { queue.driver().stop_program().run(&window, 5) },
                        Ok(()),
                        "{config:?} after {us} us"
                    );
                    let written = board.counts().bytes_written;
                    core.run_for(50)?;
                    assert_eq!(board.counts().bytes_written, written, "{config:?} after {us} us");
                }
                queue.stop()?;
                while queue.wait::<2>(Duration::ZERO)?.is_some() {}
                while queue.take_back::<2>().unwrap().is_some() {}
                core.run_for(50)?;
                push(&mut queue, pool, 9)?;
                let to = next(&mut queue, &core)?
                    .unwrap_or_else(|| panic!("{config:?}: after a stop at {us} us no job ends"));
                assert!(to.view::<u8>()?.iter().all(|seen| *seen == 9));
                Ok(())
            });
        }
    }
}

#[test]
fn endless_copy_needs_a_reset_from_outside() {
    for (resp_at, prefetcher_at) in [(None, None), (Some(0x40), None), (None, Some(0x60))] {
        let config = MsgdmaConfig { resp_at, prefetcher_at, write_responses: true, ..COPY };
        with(Faults { hang: 1000, ..Faults::NONE }, |board, pool, own| {
            let core = core(board, config, StreamConfig::sink());
            let window = core.window()?;
            let mut queue = open(&window, config, own)?;
            push(&mut queue, pool, 1)?;
            core.run_for(5)?;
            for _ in 0..2 {
                assert!(matches!(queue.stop(), Err(Error::WillNotStop { device: "msgdma", .. })));
            }
            // Who opens it anew learns it too, also where the kernel stopped it.
            let csr = config.csr_at + regs::CONTROL.offset();
            assert_eq!(window.read32(csr) & regs::STOP, regs::STOP);
            // SAFETY: nothing is read or written by a driver that is refused.
            let refused = unsafe {
                Msgdma::open(Lent::new(&window), MsgdmaConfig { prefetcher_at: None, ..config })
            }
            .map(drop);
            assert!(matches!(refused, Err(Error::Setting { .. })), "{refused:?}");
            // SAFETY: the steps stop.
            assert_eq!(unsafe { queue.driver().stop_program().run(&window, 5) }, Ok(()));
            core.reset()?;
            queue.stop()?;
            assert!(queue.take_back::<2>().unwrap().is_some());
            push(&mut queue, pool, 2)?;
            core.run_for(5)?;
            // SAFETY: as above.
            assert_eq!(unsafe { queue.driver().stop_program().run(&window, 5) }, Ok(()));
            assert_eq!(window.read32(csr) & regs::STOP, regs::STOP);
            core.reset()?;
            queue.stop()?;
            assert!(queue.take_back::<2>().unwrap().is_some());
            Ok(())
        });
    }
}

#[test]
fn no_event_file_where_ends_follow_interrupts() {
    with(Faults::NONE, |board, _pool, _own| {
        for (write_responses, file) in [(false, None), (true, Some(7))] {
            let config = MsgdmaConfig { write_responses, ..COPY };
            let core = core(board, config, StreamConfig::sink());
            let (window, watch) = (core.window()?, Watch::default());
            watch.file.set(Some(7));
            // SAFETY: the model is built so.
            let driver = unsafe { Msgdma::open(Watched::new(&window, &watch), config) }?;
            assert_eq!(driver.arm_irq(), Ok(file));
        }
        Ok(())
    });
    let refused = |settle_us| {
        let board = contigo::sim::SimBoard::new(1);
        let core = core(&board, COPY, StreamConfig::sink());
        core.window().unwrap().driver(MsgdmaConfig { settle_us, ..COPY }).map(drop)
    };
    assert!(matches!(refused(0), Err(Error::Argument { name: "settle_us", value: 0, .. })));
    assert_eq!(refused(1), Ok(()));
}

/// The driver behind a watched window.
fn watched<'w>(
    window: &'w SimWindow<MsgdmaModel>,
    watch: &'w Watch,
    config: MsgdmaConfig,
    own: CpuBuf,
) -> Result<Queue<Msgdma<Watched<'w, SimWindow<MsgdmaModel>>>>> {
    // SAFETY: the model is built so.
    let driver = unsafe {
        match config.prefetcher_at {
            Some(_) => Msgdma::prefetched(Watched::new(window, watch), config, own)?,
            None => Msgdma::open(Watched::new(window, watch), config)?,
        }
    };
    Ok(Queue::new(driver, 8)?)
}

#[test]
fn a_wait_wakes_for_an_end_that_was_seen_and_else_not() {
    for config in WAYS {
        let config = MsgdmaConfig { settle_us: 10, ..config };
        for (faults, ends) in [
            (Faults { hang: 1000, ..Faults::NONE }, false),
            (Faults::NONE, true),
            // The end is found all the same.
            (Faults { lost_irq: 1000, ..Faults::NONE }, true),
        ] {
            with(faults, |board, pool, own| {
                let core = core(board, config, StreamConfig::sink());
                let (window, watch) = (core.window()?, Watch::default());
                let mut queue = watched(&window, &watch, config, own)?;
                queue.submit([pool.take()?.to_device(..), pool.take()?.from_device(..)], &[])?;
                assert_eq!(queue.wait::<2>(LIMIT)?.is_some(), ends, "{config:?} {faults:?}");
                // While an end waits, a line that the driver has not acknowledged may end each
                // sleep.
                let most = if ends { 200 } else { 8 };
                assert!(
                    watch.waits.get() <= most,
                    "{config:?} {faults:?}: it woke {} times in 5 ms",
                    watch.waits.get()
                );
                let _ = queue.stop();
                while queue.take_back::<2>().unwrap().is_some() {}
                if !ends {
                    core.reset()?;
                }
                Ok(())
            });
        }
    }
}

#[test]
fn an_error_of_the_interrupts_file_is_what_a_stop_answers() {
    for config in WAYS {
        with(Faults::NONE, |board, pool, own| {
            let core = core(board, config, StreamConfig::sink());
            let (window, watch) = (core.window()?, Watch::default());
            let mut queue = watched(&window, &watch, config, own)?;
            queue.submit([pool.take()?.to_device(..), pool.take()?.from_device(..)], &[])?;
            watch.fails.set(Some(Error::Contended { tries: 1 }));
            assert_eq!(queue.stop(), Err(Error::Contended { tries: 1 }), "{config:?}");
            watch.fails.set(None);
            queue.stop()?;
            while queue.wait::<2>(Duration::ZERO)?.is_some() {}
            while queue.take_back::<2>().unwrap().is_some() {}
            Ok(())
        });
    }
}

/// The masters were stopped in a copy, and then the reset took too long: the next stop finds a core
/// at rest, which is spoilt.
#[test]
fn spoilt_core_with_a_late_reset_stays_unusable() {
    for (resp_at, prefetcher_at) in [(None, None), (Some(0x40), None), (None, Some(0x60))] {
        let config = MsgdmaConfig { resp_at, prefetcher_at, write_responses: true, ..COPY };
        with(Faults { hang: 1000, ..Faults::NONE }, |board, pool, own| {
            let core = core(board, config, StreamConfig::sink());
            let (window, watch) = (core.window()?, Watch::default());
            let mut queue = watched(&window, &watch, config, own)?;
            queue.submit([pool.take()?.to_device(..), pool.take()?.from_device(..)], &[])?;
            core.run_for(5)?;
            watch.bits.set((config.csr_at + regs::STATUS.offset(), regs::RESETTING, u64::MAX));
            assert!(matches!(queue.stop(), Err(Error::WillNotStop { .. })));
            watch.bits.set((0, 0, 0));
            for _ in 0..2 {
                assert!(matches!(queue.stop(), Err(Error::WillNotStop { .. })), "{config:?}");
            }
            core.reset()?;
            queue.stop()?;
            assert!(queue.take_back::<2>().unwrap().is_some());
            Ok(())
        });
    }
}

/// The same where the program's own wait panicked, in any of a stop's waits.
#[test]
fn spoilt_core_after_a_panic_stays_unusable() {
    let config = MsgdmaConfig { write_responses: true, ..COPY };
    let stop = |panics: Option<u32>| {
        let mut waits = 0;
        with(Faults { hang: 1000, ..Faults::NONE }, |board, pool, own| {
            let core = core(board, config, StreamConfig::sink());
            let (window, watch) = (core.window()?, Watch::default());
            let mut queue = watched(&window, &watch, config, own)?;
            queue.submit([pool.take()?.to_device(..), pool.take()?.from_device(..)], &[])?;
            core.run_for(5)?;
            let before = watch.waits.get();
            watch.bits.set((config.csr_at + regs::STATUS.offset(), regs::RESETTING, u64::MAX));
            watch.panics.set(panics.map_or(0, |wait| before + wait));
            let stopped = panic::catch_unwind(AssertUnwindSafe(|| queue.stop()));
            assert_eq!(stopped.is_err(), panics.is_some());
            waits = watch.waits.get() - before;
            watch.bits.set((0, 0, 0));
            for _ in 0..2 {
                assert!(
                    matches!(queue.stop(), Err(Error::WillNotStop { .. })),
                    "the panic was in wait {panics:?}"
                );
            }
            core.reset()?;
            queue.stop()?;
            assert!(queue.take_back::<2>().unwrap().is_some());
            Ok(())
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
        let config = MsgdmaConfig { settle_us: 2_000, ..COPY };
        with(Faults { hang: 1000, ..Faults::NONE }, |board, pool, own| {
            let core = core(board, config, StreamConfig::sink());
            let (window, watch) = (core.window()?, Watch::default());
            let mut queue = watched(&window, &watch, config, own)?;
            queue.submit([pool.take()?.to_device(..), pool.take()?.from_device(..)], &[])?;
            core.run_for(5)?;
            let until_us = board.now_ns() / 1_000 + late_us;
            watch.bits.set((config.csr_at + regs::STATUS.offset(), regs::RESETTING, until_us));
            // SAFETY: the steps stop.
            let answer =
                unsafe { queue.driver().stop_program().run(&Watched::new(&window, &watch), 5) };
            assert_eq!(answer.is_ok(), stopped, "late by {late_us} us: {answer:?}");
            let waited_us = (board.now_ns() / 1_000).saturating_sub(until_us);
            assert!(
                answer.is_err() || waited_us >= 2_000,
                "late by {late_us} us: it waited {waited_us} us"
            );
            core.reset()?;
            queue.stop()?;
            assert!(queue.take_back::<2>().unwrap().is_some());
            Ok(())
        });
    }
}

/// Nor a prefetcher that still fetches: its descriptors begin when they come.
#[test]
fn stop_program_sees_a_running_prefetcher() {
    for write_responses in [false, true] {
        let config =
            MsgdmaConfig { prefetcher_at: Some(0x60), write_responses, settle_us: 2_000, ..COPY };
        with(Faults { hang: 1000, ..Faults::NONE }, |board, pool, own| {
            let core = core(board, config, StreamConfig::sink());
            let (window, watch) = (core.window()?, Watch::default());
            let mut queue = watched(&window, &watch, config, own)?;
            queue.submit([pool.take()?.to_device(..), pool.take()?.from_device(..)], &[])?;
            core.run_for(5)?;
            watch.bits.set((0x60 + regs::FETCH_CONTROL.offset(), regs::RUN, u64::MAX));
            // SAFETY: the steps stop.
            let answer =
                unsafe { queue.driver().stop_program().run(&Watched::new(&window, &watch), 5) };
            assert!(answer.is_err(), "write_responses {write_responses}");
            watch.bits.set((0, 0, 0));
            core.reset()?;
            queue.stop()?;
            assert!(queue.take_back::<2>().unwrap().is_some());
            Ok(())
        });
    }
}
