//! One doorbell a burst of a prefetcher, ends from descriptors, and interrupts that do not stay
//! asserted.

use super::*;
use contigo::job::AnyDriver;

type PortOf = fn(&SimBoard) -> Port;

/// A prefetcher whose ends settle, and one whose ends need no time, behind each kind of port.
fn cases() -> impl Iterator<Item = (MsgdmaConfig, PortOf)> {
    [FETCHED, MsgdmaConfig { write_responses: true, ..FETCHED }].into_iter().flat_map(|config| {
        [(config, SimBoard::port as PortOf), (config, SimBoard::coherent_port as PortOf)]
    })
}

fn device(board: &SimBoard, port: PortOf, config: MsgdmaConfig) -> SimDevice<MsgdmaModel> {
    let build = MsgdmaBuild { config, stream: StreamConfig::sink(), ..MsgdmaBuild::default() };
    SimDevice::with_model(board, port(board), MsgdmaModel::new(build))
}

/// By name, as C and Python have it.
fn open_any(device: &SimDevice<MsgdmaModel>, config: MsgdmaConfig, own: CpuBuf) -> AnyDriver {
    AnyDriver::new(device.window().unwrap().prefetched(config, own).unwrap()).unwrap()
}

fn is_line_high(board: &SimBoard, device: &SimDevice<MsgdmaModel>) -> bool {
    device.model(Model::irq_at_ns).unwrap().is_some_and(|at_ns| at_ns <= board.now_ns())
}

#[test]
fn burst_starts_the_prefetcher_once() {
    for (config, port) in cases() {
        with(Faults::NONE, |board, pool, own| {
            let device = device(board, port, config);
            let mut queue = Queue::new(open_any(&device, config, own), 8)?;
            for (round, by_wait) in [(0, false), (1, true), (2, false)] {
                queue.hold_doorbell();
                let mut before = device.accesses();
                for job in 0..8 {
                    assert_eq!(queue.submit(copies(pool, ..100, ..), &[])?, 8 * round + job);
                    if (round, job) == (0, 0) {
                        before = device.accesses();
                    }
                }
                device.run_for(100)?;
                let now = device.accesses();
                let looks = u64::from(round > 0);
                assert_eq!((now.reads - before.reads, now.writes), (looks, before.writes));
                if !by_wait {
                    queue.ring_doorbell().unwrap();
                }
                device.run_for(100)?;
                for job in 0..8 {
                    assert_eq!(queue.end::<2>().job, 8 * round + job);
                }
                if round == 2 && config.write_responses {
                    let now = device.accesses();
                    let cost = (now.reads - before.reads, now.writes - before.writes);
                    // RUN once, the interrupt; and where that is looked for first, again after the
                    // last end. Two halves of an address, RUN, and the acknowledgement.
                    assert_eq!(cost, if port(board).coherent { (2, 4) } else { (3, 4) });
                }
            }
            drop(queue);
            Ok(())
        });
    }
}

/// A stop within a burst leaves descriptors that are owned: the next start fetches none of them.
#[test]
fn stop_forgets_an_owed_doorbell() {
    for (config, port) in cases() {
        for launched in [0, 1] {
            with(Faults::NONE, |board, pool, own| {
                let device = device(board, port, config);
                let mut queue = Queue::new(open_any(&device, config, own), 8)?;
                for _ in 0..launched {
                    queue.give(copies(pool, .., ..));
                    let _ = queue.end::<2>();
                }
                queue.hold_doorbell();
                for _ in 0..3 {
                    queue.give(copies(pool, .., ..));
                }
                queue.stop()?;
                assert_eq!(queue.drain::<2>(), 3);
                queue.hold_doorbell();
                let again = queue.submit(copies(pool, .., ..), &[])?;
                assert_eq!(queue.end::<2>().job, again);
                device.run_for(1_000)?;
                drop(queue);
                Ok(())
            });
        }
    }
}

