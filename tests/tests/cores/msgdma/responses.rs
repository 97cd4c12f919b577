//! The ends of an mSGDMA's writes, with and without their answers: when a job's bytes are there,
//! and what a stop in the middle of one costs.

use super::{COPY, FETCHED, LIMIT, RECEIVE, core, source, with};
use contigo::{
    CpuBuf, Driver, Error, Mmio, Pool, Queue, Result,
    drivers::msgdma::{Msgdma, MsgdmaConfig, MsgdmaModel, SimMsgdma, regs},
    sim::{
        Faults, SimWindow,
        stream::{StreamConfig, packet},
    },
};
use contigo_testkit::lent::Lent;
use std::time::Duration;

/// Copies with each way to their ends.
const WAYS: [MsgdmaConfig; 3] = [COPY, MsgdmaConfig { resp_at: Some(0x40), ..COPY }, FETCHED];
/// So many looks, a microsecond apart.
const LOOKS: usize = 2_000;

type Window<'w, 'd> = Lent<'w, SimWindow<'d, MsgdmaModel>>;
type Copies<'p, 'w, 'd> = Queue<'p, Msgdma<'p, Window<'w, 'd>>, 8, 2>;

fn open<'p, 'w, 'd>(window: &'w SimWindow<'d, MsgdmaModel>, config: MsgdmaConfig, own: CpuBuf<'p>) -> Result<Copies<'p, 'w, 'd>> {
    // SAFETY: the model is built so, or waits for more than that.
    let driver = unsafe {
        match config.prefetcher_at {
            Some(_) => Msgdma::prefetched(Lent::new(window), config, own)?,
            None => Msgdma::open(Lent::new(window), config)?,
        }
    };
    Ok(Queue::new(driver)?)
}

fn push<'p>(queue: &mut Copies<'p, '_, '_>, pool: &'p Pool<'p, 24>, byte: u8) -> Result<()> {
    let (mut from, mut to) = (pool.take()?, pool.take()?);
    from.view_mut::<u8>()?.fill(byte);
    to.view_mut::<u8>()?.fill(0);
    queue.push([from.to_device(..), to.from_device(..)], &())?;
    Ok(())
}

/// The next copy, which is looked for every microsecond, so that its end is told at once.
fn next<'p>(queue: &mut Copies<'p, '_, '_>, core: &SimMsgdma<'_>) -> Result<Option<CpuBuf<'p>>> {
    for _ in 0..LOOKS {
        if let Some(done) = queue.next(Duration::ZERO)? {
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
                    let to = next(&mut queue, &core)?.unwrap_or_else(|| panic!("{config:?}: copy {job} never ends"));
                    let byte = 1 + 4 * round + job;
                    assert!(to.view::<u8>()?.iter().all(|seen| *seen == byte), "{config:?}: copy {job} is told, and is not there");
                }
            }
            Ok(())
        });
    }
}

#[test]
fn a_stop_in_the_middle_leaves_no_write_behind_it_and_the_core_works_on() {
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
                    // SAFETY: the steps stop.
                    assert_eq!(unsafe { queue.driver().stop_program().run(&window, 5) }, Ok(()), "{config:?} after {us} us");
                    let written = board.counts().bytes_written;
                    core.run_for(50)?;
                    assert_eq!(board.counts().bytes_written, written, "{config:?} after {us} us");
                }
                queue.stop()?;
                while queue.next(Duration::ZERO)?.is_some() {}
                while queue.take_back().is_some() {}
                core.run_for(50)?;
                push(&mut queue, pool, 9)?;
                let to = next(&mut queue, &core)?.unwrap_or_else(|| panic!("{config:?}: after a stop at {us} us no job ends"));
                assert!(to.view::<u8>()?.iter().all(|seen| *seen == 9));
                Ok(())
            });
        }
    }
}

#[test]
fn a_copy_that_does_not_end_leaves_a_core_that_wants_a_reset_from_outside() {
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
            let refused = unsafe { Msgdma::open(Lent::new(&window), MsgdmaConfig { prefetcher_at: None, ..config }) }.map(drop);
            assert!(matches!(refused, Err(Error::Setting { .. })), "{refused:?}");
            // SAFETY: the steps stop.
            assert_eq!(unsafe { queue.driver().stop_program().run(&window, 5) }, Ok(()));
            core.reset()?;
            queue.stop()?;
            assert!(queue.take_back().is_some());
            push(&mut queue, pool, 2)?;
            core.run_for(5)?;
            // SAFETY: as above.
            assert_eq!(unsafe { queue.driver().stop_program().run(&window, 5) }, Ok(()));
            assert_eq!(window.read32(csr) & regs::STOP, regs::STOP);
            core.reset()?;
            queue.stop()?;
            assert!(queue.take_back().is_some());
            Ok(())
        });
    }
}

#[test]
fn a_receiver_is_stopped_in_a_packet_and_while_it_waits_for_one() {
    let config = MsgdmaConfig { write_responses: true, ..RECEIVE };
    with(Faults::NONE, |board, pool, _own| {
        let core = core(board, config, source(700, true));
        let mut queue: Queue<'_, _, 8, 1> = Queue::new(Msgdma::open_simulated(core.window()?, config)?)?;
        for us in [1, 2, 3, 4] {
            for _ in 0..4 {
                queue.push([pool.take()?.from_device(..1024)], &())?;
            }
            core.run_for(us)?;
            queue.stop()?;
            while queue.next(Duration::ZERO)?.is_some() {}
            while queue.take_back().is_some() {}
            queue.push([pool.take()?.from_device(..1024)], &())?;
            let done = queue.next(LIMIT)?.unwrap_or_else(|| panic!("after a stop at {us} us no packet comes"));
            let [buf] = done.buffers;
            let bytes = buf.view_at::<u8>(..700)?;
            assert!(packet::number(bytes).is_some_and(|number| packet::is(number, bytes)));
        }
        Ok(())
    });
    // Nothing comes.
    with(Faults::NONE, |board, pool, _own| {
        let core = core(board, config, StreamConfig::sink());
        let mut queue: Queue<'_, _, 8, 1> = Queue::new(Msgdma::open_simulated(core.window()?, config)?)?;
        for _ in 0..2 {
            queue.push([pool.take()?.from_device(..1024)], &())?;
            core.run_for(5)?;
            queue.stop()?;
            assert!(queue.take_back().is_some());
        }
        Ok(())
    });
}

#[test]
fn an_event_loop_has_no_file_where_ends_come_after_their_interrupts() {
    with(Faults::NONE, |board, _pool, _own| {
        let core = core(board, COPY, StreamConfig::sink());
        let queue: Queue<'_, _, 8, 2> = Queue::new(Msgdma::open_simulated(core.window()?, COPY)?)?;
        assert_eq!(queue.arm_irq(), Ok(None));
        Ok(())
    });
    let refused = |settle_us| {
        let board = contigo::sim::SimBoard::new(1);
        let core = core(&board, COPY, StreamConfig::sink());
        Msgdma::open_simulated(core.window().unwrap(), MsgdmaConfig { settle_us, ..COPY }).map(drop)
    };
    assert!(matches!(refused(0), Err(Error::Argument { name: "settle_us", value: 0, .. })));
    assert_eq!(refused(1), Ok(()));
}
