//! One doorbell a burst, ends from descriptors, and interrupts that do not stay asserted.

use super::*;
use contigo::job::AnyDriver;

/// The packets that the second channel's source sent.
fn sent(device: &SimDevice<McdmaModel>) -> u64 {
    device.model(|model| model.streams[1].counts.sent).unwrap()
}

fn is_line_high(board: &SimBoard, device: &SimDevice<McdmaModel>) -> bool {
    device.model(Model::irq_at_ns).unwrap().is_some_and(|at_ns| at_ns <= board.now_ns())
}

type PortOf = fn(&SimBoard) -> Port;

/// Whether the core has other channels' drivers, and its port.
const CASES: [(bool, PortOf); 4] = [
    (false, SimBoard::port),
    (false, SimBoard::coherent_port),
    (true, SimBoard::port),
    (true, SimBoard::coherent_port),
];

/// A channel of a core, by name, as C and Python have it.
fn open_any(device: &SimDevice<McdmaModel>, way: Way, shared: bool, own: CpuBuf) -> AnyDriver {
    let window = device.window().unwrap();
    if shared {
        AnyDriver::new(window.core().unwrap().channel(way, own).unwrap()).unwrap()
    } else {
        AnyDriver::new(window.channel(way, own).unwrap()).unwrap()
    }
}

#[test]
fn burst_rings_one_doorbell() {
    for (shared, port) in CASES {
        let (board, rings, pool) = ground(Faults::NONE);
        let model = model(DRE, StreamConfig::sink());
        let device = SimDevice::with_model(&board, port(&board), model);
        let driver = open_any(&device, Way::Mm2s(1), shared, rings.take().unwrap());
        let mut queue = Queue::new(driver, 8).unwrap();
        for (round, by_wait) in [(0, false), (1, true), (2, false)] {
            let before = device.accesses();
            queue.hold_doorbell();
            for job in 0..8 {
                assert_eq!(queue.submit(sends(&pool, ..100), &[]).unwrap(), 8 * round + job);
            }
            device.run_for(100).unwrap();
            assert_eq!((device.accesses(), sent(&device)), (before, 8 * round), "no doorbell yet");
            if !by_wait {
                queue.ring_doorbell().unwrap();
                // All of them end before the first poll.
                device.run_for(100).unwrap();
            }
            for job in 0..8 {
                assert_eq!(queue.end::<1>().job, 8 * round + job);
            }
            if round == 2 {
                let now = device.accesses();
                let cost = (now.reads - before.reads, now.writes - before.writes);
                // The doorbell, the interrupt's acknowledgement; and where registers are read
                // first, for the last end again.
                let by_descriptors = !shared && port(&board).coherent;
                assert_eq!(cost, if by_descriptors { (1, 2) } else { (2, 2) }, "{shared}");
            }
        }
        clean(&board);
    }
}

/// With wide addresses a doorbell that follows another job's writes half of the tail alone.
#[test]
fn stop_forgets_an_owed_doorbell() {
    for address_bits in [32, 64] {
        let (board, rings, pool) = ground(Faults::NONE);
        let device = core(&board, McdmaConfig { address_bits, ..DRE }, source());
        let core = device.window().unwrap().core().unwrap();
        let mut queue = open(&core, Way::S2mm(1), &rings);
        let mut other = open(&core, Way::S2mm(0), &rings);
        // Before the first start: nothing is stopped, and no sibling's jobs end.
        other.give(receives(&pool, ..));
        queue.hold_doorbell();
        queue.give(receives(&pool, ..));
        queue.clear().unwrap();
        let _ = other.end::<1>();
        // A job whose doorbell was rung, and others.
        queue.give(receives(&pool, ..));
        queue.hold_doorbell();
        queue.give(receives(&pool, ..));
        queue.give(receives(&pool, ..));
        queue.clear().unwrap();
        let again = queue.submit(receives(&pool, ..), &[]).unwrap();
        assert_eq!(queue.end::<1>().job, again);
        assert_eq!(pool.taken(), 0);
        clean(&board);
    }
}

/// A stop waits for the jobs that the core has, and for none of those whose doorbell is owed.
#[test]
fn stop_within_a_burst_resets_no_core() {
    let (board, rings, pool) = ground(Faults::NONE);
    let device = core(&board, DRE, StreamConfig::sink());
    let core = device.window().unwrap().core().unwrap();
    let [mut first, mut second] = [0, 1].map(|number| open(&core, Way::Mm2s(number), &rings));
    second.give(sends(&pool, ..4096));
    first.give(sends(&pool, ..100));
    first.hold_doorbell();
    first.give(sends(&pool, ..100));
    first.stop().unwrap();
    assert_eq!((first.end::<1>().job, first.drain::<1>()), (0, 1));
    assert_eq!(second.end::<1>().job, 0, "it goes on");
}

