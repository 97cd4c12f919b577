//! Up to eight channels of one controller at once, each with a driver of its own.

use super::{Memory, SLOT, WAIT, WAIT_FOR_EVER, scribble};
use contigo::{
    Align, CpuBuf, Device, Driver, Engine, Error, Mmio, Pool, Queue, Refused, Result, Wait,
    drivers::pl330::{Controller, PROGRAM_BYTES, Pl330Channel, Pl330Config, Pl330Spec, SimPl330, regs},
    forward,
    sim::{Faults, SimBoard, SimConfig},
};
use contigo_testkit::emulated;
use fastrand::Rng;
use std::{
    array,
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::Duration,
};

const CHANNELS: usize = 8;

/// Channel and event `number`.
fn config(number: usize) -> Pl330Config {
    let number = u8::try_from(number).unwrap();
    Pl330Config { channel: number, event: 15 - number }
}

impl Memory<'_> {
    /// A program for each channel, and buffers for two copies on each.
    fn pools(&self) -> (Pool<'_, CHANNELS>, Pool<'_, 32>) {
        let programs = Pool::new(self.region.carve(CHANNELS * PROGRAM_BYTES, Align::LINE).unwrap(), PROGRAM_BYTES).unwrap();
        (programs, Pool::new(self.region.carve(32 * SLOT, Align::LINE).unwrap(), SLOT).unwrap())
    }
}

/// One copy: its source and its length, where the target begins with another byte.
fn random_copy<'p>(rng: &mut Rng, data: &'p Pool<'_, 32>) -> ([contigo::Operand<'p>; 2], Vec<u8>) {
    let (mut from, mut to) = (data.take().unwrap(), data.take().unwrap());
    let (bytes, len, at) = (scribble(rng, &mut from), rng.usize(1..=2000), rng.usize(..64));
    to.view_mut::<u8>().unwrap().fill(!bytes[0]);
    ([from.to_device(..len), to.from_device(at..at + len)], bytes[..len].to_vec())
}

/// Did `bytes` arrive?
fn arrived(to: &CpuBuf<'_>, bytes: &[u8]) -> bool {
    to.view::<u8>().unwrap().windows(bytes.len()).take(64).any(|window| window == bytes)
}

#[test]
fn eight_queues_of_one_thread_are_in_flight_at_once() {
    for (seed, spec) in [
        Pl330Spec::default(),
        // A data buffer of 64 bytes for eight channels, whose bursts must fit together.
        Pl330Spec { bus_bytes: 4, buffer_words: 16, ..Pl330Spec::default() },
        Pl330Spec { bus_bytes: 16, buffer_words: 4, revision: 0, ..Pl330Spec::default() },
    ]
    .into_iter()
    .enumerate()
    {
        let board = SimBoard::new(seed as u64);
        let memory = Memory::on(&board);
        let (programs, data) = memory.pools();
        let device = SimPl330::with_spec(&board, board.port(), spec);
        let controller = Controller::open_simulated(device.window().unwrap()).unwrap();
        let driver = |number| controller.channel(config(number), programs.take().unwrap()).unwrap();
        let channels = CHANNELS.min(spec.buffer_words as usize);
        assert_eq!(controller.channels() as usize, channels);
        let mut queues: Vec<Queue<'_, _, 2, 2>> = (0..channels).map(|number| Queue::new(driver(number)).unwrap()).collect();
        let mut rng = Rng::with_seed(seed as u64);
        let rounds = emulated::fewer(15);
        for _ in 0..rounds {
            let pushed: Vec<_> = queues
                .iter_mut()
                .map(|queue| {
                    let (operands, bytes) = random_copy(&mut rng, &data);
                    queue.push(operands, &()).unwrap();
                    bytes
                })
                .collect();
            assert!(queues.iter().all(|queue| queue.is_full()), "one job a channel");
            // In whatever order.
            let first = rng.usize(..channels);
            for number in (0..channels).map(|number| number ^ first) {
                let done = queues[number].next(WAIT).unwrap().unwrap();
                assert!(arrived(&done.buffers[1], &pushed[number]), "channel {number} of {spec:?}");
            }
        }
        assert!(queues.iter().all(|queue| (queue.counts().completed, queue.counts().stopped) == (rounds, 0)));
        drop(queues);
        assert_eq!((programs.taken(), data.taken()), (0, 0), "everything is given back");
        assert_eq!((board.counts().stray_accesses, board.counts().unowned_accesses), (0, 0));
    }
}

