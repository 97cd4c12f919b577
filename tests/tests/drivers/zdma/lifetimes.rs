//! The owners of all objects when a channel hangs, sticks, is forgotten or dropped.
#![allow(unsafe_code, reason = "a program that crashed left the channel as it is found here")]

use super::{Mode, ZdmaQueue, alloc};
use crate::regs::zdma as regs;
use contigo::{
    CpuBuf, Done, Error, JobError, Mmio, Operand, Queue, Region,
    sim::{Faults, SimBoard, SimConfig, SimDevice, zdma::ZdmaModel},
};
use std::time::Duration;

const LEN: usize = 8192;
const STUCK: Faults = Faults { stuck: 1000, ..Faults::NONE };
const HANG: Faults = Faults { hang: 1000, ..Faults::NONE };

fn unlucky(faults: Faults) -> SimBoard {
    SimBoard::with(SimConfig { seed: 7, faults })
}

fn run(
    queue: &mut ZdmaQueue,
    [from, to]: [CpuBuf; 2],
    timeout: Duration,
) -> Result<Done<[CpuBuf; 2]>, JobError<[Operand; 2]>> {
    queue.run([from.to_device(..), to.from_device(..)], &[], timeout)
}

#[test]
fn early_timeout_stops_before_buffers_return() {
    let board = SimBoard::new(11);
    let region = Region::new(board.memory(1 << 20).unwrap()).unwrap();
    let channel = SimDevice::<ZdmaModel>::new(&board, board.port());
    let mut queue =
        Queue::new(Mode::Linked(4096).open(channel.window().unwrap(), alloc!(region)), 1).unwrap();
    let (mut from, mut to) = (alloc!(region)(LEN), alloc!(region)(LEN));
    from.view_mut::<u8>().unwrap().fill(1);
    for _ in 0..40 {
        to.view_mut::<u8>().unwrap().fill(0xC0);
        let failed = run(&mut queue, [from, to], Duration::from_micros(1)).unwrap_err();
        assert_eq!(failed.error, Error::Timeout { timeout_us: 1 });
        [from, to] = failed.buffers.unwrap().map(|operand| operand.into_cpu().unwrap());
        let before = to.view::<u8>().unwrap().to_vec();
        channel.run_for(100_000).unwrap();
        assert_eq!(to.view::<u8>().unwrap(), before, "nothing comes afterwards");
        assert_eq!(before, [1; LEN], "the copy came to its end");
    }
}

/// A pool of descriptors' memory, so that giving it back shows.
fn with_descriptors(faults: Faults, job: bool, reset: bool) -> usize {
    let board = unlucky(faults);
    let region: Region = Region::new(board.memory(1 << 20).unwrap()).unwrap();
    let pool = region.pool(1, 4096).unwrap();
    let channel = SimDevice::<ZdmaModel>::new(&board, board.port());
    let mut queue =
        Queue::new(channel.window().unwrap().linked(pool.take().unwrap()).unwrap(), 1).unwrap();
    assert_eq!(pool.taken(), 1);
    if job {
        queue
            .submit([alloc!(region)(LEN).to_device(..), alloc!(region)(LEN).from_device(..)], &[])
            .unwrap();
    }
    if reset {
        channel.reset().unwrap();
    }
    drop(queue);
    let _next_driver = channel.window().unwrap();
    pool.taken()
}

#[test]
fn descriptors_go_back_only_when_the_channel_has_stopped() {
    assert_eq!(with_descriptors(Faults::NONE, false, false), 0, "idle");
    assert_eq!(with_descriptors(Faults::NONE, true, false), 0, "a job ends or is stopped");
    assert_eq!(with_descriptors(HANG, true, false), 0, "a job that hangs is stopped");
    assert_eq!(with_descriptors(STUCK, true, false), 1, "one that sticks keeps its descriptors");
    assert_eq!(with_descriptors(STUCK, true, true), 0, "but not after a reset");
}

#[test]
fn a_new_driver_stops_what_a_crashed_program_left() {
    let board = SimBoard::new(1);
    let region = Region::new(board.memory(1 << 20).unwrap()).unwrap();
    let channel = SimDevice::<ZdmaModel>::new(&board, board.port());
    // A list that pauses: the descriptors of a copy of 1 byte, the first one's command changed by
    // hand.
    let window = channel.window().unwrap();
    let mut list = alloc!(region)(64);
    let at = u32::try_from(
        region.dev_addr_of(&board.port(), list.view::<u8>().unwrap().as_ptr(), 64).unwrap().0,
    )
    .unwrap();
    // UG1085: the command, bits 4..3, is 01.
    let pause = regs::WORD3_LINKED | 0b01 << 3;
    list.view_mut::<u32>().unwrap().copy_from_slice(&[
        at,
        0,
        1,
        pause,
        at,
        0,
        0,
        0,
        at + 8,
        0,
        1,
        regs::WORD3_LINKED,
        at,
        0,
        0,
        0,
    ]);
    let lent = contigo::mem::DriverBuf::new(list, &board.port(), regs::ADDR_BITS).unwrap();
    for (offset, value) in [
        (regs::CTRL0.offset(), regs::POINT_TYPE_MEMORY),
        (regs::SRC_START.offset(), at),
        (regs::DST_START.offset(), at + 32),
    ] {
        // SAFETY: these start nothing.
        unsafe { window.write32(offset, value) };
    }
    // SAFETY: the list is lent to the channel, and names itself only.
    unsafe { window.write32(regs::CTRL2.offset(), regs::ENABLE) };
    channel.run_for(100).unwrap();
    assert_eq!(
        (window.read32(regs::STATUS.offset()), window.read32(regs::ISR.offset())),
        (regs::STATE_PAUSED, regs::INT_PAUSE)
    );
    drop(window);

    let mut queue = Queue::new(channel.window().unwrap().simple().unwrap(), 1).unwrap();
    drop(lent);
    let mut from = alloc!(region)(LEN);
    from.view_mut::<u8>().unwrap().fill(3);
    let [_from, to] =
        run(&mut queue, [from, alloc!(region)(LEN)], Duration::from_millis(2)).unwrap().buffers;
    assert_eq!(to.view::<u8>().unwrap(), [3; LEN]);
}
