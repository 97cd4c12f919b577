//! Both channels of one core, each with a driver: stops, resets, and a stream that is torn.

use super::*;
use crate::regs::axi_dma as regs;
use contigo::drivers::axi_dma::PacketReport;

fn is_maybe_torn(done: &Done<[CpuBuf; 1]>) -> bool {
    PacketReport::of(done.status, done.words).maybe_torn
}

fn stops_in(stop_us: u32) -> AxiDmaConfig {
    AxiDmaConfig { stop_us, ..AxiDmaConfig::default() }
}

/// A send's end, before its stop or after it.
fn ends_or_comes_back<D: Driver>(send: &mut Queue<D>) {
    assert!(send.wait::<1>(LIMIT).unwrap().is_some() || send.take_back::<1>().unwrap().is_some());
}

#[test]
fn waiting_receive_ends_by_a_reset_of_both() {
    for spec in [DIRECT, WITH_SG] {
        let (board, region, pool) = bench(2, 2, 16 * 1024);
        let device = core(&board, CoreSpec { stream: StreamConfig::sink(), ..spec });
        let whole = device.window().unwrap().core().unwrap();
        let [mut send, mut receive] = pair(&whole, &region, stops_in(5));
        for _ in 0..3 {
            // 16,000 bytes take 20 us.
            send.give(sends(&pool, ..16_000));
            receive.give(receives(&pool, ..16_000));
            device.run_for(2).unwrap();
            receive.stop_one::<1>();
            assert_eq!(send.fails::<1>(), Error::EndedByReset { device: "axi_dma mm2s" });
            assert!(send.take_back::<1>().unwrap().is_some());
        }
        // One that sends stops nothing of the other: its packet ends.
        receive.give(receives(&pool, ..64));
        send.give(sends(&pool, ..64));
        send.stop().unwrap();
        ends_or_comes_back(&mut send);
        assert!(receive.wait::<1>(Duration::from_micros(50)).unwrap().is_none(), "it goes on");
        clean(&board);
    }
}

/// A burst whose doorbell comes after a reset by the sibling: nothing of it starts, all of it comes
/// back, and the channel begins anew.
#[test]
fn reset_within_a_burst_ends_it() {
    for by_job in [false, true] {
        let (board, region, pool) = bench(2, 4, 16 * 1024);
        let device = core(&board, WITH_SG);
        let whole = device.window().unwrap().core().unwrap();
        let [mut send, mut receive] = pair(&whole, &region, stops_in(5));
        receive.hold_doorbell();
        receive.give(receives(&pool, ..64));
        // Its stop resets the core.
        send.give(sends(&pool, ..16_000));
        device.run_for(2).unwrap();
        send.stop_one::<1>();
        let ended = Error::EndedByReset { device: "axi_dma s2mm" };
        if by_job {
            let refused = receive.submit(receives(&pool, ..64), &[]).unwrap_err();
            assert_eq!(refused.error, ended);
            assert!(refused.buffers.is_some(), "the device did not take it");
        } else {
            assert_eq!(receive.ring_doorbell().unwrap_err().error, ended);
        }
        assert_eq!(receive.drain::<1>(), 1);
        receive.give(receives(&pool, ..64));
        send.give(sends(&pool, ..64));
        assert_eq!((receive.end::<1>().bytes, send.end::<1>().bytes), (Some(64), None));
        clean(&board);
    }
}

/// A doorbell without jobs rings nothing, and fails for nothing.
#[test]
fn doorbell_without_jobs_survives_a_siblings_reset() {
    let (board, region, _) = bench(2, 1, 64);
    let device = core(&board, WITH_SG);
    let whole = device.window().unwrap().core().unwrap();
    let config = AxiDmaConfig::default();
    // SAFETY: the model is built so.
    let mut receive = unsafe { whole.channel(Side::S2mm, config, Some(ring(&region))) }.unwrap();
    // Opening the other channel resets the core, because this one has no jobs.
    // SAFETY: as above.
    let _send = unsafe { whole.channel(Side::Mm2s, config, Some(ring(&region))) }.unwrap();
    assert_eq!(receive.doorbell(), Ok(()));
}

/// The interrupt's file fails while a stop waits: that is the stop's answer, and no reset ends what
/// the other channel does.
#[test]
fn failed_irq_file_at_stop_resets_no_core() {
    for spec in [DIRECT, WITH_SG] {
        let (board, region, pool) = bench(2, 2, 16 * 1024);
        let device = core(&board, spec);
        let (window, watch) = (device.window().unwrap(), Watch::default());
        // SAFETY: the model is built so.
        let whole = unsafe { AxiDmaCore::open(Watched::new(&window, &watch)).unwrap() };
        let [mut send, mut receive] = pair(&whole, &region, stops_in(200));
        // 16,000 bytes take 20 us.
        receive.give(receives(&pool, ..16_000));
        send.give(sends(&pool, ..16_000));
        device.run_for(2).unwrap();
        watch.fails.set(Some(Error::Contended { tries: 1 }));
        assert_eq!(send.stop(), Err(Error::Contended { tries: 1 }), "{spec:?}");
        watch.fails.set(None);
        send.stop().unwrap();
        assert_eq!(receive.end::<1>().bytes, Some(16_000), "{spec:?}");
        ends_or_comes_back(&mut send);
    }
}

