//! The shared interrupt in real time, on a device that has nothing else.

use contigo::hw::poll_until;
use contigo::job::{Core, CoreChannel};
use contigo::sim::SimBoard;
use contigo::{Device, Mmio, Port, Result, Wait, forward};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// A device that has only an interrupt, in real time.
struct Bell {
    rings: Mutex<u32>,
    rang: Condvar,
    /// How many threads are in `wait`.
    inside: AtomicU32,
    port: Port,
}

// SAFETY: there are no registers.
unsafe impl Mmio for &Bell {
    fn len_bytes(&self) -> usize {
        0x40
    }
    fn read32(&self, _offset: usize) -> u32 {
        0
    }
    unsafe fn write32(&self, _offset: usize, _value: u32) {}
}

impl Wait for &Bell {
    forward!(|_this| contigo::linux::Spin => now_us);
    fn wait_at_most(&self, timeout_us: u32) -> Result<()> {
        assert_eq!(self.inside.fetch_add(1, Ordering::SeqCst), 0, "one thread at a time");
        let rings = self.rings.lock().unwrap();
        let (mut rings, _) = self
            .rang
            .wait_timeout_while(rings, Duration::from_micros(timeout_us.into()), |rings| {
                *rings == 0
            })
            .unwrap();
        *rings = rings.saturating_sub(1);
        self.inside.fetch_sub(1, Ordering::SeqCst);
        Ok(())
    }
}

// SAFETY: it puts no address on any bus.
unsafe impl Device for &Bell {
    fn port(&self) -> &Port {
        &self.port
    }
}

#[test]
fn interrupt_is_shared_and_passed_on() {
    const LONG: Duration = Duration::from_secs(60);
    let port = SimBoard::new(1).port();
    let bell = Bell { rings: Mutex::new(0), rang: Condvar::new(), inside: AtomicU32::new(0), port };
    let core = Core::new(&bell).unwrap();
    // SAFETY: there are no registers.
    let channels = &[0, 1, 2].map(|index| unsafe { core.channel(index, 0..0x40) }.unwrap());
    let ended = &[0; 3].map(AtomicU32::new);
    let begin = Instant::now();
    let ring = |index: usize| {
        ended[index].store(1, Ordering::SeqCst);
        *bell.rings.lock().unwrap() += 1;
        bell.rang.notify_all();
    };
    thread::scope(|scope| {
        for (channel, ended) in channels.iter().zip(ended) {
            scope.spawn(move || {
                let done = |_: &CoreChannel<_>| ended.load(Ordering::SeqCst) == 1;
                assert_eq!(poll_until(channel, LONG, done), Ok(true));
            });
        }
        while bell.inside.load(Ordering::SeqCst) == 0 {
            thread::yield_now();
        }
        for index in [1, 0, 2] {
            thread::sleep(Duration::from_millis(20));
            ring(index);
        }
    });
    let took = begin.elapsed();
    assert!(took < Duration::from_secs(30), "no thread waited to its limit: {took:?}");
    let ends_on_time = || {
        let begin = Instant::now();
        assert_eq!(poll_until(&channels[0], Duration::from_millis(20), |_| false), Ok(false));
        assert!((Duration::from_millis(20)..Duration::from_secs(10)).contains(&begin.elapsed()));
    };
    // Without another waiting thread, a wait ends on time.
    ends_on_time();
    // So it does while a sibling has the interrupt for longer.
    ended[1].store(0, Ordering::SeqCst);
    thread::scope(|scope| {
        let done = |_: &CoreChannel<_>| ended[1].load(Ordering::SeqCst) == 1;
        let long = scope.spawn(move || poll_until(&channels[1], LONG, done));
        while bell.inside.load(Ordering::SeqCst) == 0 {
            thread::yield_now();
        }
        ends_on_time();
        // A reset wakes who sleeps beside the interrupt.
        let beside = scope.spawn(|| {
            let begin = Instant::now();
            let epoch = channels[2].reset_epoch();
            let is_reset = |channel: &CoreChannel<_>| channel.reset_epoch() != epoch;
            assert_eq!(poll_until(&channels[2], LONG, is_reset), Ok(true));
            begin.elapsed()
        });
        thread::sleep(Duration::from_millis(20));
        core.reset(|_| Ok(())).unwrap();
        assert!(beside.join().unwrap() < Duration::from_secs(30));
        ring(1);
        assert_eq!(long.join().unwrap(), Ok(true));
    });
}
