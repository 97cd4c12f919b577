//! One doorbell a burst, ends from descriptors, and interrupts that do not stay asserted.

use super::*;
use contigo::job::AnyDriver;

type PortOf = fn(&SimBoard) -> Port;
const PORTS: [PortOf; 2] = [SimBoard::port, SimBoard::coherent_port];

fn is_line_high(board: &SimBoard, device: &SimDevice<AxiCdmaModel>) -> bool {
    device.model(Model::irq_at_ns).unwrap().is_some_and(|at_ns| at_ns <= board.now_ns())
}

fn built(board: &SimBoard, port: PortOf, address_bits: u32) -> SimDevice<AxiCdmaModel> {
    let spec = AxiCdmaSpec { address_bits, ..AxiCdmaSpec::default() };
    SimDevice::with_model(board, port(board), AxiCdmaModel::new(spec))
}

/// By name, as C and Python have it.
fn open_any(device: &SimDevice<AxiCdmaModel>, region: &Region, bytes: usize) -> AnyDriver {
    let own = region.alloc(bytes, Align::LINE).unwrap();
    AnyDriver::new(device.window().unwrap().sg(DRE, own).unwrap()).unwrap()
}

#[test]
fn burst_rings_one_doorbell() {
    for port in PORTS {
        let (board, region, pool) = bench(12, 16, 1024);
        let device = built(&board, port, 32);
        let mut queue = Queue::new(open_any(&device, &region, 4096), 8).unwrap();
        for (round, by_wait) in [(0, false), (1, true), (2, false)] {
            queue.hold_doorbell();
            let mut before = device.accesses();
            for job in 0..8 {
                let operands = copies(&pool, ..1000, ..);
                assert_eq!(queue.submit(operands, &[]).unwrap(), 8 * round + job);
                if (round, job) == (0, 0) {
                    // It starts the core.
                    before = device.accesses();
                }
            }
            device.run_for(100).unwrap();
            assert_eq!(device.accesses(), before, "no doorbell yet");
            if !by_wait {
                queue.ring_doorbell().unwrap();
                // All of them end before the first poll.
                device.run_for(100).unwrap();
            }
            for job in 0..8 {
                assert_eq!(queue.end::<2>().job, 8 * round + job);
            }
            if round == 2 {
                let now = device.accesses();
                let cost = (now.reads - before.reads, now.writes - before.writes);
                // The tail's halves, and the acknowledgement; where registers are read first, they
                // are read for the last end too.
                assert_eq!(cost, if port(&board).coherent { (1, 3) } else { (2, 3) });
            }
        }
        clean(&board);
    }
}

/// With wide addresses a doorbell that follows another job's writes half of the tail alone.
#[test]
fn stop_forgets_an_owed_doorbell() {
    for address_bits in [32, 64] {
        for before in [0, 1] {
            let (board, region, pool) = bench(13, 6, 1024);
            let device = built(&board, SimBoard::port, address_bits);
            let mut queue = Queue::new(open_any(&device, &region, 4096), 4).unwrap();
            for _ in 0..before {
                queue.give(copies(&pool, .., ..));
            }
            queue.hold_doorbell();
            queue.give(copies(&pool, .., ..));
            queue.stop().unwrap();
            let writes = device.accesses().writes;
            queue.drain::<2>();
            queue.ring_doorbell().unwrap();
            assert_eq!(device.accesses().writes, writes);
            queue.hold_doorbell();
            let again = queue.submit(copies(&pool, .., ..), &[]).unwrap();
            assert_eq!(queue.end::<2>().job, again);
            clean(&board);
        }
    }
}

