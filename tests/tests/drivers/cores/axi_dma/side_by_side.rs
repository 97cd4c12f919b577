//! Both channels of one core, each with a driver: stops, resets, and a stream that is torn.

use super::{DIRECT, SOON, WITH_SG, core, ring};
use crate::regs::axi_dma as regs;
use contigo::{
    CpuBuf, Done, Driver, Error, Queue, Region,
    drivers::axi_dma::{AxiDma, AxiDmaConfig, AxiDmaCore, PacketReport, Side},
    sim::{
        SimBoard,
        axi_dma::{AxiDmaModel, CoreSpec},
        stream::{SourceConfig, StreamConfig, packet},
    },
};
use contigo_testkit::lent::{Lent, Watch, Watched};
use std::time::Duration;

fn report(done: &Done<[CpuBuf; 1]>) -> PacketReport {
    PacketReport::of(done.status, done.words)
}

#[test]
fn waiting_receive_ends_by_a_reset_of_both() {
    for spec in [DIRECT, WITH_SG] {
        let (board, config) =
            (SimBoard::new(2), AxiDmaConfig { stop_us: 5, ..AxiDmaConfig::default() });
        let region = Region::new(board.memory(128 * 1024).unwrap()).unwrap();
        let pool = region.pool(2, 16 * 1024).unwrap();
        let device = core(&board, CoreSpec { stream: StreamConfig::sink(), ..spec });
        let whole = device.window().unwrap().core().unwrap();
        let open = |side| {
            // SAFETY: the model is built so.
            Queue::new(unsafe { whole.channel(side, config, Some(ring(&region))) }.unwrap(), 4)
                .unwrap()
        };
        let (mut send, mut receive) = (open(Side::Mm2s), open(Side::S2mm));
        for _ in 0..3 {
            // 16,000 bytes take 20 us.
            send.submit([pool.take().unwrap().to_device(..16_000)], &[]).unwrap();
            receive.submit([pool.take().unwrap().from_device(..16_000)], &[]).unwrap();
            device.run_for(2).unwrap();
            receive.stop().unwrap();
            assert!(receive.take_back::<1>().unwrap().is_some());
            let failed = send.wait::<1>(SOON).unwrap_err();
            assert_eq!(failed.error, Error::EndedByReset { device: "axi_dma mm2s" });
            assert!(send.take_back::<1>().unwrap().is_some());
        }
        // One that sends stops nothing of the other: its packet ends.
        receive.submit([pool.take().unwrap().from_device(..64)], &[]).unwrap();
        send.submit([pool.take().unwrap().to_device(..64)], &[]).unwrap();
        send.stop().unwrap();
        assert!(
            send.wait::<1>(SOON).unwrap().is_some() || send.take_back::<1>().unwrap().is_some()
        );
        assert!(receive.wait::<1>(Duration::from_micros(50)).unwrap().is_none(), "it goes on");
        assert_eq!(board.counts().unowned_accesses, 0);
    }
}

/// The interrupt's file fails while a stop waits: that is the stop's answer, and no reset ends what
/// the other channel does.
#[test]
fn a_stop_whose_interrupts_file_fails_resets_no_core() {
    for spec in [DIRECT, WITH_SG] {
        let (board, config) =
            (SimBoard::new(2), AxiDmaConfig { stop_us: 200, ..AxiDmaConfig::default() });
        let region = Region::new(board.memory(128 * 1024).unwrap()).unwrap();
        let pool = region.pool(2, 16 * 1024).unwrap();
        let device = core(&board, spec);
        let (window, watch) = (device.window().unwrap(), Watch::default());
        // SAFETY: the model is built so.
        let whole = unsafe { AxiDmaCore::open(Watched::new(&window, &watch)).unwrap() };
        let open = |side| {
            // SAFETY: as above.
            Queue::new(unsafe { whole.channel(side, config, Some(ring(&region))) }.unwrap(), 4)
                .unwrap()
        };
        let (mut send, mut receive) = (open(Side::Mm2s), open(Side::S2mm));
        // 16,000 bytes take 20 us.
        receive.submit([pool.take().unwrap().from_device(..16_000)], &[]).unwrap();
        send.submit([pool.take().unwrap().to_device(..16_000)], &[]).unwrap();
        device.run_for(2).unwrap();
        watch.fails.set(Some(Error::Contended { tries: 1 }));
        assert_eq!(send.stop(), Err(Error::Contended { tries: 1 }), "{spec:?}");
        watch.fails.set(None);
        send.stop().unwrap();
        assert_eq!(receive.wait::<1>(SOON).unwrap().unwrap().bytes, Some(16_000), "{spec:?}");
        assert!(
            send.wait::<1>(SOON).unwrap().is_some() || send.take_back::<1>().unwrap().is_some()
        );
    }
}