/// A poll after a stop that failed leaves the jobs alone whose doorbell was not rung.
#[test]
fn poll_after_a_failed_stop_starts_nothing() {
    for (config, port) in cases() {
        with(Faults::NONE, |board, pool, own| {
            let device = device(board, port, config);
            let (is_stuck, starts) = (Cell::new(false), Cell::new(0));
            let reads = |offset, value| {
                let is_busy = is_stuck.get() && offset == regs::STATUS.offset();
                if is_busy { value | regs::BUSY } else { value }
            };
            let writes = |offset, value| {
                let is_control = offset == 0x60 + regs::FETCH_CONTROL.offset();
                starts.set(starts.get() + u32::from(is_control && value & regs::RUN != 0));
                Some(value)
            };
            let window = Bent::new(device.window()?, reads).writing(writes);
            let mut queue = driver(window, config, own)?;
            queue.hold_doorbell();
            for _ in 0..3 {
                queue.give(copies(pool, .., ..));
            }
            is_stuck.set(true);
            assert!(matches!(queue.stop(), Err(Error::WillNotStop { .. })));
            is_stuck.set(false);
            assert!(queue.try_next::<2>().unwrap().is_none() && starts.get() == 0);
            queue.stop()?;
            assert_eq!(queue.drain::<2>(), 3);
            drop(queue);
            Ok(())
        });
    }
}

/// A queue that is deeper than the ring gives the rest of a burst as jobs end.
#[test]
fn burst_larger_than_the_ring_ends_in_order() {
    for (config, port) in cases() {
        let (board, region, pool) = bench(3, 24, 4096);
        let device = device(&board, port, config);
        let own = region.alloc(5 * 64, Align::LINE).unwrap();
        let mut queue = Queue::new(open_any(&device, config, own), 12).unwrap();
        for round in 0..3 {
            queue.hold_doorbell();
            for _ in 0..12 {
                queue.give(copies(&pool, ..200, ..));
            }
            for job in 0..12 {
                assert_eq!(queue.end::<2>().job, 12 * round + job);
            }
        }
        clean(&board);
    }
}

/// An event loop sleeps after the last end, and after a poll that found nothing.
#[test]
fn no_interrupt_stays_asserted() {
    for ((config, port), words) in cases().flat_map(|case| (1..=64).map(move |n| (case, n))) {
        for in_flight in [1, 3] {
            with(Faults::NONE, |board, pool, own| {
                let device = device(board, port, config);
                let mut queue = Queue::new(open_any(&device, config, own), 8)?;
                queue.hold_doorbell();
                for _ in 0..in_flight {
                    queue.give(copies(pool, ..4 * words, ..));
                }
                queue.ring_doorbell().unwrap();
                let mut was_high = false;
                while !queue.is_empty() {
                    let ended = queue.try_next::<2>().unwrap().is_some();
                    let is_high = !ended && is_line_high(board, &device);
                    // One that rises during a poll is the next poll's.
                    assert!(!(was_high && is_high), "{in_flight} of {words} words");
                    was_high = is_high;
                }
                assert!(!is_line_high(board, &device), "{in_flight} of {words} words");
                device.run_for(100)?;
                assert!(!is_line_high(board, &device), "{in_flight} of {words} words, later");
                drop(queue);
                Ok(())
            });
        }
    }
}

/// The interrupt that is acknowledged before the last end is found may be that of an end which a
/// descriptor showed: the last one's follows. It comes here at the read of the register, and the
/// acknowledgement is lost, as if it came after that.
#[test]
fn interrupt_of_an_earlier_end_is_not_the_last_ones() {
    let config = MsgdmaConfig { write_responses: true, ..FETCHED };
    let status = 0x60 + regs::FETCH_STATUS.offset();
    with(Faults::NONE, |board, pool, own| {
        let device = device(board, SimBoard::port, config);
        let (comes, loses) = (Cell::new(false), Cell::new(false));
        let reads = |offset, value| {
            if offset == status && comes.replace(false) {
                device.run_for(100).unwrap();
                loses.set(true);
            }
            value
        };
        let writes = |offset, value| {
            let is_lost = offset == status && loses.replace(false);
            (!is_lost).then_some(value)
        };
        let window = Bent::new(device.window()?, reads).writing(writes);
        let mut queue = driver(window, config, own)?;
        queue.hold_doorbell();
        for bytes in [4, 4, 4096] {
            queue.give(copies(pool, ..bytes, ..));
        }
        queue.ring_doorbell().unwrap();
        device.run_for(5)?;
        for job in 0..2 {
            assert_eq!(queue.try_next::<2>().unwrap().unwrap().job, job);
        }
        comes.set(true);
        assert_eq!(queue.try_next::<2>().unwrap().unwrap().job, 2);
        assert!(!comes.get() && !loses.get() && !is_line_high(board, &device));
        drop(queue);
        Ok(())
    });
}
