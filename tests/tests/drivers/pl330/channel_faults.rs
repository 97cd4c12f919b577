//! Faults, hangs and resets of one controller with several channels at work.

use super::{
    Memory, WAIT, WAIT_FOR_EVER,
    channels::{CHANNELS, arrived, config, copies, random_copy},
};
use crate::regs::pl330 as regs;
use contigo::{
    Device, Driver, Error, Mmio, Queue, Wait,
    drivers::pl330::{Controller, Pl330Config},
    forward,
    sim::{
        Faults, SimBoard, SimConfig, SimDevice,
        pl330::{Pl330Model, Pl330Spec},
    },
};
use contigo_testkit::emulated;
use fastrand::Rng;
use std::{
    array,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

#[test]
fn a_fault_of_one_channel_leaves_the_others_at_work() {
    let board = SimBoard::new(1);
    let memory = Memory::on(&board);
    let (programs, data) = memory.pools();
    let device = SimDevice::<Pl330Model>::new(&board, board.port());
    let controller = device.window().unwrap().controller().unwrap();
    let driver = |number| controller.channel(config(number), programs.take().unwrap()).unwrap();
    let mut rng = Rng::with_seed(1);
    let mut sibling = Queue::new(driver(6), 1).unwrap();
    let mut one = driver(2);
    for round in 0..3 {
        let (operands, bytes) = random_copy(&mut rng, &data);
        sibling.submit(operands, &[]).unwrap();
        // An instruction that does not exist; one that never ends, and is stopped.
        let code: &[u8] = if round == 0 { &[0xFF] } else { &WAIT_FOR_EVER };
        // SAFETY: it touches no memory.
        unsafe { one.run_program(code).unwrap() };
        if round == 0 {
            assert!(matches!(one.poll(WAIT), Err(Error::Fault { device: "pl330", .. })));
        }
        assert_eq!(one.stop(), Ok(()));
        let done = sibling.wait::<2>(WAIT).unwrap().unwrap();
        assert!(arrived(&done.buffers[1], &bytes));
    }
    assert_eq!((sibling.counts().completed, sibling.counts().stopped), (3, 0));
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
    forward!(|this| this.0 => port, simulated);
}

#[test]
fn manager_fault_belongs_to_the_unstarted_channel() {
    let board = SimBoard::new(1);
    let memory = Memory::on(&board);
    let (programs, data) = memory.pools();
    let device = SimDevice::with_model(
        &board,
        board.port(),
        Pl330Model::new(Pl330Spec { channels: 4, ..Pl330Spec::default() }),
    );
    let misheard = AtomicU32::new(0);
    // SAFETY: the window is a simulated PL330's.
    let controller =
        unsafe { Controller::open(Misheard(device.window().unwrap(), &misheard)) }.unwrap();
    let mut engines = [0, 1].map(|number| {
        Queue::new(controller.channel(config(number), programs.take().unwrap()).unwrap(), 1)
            .unwrap()
    });
    let [sibling, one] = &mut engines;
    let mut rng = Rng::with_seed(1);
    let (operands, bytes) = random_copy(&mut rng, &data);
    sibling.submit(operands, &[]).unwrap();
    device.run_for(2).unwrap(); // it has begun
    misheard.store(1, Ordering::Relaxed);
    let failed = one.run(random_copy(&mut rng, &data).0, &[], WAIT).unwrap_err();
    assert!(
        matches!(failed.error, Error::Fault { what, .. } if what.contains("manager")),
        "{failed}"
    );
    drop(failed);
    assert!(arrived(&sibling.wait::<2>(WAIT).unwrap().unwrap().buffers[1], &bytes));
    let (operands, bytes) = random_copy(&mut rng, &data);
    assert!(arrived(&one.run(operands, &[], WAIT).unwrap().buffers[1], &bytes));
}

#[test]
fn stuck_channels_reset_ends_sibling_jobs() {
    /// Long enough for a copy, also a late one.
    const SHORT: Duration = Duration::from_millis(2);
    for seed in 0..100 {
        let board =
            SimBoard::with(SimConfig { seed, faults: Faults { stuck: 300, ..Faults::NONE } });
        let memory = Memory::on(&board);
        let (programs, data) = memory.pools();
        let device = SimDevice::<Pl330Model>::new(&board, board.port());
        let controller = device.window().unwrap().controller().unwrap();
        let driver = |number| controller.channel(config(number), programs.take().unwrap()).unwrap();
        let mut queues: [_; 3] = array::from_fn(|number| Queue::new(driver(number), 1).unwrap());
        let mut rng = Rng::with_seed(seed);
        for queue in &mut queues {
            queue.submit(random_copy(&mut rng, &data).0, &[]).unwrap();
        }
        let [first, second, third] = &mut queues;
        // Which of them is stuck is the board's chance.
        let ended = [second, third, first].map(|queue| queue.wait::<2>(SHORT).unwrap().is_some());
        if ended != [true, true, false] {
            device.reset().unwrap();
            continue;
        }
        let [first, second, third] = &mut queues;
        assert!(matches!(first.stop(), Err(Error::WillNotStop { device: "pl330", .. })));
        third.submit(random_copy(&mut rng, &data).0, &[]).unwrap();
        // The line is pulled while the third is at work, or about to be.
        controller.reset(|| device.reset()).unwrap();
        assert_eq!(
            third.wait::<2>(WAIT).unwrap_err().error,
            Error::EndedByReset { device: "pl330" }
        );
        assert!(third.take_back::<2>().unwrap().is_some());
        assert!(second.wait::<2>(WAIT).unwrap().is_none(), "it had no job");
        assert_eq!(first.stop(), Ok(()));
        assert!(first.take_back::<2>().unwrap().is_some());
        drop(queues);
        assert_eq!((programs.taken(), data.taken()), (0, 0));
        assert_eq!((board.counts().stray_accesses, board.counts().unowned_accesses), (0, 0));
        return;
    }
    panic!("no seed of these was of use");
}

#[test]
fn a_stuck_channel_that_is_dropped_stays_claimed() {
    let board =
        SimBoard::with(SimConfig { seed: 1, faults: Faults { stuck: 1000, ..Faults::NONE } });
    let memory = Memory::on(&board);
    let (programs, data) = memory.pools();
    let device = SimDevice::<Pl330Model>::new(&board, board.port());
    let controller = device.window().unwrap().controller().unwrap();
    let open = |channel, event| {
        controller.channel(Pl330Config { channel, event }, programs.take().unwrap())
    };
    let mut queue = Queue::new(open(0, 0).unwrap(), 1).unwrap();
    let failed = queue.run(random_copy(&mut Rng::with_seed(1), &data).0, &[], WAIT).unwrap_err();
    assert!(failed.buffers.is_none(), "it may still write them");
    drop(queue);
    assert_eq!(programs.taken(), 1, "it may still fetch its program");
    let refused = |channel, event| open(channel, event).map(drop).map_err(|refused| refused.error);
    assert_eq!(
        (refused(0, 1), refused(1, 0), refused(1, 1)),
        (Err(Error::HasDriver), Err(Error::HasDriver), Ok(()))
    );
}

#[test]
fn eight_faulty_channels_touch_only_their_bytes() {
    for seed in 0..emulated::fewer(10) {
        let board =
            SimBoard::with(SimConfig { seed, faults: Faults { stuck: 0, ..Faults::OFTEN } });
        let memory = Memory::on(&board);
        let (programs, data) = memory.pools();
        let device = SimDevice::<Pl330Model>::new(&board, board.port());
        let controller = device.window().unwrap().controller().unwrap();
        let driver = |number| controller.channel(config(number), programs.take().unwrap()).unwrap();
        let mut queues: [_; CHANNELS] =
            array::from_fn(|number| Queue::new(driver(number), 1).unwrap());
        let mut pushed: [Option<Vec<u8>>; CHANNELS] = [const { None }; CHANNELS];
        let mut rng = Rng::with_seed(seed);
        for _ in 0..200 {
            let number = rng.usize(..CHANNELS);
            let (queue, pushed) = (&mut queues[number], &mut pushed[number]);
            match pushed {
                None => {
                    let (operands, bytes) = random_copy(&mut rng, &data);
                    queue.submit(operands, &[]).unwrap();
                    *pushed = Some(bytes);
                }
                Some(bytes) => {
                    match queue.wait::<2>(Duration::from_micros(rng.u32(..100).into())) {
                        Ok(Some(done)) => {
                            assert!(arrived(&done.buffers[1], bytes));
                            *pushed = None;
                        }
                        Ok(None) if rng.u8(..4) > 0 => {}
                        ended => {
                            drop(ended);
                            queue.stop().unwrap();
                            drop(queue.take_back::<2>().unwrap());
                            *pushed = None;
                        }
                    }
                }
            }
        }
        assert!(
            queues.iter().map(|queue| queue.counts().completed).sum::<u64>() > 20,
            "seed {seed}"
        );
        drop(queues);
        assert_eq!(
            (programs.taken(), data.taken(), board.counts().unowned_accesses),
            (0, 0, 0),
            "seed {seed}"
        );
    }
}