/// RS=0 ends no receive that gets no data: its stop waits for the reset alone.
#[test]
fn a_receive_that_waits_is_stopped_at_once() {
    for (spec, both) in [(DIRECT, false), (WITH_SG, false), (DIRECT, true), (WITH_SG, true)] {
        let (board, config) =
            (SimBoard::new(2), AxiDmaConfig { stop_us: 10_000, ..AxiDmaConfig::default() });
        let region = Region::new(board.memory(64 * 1024).unwrap()).unwrap();
        let pool = region.pool(2, 4096).unwrap();
        let silent =
            StreamConfig::source(SourceConfig { packets: 0, ..SourceConfig::default() }, 4096);
        let device = core(&board, CoreSpec { stream: silent, ..spec });
        let window = device.window().unwrap();
        let from_ns = board.now_ns();
        if both {
            let driver = window.driver(config, Some(ring(&region))).unwrap();
            let mut queue = Queue::new(driver, 4).unwrap();
            queue
                .submit(
                    [pool.take().unwrap().to_device(..64), pool.take().unwrap().from_device(..)],
                    &[],
                )
                .unwrap();
            queue.stop().unwrap();
            assert!(queue.take_back::<2>().unwrap().is_some());
        } else {
            let driver = window.channel(Side::S2mm, config, Some(ring(&region))).unwrap();
            let mut queue = Queue::new(driver, 4).unwrap();
            queue.submit([pool.take().unwrap().from_device(..)], &[]).unwrap();
            queue.stop().unwrap();
            assert!(queue.take_back::<1>().unwrap().is_some());
        }
        let took_ns = board.now_ns() - from_ns;
        assert!(took_ns < 100_000, "{took_ns} ns, and a limit of 10 ms");
        assert_eq!(board.counts().unowned_accesses, 0);
    }
}

#[test]
fn a_stream_that_a_stop_tore_is_told() {
    for resets_stream in [true, false] {
        let source =
            SourceConfig { packet_bytes: 4096, bytes_per_us: 100, ..SourceConfig::default() };
        let spec = CoreSpec { resets_stream, ..CoreSpec::camera(source, 4096) };
        let board = SimBoard::new(3);
        let region = Region::new(board.memory(64 * 1024).unwrap()).unwrap();
        let pool = region.pool(4, 4096).unwrap();
        let device = core(&board, spec);
        let mut config = AxiDmaConfig { stop_us: 5, ..AxiDmaConfig::default() };
        config.depth = Some(4);
        let driver =
            device.window().unwrap().channel(Side::S2mm, config, Some(ring(&region))).unwrap();
        let mut queue = Queue::new(driver, 4).unwrap();
        queue.submit([pool.take().unwrap().from_device(..)], &[]).unwrap();
        device.run_for(20).unwrap();
        queue.stop().unwrap();
        assert!(queue.take_back::<1>().unwrap().is_some());
        for (index, torn) in [true, false].into_iter().enumerate() {
            queue.submit([pool.take().unwrap().from_device(..)], &[]).unwrap();
            let done = queue.wait::<1>(SOON).unwrap().unwrap();
            assert_eq!(report(&done).maybe_torn, torn, "{index}");
            let [buf] = done.buffers;
            let seen = &buf.view::<u8>().unwrap()[..done.bytes.unwrap()];
            let whole =
                packet::number(seen).is_some_and(|number| packet::begins(number, 4096, seen));
            assert_eq!(
                whole,
                resets_stream || !torn,
                "{index}: only the rest of a packet is no packet"
            );
        }
        assert_eq!(device.model(AxiDmaModel::ran_dry).unwrap(), queue.counts().ran_dry);
    }
}

