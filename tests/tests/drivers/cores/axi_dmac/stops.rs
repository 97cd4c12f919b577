//! How an AXI DMAC stops: at work, hung, and in the read of a descriptor.
#![allow(unsafe_code, reason = "stop programs are run")]

use super::*;
use crate::regs::axi_dmac as regs;

/// It keeps the descriptor bit.
#[test]
fn the_stop_program_stops_a_core_at_work() {
    for lists in [false, true] {
        with(Faults::NONE, |board, _pool, own| {
            let core = core(board, copier());
            let program = if lists {
                core.window()?.listed(CONFIG, own)?.stop_program()
            } else {
                core.window()?.driver(CONFIG)?.stop_program()
            };
            let kept = if lists { regs::HWDESC } else { 0 };
            let window = core.window()?;
            // SAFETY: the steps stop, and ENABLE alone moves no data.
            unsafe {
                window.write32(regs::CONTROL.offset(), regs::ENABLE | kept);
                assert_eq!(program.run(&window, 5), Ok(()));
            }
            assert_eq!(window.read32(regs::CONTROL.offset()), kept);
            assert_eq!(window.read32(regs::STATE.offset()) & regs::STATE_BITS, regs::STATE_RESET);
            Ok(())
        });
    }
}

#[test]
fn opening_stops_a_core_left_at_work() {
    with(HANG, |board, _pool, _own| {
        let core = core(board, copier());
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
        // SAFETY: the model is the core.
        let driver = unsafe { AxiDmac::open(Lent::new(&window), CONFIG)? };
        assert_eq!(driver.found().max_bytes, 1 << 24);
        assert_eq!(window.read32(regs::SUBMIT.offset()), 0, "none is left");
        Ok(())
    });
}

#[test]
fn stop_waits_for_descriptor_under_way() {
    with(Faults::NONE, |board, pool, own| {
        let core = core(board, AxiDmacBuild { fetch_ns: 5_000, ..copier() });
        let mut queue = Queue::new(core.window()?.listed(CONFIG, own)?, 4)?;
        queue.give(copies(pool, ..512, ..512));
        core.run_for(2)?;
        queue.stop()?;
        // They belong to the program again, and nothing is written there.
        let returned = queue.take_back::<2>().unwrap().unwrap();
        queue.give([patterned(pool, 0)?.to_device(..512), pool.take()?.from_device(..512)]);
        let [from, to] = queue.end::<2>().buffers;
        assert_eq!(to.view_at::<u8>(..512)?, from.view_at::<u8>(..512)?);
        drop(returned);
        Ok(())
    });
}

#[test]
fn a_stop_starts_no_job_that_was_held_back() {
    with(Faults::NONE, |board, pool, _own| {
        let core = core(board, copier());
        let mut queue = open(&core, CONFIG)?;
        // Of one burst each: the second waits until the first has been seen to end.
        for _ in 0..2 {
            queue.give([filled(pool, 7).to_device(..64), filled(pool, 0xFF).from_device(..64)]);
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
