//! A contigo device's interrupts: masked when they come, and waited for in one call.

use super::{opened, os};
use contigo::linux::dev_node::DevNode;
use contigo::{Error, Wait};
use contigo_testkit::fake_dev_node::{DevNodeConfig, Event, FakeDevNode};
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::os::fd::{AsFd, AsRawFd as _};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// No test here waits so long, unless an interrupt is lost.
const LONG: Duration = Duration::from_secs(30);
const LONG_US: u32 = 60_000_000;

fn with(interrupts: u32) -> (FakeDevNode, DevNode) {
    opened(DevNodeConfig { interrupts, ..DevNodeConfig::default() })
}

/// Is it readable now?
fn rings(irq: &impl AsFd) -> bool {
    let mut files = [PollFd::new(irq.as_fd(), PollFlags::POLLIN)];
    poll(&mut files, PollTimeout::ZERO).unwrap() == 1
}

#[test]
fn a_wait_unmasks_and_takes_the_interrupt() {
    for interrupts in [1, 3] {
        let ((kernel, dev_node), last) = (with(interrupts), interrupts - 1);
        let irq = dev_node.irq(last).unwrap();
        assert_eq!(kernel.masked(), u32::MAX, "when the file is opened");
        kernel.refuse("ioctl(CONTIGO_UNMASK)", libc::EIO);
        let start = Instant::now();
        assert_eq!(irq.wait_at_most(20_000), Ok(()), "a wait is one call, and unmasks by itself");
        assert!(start.elapsed() >= Duration::from_millis(20), "it ends on time, and not before");
        let unmasked = vec![Event::Unmasked(1 << last)];
        assert_eq!((irq.interrupts(), kernel.log()), (0, unmasked), "the others stay as they are");
        kernel.interrupt(last);
        assert_eq!(kernel.masked() >> last & 1, 1, "it was masked when it came");
        let start = Instant::now();
        assert_eq!(irq.wait_at_most(LONG_US), Ok(()));
        assert!(start.elapsed() < LONG, "the interrupt ends it");
        assert_eq!(irq.interrupts(), 1);
        // No call waited when it came, so that its eventfd was signalled. During a wait none is.
        assert_eq!(rings(&irq), interrupts > 1);
        let (kernel, dev_node) = with(interrupts);
        let irq = dev_node.irq(last).unwrap();
        kernel.interrupt(last);
        assert_eq!((irq.wait_at_most(LONG_US), irq.interrupts()), (Ok(()), 1));
        assert!(!rings(&irq));
    }
}

/// An interrupt is counted once, by the wait or the arming that comes first.
#[test]
fn arming_and_waiting_take_one_interrupt_once() {
    for interrupts in [1, 2] {
        let (kernel, dev_node) = with(interrupts);
        let irq = dev_node.irq(0).unwrap();
        irq.arm().unwrap();
        kernel.interrupt(0);
        assert_eq!((irq.wait_at_most(LONG_US), irq.interrupts()), (Ok(()), 1));
        assert_eq!((irq.arm(), irq.interrupts(), rings(&irq)), (Ok(()), 1, false));
        kernel.interrupt(0);
        assert!(rings(&irq), "it was armed");
        assert_eq!((irq.arm(), irq.interrupts()), (Ok(()), 2));
        let start = Instant::now();
        assert_eq!((irq.wait_at_most(20_000), irq.interrupts()), (Ok(()), 2));
        assert!(start.elapsed() >= Duration::from_millis(20), "arming took it");
        kernel.interrupt(0);
        assert!(rings(&irq), "the wait is over, and left it unmasked");
        assert_eq!((irq.arm(), irq.interrupts(), rings(&irq)), (Ok(()), 3, false));
    }
}

#[test]
fn edge_while_masked_is_not_lost() {
    let (kernel, dev_node) = with(1);
    let irq = dev_node.irq(0).unwrap();
    kernel.interrupt(0);
    assert!(!rings(&irq));
    assert_eq!(irq.arm(), Ok(()));
    assert!(rings(&irq), "after the look that comes now, the sleep ends at once");
    let armed = (irq.arm(), irq.interrupts(), rings(&irq));
    assert_eq!(armed, (Ok(()), 1, false), "and arming forgets it");
}

