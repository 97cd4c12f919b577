//! The owners of all objects when a channel hangs, sticks, is forgotten or dropped.

use super::*;

#[test]
fn early_timeout_stops_before_buffers_return() {
    let (board, region, pool) = bench(11, 2, LEN);
    let channel = SimDevice::<ZdmaModel>::new(&board, board.port());
    let mut queue = Mode::Linked(4096).queue(&channel, &region);
    for _ in 0..40 {
        let operands = [filled(&pool, 1).to_device(..), filled(&pool, 0xC0).from_device(..)];
        let failed = queue.run(operands, &[], Duration::from_micros(1)).unwrap_err();
        assert_eq!(failed.error, Error::Timeout { timeout_us: 1 });
        let [_, to] = failed.buffers.unwrap().map(|operand| operand.into_cpu().unwrap());
        let before = to.view::<u8>().unwrap().to_vec();
        channel.run_for(100_000).unwrap();
        assert_eq!(to.view::<u8>().unwrap(), before, "nothing comes afterwards");
        assert_eq!(before, [1; LEN], "the copy came to its end");
    }
}

#[test]
fn descriptors_return_only_after_the_stop() {
    for (faults, job, reset, kept, what) in [
        (Faults::NONE, false, false, 0, "idle"),
        (Faults::NONE, true, false, 0, "a job ends or is stopped"),
        (HANG, true, false, 0, "a job that hangs is stopped"),
        (STUCK, true, false, 1, "one that sticks keeps its descriptors"),
        (STUCK, true, true, 0, "but not after a reset"),
    ] {
        let (board, region, data) = faulty(7, faults, 2, LEN);
        // A pool of descriptors' memory, so that giving it back shows.
        let pool = region.pool(1, 4096).unwrap();
        let channel = SimDevice::<ZdmaModel>::new(&board, board.port());
        let driver = channel.window().unwrap().linked(pool.take().unwrap()).unwrap();
        let mut queue = Queue::new(driver, 1).unwrap();
        if job {
            queue.give(copies(&data, .., ..));
        }
        if reset {
            channel.reset().unwrap();
        }
        drop(queue);
        let _next_driver = channel.window().unwrap();
        assert_eq!(pool.taken(), kept, "{what}");
    }
}

#[test]
fn new_driver_stops_what_a_crash_left() {
    let (board, region, pool) = bench(1, 2, LEN);
    let channel = SimDevice::<ZdmaModel>::new(&board, board.port());
    // A list that pauses: the descriptors of a copy of 1 byte, the first one's command changed by
    // hand.
    let window = channel.window().unwrap();
    let mut list = region.alloc(64, Align::LINE).unwrap();
    let addr = region.dev_addr_of(&board.port(), list.view::<u8>().unwrap().as_ptr(), 64).unwrap();
    let at = u32::try_from(addr.0).unwrap();
    // UG1085: the command, bits 4..3, is 01.
    let pause = regs::WORD3_LINKED | 0b01 << 3;
    let words = [[at, 0, 1, pause, at, 0, 0, 0], [at + 8, 0, 1, regs::WORD3_LINKED, at, 0, 0, 0]];
    list.view_mut::<u32>().unwrap().copy_from_slice(words.as_flattened());
    let lent = contigo::mem::DriverBuf::new(list, &board.port(), regs::ADDR_BITS).unwrap();
    for (offset, value) in [
        (regs::CTRL0.offset(), regs::POINT_TYPE_MEMORY),
        (regs::SRC_START.offset(), at),
        (regs::DST_START.offset(), at + 32),
        (regs::CTRL2.offset(), regs::ENABLE),
    ] {
        // SAFETY: only the last starts something: the list is lent to the channel, and names itself
        // only.
        unsafe { window.write32(offset, value) };
    }
    channel.run_for(100).unwrap();
    let state = (window.read32(regs::STATUS.offset()), window.read32(regs::ISR.offset()));
    assert_eq!(state, (regs::STATE_PAUSED, regs::INT_PAUSE));
    drop(window);

    let mut queue = Mode::Simple.queue(&channel, &region);
    drop(lent);
    works(&mut queue, &pool);
}
