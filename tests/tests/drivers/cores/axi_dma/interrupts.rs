//! Ends that were found in descriptors leave no interrupt asserted: a level would end each later
//! wait at once, and an edge could not come again.

use super::*;
use crate::regs::axi_dma as regs;

/// A wait may be woken at each burst of the model (see `Subject::waits_most`): a packet has 64. A
/// level that stays high makes thousands.
const WAITS_MOST: u64 = 200;

fn is_line_high(board: &SimBoard, device: &SimDevice<AxiDmaModel>) -> bool {
    device.model(Model::irq_at_ns).unwrap().is_some_and(|at_ns| at_ns <= board.now_ns())
}

fn coherent(board: &SimBoard, spec: CoreSpec) -> SimDevice<AxiDmaModel> {
    SimDevice::with_model(board, board.coherent_port(), AxiDmaModel::new(spec))
}

/// A core whose answers come at 10 bytes/µs, whatever is sent.
fn slow_answers(packet_bytes: usize) -> CoreSpec {
    let source = SourceConfig { packet_bytes, bytes_per_us: 10, ..SourceConfig::default() };
    CoreSpec { stream: StreamConfig::source(source, 4096), ..WITH_SG }
}

/// A kernel with latency, and one that answers before all of the packet was sent.
#[test]
fn late_half_of_a_job_is_slept_for() {
    for (sent, spec) in
        [(64, slow_answers(4096)), (16_000, CoreSpec { bytes_per_us: 40, ..receiver(64, WITH_SG) })]
    {
        for in_flight in [1, 3] {
            let (board, region, pool) = bench(21, 8, 16 * 1024);
            let device = coherent(&board, spec);
            let mut queue = as_one(&device, &region, AxiDmaConfig::default());
            for _ in 0..in_flight {
                queue.give(copies(&pool, ..sent, ..8_192));
            }
            device.run_for(50).unwrap();
            assert!(queue.try_next::<2>().unwrap().is_none());
            assert!(!is_line_high(&board, &device), "{sent} bytes: an event loop sleeps now");
            for job in 0..in_flight {
                let before = device.accesses().waits;
                assert_eq!(queue.end::<2>().job, job);
                let waits = device.accesses().waits - before;
                assert!(waits < WAITS_MOST, "{sent} bytes, job {job} of {in_flight}: {waits}");
            }
            assert!(!is_line_high(&board, &device), "{sent} bytes, {in_flight} in flight");
        }
    }
}

/// Two channels share one line.
#[test]
fn end_of_a_send_lets_the_receive_sleep() {
    for (taken, left) in [(1, 0), (3, 0), (1, 1), (2, 1)] {
        let (board, region, pool) = bench(22, 8, 16 * 1024);
        let device = coherent(&board, CoreSpec { bytes_per_us: 40, ..slow_answers(4096) });
        let whole = device.window().unwrap().core().unwrap();
        let [mut send, mut receive] = pair(&whole, &region, AxiDmaConfig::default());
        receive.give(receives(&pool, ..8_192));
        for _ in 0..taken {
            send.give(sends(&pool, ..64));
        }
        for _ in 0..left {
            send.give(sends(&pool, ..16_000));
        }
        device.run_for(50).unwrap();
        for job in 0..taken {
            assert_eq!(send.end::<1>().job, job);
        }
        assert!(!is_line_high(&board, &device), "{taken} taken, {left} left");
        let before = device.accesses().waits;
        assert_eq!(
            receive.wait::<1>(Duration::from_micros(100)).unwrap().map(|done| done.job),
            None
        );
        let waits = device.accesses().waits - before;
        assert!(waits < WAITS_MOST, "{taken} taken, {left} left: {waits}");
    }
}

/// An event loop sleeps after the first poll that finds nothing, which may be an empty queue's.
#[test]
fn drained_queue_leaves_the_line_low() {
    for (port, side, in_flight) in [
        (SimBoard::port as fn(&SimBoard) -> Port, Side::S2mm, 1),
        (SimBoard::port, Side::Mm2s, 4),
        (SimBoard::port, Side::S2mm, 4),
        (SimBoard::coherent_port, Side::Mm2s, 1),
        (SimBoard::coherent_port, Side::Mm2s, 4),
        (SimBoard::coherent_port, Side::S2mm, 4),
    ] {
        let (board, region, pool) = bench(23, 4, 256);
        let source = SourceConfig { packets: 4, packet_bytes: 256, ..SourceConfig::default() };
        let spec = CoreSpec { stream: StreamConfig::source(source, 2048), ..WITH_SG };
        let device = SimDevice::with_model(&board, port(&board), AxiDmaModel::new(spec));
        let mut queue = alone(&device, &region, side, AxiDmaConfig::default());
        for _ in 0..in_flight {
            match side {
                Side::Mm2s => queue.give(sends(&pool, ..)),
                Side::S2mm => queue.give(receives(&pool, ..)),
            }
        }
        device.run_for(100).unwrap();
        assert!(is_line_high(&board, &device), "a packet raises it");
        for job in 0..in_flight {
            assert_eq!(queue.try_next::<1>().unwrap().unwrap().job, job);
        }
        assert!(!is_line_high(&board, &device), "{side:?}, {in_flight} in flight");
    }
}

/// The last end is found although DMASR shows neither Idle nor an interrupt, which comes after.
#[test]
fn interrupt_after_the_last_end_is_acknowledged() {
    let (board, region, pool) = bench(24, 1, 256);
    let device = coherent(&board, receiver(256, WITH_SG));
    let hidden = Cell::new(0);
    let late = |offset, value| match hidden.get() {
        left if offset == 0x34 && left > 0 => {
            hidden.set(left - 1);
            value & !(regs::IDLE | regs::IRQS)
        }
        _ => value,
    };
    let window = Bent::new(device.window().unwrap(), late);
    let config = AxiDmaConfig::default();
    // SAFETY: the model is built so.
    let channel =
        unsafe { AxiDmaChannel::alone(window, Side::S2mm, config, Some(ring(&region))) }.unwrap();
    let mut queue = Queue::new(channel, 1).unwrap();
    queue.give(receives(&pool, ..));
    device.run_for(100).unwrap();
    // So many polls believe the registers.
    hidden.set(256);
    let ended = (0..300).find(|_| queue.try_next::<1>().unwrap().is_some());
    assert!(ended.is_some() && hidden.get() == 0, "{ended:?}");
    assert!(!is_line_high(&board, &device));
}

/// A status from before a burst's doorbell shows nothing of its jobs: a register is read for their
/// ends, and their interrupts are acknowledged.
#[test]
fn status_before_a_doorbell_is_not_the_bursts() {
    let (board, region, pool) = bench(25, 4, 256);
    let source = SourceConfig { packet_bytes: 256, gap_ns: 50_000, ..SourceConfig::default() };
    let spec = CoreSpec { stream: StreamConfig::source(source, 2048), ..WITH_SG };
    let device = core(&board, spec);
    let whole = device.window().unwrap().core().unwrap();
    let [_send, mut receive] = pair(&whole, &region, AxiDmaConfig::default());
    receive.give(receives(&pool, ..));
    device.run_for(20).unwrap();
    receive.hold_doorbell();
    for _ in 0..2 {
        receive.give(receives(&pool, ..));
    }
    for job in 0..2 {
        assert_eq!(receive.try_next::<1>().unwrap().unwrap().job, job);
        assert!(!is_line_high(&board, &device), "job {job}");
        device.run_for(50).unwrap();
    }
}
