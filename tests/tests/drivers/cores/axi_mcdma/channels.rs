//! Channels that share the core.

use super::*;
use contigo::{CpuBuf, Done, Driver, Error, Queue};
use contigo_testkit::emulated;
use std::{
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
    thread,
    time::Instant,
};

/// DMASlvErr, bit 1 of the error register (PG288).
const SLAVE_ERROR: u32 = 1 << 1;

/// A packet takes milliseconds, also under an emulator.
const PATIENCE: Duration = Duration::from_secs(60);

/// The next end, however much virtual time the other threads need.
fn patiently(queue: &mut Queue<impl Driver>) -> Done<[CpuBuf; 1]> {
    let began = Instant::now();
    loop {
        if let Some(done) = queue.wait::<1>(Duration::from_micros(50)).unwrap() {
            return done;
        }
        assert!(began.elapsed() < PATIENCE, "nothing ends");
        thread::yield_now();
    }
}

/// Two channels send and two receive, each in a thread. Each receives what its sibling sent.
#[test]
fn two_and_two_channels_work_in_threads() {
    let board = SimBoard::new(1);
    ground!(board, rings, pool);
    let device = SimDevice::with_model(&board, board.port(), model(StreamConfig::default()));
    let core = device.window().unwrap().core().unwrap();
    let count = u32::try_from(emulated::fewer(500)).unwrap();
    // How many packets each receiver has room for: one that comes too early would be dropped.
    let armed = [const { AtomicU32::new(0) }; 2];
    // A receiver that goes with its buffers resets the core: all go together.
    let at_work = AtomicU32::new(4);
    let leave = || {
        at_work.fetch_sub(1, Ordering::AcqRel);
        let began = Instant::now();
        while at_work.load(Ordering::Acquire) > 0 {
            assert!(began.elapsed() < PATIENCE, "the others do not end");
            thread::yield_now();
        }
    };
    thread::scope(|scope| {
        for pair in 0..2_u8 {
            let receiver = core.channel(Way::S2mm(pair), rings.take().unwrap()).unwrap();
            let sender = core.channel(Way::Mm2s(pair), rings.take().unwrap()).unwrap();
            let (pool, armed, leave) = (&pool, &armed[usize::from(pair)], &leave);
            scope.spawn(move || {
                let mut queue = Queue::new(receiver, 3).unwrap();
                for _ in 0..3 {
                    queue.submit([pool.take().unwrap().from_device(..)], &[]).unwrap();
                    armed.fetch_add(1, Ordering::Release);
                }
                for number in 0..count {
                    let done = patiently(&mut queue);
                    let [buf] = done.buffers;
                    let len = done.bytes.unwrap();
                    assert!(
                        packet::is(
                            number ^ u32::from(pair) << 16,
                            buf.view_at::<u8>(..len).unwrap()
                        ),
                        "packet {number} of pair {pair}"
                    );
                    queue.submit([buf.from_device(..)], &[]).unwrap();
                    armed.fetch_add(1, Ordering::Release);
                }
                leave();
            });
            scope.spawn(move || {
                let mut queue = Queue::new(sender, 3).unwrap();
                for number in 0..count {
                    let began = Instant::now();
                    while armed.load(Ordering::Acquire) <= number {
                        assert!(
                            began.elapsed() < PATIENCE,
                            "packet {number} has no buffer to receive it"
                        );
                        thread::yield_now();
                    }
                    let mut buf = pool.take().unwrap();
                    let len = 8 + number as usize * 13 % 2000;
                    packet::part(
                        number ^ u32::from(pair) << 16,
                        len,
                        0,
                        &mut buf.view_mut::<u8>().unwrap()[..len],
                    );
                    queue.submit([buf.to_device(..len)], &[]).unwrap();
                    let _ = patiently(&mut queue);
                }
                leave();
            });
        }
    });
    assert_eq!((pool.taken(), rings.taken()), (0, 0));
    let counts = board.counts();
    assert_eq!(
        (counts.unowned_accesses, counts.stray_accesses, counts.evictions, counts.lost_writes),
        (0, 0, 0, 0)
    );
}

