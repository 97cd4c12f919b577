//! How an AXI DMAC stops: at work, hung, and in the read of a descriptor.
#![allow(unsafe_code, reason = "a stop program is run")]

use super::{CONFIG, LIMIT, copier, core, pattern, with};
use crate::regs::axi_dmac as regs;
use contigo::{
    Driver, Mmio, Queue,
    sim::{Faults, axi_dmac::AxiDmacBuild},
};
use std::time::Duration;

#[test]
fn the_stop_program_stops_a_core_at_work() {
    with(Faults::NONE, |board, pool, _own| {
        let core = core(board, copier());
        let program = {
            let mut driver = core.window()?.driver(CONFIG)?;
            driver.stop()?;
            driver.stop_program()
        };
        let window = core.window()?;
        // SAFETY: the steps stop, and ENABLE alone moves no data.
        unsafe {
            window.write32(regs::CONTROL.offset(), regs::ENABLE);
            assert_eq!(program.run(&window, 5), Ok(()));
        }
        assert_eq!(window.read32(regs::STATE.offset()) & regs::STATE_BITS, regs::STATE_RESET);
        drop(pool.take()?);
        Ok(())
    });
}

#[test]
fn opening_stops_a_core_left_at_work() {
    with(Faults { hang: 1000, ..Faults::NONE }, |board, pool, _own| {
        let core = core(board, copier());
        let buf = pool.take()?;
        {
            let window = core.window()?;
            // SAFETY: they hang, and move nothing.
            unsafe {
                window.write32(regs::CONTROL.offset(), regs::ENABLE);
                for _ in 0..6 {
                    window.write32(regs::SUBMIT.offset(), 1);
                    core.run_for(1)?;
                }
            }
            assert_eq!(window.read32(regs::SUBMIT.offset()), 1, "one is outside of the queue");
        }
        let driver = core.window()?.driver(CONFIG)?;
        assert_eq!(driver.found().max_bytes, 1 << 24);
        drop((driver, buf));
        Ok(())
    });
}

#[test]
fn a_stop_waits_for_the_descriptor_that_is_under_way() {
    with(Faults::NONE, |board, pool, own| {
        let core = core(board, AxiDmacBuild { fetch_ns: 5_000, ..copier() });
        let mut queue = Queue::new(core.window()?.listed(CONFIG, own)?, 4)?;
        queue.submit([pool.take()?.to_device(..512), pool.take()?.from_device(..512)], &[])?;
        core.run_for(2)?;
        queue.stop()?;
        // They belong to the program again, and nothing is written there.
        let returned = queue.take_back::<2>().unwrap().unwrap();
        let (mut from, to) = (pool.take()?, pool.take()?);
        for (index, byte) in from.view_mut::<u8>()?.iter_mut().enumerate() {
            *byte = pattern(index);
        }
        queue.submit([from.to_device(..512), to.from_device(..512)], &[])?;
        let [_, to] = queue.wait::<2>(LIMIT)?.unwrap().buffers;
        assert!(
            to.view_at::<u8>(..512)?
                .iter()
                .enumerate()
                .all(|(index, byte)| *byte == pattern(index))
        );
        drop(returned);
        Ok(())
    });
}

#[test]
fn stop_program_keeps_the_descriptor_bit() {
    with(Faults::NONE, |board, pool, own| {
        let core = core(board, copier());
        let program = core.window()?.listed(CONFIG, own)?.stop_program();
        let window = core.window()?;
        // SAFETY: the steps stop, and the core has no job.
        unsafe {
            window.write32(regs::CONTROL.offset(), regs::ENABLE | regs::HWDESC);
            assert_eq!(program.run(&window, 5), Ok(()));
        }
        assert_eq!(window.read32(regs::CONTROL.offset()), regs::HWDESC);
        drop(pool.take()?);
        Ok(())
    });
}

#[test]
fn a_stop_starts_no_job_that_was_held_back() {
    with(Faults::NONE, |board, pool, _own| {
        let core = core(board, copier());
        let mut queue = Queue::new(core.window()?.driver(CONFIG)?, 4)?;
        // Of one burst each: the second waits until the first has been seen to end.
        for _ in 0..2 {
            let (mut from, mut to) = (pool.take()?, pool.take()?);
            from.view_mut::<u8>()?.fill(7);
            to.view_mut::<u8>()?.fill(0xFF);
            queue.submit([from.to_device(..64), to.from_device(..64)], &[])?;
        }
        core.run_for(20)?;
        let reads = board.counts().bytes_read;
        queue.stop()?;
        assert_eq!(board.counts().bytes_read, reads, "the stop let it begin");
        let [_, to] = queue.wait::<2>(Duration::ZERO)?.unwrap().buffers;
        assert_eq!(to.view_at::<u8>(..64)?, [7; 64]);
        assert!(queue.take_back::<2>().unwrap().is_some());
        Ok(())
    });
}