/// A device that lets other threads run in the middle of every instruction for the debug interface.
struct Yielding<D>(D);

// SAFETY: the registers belong to the device.
unsafe impl<D: Mmio> Mmio for Yielding<D> {
    forward!(|this| this.0 => len_bytes, read32);
    unsafe fn write32(&self, offset: usize, value: u32) {
        if offset == regs::DBGINST1.offset() || offset == regs::DBGCMD.offset() || offset == regs::INTEN.offset() {
            thread::yield_now();
        }
        // SAFETY: the caller's promise.
        unsafe { self.0.write32(offset, value) }
    }
}

impl<D: Wait> Wait for Yielding<D> {
    forward!(|this| this.0 => now_us, wait_at_most);
}

// SAFETY: the device's.
unsafe impl<D: Device> Device for Yielding<D> {
    forward!(|this| this.0 => port);
}

/// `count` copies on `driver`, one after the other.
fn copies<D: Device>(driver: Pl330Channel<'_, '_, D>, data: &Pool<'_, 32>, count: u64) {
    let number = driver.config().channel;
    let mut rng = Rng::with_seed(number.into());
    let mut engine = Engine::new(driver).unwrap();
    for job in 0..count {
        let (operands, bytes) = random_copy(&mut rng, data);
        let done = engine.start(operands, &()).unwrap().wait(WAIT).unwrap();
        assert!(arrived(&done.buffers[1], &bytes), "job {job} of channel {number}");
    }
}

#[test]
fn channels_are_driven_by_several_threads() {
    fn may_go_anywhere<T: Send>(_: &T) {}
    for threads in [2, CHANNELS] {
        let board = SimBoard::new(1);
        let memory = Memory::on(&board);
        let (programs, data) = memory.pools();
        let device = SimPl330::new(&board, board.port());
        // SAFETY: the window is a simulated PL330's.
        let controller = unsafe { Controller::open(Yielding(device.window().unwrap())) }.unwrap();
        thread::scope(|scope| {
            for number in 0..threads {
                let mut driver = controller.channel(config(number), programs.take().unwrap()).unwrap();
                may_go_anywhere(&driver);
                let data = &data;
                scope.spawn(move || {
                    // Started and killed, beside those that copy already.
                    for _ in 0..emulated::fewer(50) * (number as u64 % 2) {
                        // SAFETY: it touches no memory.
                        unsafe { driver.run_program(&WAIT_FOR_EVER).unwrap() };
                        driver.stop().unwrap();
                    }
                    copies(driver, data, emulated::fewer(100));
                });
            }
        });
        assert_eq!((programs.taken(), data.taken()), (0, 0), "everything is given back");
        assert_eq!((board.counts().stray_accesses, board.counts().unowned_accesses), (0, 0));
    }
}

#[test]
fn a_channel_and_an_event_have_one_driver() {
    let board = SimBoard::new(1);
    let memory = Memory::on(&board);
    let (programs, data) = memory.pools();
    let device = SimPl330::with_spec(&board, board.port(), Pl330Spec { channels: 3, events: 3, ..Pl330Spec::default() });
    let controller = Controller::open_simulated(device.window().unwrap()).unwrap();
    let open = |channel, event| controller.channel(Pl330Config { channel, event }, programs.take().unwrap());
    let refused = |channel, event| open(channel, event).map(drop).map_err(|Refused { error, .. }| error);
    assert_eq!(controller.channels(), 3);
    let first = open(1, 2).unwrap();
    assert_eq!(refused(1, 0), Err(Error::HasDriver), "the channel");
    assert_eq!(refused(0, 2), Err(Error::HasDriver), "the event");
    let argument = |name, value| Err(Error::Argument { name, value, min: 0, max: 2, multiple_of: 1 });
    assert_eq!((refused(3, 0), refused(0, 3)), (argument("channel", 3), argument("event", 3)));
    // One that was refused for its memory has claimed nothing.
    let small = memory.region.carve(64, Align::LINE).unwrap().into_buf();
    let too_small = controller.channel(Pl330Config { channel: 0, event: 0 }, small).map(drop).unwrap_err();
    assert!(matches!(too_small.error, Error::BlockSize { len_bytes: 64, .. }));
    drop(first);
    assert_eq!(programs.taken(), 0);
    copies(open(1, 2).unwrap(), &data, 2);
    copies(open(0, 0).unwrap(), &data, 2);
}