/// A queue's next job's end, as an error where there is one.
fn end<D: Driver>(queue: &mut Queue<D>) -> Result<bool, Error> {
    queue.wait::<1>(LIMIT).map(|done| done.is_some()).map_err(|failed| failed.error)
}

#[test]
fn one_channels_reset_tells_the_others() {
    let board = SimBoard::new(1);
    ground!(board, rings, pool);
    let device = SimDevice::with_model(&board, board.port(), model(StreamConfig::default()));
    let core = device.window().unwrap().core().unwrap();
    let queue = |way| Queue::new(core.channel(way, rings.take().unwrap()).unwrap(), 4).unwrap();
    let (mut first, mut second, mut sender) =
        (queue(Way::S2mm(0)), queue(Way::S2mm(1)), queue(Way::Mm2s(1)));
    for queue in [&mut first, &mut second] {
        queue.submit([pool.take().unwrap().from_device(..)], &[]).unwrap();
    }
    // A sender whose packets are all sent leaves the others at work.
    sender.submit([pool.take().unwrap().to_device(..100)], &[]).unwrap();
    assert_eq!((end(&mut sender), end(&mut second)), (Ok(true), Ok(true)));
    second.submit([pool.take().unwrap().from_device(..)], &[]).unwrap();
    sender.stop().unwrap();
    assert_eq!((end(&mut first), end(&mut second)), (Ok(false), Ok(false)));
    sender.submit([pool.take().unwrap().to_device(..100)], &[]).unwrap();
    assert_eq!((end(&mut sender), end(&mut second)), (Ok(true), Ok(true)));
    second.submit([pool.take().unwrap().from_device(..)], &[]).unwrap();

    // A receiver that waits cannot be stopped alone.
    first.stop().unwrap();
    assert!(first.take_back::<1>().unwrap().is_some());
    let reset = Error::EndedByReset { device: "axi_mcdma" };
    assert_eq!(end(&mut second), Err(reset));
    second.clear().unwrap();
    // The sender had no job, and does not notice.
    second.submit([pool.take().unwrap().from_device(..)], &[]).unwrap();
    sender.submit([pool.take().unwrap().to_device(..100)], &[]).unwrap();
    assert_eq!((end(&mut sender), end(&mut second)), (Ok(true), Ok(true)));
    // One that has jobs refuses the next.
    for queue in [&mut first, &mut second] {
        queue.submit([pool.take().unwrap().from_device(..)], &[]).unwrap();
    }
    first.clear().unwrap();
    let refused = second.submit([pool.take().unwrap().from_device(..)], &[]).unwrap_err();
    assert_eq!(refused.cause, reset);
    drop(refused);
    second.clear().unwrap();
    // The stop of a channel that was reset resets no other channel.
    for queue in [&mut first, &mut second] {
        queue.submit([pool.take().unwrap().from_device(..)], &[]).unwrap();
    }
    first.clear().unwrap();
    first.submit([pool.take().unwrap().from_device(..)], &[]).unwrap();
    assert_eq!(end(&mut second), Err(reset));
    second.clear().unwrap();
    assert_eq!(end(&mut first), Ok(false), "the second's stop found itself reset");
    first.clear().unwrap();
    assert_eq!(board.counts().unowned_accesses, 0);
}

/// The error of one holds its direction halted until a reset: another that starts names it.
#[test]
fn start_after_a_siblings_error_names_the_error() {
    let board =
        SimBoard::with(SimConfig { seed: 1, faults: Faults { error: 1000, ..Faults::NONE } });
    ground!(board, rings, pool);
    let device = SimDevice::with_model(&board, board.port(), model(StreamConfig::sink()));
    let core = device.window().unwrap().core().unwrap();
    let queue = |way| Queue::new(core.channel(way, rings.take().unwrap()).unwrap(), 4).unwrap();
    let (mut first, mut second) = (queue(Way::Mm2s(0)), queue(Way::Mm2s(1)));
    first.submit([pool.take().unwrap().to_device(..100)], &[]).unwrap();
    device.run_for(20).unwrap();
    let refused = second.submit([pool.take().unwrap().to_device(..100)], &[]).unwrap_err();
    assert!(
        matches!(refused.cause, Error::Fault { what, .. }
            if what.starts_with("an error on another channel")),
        "{}",
        refused.cause
    );
}

