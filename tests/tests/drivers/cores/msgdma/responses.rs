//! The ends of an mSGDMA's writes, with and without their answers: when a job's bytes are there,
//! and when a wait wakes.

use super::super::wakes_for_an_end;
use super::*;

fn push<D: Driver>(queue: &mut Queue<D>, pool: &Pool, byte: u8) {
    queue.give([filled(pool, byte).to_device(..), filled(pool, 0).from_device(..)]);
}

/// The next copy is polled for every microsecond, so that its end is reported at once: are its
/// bytes there?
fn comes<D: Driver>(queue: &mut Queue<D>, core: &SimDevice<MsgdmaModel>, byte: u8, case: &str) {
    for _ in 0..2_000 {
        if let Some(done) = queue.wait::<2>(Duration::ZERO).unwrap() {
            let seen = done.buffers[1].view::<u8>().unwrap();
            let is_there = seen.iter().all(|seen| *seen == byte);
            assert!(is_there, "{case}: copy {byte} is reported, and is not there");
            return;
        }
        core.run_for(1).unwrap();
    }
    panic!("{case}: copy {byte} never ends");
}

/// Each way, with write responses and without.
fn ways() -> impl Iterator<Item = MsgdmaConfig> {
    let both = |way| [false, true].map(|write_responses| MsgdmaConfig { write_responses, ..way });
    WAYS.into_iter().flat_map(both)
}

#[test]
fn an_end_is_told_when_its_last_word_is_there() {
    for config in ways() {
        with(Faults::NONE, |board, pool, own| {
            let config = MsgdmaConfig { settle_us: 6, ..config };
            let core = core(board, config, StreamConfig::sink());
            let mut queue = driver(core.window()?, config, own)?;
            for round in 0..6 {
                let bytes = 1 + 4 * round..=4 + 4 * round;
                bytes.clone().for_each(|byte| push(&mut queue, pool, byte));
                bytes.for_each(|byte| comes(&mut queue, &core, byte, &format!("{config:?}")));
            }
            Ok(())
        });
    }
}

#[test]
fn stop_inside_a_copy_leaves_no_write_behind() {
    for (config, us) in ways().flat_map(|way| [1, 2, 3, 5, 9].map(|us| (way, us))) {
        for by_program in [false, true] {
            let case = format!("{config:?} after {us} us");
            with(Faults::NONE, |board, pool, own| {
                let core = core(board, config, StreamConfig::sink());
                let window = core.window()?;
                let mut queue = driver(Lent::new(&window), config, own)?;
                (1..=4).for_each(|byte| push(&mut queue, pool, byte));
                core.run_for(us)?;
                if by_program {
                    // SAFETY: the steps stop.
                    let stopped = unsafe { queue.driver().stop_program().run(&window, 5) };
                    assert_eq!(stopped, Ok(()), "{case}");
                    let written = board.counts().bytes_written;
                    core.run_for(50)?;
                    assert_eq!(board.counts().bytes_written, written, "{case}");
                }
                queue.stop()?;
                queue.drain::<2>();
                core.run_for(50)?;
                push(&mut queue, pool, 9);
                comes(&mut queue, &core, 9, &case);
                Ok(())
            });
        }
    }
}

#[test]
fn wait_wakes_only_for_a_seen_end() {
    for config in WAYS {
        let config = MsgdmaConfig { settle_us: 10, ..config };
        // A lost interrupt's end is found all the same.
        let lost = Faults { lost_irq: 1000, ..Faults::NONE };
        for (faults, ends) in [(HANG, false), (Faults::NONE, true), (lost, true)] {
            with(faults, |board, pool, own| {
                let core = core(board, config, StreamConfig::sink());
                let (window, watch) = (core.window()?, Watch::default());
                let mut queue = driver(Watched::new(&window, &watch), config, own)?;
                // While an end waits, a line that the driver has not acknowledged may end each
                // sleep.
                let expected = (ends, if ends { 24 } else { 8 });
                let case = format!("{config:?} {faults:?}");
                wakes_for_an_end(&mut queue, &watch, copies(pool, .., ..), expected, &case);
                if !ends {
                    core.reset()?;
                }
                queue.clear()
            });
        }
    }
}