/// RS=0 ends no receive that gets no data: its stop waits for the reset alone.
#[test]
fn a_receive_that_waits_is_stopped_at_once() {
    for (spec, both) in [(DIRECT, false), (WITH_SG, false), (DIRECT, true), (WITH_SG, true)] {
        let (board, region, pool) = bench(2, 2, 4096);
        let silent = SourceConfig { packets: 0, ..SourceConfig::default() };
        let silent = StreamConfig::source(silent, 4096);
        let device = core(&board, CoreSpec { stream: silent, ..spec });
        let from_ns = board.now_ns();
        if both {
            let mut queue = as_one(&device, &region, stops_in(10_000));
            queue.give(copies(&pool, ..64, ..));
            queue.stop_one::<2>();
        } else {
            let mut queue = alone(&device, &region, Side::S2mm, stops_in(10_000));
            queue.give(receives(&pool, ..));
            queue.stop_one::<1>();
        }
        let took_ns = board.now_ns() - from_ns;
        assert!(took_ns < 100_000, "{took_ns} ns, and a limit of 10 ms");
        clean(&board);
    }
}

/// The torn flags of four copies through a FIFO that keeps what was sent of a packet: the second is
/// stopped under way, and the answer after it begins with that.
fn flags_of_copies<D: Device>(
    mut queue: Queue<AxiDma<D>>,
    device: &SimDevice<AxiDmaModel>,
    pool: &Pool,
) {
    let mut flags = [0; 4];
    for (flag, stops) in flags.iter_mut().zip([false, true, false, false]) {
        queue.give(copies(pool, ..16_000, ..16_000));
        if stops {
            device.run_for(5).unwrap();
            queue.stop_one::<2>();
        } else {
            *flag = queue.end::<2>().words[0];
        }
    }
    assert_eq!(flags, [0, 0, 1, 0]);
}

/// The same of three packets that are sent to a receive, where something happens between the first
/// and the second.
fn flags_of_packets<D: Driver>(
    [send, receive]: &mut [Queue<D>; 2],
    pool: &Pool,
    between: impl Fn(&mut Queue<D>, &mut Queue<D>),
) {
    let flags = [0, 1, 2].map(|index| {
        if index == 1 {
            between(send, receive);
        }
        receive.give(receives(pool, ..16_000));
        send.give(sends(pool, ..100));
        let flag = is_maybe_torn(&receive.end());
        let _ = send.end::<1>();
        flag
    });
    assert_eq!(flags, [false, true, false]);
}

/// A receive without a job may have taken a packet's beginning, which the sibling's reset drops.
#[test]
fn packet_after_sibling_reset_may_be_torn() {
    for spec in [DIRECT, WITH_SG] {
        let (board, region, pool) = bench(2, 4, 16 * 1024);
        let device = core(&board, CoreSpec { resets_stream: false, ..spec });
        flags_of_copies(as_one(&device, &region, stops_in(5)), &device, &pool);
        let whole = device.window().unwrap().core().unwrap();
        flags_of_packets(&mut pair(&whole, &region, stops_in(5)), &pool, |send, _| {
            // It is sent in part, and its stop resets the core: the receive has no job.
            send.give(sends(&pool, ..16_000));
            device.run_for(3).unwrap();
            send.stop_one::<1>();
        });
    }
}

/// A receive without a job that its sibling's error holds at its halt: only the core's reset frees
/// it, which drops what it had taken of a packet.
#[test]
fn packet_after_held_reset_may_be_torn() {
    let (board, region, pool) = bench(6, 8, 16 * 1024);
    let device = core(&board, WITH_SG);
    let whole = device.window().unwrap().core().unwrap();
    let config = AxiDmaConfig { length_bits: 20, ..stops_in(50) };
    flags_of_packets(&mut pair(&whole, &region, config), &pool, |send, receive| {
        // The core's length register reads it as 0, and fails.
        send.give(sends(&pool, ..1 << 14));
        device.run_for(20).unwrap();
        receive.stop().unwrap();
        send.fails::<1>();
        assert!(send.take_back::<1>().unwrap().is_some());
    });
}

/// The core says Idle late after a doorbell. Here it says it always: a stop before any look does
/// not believe that nothing was under way.
#[test]
fn stale_idle_still_marks_the_next_answer_torn() {
    let (board, region, pool) = bench(2, 4, 16 * 1024);
    let device = core(&board, CoreSpec { resets_stream: false, ..WITH_SG });
    let window = device.window().unwrap();
    let idle =
        |offset, value| if offset == 0x04 || offset == 0x34 { value | regs::IDLE } else { value };
    // SAFETY: the model is built so.
    let driver =
        unsafe { AxiDma::open(Bent::new(window, idle), stops_in(5), Some(ring(&region))) }.unwrap();
    flags_of_copies(Queue::new(driver, 4).unwrap(), &device, &pool);
}

/// More packets than one interrupt, and the tail moves while the channel runs.
#[test]
fn grouped_interrupts_with_64_in_flight() {
    let (board, region, pool) = bench(4, 64, 1024);
    let device = core(&board, CoreSpec { stream: StreamConfig::sink(), ..WITH_SG });
    let config = AxiDmaConfig { irq_packets: 16, irq_delay: 8, ..AxiDmaConfig::default() };
    let driver = device.window().unwrap().channel(Side::Mm2s, config, Some(ring(&region))).unwrap();
    assert_eq!(driver.depth(), 64);
    let mut queue = Queue::new(driver, 64).unwrap();
    let mut pushed = 0;
    for ended in 0..1_000 {
        while pushed < 1_000 && !queue.is_full() {
            queue.give(sends(&pool, ..pushed % 1000 + 1));
            pushed += 1;
        }
        assert_eq!(queue.end::<1>().job, ended);
    }
    let counts = device.model(|model| model.stream.counts).unwrap();
    assert_eq!((counts.sent, counts.sent_bytes), (1_000, 500_500));
}