/// A sibling's reset within a burst ends the jobs that the core had. A burst of which it had none
/// goes on, and its first packet may be torn.
#[test]
fn reset_within_a_burst_ends_it_or_nothing() {
    let ended = Error::EndedByReset { device: "axi_mcdma" };
    for (has_jobs, by_job) in [(true, false), (true, true), (false, false), (false, true)] {
        let (board, rings, pool) = ground(Faults::NONE);
        let device = core(&board, DRE, StreamConfig::default());
        let core = device.window().unwrap().core().unwrap();
        let [mut first, mut second, mut sender] =
            [Way::S2mm(0), Way::S2mm(1), Way::Mm2s(1)].map(|way| open(&core, way, &rings));
        second.give(receives(&pool, ..));
        sender.give(sends(&pool, ..100));
        let _ = (second.end::<1>(), sender.end::<1>());
        if has_jobs {
            second.give(receives(&pool, ..));
        }
        second.hold_doorbell();
        second.give(receives(&pool, ..));
        // A receive that waits is stopped by a reset.
        first.give(receives(&pool, ..));
        first.stop_one::<1>();
        let rings = if by_job {
            second.give(receives(&pool, ..));
            second.ring_doorbell()
        } else {
            second.ring_doorbell()
        };
        if has_jobs {
            assert_eq!(rings.unwrap_err().error, ended);
            assert_eq!(second.drain::<1>(), 2 + usize::from(by_job));
            second.give(receives(&pool, ..));
        } else {
            rings.unwrap();
        }
        sender.give(sends(&pool, ..100));
        let done = second.end::<1>();
        let report = PacketReport::of(done.status, done.words);
        assert!(report.maybe_torn && done.bytes == Some(100), "{has_jobs} {by_job}");
        clean(&board);
    }
}

/// A queue that is deeper than the ring gives the rest of a burst as jobs end.
#[test]
fn burst_larger_than_the_ring_ends_in_order() {
    for port in [SimBoard::port as PortOf, SimBoard::coherent_port] {
        for address_bits in [32, 40] {
            let (board, region, pool) = bench(3, 16, 256);
            let config = McdmaConfig { address_bits, ..DRE };
            let device =
                SimDevice::with_model(&board, port(&board), model(config, StreamConfig::sink()));
            let own = region.alloc(4 * 64, Align::LINE).unwrap();
            let mut queue = Queue::new(open_any(&device, Way::Mm2s(1), false, own), 16).unwrap();
            for round in 0..3 {
                queue.hold_doorbell();
                for _ in 0..16 {
                    queue.give(sends(&pool, ..200));
                }
                for job in 0..16 {
                    assert_eq!(queue.end::<1>().job, 16 * round + job);
                }
            }
            assert_eq!(sent(&device), 48);
            clean(&board);
        }
    }
}

/// An event loop sleeps after the first poll that finds nothing, which may be an empty queue's.
#[test]
fn drained_queue_leaves_the_line_low() {
    for (shared, port) in CASES {
        for in_flight in [1, 4] {
            let (board, rings, pool) = ground(Faults::NONE);
            let model = model(DRE, source());
            let device = SimDevice::with_model(&board, port(&board), model);
            let driver = open_any(&device, Way::S2mm(1), shared, rings.take().unwrap());
            let mut queue = Queue::new(driver, 8).unwrap();
            queue.hold_doorbell();
            for _ in 0..in_flight {
                queue.give(receives(&pool, ..));
            }
            queue.ring_doorbell().unwrap();
            device.run_for(100).unwrap();
            assert!(is_line_high(&board, &device), "a packet raises it");
            for job in 0..in_flight {
                assert_eq!(queue.try_next::<1>().unwrap().unwrap().job, job);
            }
            assert!(!is_line_high(&board, &device), "{shared}, {in_flight} in flight");
            // Two buffers of one packet, of which one is full: the other gets no interrupt yet.
            queue.give(receives(&pool, ..400));
            queue.give(receives(&pool, ..));
            while !queue.is_empty() {
                if queue.try_next::<1>().unwrap().is_none() {
                    assert!(!is_line_high(&board, &device), "a poll found nothing");
                }
            }
            assert!(!is_line_high(&board, &device));
        }
    }
}