#[test]
fn a_siblings_reset_that_failed_gives_no_buffer_back() {
    let board =
        SimBoard::with(SimConfig { seed: 1, faults: Faults { stuck: 1000, ..Faults::NONE } });
    ground!(board, rings, pool);
    // Its packet comes slowly: it is under way when the sibling gives up.
    let slow = StreamConfig::source(
        SourceConfig { packet_bytes: 4000, bytes_per_us: 1, ..SourceConfig::default() },
        2048,
    );
    let config = McdmaConfig { stop_us: 1, ..dre() };
    let spec = McdmaSpec { config, streams: [StreamConfig::default(), slow] };
    let device = SimDevice::with_model(&board, board.port(), McdmaModel::new(spec));
    let core = device.window().unwrap().core().unwrap();
    let queue = |way| Queue::new(core.channel(way, rings.take().unwrap()).unwrap(), 4).unwrap();
    let (mut sender, mut receiver) = (queue(Way::Mm2s(0)), queue(Way::S2mm(1)));
    receiver.submit([pool.take().unwrap().from_device(..)], &[]).unwrap();
    // It takes five microseconds, and a stop waits for one.
    sender.submit([pool.take().unwrap().to_device(..)], &[]).unwrap();
    let failed = sender.stop();
    assert!(matches!(failed, Err(Error::WillNotStop { device: "axi_mcdma", .. })), "{failed:?}");
    let cleared = receiver.clear();
    assert!(matches!(cleared, Err(Error::WillNotStop { device: "axi_mcdma", .. })), "{cleared:?}");
    assert_eq!(pool.taken(), 2);
    device.run_for(10_000).unwrap();
    assert_eq!(board.counts().unowned_accesses, 0);
    core.reset(|| device.reset()).unwrap();
    sender.clear().unwrap();
    receiver.clear().unwrap();
    assert_eq!(pool.taken(), 0);
}

#[test]
fn a_stop_waits_for_the_end_of_a_siblings_reset() {
    let board = SimBoard::new(1);
    ground!(board, rings, pool);
    let device = SimDevice::with_model(&board, board.port(), model(StreamConfig::default()));
    let core = device.window().unwrap().core().unwrap();
    let mut queue =
        Queue::new(core.channel(Way::S2mm(1), rings.take().unwrap()).unwrap(), 4).unwrap();
    queue.submit([pool.take().unwrap().from_device(..)], &[]).unwrap();
    let (begun, ends, ended) =
        (AtomicBool::new(false), AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !begun.load(Ordering::Acquire) {
                thread::yield_now();
            }
            queue.stop().unwrap();
            assert!(ends.load(Ordering::Acquire), "it believed registers in the middle of a reset");
            ended.store(true, Ordering::Release);
        });
        core.reset(|| {
            // The registers are as after a reset, and the core is still at it.
            device.reset()?;
            begun.store(true, Ordering::Release);
            thread::sleep(Duration::from_millis(50));
            ends.store(true, Ordering::Release);
            Ok(())
        })
        .unwrap();
    });
    assert!(ended.load(Ordering::Acquire));
}