#[test]
fn opening_stops_every_channel() {
    let board = SimBoard::new(1);
    let memory = Memory::on(&board);
    let (programs, data) = memory.pools();
    let device = SimPl330::new(&board, board.port());
    // A program that crashed left two channels at work, with their events raised.
    let crashed = Controller::open_simulated(device.window().unwrap()).unwrap();
    for number in [2, 5] {
        let mut driver = crashed.channel(config(number), programs.take().unwrap()).unwrap();
        let code = [&[0x34, (15 - u8::try_from(number).unwrap()) << 3], &WAIT_FOR_EVER[..]].concat();
        // SAFETY: it touches no memory.
        unsafe { driver.run_program(&code).unwrap() };
        device.run_for(100).unwrap();
        std::mem::forget(driver);
    }
    drop(crashed);
    let window = device.window().unwrap();
    let at_work = |window: &_| regs::CHANNELS.iter().filter(|channel| channel.csr.read(window) & regs::STATUS != regs::STOPPED).count();
    assert_eq!((at_work(&window), regs::INT_EVENT_RIS.read(&window).count_ones()), (2, 2));
    drop(window);
    let controller = Controller::open_simulated(device.window().unwrap()).unwrap();
    drop(controller);
    let window = device.window().unwrap();
    assert_eq!((at_work(&window), regs::INT_EVENT_RIS.read(&window)), (0, 0));
    drop(window);
    let controller = Controller::open_simulated(device.window().unwrap()).unwrap();
    let mut driver = controller.channel(config(2), programs.take().unwrap()).unwrap();
    assert_eq!(driver.poll(Duration::from_micros(100)), Ok(None), "an event of long ago is no end");
    controller.reset(|| Ok(())).unwrap();
    assert_eq!(driver.poll(Duration::from_micros(100)), Ok(None), "a reset ends no job where there is none");
    copies(driver, &data, 2);
}

#[test]
fn a_fault_of_one_channel_leaves_the_others_at_work() {
    let board = SimBoard::new(1);
    let memory = Memory::on(&board);
    let (programs, data) = memory.pools();
    let device = SimPl330::new(&board, board.port());
    let controller = Controller::open_simulated(device.window().unwrap()).unwrap();
    let driver = |number| controller.channel(config(number), programs.take().unwrap()).unwrap();
    let mut rng = Rng::with_seed(1);
    let mut sibling = Engine::new(driver(6)).unwrap();
    let mut one = driver(2);
    for round in 0..3 {
        let (operands, bytes) = random_copy(&mut rng, &data);
        let job = sibling.start(operands, &()).unwrap();
        // An instruction that does not exist; one that never ends, and is stopped.
        let code: &[u8] = if round == 0 { &[0xFF] } else { &WAIT_FOR_EVER };
        // SAFETY: it touches no memory.
        unsafe { one.run_program(code).unwrap() };
        if round == 0 {
            assert!(matches!(one.poll(WAIT), Err(Error::Fault { device: "pl330", .. })));
        }
        assert_eq!(one.stop(), Ok(()));
        let done = job.wait(WAIT).unwrap();
        assert!(arrived(&done.buffers[1], &bytes));
    }
    assert_eq!((sibling.jobs().completed, sibling.jobs().stopped), (3, 0));
    copies(one, &data, 3);
}

/// A controller that takes one DMAGO for a channel that it does not have.
struct Misheard<'a, D>(D, &'a AtomicU32);

// SAFETY: the registers belong to the device; a program that does not start touches nothing.
unsafe impl<D: Mmio> Mmio for Misheard<'_, D> {
    forward!(|this| this.0 => len_bytes, read32);
    unsafe fn write32(&self, offset: usize, value: u32) {
        let is_go = offset == regs::DBGINST0.offset() && value >> 16 & 0xFD == 0xA0;
        let misheard = is_go && self.1.swap(0, Ordering::Relaxed) == 1;
        // SAFETY: the caller's promise.
        unsafe { self.0.write32(offset, if misheard { value | 7 << 24 } else { value }) }
    }
}

