//! Claims, the lock and the reset, on the core of two channels.

use super::*;
use contigo_testkit::barrier::Barrier;

#[test]
fn a_channel_is_claimed_once_and_given_back() {
    fn may_go_anywhere<T: Send>(_: &T) {}
    let board = SimBoard::new(1);
    let core = core(&board);
    // SAFETY: nothing is driven here.
    let claim = |index, window| unsafe { core.channel(index, window) };
    let first = claim(0, 0x10..0x20).unwrap();
    may_go_anywhere(&first);
    assert_eq!((first.index(), first.len_bytes(), first.port()), (0, 0x10, core.device().port()));
    let end = claim(31, 0x2C..0x30).unwrap();
    #[allow(clippy::reversed_empty_ranges, reason = "that is what is refused")]
    let reversed = 8..4;
    let outside = |need_bytes| {
        Err(Error::RegisterWindow { device: "the channel", need_bytes, have_bytes: 0x30 })
    };
    assert_eq!(claim(1, 0x20..0x34).map(drop), outside(0x34));
    assert_eq!(claim(1, reversed).map(drop), outside(8));
    cases! {
        claim(0, 0..4).map(drop) => Err(Error::HasDriver),
        claim(32, 0..4).map(drop)
            => Err(Error::Argument { name: "channel", value: 32, min: 0, max: 31, .. }),
    }
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
fn threads_share_registers_and_interrupt() {
    let (board, _, pool) = bench(1, 8, 128);
    let core = core(&board);
    let both = Barrier::new(2);
    thread::scope(|scope| {
        for index in 0..2 {
            let (driver, pool, both) = (on(&core, index), &pool, &both);
            scope.spawn(move || {
                both.wait();
                right(driver, pool, rounds(2_000));
            });
        }
    });
    assert_eq!(WRONG.read(core.device()), 0, "each started its own channel");
    clean(&board);
    assert_eq!(pool.taken(), 0);
}

#[test]
fn a_siblings_reset_ends_a_job_and_says_so() {
    let (board, _, pool) = bench(1, 8, 128);
    let core = core(&board);
    let mut queue = Queue::new(on(&core, 0), 4).unwrap();
    queue.give(copies(&pool, ..100, ..100));
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
    let (failed, reset) =
        (queue.wait::<2>(WAIT).unwrap_err(), Error::EndedByReset { device: "twin" });
    assert_eq!((failed.error, failed.buffers.is_none()), (reset, true));
    assert!(queue.take_back::<2>().unwrap().is_some());
    // One that had no job does not mind.
    right(on(&core, 1), &pool, 3);
    drop(queue);
    right(on(&core, 0), &pool, 3);
    // A reset that fails has happened.
    let mut queue = Queue::new(on(&core, 1), 1).unwrap();
    queue.give(copies(&pool, ..100, ..100));
    assert_eq!(core.reset(|_| Err::<(), _>(Error::Busy)), Err(Error::Busy));
    assert_eq!(queue.fails::<2>(), reset);
    drop(queue);
    clean(&board);
    assert_eq!(pool.taken(), 0);
}

#[test]
fn the_lock_has_a_bound() {
    let board = SimBoard::new(1);
    let core = core(&board);
    let held = core.lock().unwrap();
    assert!(matches!(core.lock().map(drop), Err(Error::Contended { .. })));
    drop(held);
    assert!(core.lock().is_ok());
}