/// After a stop the flag is that of the first packet after the next start. An end that the ring had
/// before the stop is reported after it, and its packet is whole.
#[test]
fn only_the_first_packet_after_a_start_may_be_torn() {
    const LEN: usize = 1000;
    for (sg, depth) in [(true, 4), (false, 1)] {
        let source =
            SourceConfig { packet_bytes: LEN, bytes_per_us: 100, ..SourceConfig::default() };
        let board = SimBoard::new(31);
        let region = Region::new(board.memory(64 * 1024).unwrap()).unwrap();
        let pool = region.pool(4, 4096).unwrap();
        let device =
            core(&board, CoreSpec { sg, resets_stream: false, ..CoreSpec::camera(source, 4096) });
        let config = AxiDmaConfig { stop_us: 5, depth: Some(depth), ..AxiDmaConfig::default() };
        let driver =
            device.window().unwrap().channel(Side::S2mm, config, Some(ring(&region))).unwrap();
        let mut queue = Queue::new(driver, 4).unwrap();
        let (mut rests, mut after_stops, mut flags) = (0, 0, 0);
        for round in 0..40_u32 {
            // Some rounds see an end before the stop, and the others see all ends after it.
            for _ in 0..depth {
                queue.submit([pool.take().unwrap().from_device(..)], &[]).unwrap();
            }
            let mut place = 0;
            let mut told = |done: Done<[CpuBuf; 1]>, first: bool| {
                let [buf] = &done.buffers;
                let seen = &buf.view::<u8>().unwrap()[..done.bytes.unwrap()];
                let is_whole = seen.len() == LEN
                    && packet::number(seen).is_some_and(|number| packet::is(number, seen));
                assert!(
                    is_whole || report(&done).maybe_torn,
                    "sg {sg}, round {round}: the rest of a packet is reported as a whole one"
                );
                assert!(
                    !report(&done).maybe_torn || first,
                    "sg {sg}, round {round}: this packet is whole"
                );
                (rests, flags) =
                    (rests + u32::from(!is_whole), flags + u32::from(report(&done).maybe_torn));
            };
            if round % 3 == 0 {
                told(queue.wait::<1>(SOON).unwrap().unwrap(), place == 0 && round > 0);
                place += 1;
            } else {
                device.run_for(1 + round % 12).unwrap();
            }
            queue.stop().unwrap();
            while let Some(done) = queue.wait::<1>(Duration::ZERO).unwrap() {
                after_stops += 1;
                told(done, place == 0 && round > 0);
                place += 1;
            }
            while queue.take_back::<1>().unwrap().is_some() {}
        }
        assert!(rests > 3 && after_stops > 10 && flags >= rests, "{rests} {after_stops} {flags}");
        assert_eq!(board.counts().unowned_accesses, 0);
    }
}

/// A receive without a job may have taken a packet's beginning, which the sibling's reset drops.
#[test]
fn the_first_packet_after_the_siblings_reset_is_maybe_torn() {
    for (spec, both) in [(DIRECT, false), (WITH_SG, false), (DIRECT, true), (WITH_SG, true)] {
        let (board, config) =
            (SimBoard::new(2), AxiDmaConfig { stop_us: 5, ..AxiDmaConfig::default() });
        let region = Region::new(board.memory(128 * 1024).unwrap()).unwrap();
        let pool = region.pool(4, 16 * 1024).unwrap();
        let device = core(&board, CoreSpec { resets_stream: false, ..spec });
        if both {
            // The FIFO keeps what was sent of a packet, which the next answer begins with.
            let driver = device.window().unwrap().driver(config, Some(ring(&region))).unwrap();
            let mut queue = Queue::new(driver, 4).unwrap();
            let mut flags = [0; 4];
            for (flag, stops) in flags.iter_mut().zip([false, true, false, false]) {
                queue
                    .submit(
                        [
                            pool.take().unwrap().to_device(..16_000),
                            pool.take().unwrap().from_device(..16_000),
                        ],
                        &[],
                    )
                    .unwrap();
                if stops {
                    device.run_for(5).unwrap();
                    queue.stop().unwrap();
                    assert!(queue.take_back::<2>().unwrap().is_some());
                } else {
                    *flag = queue.wait::<2>(SOON).unwrap().unwrap().words[0];
                }
            }
            assert_eq!(flags, [0, 0, 1, 0]);
            continue;
        }
        let whole = device.window().unwrap().core().unwrap();
        let open = |side| {
            // SAFETY: the model is built so.
            Queue::new(unsafe { whole.channel(side, config, Some(ring(&region))) }.unwrap(), 4)
                .unwrap()
        };
        let (mut send, mut receive) = (open(Side::Mm2s), open(Side::S2mm));
        let mut flags = [false; 3];
        for (index, flag) in flags.iter_mut().enumerate() {
            if index == 1 {
                // It is sent in part, and its stop resets the core: the receive has no job.
                send.submit([pool.take().unwrap().to_device(..16_000)], &[]).unwrap();
                device.run_for(3).unwrap();
                send.stop().unwrap();
                assert!(send.take_back::<1>().unwrap().is_some());
            }
            receive.submit([pool.take().unwrap().from_device(..16_000)], &[]).unwrap();
            send.submit([pool.take().unwrap().to_device(..100)], &[]).unwrap();
            *flag = report(&receive.wait::<1>(SOON).unwrap().unwrap()).maybe_torn;
            assert!(send.wait::<1>(SOON).unwrap().is_some());
        }
        assert_eq!(flags, [false, true, false]);
    }
}