impl<D: Wait> Wait for Misheard<'_, D> {
    forward!(|this| this.0 => now_us, wait_at_most);
}

// SAFETY: the device's.
unsafe impl<D: Device> Device for Misheard<'_, D> {
    forward!(|this| this.0 => port);
}

#[test]
fn a_fault_of_the_manager_is_that_of_the_channel_that_did_not_start() {
    let board = SimBoard::new(1);
    let memory = Memory::on(&board);
    let (programs, data) = memory.pools();
    let device = SimPl330::with_spec(&board, board.port(), Pl330Spec { channels: 4, ..Pl330Spec::default() });
    let misheard = AtomicU32::new(0);
    // SAFETY: the window is a simulated PL330's.
    let controller = unsafe { Controller::open(Misheard(device.window().unwrap(), &misheard)) }.unwrap();
    let mut engines = [0, 1].map(|number| Engine::new(controller.channel(config(number), programs.take().unwrap()).unwrap()).unwrap());
    let [sibling, one] = &mut engines;
    let mut rng = Rng::with_seed(1);
    let (operands, bytes) = random_copy(&mut rng, &data);
    let job = sibling.start(operands, &()).unwrap();
    device.run_for(2).unwrap(); // it has begun
    misheard.store(1, Ordering::Relaxed);
    let failed = one.start(random_copy(&mut rng, &data).0, &()).unwrap().wait(WAIT).unwrap_err();
    assert!(matches!(failed.error, Error::Fault { what, .. } if what.contains("manager")), "{failed}");
    drop(failed);
    assert!(arrived(&job.wait(WAIT).unwrap().buffers[1], &bytes));
    let (operands, bytes) = random_copy(&mut rng, &data);
    assert!(arrived(&one.start(operands, &()).unwrap().wait(WAIT).unwrap().buffers[1], &bytes));
}

