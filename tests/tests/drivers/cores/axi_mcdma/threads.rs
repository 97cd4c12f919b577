//! Channels that share the core, each in a thread.

use super::*;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Instant;

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
    let (board, rings, pool) = ground(Faults::NONE);
    let device = core(&board, DRE, StreamConfig::default());
    let core = device.window().unwrap().core().unwrap();
    let count = u32::try_from(rounds(500)).unwrap();
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
                    queue.give(receives(pool, ..));
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
                    queue.give([buf.from_device(..)]);
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
                    queue.give([buf.to_device(..len)]);
                    let _ = patiently(&mut queue);
                }
                leave();
            });
        }
    });
    assert_eq!((pool.taken(), rings.taken()), (0, 0));
    clean(&board);
}

#[test]
fn a_stop_waits_for_the_end_of_a_siblings_reset() {
    let (board, rings, pool) = ground(Faults::NONE);
    let device = core(&board, DRE, StreamConfig::default());
    let core = device.window().unwrap().core().unwrap();
    let mut queue =
        Queue::new(core.channel(Way::S2mm(1), rings.take().unwrap()).unwrap(), 4).unwrap();
    queue.give(receives(&pool, ..));
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

/// A receiver hears of its sibling's resets while it waits, and goes on.
#[test]
fn thread_restarts_jobs_a_reset_ended() {
    let (board, rings, pool) = ground(Faults::NONE);
    let spec = McdmaSpec { config: DRE, streams: [StreamConfig::sink(), source()] };
    let device = SimDevice::<McdmaModel>::with_model(&board, board.port(), McdmaModel::new(spec));
    let core = device.window().unwrap().core().unwrap();
    let channel = |number| core.channel(Way::S2mm(number), rings.take().unwrap()).unwrap();
    let (silent, fed) = (channel(0), channel(1));
    let (pool, over, resets) = (&pool, AtomicBool::new(false), AtomicU32::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut queue = Queue::new(silent, 4).unwrap();
            while !over.load(Ordering::Relaxed) {
                queue.give(receives(pool, ..));
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
                error =
                    queue.submit(receives(pool, ..), &[]).map_err(|refused| refused.cause).err();
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
