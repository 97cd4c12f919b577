//! No region: not one allocation from opening a board to closing it, refusals and failed jobs
//! included. The allocator counts what this thread does, the runtime and std below it included.

use crate::alone;
use crate::common::*;
use crate::counting::count;
use contigo_c::*;
use std::hint::black_box;

#[test]
fn the_counter_counts() {
    assert_eq!(count(|| drop(black_box(Box::new(1_u64)))).1, 1);
    assert_eq!(count(|| drop(black_box(vec![0_u8; 64]))).1, 1, "zeroed");
    assert_eq!(count(|| black_box([0_u8; 64])).1, 0);
}

#[test]
fn none_from_the_first_call_to_the_last() {
    alone(no_allocations);
}

fn no_allocations() {
    const JOBS: u64 = 1_000;
    let (tally, allocations) = count(|| {
        let faults = contigo_sim_options {
            late_irq: 50,
            lost_irq: 50,
            error: 50,
            short_transfer: 50,
            hang: 50,
            ..sim_options()
        };
        let board = Board::with(&faults);
        let device = sim_device(board.sim, c"pl330");
        let copier = open_engine(&engine_options(c"pl330", device, board.port, board.region));
        let (mut good, mut failed, mut refusals) = (0, 0, 0);
        let mut text = [0; 256];
        for round in 0..JOBS {
            let operands = board.operands();
            let job = board.start(&operands);
            refusals += u64::from(board.try_start(&operands).0 == CONTIGO_E_DEVICE_OWNED);
            refusals += u64::from(contigo_buf_release(operands[0].buf) == CONTIGO_E_DEVICE_OWNED);
            let ended = if round % 3 == 0 { wait_device(job, 500) } else { wait(job, 500) };
            if ended == CONTIGO_OK {
                good += 1;
            } else {
                failed += 1;
                black_box(unsafe { contigo_last_error(text.as_mut_ptr(), text.len()) });
            }
            for operand in operands {
                let back = contigo_buf_take_back(operand.buf);
                assert!(back == CONTIGO_OK || back == CONTIGO_E_CPU_OWNED);
            }
            ok(Board { engine: copier, ..board }.try_start(&operands).0);
            match next(copier, 500) {
                (CONTIGO_OK, 0) => {
                    ok(contigo_queue_stop(copier));
                    assert_ne!(next(copier, 0).1, 0);
                    failed += 1;
                }
                (CONTIGO_OK, _) => good += 1,
                _ => failed += 1,
            }
            let rest = split(operands[0].buf, 64);
            ok(contigo_buf_release(rest));
            release_all(&operands);
            refusals += u64::from(contigo_buf_release(operands[0].buf) == CONTIGO_E_STALE);
        }
        let mut fd = 0;
        assert_eq!(unsafe { contigo_engine_irq_arm(copier, &mut fd) }, CONTIGO_E_KIND);
        assert_eq!(unsafe { contigo_region_export(board.region, &mut fd) }, CONTIGO_E_UNSUPPORTED);
        ok(contigo_engine_close(copier));
        ok(contigo_device_close(device));
        board.close();
        (good, failed, refusals)
    });
    let (good, failed, refusals) = tally;
    assert!(good > JOBS && failed > JOBS / 10 && refusals == 3 * JOBS, "{tally:?}");
    assert_eq!(allocations, 0);
}

#[test]
fn none_where_a_device_will_not_stop() {
    alone(none_beside_a_stuck_device);
}

fn none_beside_a_stuck_device() {
    let ((), allocations) = count(|| {
        let board = Board::with(&contigo_sim_options { stuck: 1_000, ..sim_options() });
        let operands = board.operands();
        let job = board.start(&operands);
        assert_eq!(wait(job, 500), CONTIGO_E_WILL_NOT_STOP);
        ok(unsafe { contigo_device_reset(board.device) });
        cancel(board.engine, job);
        release_all(&operands);
        board.close();
    });
    assert_eq!(allocations, 0);
}