/// The core says Idle late after a doorbell. Here it says it always: a stop before any look does
/// not believe that nothing was under way.
#[test]
fn stale_idle_still_marks_the_next_answer_torn() {
    let (board, config) =
        (SimBoard::new(2), AxiDmaConfig { stop_us: 5, ..AxiDmaConfig::default() });
    let region = Region::new(board.memory(128 * 1024).unwrap()).unwrap();
    let pool = region.pool(4, 16 * 1024).unwrap();
    let device = core(&board, CoreSpec { resets_stream: false, ..WITH_SG });
    let window = device.window().unwrap();
    let status = |side: Side| if side == Side::Mm2s { 0x04 } else { 0x34 };
    let sends = Lent::with_bits(&window, status(Side::Mm2s), regs::IDLE);
    // SAFETY: the model is built so.
    let driver = unsafe {
        AxiDma::open(
            Lent::with_bits(&sends, status(Side::S2mm), regs::IDLE),
            config,
            Some(ring(&region)),
        )
    }
    .unwrap();
    let mut queue = Queue::new(driver, 4).unwrap();
    let mut flags = [0; 4];
    for (flag, stops) in flags.iter_mut().zip([false, true, false, false]) {
        queue
            .submit(
                [
                    pool.take().unwrap().to_device(..16_000),
                    pool.take().unwrap().from_device(..16_000),
                ],
                &[],
            )
            .unwrap();
        if stops {
            device.run_for(5).unwrap();
            queue.stop().unwrap();
            assert!(queue.take_back::<2>().unwrap().is_some());
        } else {
            *flag = queue.wait::<2>(SOON).unwrap().unwrap().words[0];
        }
    }
    assert_eq!(flags, [0, 0, 1, 0]);
}

/// A receive without a job that its sibling's error holds at its halt: only the core's reset frees
/// it, which drops what it had taken of a packet.
#[test]
fn packet_after_a_held_channels_reset_may_be_torn() {
    let board = SimBoard::new(6);
    let region = Region::new(board.memory(256 * 1024).unwrap()).unwrap();
    let pool = region.pool(8, 16 * 1024).unwrap();
    let device = core(&board, WITH_SG);
    let whole = device.window().unwrap().core().unwrap();
    let config = AxiDmaConfig { length_bits: 20, stop_us: 50, ..AxiDmaConfig::default() };
    let open = |side| {
        // SAFETY: the model is built so, but for its lengths, of which it cuts off bits.
        Queue::new(unsafe { whole.channel(side, config, Some(ring(&region))) }.unwrap(), 4).unwrap()
    };
    let (mut send, mut receive) = (open(Side::Mm2s), open(Side::S2mm));
    let mut flags = [false; 3];
    for (index, flag) in flags.iter_mut().enumerate() {
        if index == 1 {
            // The core's length register reads it as 0, and fails.
            send.submit([pool.take().unwrap().to_device(..1 << 14)], &[]).unwrap();
            device.run_for(20).unwrap();
            receive.stop().unwrap();
            assert!(send.wait::<1>(SOON).is_err());
            assert!(send.take_back::<1>().unwrap().is_some());
        }
        receive.submit([pool.take().unwrap().from_device(..2_000)], &[]).unwrap();
        send.submit([pool.take().unwrap().to_device(..100)], &[]).unwrap();
        *flag = report(&receive.wait::<1>(SOON).unwrap().unwrap()).maybe_torn;
        assert!(send.wait::<1>(SOON).unwrap().is_some());
    }
    assert_eq!(flags, [false, true, false]);
}

/// More packets than one interrupt, and the tail moves while the channel runs.
#[test]
fn interrupts_for_several_packets_and_64_in_flight() {
    let board = SimBoard::new(4);
    let region = Region::new(board.memory(256 * 1024).unwrap()).unwrap();
    let pool = region.pool(64, 1024).unwrap();
    let device = core(&board, CoreSpec { stream: StreamConfig::sink(), ..WITH_SG });
    let config = AxiDmaConfig { irq_packets: 16, irq_delay: 8, ..AxiDmaConfig::default() };
    let driver = device.window().unwrap().channel(Side::Mm2s, config, Some(ring(&region))).unwrap();
    assert_eq!(driver.depth(), 64);
    let mut queue = Queue::new(driver, 64).unwrap();
    let (mut pushed, mut ended) = (0, 0);
    while ended < 1_000 {
        while pushed < 1_000 && !queue.is_full() {
            queue.submit([pool.take().unwrap().to_device(..pushed % 1000 + 1)], &[]).unwrap();
            pushed += 1;
        }
        assert_eq!(queue.wait::<1>(SOON).unwrap().unwrap().job, ended);
        ended += 1;
    }
    let counts = device.model(|model| model.stream.counts()).unwrap();
    assert_eq!((counts.sent, counts.sent_bytes), (1_000, 500_500));
}
