//! How a job ends: hung, stuck, dropped, forgotten, with interrupts lost or late, or without a
//! controller.

use super::*;

/// Between the two registers that a look reads, anything may happen: here the channel starts and
/// raises its event, and runs on.
#[test]
fn an_event_between_two_reads_is_not_the_end() {
    let ground = ground(1, Faults::NONE);
    let (device, slow) = (ground.device(Pl330Spec::default()), Cell::new(false));
    let bend = |_, value| {
        if slow.get() {
            device.run_for(1_000_000).unwrap();
        }
        value
    };
    let mut driver = open(Bent::new(device.window().unwrap(), bend), ground.program()).unwrap();
    // SAFETY: it touches no memory.
    unsafe { driver.run_program(&[&[0x34, 0], &WAIT_FOR_EVER[..]].concat()).unwrap() };
    slow.set(true);
    for _ in 0..3 {
        assert_eq!(driver.poll(Duration::ZERO), Ok(None), "it runs for ever");
    }
    slow.set(false);
    driver.stop().unwrap();
    ground.works(&mut Queue::new(driver, 1).unwrap());
}

// ---- Controllers that hang, are stuck, or are gone.

#[test]
fn program_returns_only_when_core_stopped() {
    let ground = ground(3, STUCK);
    let device = ground.device(Pl330Spec::default());
    let open = || open(device.window().unwrap(), ground.program()).unwrap();
    drop(open());
    drop(Queue::new(open(), 1).unwrap());
    assert_eq!(ground.programs.taken(), 0);

    // A program that waits for ever, and is killed by the drop: it stores nothing, so it never gets
    // stuck.
    let mut driver = open();
    // SAFETY: it touches no memory.
    unsafe { driver.run_program(&WAIT_FOR_EVER).unwrap() };
    assert_eq!(driver.poll(Duration::from_micros(100)), Ok(None));
    drop(driver);
    assert_eq!(ground.programs.taken(), 0);

    let mut queue = Queue::new(open(), 1).unwrap();
    ground.starts(&mut queue);
    drop(queue);
    let out = (ground.programs.taken(), ground.data.taken());
    assert_eq!(out, (1, 2), "it may still fetch, and write");
}

/// A window that a process loses when it dies: a device that is gone answers all ones.
fn revoked<'c>(
    window: SimWindow<contigo::sim::pl330::Pl330Model>,
    gone: &'c Cell<bool>,
) -> impl Device + use<'c> {
    Bent::new(window, |_, value| if gone.get() { u32::MAX } else { value })
        .writing(|_, value| (!gone.get()).then_some(value))
}

#[test]
fn next_driver_kills_an_endless_program() {
    let ground = ground(4, Faults::NONE);
    let (device, gone) = (ground.device(Pl330Spec::default()), Cell::new(false));
    let config = Pl330Config { channel: 2, event: 7 };
    let crashed = revoked(device.window().unwrap(), &gone);
    let mut crashed = open_with(crashed, ground.program(), config).unwrap();
    // SAFETY: it touches no memory.
    unsafe { crashed.run_program(&WAIT_FOR_EVER).unwrap() };
    assert_eq!(crashed.poll(Duration::from_micros(100)), Ok(None));
    // Its process dies: nothing that it does reaches the controller any more.
    gone.set(true);
    drop(crashed);
    assert_eq!(ground.programs.taken(), 1);
    let csr = regs::CHANNELS[2].csr;
    const WAITING_FOR_EVENT: u32 = 4;
    assert_eq!(csr.read(&device.window().unwrap()) & regs::STATUS, WAITING_FOR_EVENT);

    // The next process: its driver stops everything before its first job.
    let seen = Cell::new(0);
    let mut queue = ground.queue(Bent::new(device.window().unwrap(), |offset, value| {
        if offset == csr.offset() {
            seen.set(value & regs::STATUS);
        }
        value
    }));
    assert_eq!(seen.get(), regs::STOPPED);
    ground.works(&mut queue);
}

#[test]
fn job_stopped_before_its_start_never_starts() {
    for after_ns in 0..12 {
        let ground = ground(after_ns, Faults::NONE);
        let device = SimDevice::<Pl330Model>::new(&ground.board, ground.board.coherent_port());
        let mut queue = ground.queue(device.window().unwrap());
        let before_bytes = ground.board.counts().bytes_written;
        queue.give(copies(&ground.data, ..4000, 1..4001));
        // Some looks, each of which takes 100 ns: the debug interface is busy, or idle and the
        // channel not started, or it runs.
        for _ in 0..after_ns {
            assert!(queue.try_next::<2>().unwrap().is_none(), "4,000 bytes take longer");
        }
        queue.clear().unwrap();
        let written = ground.board.counts().bytes_written;
        device.run_for(1_000_000).unwrap();
        let after = ground.board.counts().bytes_written;
        assert_eq!(after, written, "after {after_ns} looks: it runs on behind everybody's back");
        assert!(written - before_bytes < 100, "it was stopped early: {}", written - before_bytes);
        ground.works(&mut queue);
    }
}

#[test]
fn vanished_controller_keeps_the_buffers() {
    let ground = ground(1, Faults::NONE);
    let (device, gone) = (ground.device(Pl330Spec::default()), Cell::new(false));
    let mut queue = ground.queue(revoked(device.window().unwrap(), &gone));
    let what = "that it is gone (all ones)";
    let fault = Error::Fault { device: "pl330", status: u32::MAX, what };
    let stays = Error::WillNotStop { device: "pl330", status: u32::MAX, waited_us: 10_000 };
    ground.starts(&mut queue);
    gone.set(true);
    let failed = queue.wait::<2>(WAIT).unwrap_err();
    assert_eq!((failed.cause, failed.error, failed.buffers.is_none()), (fault, stays, true));
    gone.set(false);
    queue.clear().unwrap();
    // And one that vanishes before the doorbell.
    gone.set(true);
    let failed = queue.submit(copies(&ground.data, ..900, ..900), &[]).unwrap_err();
    assert_eq!((failed.cause, failed.error, failed.buffers.is_none()), (fault, stays, true));
}

#[test]
fn busy_debug_interface_ends_in_bounded_time() {
    let ground = ground(1, Faults::NONE);
    let (device, busy) = (ground.device(Pl330Spec::default()), Cell::new(false));
    let bend =
        |offset, value: u32| value | u32::from(offset == regs::DBGSTATUS.offset() && busy.get());
    let window = || Bent::new(device.window().unwrap(), bend);
    let mut queue = ground.queue(window());
    busy.set(true);
    let before_us = ground.board.now_ns() / 1_000;
    let failed = queue.submit(copies(&ground.data, ..9, ..9), &[]).unwrap_err();
    let took_us = ground.board.now_ns() / 1_000 - before_us;
    let what = "that its debug interface stays busy";
    let will_not = Error::WillNotStop { device: "pl330", status: 1, waited_us: 10_000 };
    assert_eq!(failed.cause, Error::Fault { device: "pl330", status: 1, what });
    assert_eq!((failed.error, failed.buffers.is_none()), (will_not, true));
    assert!((15_000..16_000).contains(&took_us), "{took_us} us");
    drop(queue);
    assert_eq!(ground.programs.taken(), 1, "a DMAGO may be in there: the program is leaked");
    let refused = Queue::new(open(window(), ground.program()).unwrap(), 1).unwrap_err();
    assert_eq!(refused.error, will_not);
    busy.set(false);
    ground.works(&mut Queue::new(refused.into_returned(), 1).unwrap());
}
