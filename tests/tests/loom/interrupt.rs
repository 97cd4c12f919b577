//! Every interleaving of the word by which channels of a core share its interrupt, by the model
//! checker loom. The runtime's own source file is built here, with loom's atomics under it.
//!
//! Nothing here has a time limit: a waiter that misses its wake-up hangs, which loom reports.

#[path = "../../../runtime/core/src/hw/shared_interrupt.rs"]
mod shared_interrupt;

use crate::types::atomic::{AtomicU32, Ordering};
use crate::{check, preemptions};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;
use shared_interrupt::SharedInterrupt;

/// A device with two channels and one interrupt: a line that is high until a thread waits for it,
/// and forgets how often it was raised.
struct Device {
    shared_interrupt: SharedInterrupt,
    ended: [AtomicU32; 2],
    raised: Mutex<bool>,
    line: Condvar,
    /// How many sleep in the interrupt.
    inside: AtomicU32,
}

impl Device {
    fn new() -> Arc<Self> {
        let ended = [0; 2].map(AtomicU32::new);
        let (raised, line) = (Mutex::new(false), Condvar::new());
        Arc::new(Self {
            shared_interrupt: SharedInterrupt::new(),
            ended,
            raised,
            line,
            inside: AtomicU32::new(0),
        })
    }

    /// Channel `index` ends its job.
    fn ends(&self, index: usize) {
        self.ended[index].store(1, Ordering::Release);
        *self.raised.lock().unwrap() = true;
        self.line.notify_all();
    }

    fn interrupt(&self) {
        assert_eq!(self.inside.fetch_add(1, Ordering::AcqRel), 0, "one at a time");
        let mut raised = self.raised.lock().unwrap();
        while !*raised {
            raised = self.line.wait(raised).unwrap();
        }
        *raised = false;
        drop(raised);
        self.inside.fetch_sub(1, Ordering::AcqRel);
    }

    /// As a driver's `poll` without a limit.
    fn poll(&self, index: usize) {
        let seen = self.shared_interrupt.seen();
        while self.ended[index].load(Ordering::Acquire) == 0 {
            self.shared_interrupt
                .wait(&seen, u32::MAX, || {
                    self.interrupt();
                    Ok(())
                })
                .unwrap();
        }
    }
}

fn polls(device: &Arc<Device>, index: usize) -> thread::JoinHandle<()> {
    let device = Arc::clone(device);
    thread::spawn(move || device.poll(index))
}

#[test]
fn both_hear_of_an_interrupt_that_is_for_both() {
    check(Some(preemptions()), || {
        let device = Device::new();
        let waiters = [0, 1].map(|index| polls(&device, index));
        device.ended[1].store(1, Ordering::Release);
        device.ends(0);
        waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
    });
}

#[test]
fn the_first_to_end_passes_the_interrupt_on() {
    check(Some(preemptions()), || {
        let device = Device::new();
        let waiters = [0, 1].map(|index| polls(&device, index));
        device.ends(1);
        device.ends(0);
        waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
    });
}

#[test]
fn a_reset_wakes_who_sleeps() {
    check(Some(preemptions()), || {
        let device = Device::new();
        // The thread in the interrupt is woken by the line, the other one by the reset.
        let waiters = [0, 1].map(|index| polls(&device, index));
        device.ended.iter().for_each(|ended| ended.store(1, Ordering::Release));
        device.shared_interrupt.wake();
        *device.raised.lock().unwrap() = true;
        device.line.notify_all();
        waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
    });
}