#[test]
fn a_stuck_channel_keeps_what_is_its_own_until_a_reset_which_ends_its_siblings_jobs() {
    /// Long enough for a copy, also a late one.
    const SHORT: Duration = Duration::from_millis(2);
    for seed in 0..100 {
        let board = SimBoard::with(SimConfig { seed, faults: Faults { stuck: 300, ..Faults::NONE } });
        let memory = Memory::on(&board);
        let (programs, data) = memory.pools();
        let device = SimPl330::new(&board, board.port());
        let controller = Controller::open_simulated(device.window().unwrap()).unwrap();
        let driver = |number| controller.channel(config(number), programs.take().unwrap()).unwrap();
        let mut queues: [Queue<'_, _, 1, 2>; 3] = array::from_fn(|number| Queue::new(driver(number)).unwrap());
        let mut rng = Rng::with_seed(seed);
        for queue in &mut queues {
            queue.push(random_copy(&mut rng, &data).0, &()).unwrap();
        }
        let [first, second, third] = &mut queues;
        // Which of them is stuck is the board's chance.
        let ended = [second, third, first].map(|queue| queue.next(SHORT).unwrap().is_some());
        if ended != [true, true, false] {
            device.reset().unwrap();
            continue;
        }
        let [first, second, third] = &mut queues;
        assert!(matches!(first.stop(), Err(Error::WillNotStop { device: "pl330", .. })));
        third.push(random_copy(&mut rng, &data).0, &()).unwrap();
        // The line is pulled while the third is at work, or about to be.
        controller.reset(|| device.reset()).unwrap();
        assert_eq!(third.next(WAIT).unwrap_err().error, Error::EndedByReset { device: "pl330" });
        assert!(third.take_back().is_some());
        assert!(second.next(WAIT).unwrap().is_none(), "it had no job");
        assert_eq!(first.stop(), Ok(()));
        assert!(first.take_back().is_some());
        drop(queues);
        assert_eq!((programs.taken(), data.taken()), (0, 0));
        assert_eq!((board.counts().stray_accesses, board.counts().unowned_accesses), (0, 0));
        return;
    }
    panic!("no seed of these was of use");
}

#[test]
fn a_stuck_channel_that_is_dropped_stays_claimed() {
    let board = SimBoard::with(SimConfig { seed: 1, faults: Faults { stuck: 1000, ..Faults::NONE } });
    let memory = Memory::on(&board);
    let (programs, data) = memory.pools();
    let device = SimPl330::new(&board, board.port());
    let controller = Controller::open_simulated(device.window().unwrap()).unwrap();
    let open = |channel, event| controller.channel(Pl330Config { channel, event }, programs.take().unwrap());
    let mut engine = Engine::new(open(0, 0).unwrap()).unwrap();
    let failed = engine.start(random_copy(&mut Rng::with_seed(1), &data).0, &()).unwrap().wait(WAIT).unwrap_err();
    assert!(failed.buffers.is_none(), "it may still write them");
    drop(engine);
    assert_eq!(programs.taken(), 1, "it may still fetch its program");
    let refused = |channel, event| open(channel, event).map(drop).map_err(|refused| refused.error);
    assert_eq!((refused(0, 1), refused(1, 0), refused(1, 1)), (Err(Error::HasDriver), Err(Error::HasDriver), Ok(())));
}

#[test]
fn whatever_goes_wrong_on_eight_channels_no_byte_is_touched_that_was_not_given() {
    for seed in 0..emulated::fewer(10) {
        let board = SimBoard::with(SimConfig { seed, faults: Faults { stuck: 0, ..Faults::OFTEN } });
        let memory = Memory::on(&board);
        let (programs, data) = memory.pools();
        let device = SimPl330::new(&board, board.port());
        let controller = Controller::open_simulated(device.window().unwrap()).unwrap();
        let driver = |number| controller.channel(config(number), programs.take().unwrap()).unwrap();
        let mut queues: [Queue<'_, _, 1, 2>; CHANNELS] = array::from_fn(|number| Queue::new(driver(number)).unwrap());
        let mut pushed: [Option<Vec<u8>>; CHANNELS] = [const { None }; CHANNELS];
        let mut rng = Rng::with_seed(seed);
        for _ in 0..200 {
            let number = rng.usize(..CHANNELS);
            let (queue, pushed) = (&mut queues[number], &mut pushed[number]);
            match pushed {
                None => {
                    let (operands, bytes) = random_copy(&mut rng, &data);
                    queue.push(operands, &()).unwrap();
                    *pushed = Some(bytes);
                }
                Some(bytes) => match queue.next(Duration::from_micros(rng.u32(..100).into())) {
                    Ok(Some(done)) => {
                        assert!(arrived(&done.buffers[1], bytes));
                        *pushed = None;
                    }
                    Ok(None) if rng.u8(..4) > 0 => {}
                    ended => {
                        drop(ended);
                        queue.stop().unwrap();
                        drop(queue.take_back());
                        *pushed = None;
                    }
                },
            }
        }
        assert!(queues.iter().map(|queue| queue.counts().completed).sum::<u64>() > 20, "seed {seed}");
        drop(queues);
        assert_eq!((programs.taken(), data.taken(), board.counts().unowned_accesses), (0, 0, 0), "seed {seed}");
    }
}

/// Two channels take no longer than one: they work at the same time.
#[test]
fn channels_work_at_the_same_time() {
    let took = |channels: usize| -> Result<u64> {
        let board = SimBoard::new(1);
        let memory = Memory::on(&board);
        let (programs, data) = memory.pools();
        let device = SimPl330::new(&board, board.port());
        let controller = Controller::open_simulated(device.window()?)?;
        let mut queues: Vec<Queue<'_, _, 1, 2>> = Vec::new();
        for number in 0..channels {
            queues.push(Queue::new(controller.channel(config(number), programs.take()?)?)?);
        }
        let begin_ns = board.now_ns();
        for queue in &mut queues {
            queue.push([data.take()?.to_device(1..8001), data.take()?.from_device(..8000)], &())?;
        }
        for queue in &mut queues {
            assert!(queue.next(WAIT)?.is_some());
        }
        Ok(board.now_ns() - begin_ns)
    };
    let [one, eight] = [1, CHANNELS].map(|channels| took(channels).unwrap());
    assert!(eight < 2 * one, "{eight} ns for eight, {one} ns for one");
}