#[test]
fn one_channels_error_halts_its_direction() {
    let board =
        SimBoard::with(SimConfig { seed: 5, faults: Faults { error: 500, ..Faults::NONE } });
    ground!(board, rings, pool);
    let device = SimDevice::with_model(&board, board.port(), model(StreamConfig::default()));
    let core = device.window().unwrap().core().unwrap();
    let queue = |way| Queue::new(core.channel(way, rings.take().unwrap()).unwrap(), 4).unwrap();
    let (mut waits, mut receiver, mut sender) =
        (queue(Way::S2mm(0)), queue(Way::S2mm(1)), queue(Way::Mm2s(1)));
    let (mut mine, mut another) = (0, 0);
    for turn in 0..100 {
        for queue in [&mut waits, &mut receiver] {
            queue.submit([pool.take().unwrap().from_device(..)], &[]).unwrap();
        }
        sender.submit([pool.take().unwrap().to_device(..100)], &[]).unwrap();
        let _ = end(&mut sender);
        device.run_for(100).unwrap();
        // Who looks first tells the error, and stops: for that it resets the core.
        let reset = Err(Error::EndedByReset { device: "axi_mcdma" });
        if turn % 2 == 0 {
            if let Err(Error::FaultAt { .. }) = end(&mut receiver) {
                mine += 1;
                assert_eq!(end(&mut waits), reset);
            }
        } else if let Err(Error::Fault { what, status, .. }) = end(&mut waits) {
            another += 1;
            assert!(
                what.starts_with("an error on another channel") && status == SLAVE_ERROR,
                "{what}"
            );
            assert_eq!(end(&mut receiver), reset);
        }
        for queue in [&mut waits, &mut receiver] {
            queue.clear().unwrap();
        }
        sender.clear().unwrap();
    }
    assert!(mine > 5 && another > 5, "{mine} {another}");
}

/// A receiver hears of its sibling's resets while it waits, and goes on.
#[test]
fn a_thread_whose_jobs_a_reset_ended_starts_them_again() {
    let board = SimBoard::new(1);
    ground!(board, rings, pool);
    let spec = McdmaSpec { config: dre(), streams: [StreamConfig::sink(), source()] };
    let device = SimDevice::with_model(&board, board.port(), McdmaModel::new(spec));
    let core = device.window().unwrap().core().unwrap();
    let channel = |number| core.channel(Way::S2mm(number), rings.take().unwrap()).unwrap();
    let (silent, fed) = (channel(0), channel(1));
    let (pool, over, resets) = (&pool, AtomicBool::new(false), AtomicU32::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut queue = Queue::new(silent, 4).unwrap();
            while !over.load(Ordering::Relaxed) {
                queue.submit([pool.take().unwrap().from_device(..)], &[]).unwrap();
                // Nothing ever comes: stopping it takes a reset.
                let _ = queue.wait::<1>(Duration::from_micros(100));
                queue.clear().unwrap();
            }
        });
        let mut queue = Queue::new(fed, 4).unwrap();
        let (began, mut received) = (Instant::now(), 0);
        while received < 200 || resets.load(Ordering::Relaxed) < 5 {
            assert!(began.elapsed() < PATIENCE, "{received} packets, {resets:?} resets");
            let mut error = None;
            while !queue.is_full() && error.is_none() {
                error = queue
                    .submit([pool.take().unwrap().from_device(..)], &[])
                    .map_err(|refused| refused.cause)
                    .err();
            }
            if error.is_none() {
                match queue.wait::<1>(Duration::from_micros(50)) {
                    Ok(Some(done)) => {
                        let bytes = done.buffers[0].view_at::<u8>(..done.bytes.unwrap()).unwrap();
                        let number = packet::number(bytes).unwrap();
                        assert!(packet::begins(number, 1000, bytes), "packet {number}");
                        received += 1;
                    }
                    Ok(None) => {}
                    Err(failed) => error = Some(failed.error),
                }
            }
            if let Some(error) = error {
                assert_eq!(error, Error::EndedByReset { device: "axi_mcdma" });
                resets.fetch_add(1, Ordering::Relaxed);
                queue.clear().unwrap();
            }
        }
        over.store(true, Ordering::Relaxed);
    });
    assert_eq!((board.counts().unowned_accesses, pool.taken()), (0, 0));
}
