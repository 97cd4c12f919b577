//! Up to eight channels of one controller at once, each with a driver of its own.

use super::*;
use contigo::drivers::pl330::Pl330Channel;
use std::thread;

pub(crate) const CHANNELS: usize = 8;

/// The driver of channel and event `number`.
pub(crate) fn channel<D: Device>(
    ground: &Ground,
    controller: &Controller<D>,
    number: usize,
) -> Pl330Channel<D> {
    let channel = u8::try_from(number).unwrap();
    let config = Pl330Config { channel, event: 15 - channel };
    controller.channel(config, ground.program()).unwrap()
}

/// The same, with its queue.
pub(crate) fn queue<D: Device>(
    ground: &Ground,
    controller: &Controller<D>,
    number: usize,
) -> Queue<Pl330Channel<D>> {
    Queue::new(channel(ground, controller, number), 1).unwrap()
}

#[test]
fn eight_queues_of_thread_are_in_flight() {
    for (seed, spec) in [
        Pl330Spec::default(),
        // A data buffer of 64 bytes for eight channels, whose bursts must fit together.
        Pl330Spec { bus_bytes: 4, buffer_words: 16, ..Pl330Spec::default() },
        Pl330Spec { bus_bytes: 16, buffer_words: 4, revision: 0, ..Pl330Spec::default() },
    ]
    .into_iter()
    .enumerate()
    {
        let ground = ground(seed as u64, Faults::NONE);
        let controller = ground.device(spec).window().unwrap().controller().unwrap();
        let channels = CHANNELS.min(spec.buffer_words as usize);
        assert_eq!(controller.channels() as usize, channels);
        let mut queues: Vec<_> =
            (0..channels).map(|number| queue(&ground, &controller, number)).collect();
        let mut rng = Rng::with_seed(seed as u64);
        let rounds = rounds(15);
        for _ in 0..rounds {
            let mut pushed: Vec<_> = queues
                .iter_mut()
                .map(|queue| {
                    let (operands, expected) = ground.random_copy(&mut rng, 2000);
                    queue.give(operands);
                    Some(expected)
                })
                .collect();
            assert!(queues.iter().all(|queue| queue.is_full()), "one job a channel");
            // In whatever order.
            let first = rng.usize(..channels);
            for number in (0..channels).map(|number| number ^ first) {
                let done = queues[number].wait(WAIT).unwrap().unwrap();
                pushed[number].take().unwrap().arrived(done);
            }
        }
        for queue in &queues {
            assert_eq!((queue.counts().completed, queue.counts().stopped), (rounds, 0));
        }
        drop(queues);
        ground.is_clean();
    }
}

#[test]
fn channels_are_driven_by_several_threads() {
    for threads in [2, CHANNELS] {
        let ground = ground(1, Faults::NONE);
        let window = ground.device(Pl330Spec::default()).window().unwrap();
        // Other threads run in the middle of every instruction for the debug interface.
        let in_the_middle = [regs::DBGINST1.offset(), regs::DBGCMD.offset(), regs::INTEN.offset()];
        let yielding = Bent::new(window, |_, value| value).writing(|offset, value| {
            if in_the_middle.contains(&offset) {
                thread::yield_now();
            }
            Some(value)
        });
        // SAFETY: the window is a simulated PL330's.
        let controller = unsafe { Controller::open(yielding) }.unwrap();
        thread::scope(|scope| {
            for number in 0..threads {
                let mut driver = channel(&ground, &controller, number);
                let ground = &ground;
                scope.spawn(move || {
                    // Started and killed, beside those that copy already.
                    for _ in 0..rounds(50) * (number as u64 % 2) {
                        // SAFETY: it touches no memory.
                        unsafe { driver.run_program(&WAIT_FOR_EVER).unwrap() };
                        driver.stop().unwrap();
                    }
                    let (mut queue, mut rng) =
                        (Queue::new(driver, 1).unwrap(), Rng::with_seed(number as u64));
                    ground.copies(&mut queue, &mut rng, rounds(100), 2000);
                });
            }
        });
        ground.is_clean();
    }
}

#[test]
fn a_channel_and_an_event_have_one_driver() {
    let ground = ground(1, Faults::NONE);
    let device = ground.device(Pl330Spec { channels: 3, events: 3, ..Pl330Spec::default() });
    let controller = device.window().unwrap().controller().unwrap();
    let open =
        |channel, event| controller.channel(Pl330Config { channel, event }, ground.program());
    let refused = |channel, event| open(channel, event).map(drop).map_err(|refused| refused.error);
    let first = open(1, 2).unwrap();
    // One that is refused for its memory has claimed nothing.
    let small = ground.region.alloc(64, Align::LINE).unwrap();
    cases! {
        controller.channels() => 3,
        refused(1, 0) => Err(Error::HasDriver), // the channel
        refused(0, 2) => Err(Error::HasDriver), // the event
        refused(3, 0) => Err(Error::Argument { name: "channel", value: 3, max: 2, .. }),
        refused(0, 3) => Err(Error::Argument { name: "event", value: 3, max: 2, .. }),
        controller.channel(Pl330Config { channel: 0, event: 0 }, small).unwrap_err().error
            => Error::BlockSize { len_bytes: 64, .. },
    }
    drop(first);
    assert_eq!(ground.programs.taken(), 0);
    for (channel, event) in [(1, 2), (0, 0)] {
        ground.works(&mut Queue::new(open(channel, event).unwrap(), 1).unwrap());
    }
}

#[test]
fn opening_stops_every_channel() {
    let ground = ground(1, Faults::NONE);
    let device = ground.device(Pl330Spec::default());
    // A program that crashed left two channels at work, with their events raised.
    let window = device.window().unwrap();
    // SAFETY: the model is a PL330.
    let crashed = unsafe { Controller::open(Lent::new(&window)) }.unwrap();
    for number in [2, 5] {
        let mut driver = channel(&ground, &crashed, number);
        let code = [[0x34, driver.config().event << 3], WAIT_FOR_EVER].concat();
        // SAFETY: it touches no memory.
        unsafe { driver.run_program(&code).unwrap() };
        device.run_for(100).unwrap();
        std::mem::forget(driver);
    }
    drop(crashed);
    let at_work = |window: &SimWindow<_>| {
        let works =
            |channel: &&regs::Channel| channel.csr.read(window) & regs::STATUS != regs::STOPPED;
        (regs::CHANNELS.iter().filter(works).count(), regs::INT_EVENT_RIS.read(window).count_ones())
    };
    assert_eq!(at_work(&window), (2, 2));
    drop(window);
    drop(device.window().unwrap().controller().unwrap());
    assert_eq!(at_work(&device.window().unwrap()), (0, 0));
    let controller = device.window().unwrap().controller().unwrap();
    let mut driver = channel(&ground, &controller, 2);
    let mut poll = || driver.poll(Duration::from_micros(100));
    assert_eq!(poll(), Ok(None), "an event of long ago is no end");
    controller.reset(|| Ok(())).unwrap();
    assert_eq!(poll(), Ok(None), "a reset ends no job where there is none");
    ground.works(&mut Queue::new(driver, 1).unwrap());
}
