//! Up to eight channels of one controller at once, each with a driver of its own.

use super::{Memory, SLOT, WAIT, WAIT_FOR_EVER, scribble};
use crate::regs::pl330 as regs;
use contigo::{
    Align, CpuBuf, Device, Driver, Error, Mmio, Operand, Pool, Queue, Wait,
    drivers::pl330::{Controller, PROGRAM_BYTES, Pl330Channel, Pl330Config},
    forward,
    sim::{
        SimBoard, SimDevice,
        pl330::{Pl330Model, Pl330Spec},
    },
    types::Refused,
};
use contigo_testkit::{emulated, lent::Lent};
use fastrand::Rng;
use std::{thread, time::Duration};

pub(crate) const CHANNELS: usize = 8;

/// Channel and event `number`.
pub(crate) fn config(number: usize) -> Pl330Config {
    let number = u8::try_from(number).unwrap();
    Pl330Config { channel: number, event: 15 - number }
}

impl Memory {
    /// A program for each channel, and buffers for two copies on each.
    pub(crate) fn pools(&self) -> (Pool, Pool) {
        let programs = self.region.pool(CHANNELS, PROGRAM_BYTES).unwrap();
        (programs, self.region.pool(32, SLOT).unwrap())
    }
}

/// One copy: its source and its length, where the target begins with another byte.
pub(crate) fn random_copy(rng: &mut Rng, data: &Pool) -> ([Operand; 2], Vec<u8>) {
    let (mut from, mut to) = (data.take().unwrap(), data.take().unwrap());
    let (bytes, len, at) = (scribble(rng, &mut from), rng.usize(1..=2000), rng.usize(..64));
    to.view_mut::<u8>().unwrap().fill(!bytes[0]);
    ([from.to_device(..len), to.from_device(at..at + len)], bytes[..len].to_vec())
}

/// Did `bytes` arrive?
pub(crate) fn arrived(to: &CpuBuf, bytes: &[u8]) -> bool {
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
        let device = SimDevice::with_model(&board, board.port(), Pl330Model::new(spec));
        let controller = device.window().unwrap().controller().unwrap();
        let driver = |number| controller.channel(config(number), programs.take().unwrap()).unwrap();
        let channels = CHANNELS.min(spec.buffer_words as usize);
        assert_eq!(controller.channels() as usize, channels);
        let mut queues: Vec<_> =
            (0..channels).map(|number| Queue::new(driver(number), 1).unwrap()).collect();
        let mut rng = Rng::with_seed(seed as u64);
        let rounds = emulated::fewer(15);
        for _ in 0..rounds {
            let pushed: Vec<_> = queues
                .iter_mut()
                .map(|queue| {
                    let (operands, bytes) = random_copy(&mut rng, &data);
                    queue.submit(operands, &[]).unwrap();
                    bytes
                })
                .collect();
            assert!(queues.iter().all(|queue| queue.is_full()), "one job a channel");
            // In whatever order.
            let first = rng.usize(..channels);
            for number in (0..channels).map(|number| number ^ first) {
                let done = queues[number].wait::<2>(WAIT).unwrap().unwrap();
                assert!(arrived(&done.buffers[1], &pushed[number]), "channel {number} of {spec:?}");
            }
        }
        assert!(
            queues
                .iter()
                .all(|queue| (queue.counts().completed, queue.counts().stopped) == (rounds, 0))
        );
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
        if offset == regs::DBGINST1.offset()
            || offset == regs::DBGCMD.offset()
            || offset == regs::INTEN.offset()
        {
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
    forward!(|this| this.0 => port, simulated);
}

/// `count` copies on `driver`, one after the other.
pub(crate) fn copies<D: Device>(driver: Pl330Channel<D>, data: &Pool, count: u64) {
    let number = driver.config().channel;
    let mut rng = Rng::with_seed(number.into());
    let mut queue = Queue::new(driver, 1).unwrap();
    for job in 0..count {
        let (operands, bytes) = random_copy(&mut rng, data);
        let done = queue.run(operands, &[], WAIT).unwrap();
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
        let device = SimDevice::<Pl330Model>::new(&board, board.port());
        // SAFETY: the window is a simulated PL330's.
        let controller = unsafe { Controller::open(Yielding(device.window().unwrap())) }.unwrap();
        thread::scope(|scope| {
            for number in 0..threads {
                let mut driver =
                    controller.channel(config(number), programs.take().unwrap()).unwrap();
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
    let device = SimDevice::with_model(
        &board,
        board.port(),
        Pl330Model::new(Pl330Spec { channels: 3, events: 3, ..Pl330Spec::default() }),
    );
    let controller = device.window().unwrap().controller().unwrap();
    let open = |channel, event| {
        controller.channel(Pl330Config { channel, event }, programs.take().unwrap())
    };
    let refused =
        |channel, event| open(channel, event).map(drop).map_err(|Refused { error, .. }| error);
    assert_eq!(controller.channels(), 3);
    let first = open(1, 2).unwrap();
    assert_eq!(refused(1, 0), Err(Error::HasDriver), "the channel");
    assert_eq!(refused(0, 2), Err(Error::HasDriver), "the event");
    let argument =
        |name, value| Err(Error::Argument { name, value, min: 0, max: 2, multiple_of: 1 });
    assert_eq!((refused(3, 0), refused(0, 3)), (argument("channel", 3), argument("event", 3)));
    // One that was refused for its memory has claimed nothing.
    let small = memory.region.alloc(64, Align::LINE).unwrap();
    let too_small =
        controller.channel(Pl330Config { channel: 0, event: 0 }, small).map(drop).unwrap_err();
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
    let device = SimDevice::<Pl330Model>::new(&board, board.port());
    // A program that crashed left two channels at work, with their events raised.
    let window = device.window().unwrap();
    // SAFETY: the model is a PL330.
    let crashed = unsafe { Controller::open(Lent::new(&window)) }.unwrap();
    for number in [2, 5] {
        let mut driver = crashed.channel(config(number), programs.take().unwrap()).unwrap();
        let code =
            [&[0x34, (15 - u8::try_from(number).unwrap()) << 3], &WAIT_FOR_EVER[..]].concat();
        // SAFETY: it touches no memory.
        unsafe { driver.run_program(&code).unwrap() };
        device.run_for(100).unwrap();
        std::mem::forget(driver);
    }
    drop(crashed);
    let at_work = |window: &_| {
        regs::CHANNELS
            .iter()
            .filter(|channel| channel.csr.read(window) & regs::STATUS != regs::STOPPED)
            .count()
    };
    assert_eq!((at_work(&window), regs::INT_EVENT_RIS.read(&window).count_ones()), (2, 2));
    drop(window);
    let controller = device.window().unwrap().controller().unwrap();
    drop(controller);
    let window = device.window().unwrap();
    assert_eq!((at_work(&window), regs::INT_EVENT_RIS.read(&window)), (0, 0));
    drop(window);
    let controller = device.window().unwrap().controller().unwrap();
    let mut driver = controller.channel(config(2), programs.take().unwrap()).unwrap();
    assert_eq!(driver.poll(Duration::from_micros(100)), Ok(None), "an event of long ago is no end");
    controller.reset(|| Ok(())).unwrap();
    assert_eq!(
        driver.poll(Duration::from_micros(100)),
        Ok(None),
        "a reset ends no job where there is none"
    );
    copies(driver, &data, 2);
}
