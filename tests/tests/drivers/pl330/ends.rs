//! How a job ends: hung, stuck, dropped, forgotten, with interrupts lost or late, or without a
//! controller.

use super::*;

/// Between the two registers that a look reads, anything may happen: here the channel starts and
/// raises its event, and runs on.
#[test]
fn an_event_between_two_reads_is_not_the_end() {
    let board = SimBoard::new(1);
    let memory = Memory::on(&board);
    let (programs, data) = (memory.programs(), memory.data());
    let device = SimDevice::<Pl330Model>::new(&board, board.port());
    let slow = Cell::new(true);
    let bend = |_, value| {
        if slow.get() {
            device.run_for(1_000_000).unwrap();
        }
        value
    };
    let mut driver =
        open(Bent::new(device.window().unwrap(), bend), programs.take().unwrap()).unwrap();
    slow.set(false);
    // SAFETY: it touches no memory.
    unsafe { driver.run_program(&[&[0x34, 0], &WAIT_FOR_EVER[..]].concat()).unwrap() };
    slow.set(true);
    for _ in 0..3 {
        assert_eq!(driver.poll(Duration::ZERO), Ok(None), "it runs for ever");
    }
    slow.set(false);
    driver.stop().unwrap();
    works(&mut Queue::new(driver, 1).unwrap(), &data);
}

// ---- Controllers that hang, are stuck, or are gone.

#[test]
fn program_returns_only_from_a_stopped_controller() {
    let board =
        SimBoard::with(SimConfig { seed: 3, faults: Faults { stuck: 1000, ..Faults::NONE } });
    let memory = Memory::on(&board);
    let (programs, data) = (memory.programs(), memory.data());
    let device = SimDevice::<Pl330Model>::new(&board, board.port());
    let open = || device.window().unwrap().driver(programs.take().unwrap()).unwrap();
    drop(open());
    drop(Queue::new(open(), 1).unwrap());
    assert_eq!(programs.taken(), 0);

    // A program that waits for ever, and is killed by the drop: it stores nothing, so it never gets
    // stuck.
    let mut driver = open();
    // SAFETY: it touches no memory.
    unsafe { driver.run_program(&WAIT_FOR_EVER).unwrap() };
    assert_eq!(driver.poll(Duration::from_micros(100)), Ok(None));
    drop(driver);
    assert_eq!(programs.taken(), 0);

    let mut queue = Queue::new(open(), 1).unwrap();
    queue
        .submit([data.take().unwrap().to_device(..99), data.take().unwrap().from_device(..99)], &[])
        .unwrap();
    drop(queue);
    assert_eq!((programs.taken(), data.taken()), (1, 2), "it may still fetch, and write");
}

#[test]
fn next_driver_kills_an_endless_program() {
    let board = SimBoard::new(4);
    let memory = Memory::on(&board);
    let (programs, data) = (memory.programs(), memory.data());
    let device = SimDevice::<Pl330Model>::new(&board, board.port());
    let gone = Cell::new(false);
    let crashed = Revoked { inner: device.window().unwrap(), gone: &gone };
    let mut crashed =
        open_with(crashed, programs.take().unwrap(), Pl330Config { channel: 2, event: 7 }).unwrap();
    // SAFETY: it touches no memory.
    unsafe { crashed.run_program(&WAIT_FOR_EVER).unwrap() };
    assert_eq!(crashed.poll(Duration::from_micros(100)), Ok(None));
    // Its process dies: nothing that it does reaches the controller any more.
    gone.set(true);
    drop(crashed);
    assert_eq!(programs.taken(), 1);
    let csr = regs::CHANNELS[2].csr;
    const WAITING_FOR_EVENT: u32 = 4;
    assert_eq!(csr.read(&device.window().unwrap()) & regs::STATUS, WAITING_FOR_EVENT);

    // The next process: its driver stops everything before its first job.
    let seen = Cell::new(0);
    let watched = Bent::new(device.window().unwrap(), |offset, value| {
        if offset == csr.offset() {
            seen.set(value & regs::STATUS);
        }
        value
    });
    let mut queue = Queue::new(open(watched, programs.take().unwrap()).unwrap(), 1).unwrap();
    assert_eq!(seen.get(), regs::STOPPED);
    works(&mut queue, &data);
}

#[test]
fn job_stopped_before_its_start_never_starts() {
    for after_ns in 0..12 {
        let board = SimBoard::new(after_ns);
        let memory = Memory::on(&board);
        let (programs, data) = (memory.programs(), memory.data());
        let device = SimDevice::<Pl330Model>::new(&board, board.coherent_port());
        let mut queue =
            Queue::new(device.window().unwrap().driver(programs.take().unwrap()).unwrap(), 1)
                .unwrap();
        let (mut from, mut to) = (data.take().unwrap(), data.take().unwrap());
        from.view_mut::<u8>().unwrap().fill(1);
        to.view_mut::<u8>().unwrap().fill(2);
        let before_bytes = board.counts().bytes_written;
        queue.submit([from.to_device(..4000), to.from_device(1..4001)], &[]).unwrap();
        // Some looks, each of which takes 100 ns: the debug interface is busy, or idle and the
        // channel not started, or it runs.
        for _ in 0..after_ns {
            assert!(queue.try_next::<2>().unwrap().is_none(), "4,000 bytes take longer");
        }
        queue.clear().unwrap();
        let written = board.counts().bytes_written;
        device.run_for(1_000_000).unwrap();
        assert_eq!(
            board.counts().bytes_written,
            written,
            "after {after_ns} looks: it runs on behind everybody's back"
        );
        assert!(written - before_bytes < 100, "it was stopped early: {}", written - before_bytes);
        works(&mut queue, &data);
    }
}

