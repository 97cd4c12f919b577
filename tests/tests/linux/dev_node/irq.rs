//! A contigo device's interrupts: masked when they come, and waited for in three calls.

use super::os;
use contigo::{Error, Wait};
use contigo_testkit::fake_dev_node::{Call, DevNodeConfig, Event, FakeDevNode};
use nix::{
    libc,
    poll::{PollFd, PollFlags, PollTimeout, poll},
};
use std::{os::fd::AsFd, time::Duration, time::Instant};

fn kernel(interrupts: u32) -> FakeDevNode {
    FakeDevNode::new(DevNodeConfig { interrupts, ..DevNodeConfig::default() })
}

/// Is it readable now?
fn rings(irq: &impl AsFd) -> bool {
    let mut files = [PollFd::new(irq.as_fd(), PollFlags::POLLIN)];
    poll(&mut files, PollTimeout::ZERO).unwrap() == 1
}

#[test]
fn a_wait_unmasks_and_takes_the_interrupt() {
    for interrupts in [1, 3] {
        let (kernel, last) = (kernel(interrupts), interrupts - 1);
        let dev_node = kernel.open_dev_node().unwrap();
        let irq = dev_node.irq(last).unwrap();
        assert_eq!(kernel.masked(), u32::MAX, "when the file is opened");
        let start = Instant::now();
        assert_eq!(irq.wait_at_most(20_000), Ok(()));
        assert!(start.elapsed() >= Duration::from_millis(20), "it ends on time, and not before");
        assert_eq!(
            (irq.interrupts(), kernel.log()),
            (0, vec![Event::Unmasked(1 << last)]),
            "the others stay as they are"
        );
        kernel.interrupt(last);
        assert_eq!(kernel.masked() >> last & 1, 1, "it was masked when it came");
        let start = Instant::now();
        assert_eq!(irq.wait_at_most(60_000_000), Ok(()));
        assert!(start.elapsed() < Duration::from_secs(30), "the interrupt ends it");
        assert_eq!((irq.interrupts(), rings(&irq)), (1, false));
    }
}

#[test]
fn edge_while_masked_is_not_lost() {
    let kernel = kernel(1);
    let dev_node = kernel.open_dev_node().unwrap();
    let irq = dev_node.irq(0).unwrap();
    kernel.interrupt(0);
    assert!(!rings(&irq));
    assert_eq!(irq.arm(), Ok(()));
    assert!(rings(&irq), "after the look that comes now, the sleep ends at once");
    assert_eq!(
        (irq.arm(), irq.interrupts(), rings(&irq)),
        (Ok(()), 1, false),
        "and arming forgets it"
    );
}

#[test]
fn two_handles_have_one_interrupt() {
    for interrupts in [1, 2] {
        let kernel = kernel(interrupts);
        let dev_node = kernel.open_dev_node().unwrap();
        let (irq, bell) = (dev_node.irq(0).unwrap(), dev_node.irq(0).unwrap());
        irq.arm().unwrap();
        kernel.interrupt(0);
        assert!(rings(&irq) && rings(&bell));
        assert_eq!((bell.arm(), bell.interrupts(), rings(&irq)), (Ok(()), 1, false));
        assert_eq!(
            (irq.arm(), irq.interrupts()),
            (Ok(()), 0),
            "the other one was faster, which is no error"
        );
    }
}

#[test]
fn interrupts_do_not_wake_each_other() {
    let kernel = kernel(16);
    let dev_node = kernel.open_dev_node().unwrap();
    let irqs: Vec<_> = (0..16).map(|number| dev_node.irq(number).unwrap()).collect();
    irqs.iter().for_each(|irq| irq.arm().unwrap());
    kernel.interrupt(15);
    kernel.interrupt(3);
    let ringing: Vec<_> = (0..16).filter(|&at| rings(&irqs[at])).collect();
    assert_eq!(ringing, [3, 15]);
    assert_eq!(irqs[3].arm_irq(), Ok(Some(std::os::fd::AsRawFd::as_raw_fd(&irqs[3].as_fd()))));
    assert!(!rings(&irqs[3]) && rings(&irqs[15]));
}

#[test]
fn threads_of_one_interrupt_share_eventfd() {
    let kernel = kernel(2);
    let dev_node = kernel.open_dev_node().unwrap();
    kernel.hold_eventfds(true);
    let asked = || dev_node.irq(1).map(|irq| std::os::fd::AsRawFd::as_raw_fd(&irq.as_fd()));
    std::thread::scope(|threads| {
        let (tell, told) = std::sync::mpsc::channel();
        let both = [0, 1].map(|_| {
            let tell = tell.clone();
            threads.spawn(move || tell.send(asked()))
        });
        let late = told.recv_timeout(Duration::from_secs(30));
        kernel.hold_eventfds(false);
        assert!(
            matches!(late, Ok(Err(Error::Contended { .. }))),
            "a thread waits with a bound: {late:?}"
        );
        let first = told.recv_timeout(Duration::from_secs(30)).unwrap();
        assert_eq!(both.map(|thread| thread.join().unwrap()), [Ok(()); 2]);
        assert_eq!((asked(), kernel.eventfds()), (first, 1));
    });
}

#[test]
fn an_interrupt_that_is_not_there_is_an_error() {
    let dev_node = kernel(0).open_dev_node().unwrap();
    assert!(matches!(
        dev_node.irq(0).map(drop),
        Err(Error::Unsupported { what: "the device has no interrupt", .. })
    ));
    let dev_node = kernel(2).open_dev_node().unwrap();
    assert!(matches!(
        dev_node.irq(2).map(drop),
        Err(Error::Argument { name: "interrupt", value: 2, max: 1, .. })
    ));
    let kernel = kernel(2);
    let dev_node = kernel.open_dev_node().unwrap();
    kernel.refuse(Call::SetEventFd, libc::EINVAL);
    assert_eq!(dev_node.irq(1).map(drop), Err(os("ioctl(CONTIGO_SET_EVENTFD)", libc::EINVAL)));
    kernel.refuse(Call::Open, 0);
    let irq = dev_node.irq(1).unwrap();
    kernel.refuse(Call::Unmask, libc::EIO);
    assert_eq!(
        (irq.arm(), irq.wait_at_most(0)),
        (Err(os("ioctl(CONTIGO_UNMASK)", libc::EIO)), Err(os("ioctl(CONTIGO_UNMASK)", libc::EIO)))
    );
}

#[test]
fn a_wait_for_a_device_that_goes_ends() {
    for interrupts in [1, 2] {
        let kernel = kernel(interrupts);
        let dev_node = kernel.open_dev_node().unwrap();
        let irq = dev_node.irq(0).unwrap();
        std::thread::scope(|threads| {
            let waiter = threads.spawn(|| irq.wait_at_most(60_000_000));
            while kernel.log().is_empty() {}
            kernel.take_away();
            let start = Instant::now();
            let _ = waiter.join().unwrap();
            assert!(start.elapsed() < Duration::from_secs(30), "POLLHUP, or the eventfd");
        });
        assert_eq!(irq.wait_at_most(60_000_000), Err(os("ioctl(CONTIGO_UNMASK)", libc::ENODEV)));
    }
}