/// A queue that is deeper than the ring gives the rest of a burst as jobs end.
#[test]
fn burst_larger_than_the_ring_ends_in_order() {
    for port in PORTS {
        for address_bits in [32, 40] {
            let (board, region, pool) = bench(3, 24, 256);
            let device = built(&board, port, address_bits);
            let mut queue = Queue::new(open_any(&device, &region, 5 * 64), 12).unwrap();
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
}

/// An event loop sleeps after the first poll that finds nothing, which may be an empty queue's:
/// whenever that poll comes, as lengths change: before Idle, the descriptor's write, or after it.
#[test]
fn no_interrupt_stays_asserted() {
    for port in PORTS {
        for (in_flight, bytes) in (1..=80).flat_map(|n| [(1, 12 * n), (3, 12 * n)]) {
            let (board, region, pool) = bench(23, 6, 1024);
            let device = built(&board, port, 32);
            let mut queue = Queue::new(open_any(&device, &region, 4096), 4).unwrap();
            queue.hold_doorbell();
            for _ in 0..in_flight {
                queue.give(copies(&pool, ..bytes, ..));
            }
            queue.ring_doorbell().unwrap();
            let mut was_high = false;
            while !queue.is_empty() {
                let ended = queue.try_next::<2>().unwrap().is_some();
                let is_high = !ended && is_line_high(&board, &device);
                // One that rises during a poll is the next poll's.
                assert!(!(was_high && is_high), "{in_flight} of {bytes} bytes");
                was_high = is_high;
            }
            assert!(!is_line_high(&board, &device), "{in_flight} of {bytes} bytes");
            // Nor does it rise later.
            device.run_for(100).unwrap();
            assert!(!is_line_high(&board, &device), "{in_flight} of {bytes} bytes");
        }
    }
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
    let (board, region, pool) = bench(5, 8, 4096);
    let device = built(&board, SimBoard::port, 40);
    let config = AxiCdmaConfig { address_bits: 40, ..DRE };
    let driver = device.window().unwrap().sg(config, ring(&region)).unwrap();
    let mut queue = Queue::new(Polled(driver), 8).unwrap();
    // The core sees the last one's half of the tail in time.
    queue.hold_doorbell();
    queue.give(copies(&pool, .., ..));
    queue.give(copies(&pool, .., ..));
    queue.ring_doorbell().unwrap();
    queue.give(copies(&pool, .., ..));
    for job in 0..3 {
        assert_eq!(queue.end::<2>().job, job);
    }
    let before = device.accesses().writes;
    queue.hold_doorbell();
    queue.give(copies(&pool, .., ..));
    assert_eq!(device.accesses().writes, before);
    assert_eq!(queue.end::<2>().job, 3);
    clean(&board);
}

/// Registers as a core may show them beside a descriptor's write: `hidden` reads of CDMASR without
/// IOC, while the core is idle.
#[test]
fn interrupt_after_idle_is_acknowledged() {
    let (board, region, pool) = bench(24, 2, 256);
    let device = built(&board, SimBoard::port, 32);
    let hidden = Cell::new(1);
    let late = |offset, value| match hidden.get() {
        left if offset == regs::CDMASR.offset() && value & regs::IOC != 0 && left > 0 => {
            hidden.set(left - 1);
            value & !regs::IOC
        }
        _ => value,
    };
    let window = Bent::new(device.window().unwrap(), late);
    // SAFETY: the model is built so.
    let cdma = unsafe { AxiCdma::sg(window, DRE, ring(&region)) }.unwrap();
    let mut queue = Queue::new(cdma, 1).unwrap();
    queue.give(copies(&pool, .., ..));
    device.run_for(100).unwrap();
    assert!(queue.try_next::<2>().unwrap().is_some() && hidden.get() == 0);
    assert!(!is_line_high(&board, &device));
}

/// The interrupt that CDMASR shows before the last end may be that of an end which a descriptor
/// showed: the last one's follows. Two acknowledgements are lost, as if new ends came after them.
#[test]
fn interrupt_of_an_earlier_end_is_not_the_last_ones() {
    let (board, region, pool) = bench(25, 6, 256);
    let device = built(&board, SimBoard::port, 32);
    let own = ring(&region);
    let (reads, acknowledged, third) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let at_third = |offset, value| match offset {
        _ if offset == regs::CDMASR.offset() => {
            reads.set(reads.get() + 1);
            if third.get() != 0 && reads.get() == 1 { value & !regs::IDLE } else { value }
        }
        _ if offset == regs::CURDESC_LOW.offset() && third.get() != 0 => third.get(),
        _ => value,
    };
    let loses = |offset, value| {
        let is_lost = offset == regs::CDMASR.offset() && acknowledged.get() < 2;
        acknowledged.set(acknowledged.get() + usize::from(offset == regs::CDMASR.offset()));
        (!is_lost).then_some(value)
    };
    let window = Bent::new(device.window().unwrap(), at_third).writing(loses);
    // SAFETY: the model is built so.
    let cdma = unsafe { AxiCdma::sg(window, DRE, own) }.unwrap();
    let mut queue = Queue::new(cdma, 3).unwrap();
    queue.hold_doorbell();
    for _ in 0..3 {
        queue.give(copies(&pool, .., ..));
    }
    queue.ring_doorbell().unwrap();
    device.run_for(100).unwrap();
    // All are done, and the core's last descriptor is the third.
    third.set(device.read32(regs::CURDESC_LOW.offset()));
    reads.set(0);
    acknowledged.set(0);
    for job in 0..3 {
        assert_eq!(queue.try_next::<2>().unwrap().unwrap().job, job);
    }
    assert!(!is_line_high(&board, &device));
}