/// A window that a process loses when it dies.
struct Revoked<'c, D> {
    inner: D,
    gone: &'c Cell<bool>,
}

// SAFETY: the registers are those of `inner`; a device that is gone answers all ones.
unsafe impl<D: Device> Mmio for Revoked<'_, D> {
    forward!(|this| this.inner => len_bytes);
    fn read32(&self, offset: usize) -> u32 {
        if self.gone.get() { u32::MAX } else { self.inner.read32(offset) }
    }
    unsafe fn write32(&self, offset: usize, value: u32) {
        if !self.gone.get() {
            // SAFETY: the caller's promise.
            unsafe { self.inner.write32(offset, value) }
        }
    }
}

impl<D: Device> Wait for Revoked<'_, D> {
    forward!(|this| this.inner => now_us, wait_at_most);
}

// SAFETY: `inner`'s.
unsafe impl<D: Device> Device for Revoked<'_, D> {
    forward!(|this| this.inner => port, simulated);
}

#[test]
fn vanished_controller_keeps_the_buffers() {
    let board = SimBoard::new(1);
    let memory = Memory::on(&board);
    let (programs, data) = (memory.programs(), memory.data());
    let (device, gone) = (SimDevice::<Pl330Model>::new(&board, board.port()), Cell::new(false));
    let window = Revoked { inner: device.window().unwrap(), gone: &gone };
    let mut queue = Queue::new(open(window, programs.take().unwrap()).unwrap(), 1).unwrap();
    let buffers = || (data.take().unwrap(), data.take().unwrap());
    let (from, to) = buffers();
    queue.submit([from.to_device(..900), to.from_device(..900)], &[]).unwrap();
    gone.set(true);
    let failed = queue.wait::<2>(WAIT).unwrap_err();
    let what = "that it is gone (all ones)";
    assert_eq!(failed.cause, Error::Fault { device: "pl330", status: u32::MAX, what });
    assert_eq!(
        failed.error,
        Error::WillNotStop { device: "pl330", status: u32::MAX, waited_us: 10_000 }
    );
    assert!(failed.buffers.is_none());
    gone.set(false);
    queue.clear().unwrap();
    // And one that vanishes before the doorbell.
    let (from, to) = buffers();
    gone.set(true);
    let failed = queue.submit([from.to_device(..900), to.from_device(..900)], &[]).unwrap_err();
    assert_eq!(failed.cause, Error::Fault { device: "pl330", status: u32::MAX, what });
    assert!(
        matches!(failed.error, Error::WillNotStop { status: u32::MAX, .. })
            && failed.buffers.is_none()
    );
}

#[test]
fn busy_debug_interface_ends_in_bounded_time() {
    let board = SimBoard::new(1);
    let memory = Memory::on(&board);
    let (programs, data) = (memory.programs(), memory.data());
    let (device, busy) = (SimDevice::<Pl330Model>::new(&board, board.port()), Cell::new(false));
    let bend =
        |offset, value: u32| value | u32::from(offset == regs::DBGSTATUS.offset() && busy.get());
    let mut queue = Queue::new(
        open(Bent::new(device.window().unwrap(), bend), programs.take().unwrap()).unwrap(),
        1,
    )
    .unwrap();
    busy.set(true);
    let before_us = board.now_ns() / 1_000;
    let failed = queue
        .submit([data.take().unwrap().to_device(..9), data.take().unwrap().from_device(..9)], &[])
        .unwrap_err();
    let took_us = board.now_ns() / 1_000 - before_us;
    assert_eq!(
        failed.cause,
        Error::Fault { device: "pl330", status: 1, what: "that its debug interface stays busy" }
    );
    let will_not = Error::WillNotStop { device: "pl330", status: 1, waited_us: 10_000 };
    assert_eq!((failed.error, failed.buffers.is_none()), (will_not, true));
    assert!((15_000..16_000).contains(&took_us), "{took_us} us");
    drop(queue);
    assert_eq!(programs.taken(), 1, "a DMAGO may be in there: the program is leaked");
    let driver = open(Bent::new(device.window().unwrap(), bend), programs.take().unwrap()).unwrap();
    let refused = Queue::new(driver, 1).unwrap_err();
    assert_eq!(refused.error, will_not);
    busy.set(false);
    works(&mut Queue::new(refused.into_returned(), 1).unwrap(), &data);
}