#[test]
fn two_handles_have_one_interrupt() {
    for interrupts in [1, 2] {
        let (kernel, dev_node) = with(interrupts);
        let (irq, bell) = (dev_node.irq(0).unwrap(), dev_node.irq(0).unwrap());
        irq.arm().unwrap();
        kernel.interrupt(0);
        assert!(rings(&irq) && rings(&bell));
        assert_eq!((bell.arm(), bell.interrupts(), rings(&irq)), (Ok(()), 1, false));
        assert_eq!((irq.arm(), irq.interrupts()), (Ok(()), 0), "the other one was faster");
    }
}

#[test]
fn interrupts_do_not_wake_each_other() {
    let (kernel, dev_node) = with(16);
    let irqs: Vec<_> = (0..16).map(|number| dev_node.irq(number).unwrap()).collect();
    irqs.iter().for_each(|irq| irq.arm().unwrap());
    kernel.interrupt(15);
    kernel.interrupt(3);
    let ringing: Vec<_> = (0..16).filter(|&at| rings(&irqs[at])).collect();
    assert_eq!(ringing, [3, 15]);
    assert_eq!(irqs[3].arm_irq(), Ok(Some(irqs[3].as_fd().as_raw_fd())));
    assert!(!rings(&irqs[3]) && rings(&irqs[15]));
}

#[test]
fn threads_of_one_interrupt_share_eventfd() {
    let (kernel, dev_node) = with(2);
    kernel.hold_eventfds(true);
    let asked = || dev_node.irq(1).map(|irq| irq.as_fd().as_raw_fd());
    thread::scope(|threads| {
        let (tell, told) = mpsc::channel();
        let both = [0, 1].map(|_| {
            let tell = tell.clone();
            threads.spawn(move || tell.send(asked()))
        });
        let late = told.recv_timeout(LONG);
        kernel.hold_eventfds(false);
        let bounded = matches!(late, Ok(Err(Error::Contended { .. })));
        assert!(bounded, "a thread waits with a bound: {late:?}");
        let first = told.recv_timeout(LONG).unwrap();
        assert_eq!(both.map(|thread| thread.join().unwrap()), [Ok(()); 2]);
        assert_eq!((asked(), kernel.eventfds()), (first, 1));
    });
}

#[test]
fn an_interrupt_that_is_not_there_is_an_error() {
    let refused = |interrupts, number| with(interrupts).1.irq(number).map(drop).unwrap_err();
    let what = "the device has no interrupt";
    assert!(matches!(refused(0, 0), Error::Unsupported { what: why, .. } if why == what));
    let beyond = refused(2, 2);
    assert!(
        matches!(beyond, Error::Argument { name: "interrupt", value: 2, max: 1, .. }),
        "{beyond:?}"
    );
    let (kernel, dev_node) = with(2);
    kernel.refuse("ioctl(CONTIGO_SET_EVENTFD)", libc::EINVAL);
    assert_eq!(dev_node.irq(1).map(drop), Err(os("ioctl(CONTIGO_SET_EVENTFD)", libc::EINVAL)));
    kernel.refuse_none();
    let irq = dev_node.irq(1).unwrap();
    kernel.refuse("ioctl(CONTIGO_UNMASK)", libc::EIO);
    assert_eq!(irq.arm(), Err(os("ioctl(CONTIGO_UNMASK)", libc::EIO)));
    kernel.refuse("ioctl(CONTIGO_WAIT)", libc::EIO);
    assert_eq!(irq.wait_at_most(0), Err(os("ioctl(CONTIGO_WAIT)", libc::EIO)));
}

#[test]
fn a_wait_for_a_device_that_goes_ends() {
    for interrupts in [1, 2] {
        let (kernel, dev_node) = with(interrupts);
        let irq = dev_node.irq(0).unwrap();
        thread::scope(|threads| {
            let waiter = threads.spawn(|| irq.wait_at_most(LONG_US));
            while kernel.log().is_empty() {}
            kernel.take_away();
            let start = Instant::now();
            assert_eq!(waiter.join().unwrap(), Err(os("ioctl(CONTIGO_WAIT)", libc::ENODEV)));
            assert!(start.elapsed() < LONG);
        });
        assert_eq!(irq.wait_at_most(LONG_US), Err(os("ioctl(CONTIGO_WAIT)", libc::ENODEV)));
    }
}
