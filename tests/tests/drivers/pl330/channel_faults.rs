//! Faults, hangs and resets of one controller with several channels at work.

use super::channels::{CHANNELS, channel, queue};
use super::*;
use std::array;
use std::sync::atomic::{AtomicU32, Ordering};

#[test]
fn channel_fault_leaves_others_at_work() {
    let ground = ground(1, Faults::NONE);
    let controller = ground.device(Pl330Spec::default()).window().unwrap().controller().unwrap();
    let mut rng = Rng::with_seed(1);
    let mut sibling = queue(&ground, &controller, 6);
    let mut one = channel(&ground, &controller, 2);
    // An instruction that does not exist; one that never ends, and is stopped.
    for code in [&[0xFF][..], &WAIT_FOR_EVER, &WAIT_FOR_EVER] {
        let (operands, expected) = ground.random_copy(&mut rng, 2000);
        sibling.give(operands);
        // SAFETY: it touches no memory.
        unsafe { one.run_program(code).unwrap() };
        if code.len() == 1 {
            cases! { one.poll(WAIT) => Err(Error::Fault { device: "pl330", .. }) }
        }
        assert_eq!(one.stop(), Ok(()));
        expected.arrived(sibling.wait(WAIT).unwrap().unwrap());
    }
    assert_eq!((sibling.counts().completed, sibling.counts().stopped), (3, 0));
    ground.works(&mut Queue::new(one, 1).unwrap());
}

#[test]
fn manager_fault_is_the_unstarted_channels() {
    let ground = ground(1, Faults::NONE);
    let device = ground.device(Pl330Spec { channels: 4, ..Pl330Spec::default() });
    // It takes one DMAGO for a channel that it does not have.
    let misheard = AtomicU32::new(0);
    let bent = Bent::new(device.window().unwrap(), |_, value| value).writing(|offset, value| {
        let is_go = offset == regs::DBGINST0.offset() && value >> 16 & 0xFD == 0xA0;
        let mishears = is_go && misheard.swap(0, Ordering::Relaxed) == 1;
        Some(if mishears { value | 7 << 24 } else { value })
    });
    // SAFETY: the window is a simulated PL330's.
    let controller = unsafe { Controller::open(bent) }.unwrap();
    let [mut sibling, mut one] = [0, 1].map(|number| queue(&ground, &controller, number));
    let mut rng = Rng::with_seed(1);
    let (operands, expected) = ground.random_copy(&mut rng, 2000);
    sibling.give(operands);
    device.run_for(2).unwrap(); // it has begun
    misheard.store(1, Ordering::Relaxed);
    let failed = one.run(copies(&ground.data, ..900, ..900), &[], WAIT).unwrap_err().error;
    cases! { failed => Error::Fault { what, .. } if what.contains("manager") }
    expected.arrived(sibling.wait(WAIT).unwrap().unwrap());
    ground.works(&mut one);
}

#[test]
fn stuck_channels_reset_ends_sibling_jobs() {
    /// Long enough for a copy, also a late one.
    const SHORT: Duration = Duration::from_millis(2);
    for seed in 0..100 {
        let ground = ground(seed, Faults { stuck: 300, ..Faults::NONE });
        let device = ground.device(Pl330Spec::default());
        let controller = device.window().unwrap().controller().unwrap();
        let [mut first, mut second, mut third] =
            [0, 1, 2].map(|number| queue(&ground, &controller, number));
        for queue in [&mut first, &mut second, &mut third] {
            ground.starts(queue);
        }
        // Which of them is stuck is the board's chance.
        let ended = [&mut second, &mut third, &mut first]
            .map(|queue| queue.wait::<2>(SHORT).unwrap().is_some());
        if ended != [true, true, false] {
            device.reset().unwrap();
            continue;
        }
        cases! { first.stop() => Err(Error::WillNotStop { device: "pl330", .. }) }
        ground.starts(&mut third);
        // The line is pulled while the third is at work, or about to be.
        controller.reset(|| device.reset()).unwrap();
        assert_eq!(third.fails::<2>(), Error::EndedByReset { device: "pl330" });
        assert!(third.take_back::<2>().unwrap().is_some());
        assert!(second.wait::<2>(WAIT).unwrap().is_none(), "it had no job");
        first.stop_one::<2>();
        drop((first, second, third));
        ground.is_clean();
        return;
    }
    panic!("no seed of these was of use");
}

#[test]
fn a_stuck_channel_that_is_dropped_stays_claimed() {
    let ground = ground(1, STUCK);
    let controller = ground.device(Pl330Spec::default()).window().unwrap().controller().unwrap();
    let open = |channel, event| {
        controller
            .channel(Pl330Config { channel, event }, ground.program())
            .map_err(|refused| refused.error)
    };
    let mut queue = Queue::new(open(0, 0).unwrap(), 1).unwrap();
    let failed = queue.run(copies(&ground.data, ..900, ..900), &[], WAIT).unwrap_err();
    assert!(failed.buffers.is_none(), "it may still write them");
    drop(queue);
    assert_eq!(ground.programs.taken(), 1, "it may still fetch its program");
    let taken = [(0, 1), (1, 0), (1, 1)].map(|(channel, event)| open(channel, event).map(drop));
    assert_eq!(taken, [Err(Error::HasDriver), Err(Error::HasDriver), Ok(())]);
}

#[test]
fn eight_faulty_channels_touch_only_their_bytes() {
    for seed in 0..rounds(10).max(3) {
        let ground = ground(seed, Faults { stuck: 0, ..Faults::OFTEN });
        let controller =
            ground.device(Pl330Spec::default()).window().unwrap().controller().unwrap();
        let mut queues: [_; CHANNELS] =
            array::from_fn(|number| queue(&ground, &controller, number));
        let mut pushed: [Option<Expected>; CHANNELS] = [const { None }; CHANNELS];
        let mut rng = Rng::with_seed(seed);
        for _ in 0..200 {
            let number = rng.usize(..CHANNELS);
            let (queue, pushed) = (&mut queues[number], &mut pushed[number]);
            let Some(expected) = pushed.take() else {
                let (operands, expected) = ground.random_copy(&mut rng, 2000);
                queue.give(operands);
                *pushed = Some(expected);
                continue;
            };
            match queue.wait::<2>(Duration::from_micros(rng.u32(..100).into())) {
                Ok(Some(done)) => expected.arrived(done),
                Ok(None) if rng.u8(..4) > 0 => *pushed = Some(expected),
                ended => {
                    drop(ended);
                    queue.clear().unwrap();
                }
            }
        }
        let completed: u64 = queues.iter().map(|queue| queue.counts().completed).sum();
        assert!(completed > 20, "seed {seed}");
        drop(queues);
        assert_eq!((ground.programs.taken(), ground.data.taken()), (0, 0), "seed {seed}");
        assert_eq!(ground.board.counts().unowned_accesses, 0, "seed {seed}");
    }
}
