//! Claims, the lock and the reset, on the core of two channels.

use super::{RESET, STATUS, Twin, WAIT, WRONG, copies, core, on};
use contigo::{
    Device, Error, Mmio, Queue, Region,
    sim::{SimBoard, SimDevice},
};
use contigo_testkit::{barrier::Barrier, rounds};
use std::{thread, time::Duration};

#[test]
fn a_channel_is_claimed_once_and_given_back() {
    fn may_go_anywhere<T: Send>(_: &T) {}
    let board = SimBoard::new(1);
    let device = SimDevice::with_model(&board, board.port(), Twin::default());
    let core = core(&device);
    // SAFETY: nothing is driven here.
    let claim = |index, window| unsafe { core.channel(index, window) };
    let first = claim(0, 0x10..0x20).unwrap();
    may_go_anywhere(&first);
    assert_eq!((first.index(), first.len_bytes(), first.port()), (0, 0x10, core.device().port()));
    assert_eq!(claim(0, 0..4).map(drop), Err(Error::HasDriver));
    let end = claim(31, 0x2C..0x30).unwrap();
    assert_eq!(
        claim(32, 0..4).map(drop),
        Err(Error::Argument { name: "channel", value: 32, min: 0, max: 31, multiple_of: 1 })
    );
    let outside = |need_bytes| {
        Err(Error::RegisterWindow { device: "the channel", need_bytes, have_bytes: 0x30 })
    };
    assert_eq!(claim(1, 0x20..0x34).map(drop), outside(0x34));
    #[allow(clippy::reversed_empty_ranges, reason = "that is what is refused")]
    let reversed = 8..4;
    assert_eq!(claim(1, reversed).map(drop), outside(8));
    // Its registers begin at 0, and nothing is behind them.
    // SAFETY: a length moves nothing.
    unsafe {
        [0, 8, 0xC, 0x10, usize::MAX - 3].into_iter().for_each(|offset| first.write32(offset, 7))
    };
    assert_eq!([0x00, 0x10, 0x18, 0x20].map(|offset| core.device().read32(offset)), [0, 7, 7, 0]);
    assert_eq!(
        [0, 0x10, usize::MAX - 3].map(|offset| first.read32(offset)),
        [7, u32::MAX, u32::MAX]
    );
    assert_eq!([0, 4].map(|offset| end.read32(offset)), [0, u32::MAX]);
    drop(first);
    assert!(claim(0, 0..4).is_ok());
}

#[test]
fn two_threads_share_the_registers_and_the_interrupt() {
    let board = SimBoard::new(1);
    let region = Region::new(board.memory(64 << 10).unwrap()).unwrap();
    let pool = region.pool(8, 128).unwrap();
    let device = SimDevice::with_model(&board, board.port(), Twin::default());
    let core = core(&device);
    let both = Barrier::new(2);
    thread::scope(|scope| {
        for index in 0..2 {
            let (driver, pool, both) = (on(&core, index), &pool, &both);
            scope.spawn(move || {
                both.wait();
                copies(driver, pool, rounds(2_000));
            });
        }
    });
    assert_eq!(WRONG.read(core.device()), 0, "each started its own channel");
    assert_eq!(
        (board.counts().stray_accesses, board.counts().unowned_accesses, pool.taken()),
        (0, 0, 0)
    );
}

#[test]
fn a_siblings_reset_ends_a_job_and_says_so() {
    let board = SimBoard::new(1);
    let region = Region::new(board.memory(64 << 10).unwrap()).unwrap();
    let pool = region.pool(8, 128).unwrap();
    let device = SimDevice::with_model(&board, board.port(), Twin::default());
    let core = core(&device);
    let mut queue = Queue::new(on(&core, 0), 4).unwrap();
    let buffers = || (pool.take().unwrap(), pool.take().unwrap());
    let (from, to) = buffers();
    queue.submit([from.to_device(..100), to.from_device(..100)], &[]).unwrap();
    assert!(queue.wait::<2>(Duration::ZERO).unwrap().is_none());
    // The sibling's trouble, whatever it was.
    let reset = core.reset(|whole| {
        // SAFETY: RESET moves no data.
        unsafe { RESET.write(whole, 1) };
        Ok(())
    });
    assert_eq!(reset, Ok(()));
    // The channel says that it is not at work, as after a job.
    assert_eq!(STATUS.read(core.device()), 0);
    let failed = queue.wait::<2>(WAIT).unwrap_err();
    assert_eq!(
        (failed.error, failed.buffers.is_none()),
        (Error::EndedByReset { device: "twin" }, true)
    );
    assert!(queue.take_back::<2>().unwrap().is_some());
    // One that had no job does not mind.
    copies(on(&core, 1), &pool, 3);
    drop(queue);
    copies(on(&core, 0), &pool, 3);
    // A reset that fails has happened.
    let (from, to) = buffers();
    let mut queue = Queue::new(on(&core, 1), 1).unwrap();
    queue.submit([from.to_device(..100), to.from_device(..100)], &[]).unwrap();
    assert_eq!(core.reset(|_| Err::<(), _>(Error::Busy)), Err(Error::Busy));
    assert_eq!(queue.wait::<2>(WAIT).unwrap_err().error, Error::EndedByReset { device: "twin" });
    drop(queue);
    assert_eq!((board.counts().unowned_accesses, pool.taken()), (0, 0));
}

#[test]
fn the_lock_has_a_bound() {
    let board = SimBoard::new(1);
    let device = SimDevice::with_model(&board, board.port(), Twin::default());
    let core = core(&device);
    let held = core.lock().unwrap();
    assert!(matches!(core.lock().map(drop), Err(Error::Contended { .. })));
    drop(held);
    assert!(core.lock().is_ok());
}