/// The last end is found by an interrupt's bit while the channel's status shows no Idle; its own
/// interrupt comes after.
#[test]
fn interrupt_after_the_last_end_is_acknowledged() {
    let (board, rings, pool) = ground(Faults::NONE);
    let device = core(&board, DRE, StreamConfig::sink());
    let hidden = Cell::new(0);
    let late = |offset, value| match hidden.get() {
        left if offset == regs::CHANNELS[1].status.offset() && left > 0 => {
            hidden.set(left - 1);
            value & !(regs::IDLE | regs::IOC)
        }
        _ => value,
    };
    let window = Bent::new(device.window().unwrap(), late);
    // SAFETY: the model is built so.
    let channel =
        unsafe { McdmaChannel::open(window, Way::Mm2s(1), DRE, rings.take().unwrap()) }.unwrap();
    let mut queue = Queue::new(channel, 2).unwrap();
    // The first one's interrupt is acknowledged, and its bit lets the second be looked for.
    queue.give(sends(&pool, ..100));
    queue.give(sends(&pool, ..4096));
    assert_eq!(queue.end::<1>().job, 0);
    device.run_for(100).unwrap();
    hidden.set(2);
    let ended = (0..4).find(|_| queue.try_next::<1>().unwrap().is_some());
    assert_eq!(ended, Some(0));
    assert!(!is_line_high(&board, &device), "{ended:?}, {} hidden", hidden.get());
}

/// A core that is idle before the interrupt of its last end, which is not seen in two reads.
#[test]
fn interrupt_after_idle_is_acknowledged() {
    let (board, rings, pool) = ground(Faults::NONE);
    let device = core(&board, DRE, StreamConfig::sink());
    let hidden = Cell::new(2);
    let late = |offset, value| match hidden.get() {
        left if offset == regs::CHANNELS[1].status.offset()
            && left > 0
            && value & regs::IOC != 0 =>
        {
            hidden.set(left - 1);
            value & !regs::IOC
        }
        _ => value,
    };
    let window = Bent::new(device.window().unwrap(), late);
    // SAFETY: the model is built so.
    let channel =
        unsafe { McdmaChannel::open(window, Way::Mm2s(1), DRE, rings.take().unwrap()) }.unwrap();
    let mut queue = Queue::new(channel, 1).unwrap();
    queue.give(sends(&pool, ..100));
    device.run_for(100).unwrap();
    assert!(queue.try_next::<1>().unwrap().is_some() && hidden.get() == 0);
    assert!(!is_line_high(&board, &device));
}

/// A driver that is polled after each job of a burst.
struct Polled<D>(D);

// SAFETY: the driver's methods, of which `poll` may be called at any time.
unsafe impl<D: Driver> Driver for Polled<D> {
    contigo::forward!(|this| this.0 => name, port, simulated, addr_bits, operands, depth, check,
        submit, doorbell, poll, stop);

    unsafe fn submit_more(&mut self, slot: usize, operands: &[DevSlice], w: &[u32]) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.0.submit_more(slot, operands, w)? }
        assert_eq!(self.0.poll(Duration::ZERO), Ok(None));
        Ok(())
    }
}

/// A core with wide addresses that did all jobs of its tail's lower half would run past a tail
/// that names no job of the burst yet.
#[test]
fn poll_within_a_burst_rings_nothing() {
    let (board, rings, pool) = ground(Faults::NONE);
    let device = core(&board, McdmaConfig { address_bits: 40, ..DRE }, StreamConfig::sink());
    let channel = device.window().unwrap().channel(Way::Mm2s(1), rings.take().unwrap()).unwrap();
    let mut queue = Queue::new(Polled(channel), 8).unwrap();
    // More than the core fetches ahead: it sees the last one's half of the tail in time.
    queue.hold_doorbell();
    for _ in 0..6 {
        queue.give(sends(&pool, ..100));
    }
    queue.ring_doorbell().unwrap();
    queue.give(sends(&pool, ..100));
    for job in 0..7 {
        assert_eq!(queue.end::<1>().job, job);
    }
    let before = device.accesses().writes;
    queue.hold_doorbell();
    queue.give(sends(&pool, ..100));
    assert_eq!(device.accesses().writes, before);
    assert_eq!(queue.end::<1>().job, 7);
    assert_eq!(sent(&device), 8);
}
