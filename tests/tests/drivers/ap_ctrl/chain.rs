//! `ap_ctrl_chain`: two jobs in the kernel at once.

use super::*;

const BYTES: usize = 4096;

/// The model's own kernel, `copy`, and buffers.
fn with_copier<R>(
    seed: u64,
    act: impl FnOnce(&SimBoard, &SimDevice<ApCtrlModel>, &Pool) -> R,
) -> R {
    let (board, _, pool) = bench(seed, 8, BYTES);
    let kernel = SimDevice::<ApCtrlModel>::new(&board, board.port());
    let result = act(&board, &kernel, &pool);
    clean(&board);
    result
}

fn push(queue: &mut ScaleQueue, pool: &Pool, byte: u8) {
    let operands = [filled(pool, byte).to_device(..), filled(pool, 0).from_device(..)];
    queue.submit(operands, &[u32::try_from(BYTES).unwrap()]).unwrap();
}

#[track_caller]
fn is_copy(done: &Done<[CpuBuf; 2]>, byte: u8) {
    assert!(done.buffers[1].view::<u8>().unwrap() == [byte; BYTES], "the copy of {byte} is wrong");
}

fn ctrl(queue: &ScaleQueue) -> u32 {
    queue.driver().device().read32(regs::CTRL.offset())
}

/// `jobs` copies with so many in flight: how long each takes on average, in nanoseconds.
fn pace(slots: usize, jobs: u8) -> u64 {
    with_copier(1, |board, kernel, pool| {
        let mut queue = open(kernel, slots);
        let (begin_ns, mut pushed) = (board.now_ns(), 0);
        for done in 0..jobs {
            while pushed < jobs && !queue.is_full() {
                push(&mut queue, pool, pushed);
                pushed += 1;
            }
            let ended = queue.end();
            assert_eq!(ended.words[0] as usize, BYTES);
            is_copy(&ended, done);
        }
        (board.now_ns() - begin_ns) / u64::from(jobs)
    })
}

#[test]
fn two_jobs_in_flight_overlap() {
    let (one, two) = (pace(1, 200), pace(2, 200));
    assert!(two * 10 < one * 7, "{two} ns a job with two in flight, {one} with one");
}

#[test]
fn the_kernel_has_taken_both() {
    with_copier(2, |_, kernel, pool| {
        let mut queue = open(kernel, 2);
        push(&mut queue, pool, 1);
        push(&mut queue, pool, 2);
        cases! { queue.refuses(copies(pool, .., ..), &[1]) => Error::QueueFull { depth: 2 } }
        // The second waits until the kernel has taken the first; a look gives it.
        kernel.run_for(2).unwrap();
        assert!(queue.wait::<2>(Duration::ZERO).unwrap().is_none(), "the first is at work");
        kernel.run_for(2).unwrap();
        let state = ctrl(&queue) & (regs::AP_START | regs::AP_DONE | regs::AP_IDLE);
        assert_eq!((state, queue.len()), (0, 2), "both were taken, and none has ended");
        for byte in [1, 2] {
            is_copy(&queue.end(), byte);
        }
        assert_eq!(regs::ISR.read(queue.driver().device()), 0, "both interrupts were taken back");
        assert_eq!(queue.counts().underruns, 1);
    });
}

/// A kernel without interrupt registers, and with a pointer of 32 bits.
#[test]
fn no_end_is_taken_for_next_without_irq() {
    let map = KernelMap::named("copy", Protocol::Chain)
        .pointer32("from", 0x10, OperandSpec::to_device(), "n")
        .pointer("to", 0x1C, OperandSpec::from_device(), "n")
        .scalar("n", 0x28, 32);
    let copy: KernelFn = |call| {
        let mut bytes = [0; BYTES];
        call.read(0, 0, &mut bytes)?;
        call.write(1, 0, &bytes)?;
        Ok([0; 4])
    };
    let (board, _, pool) = bench(6, 8, BYTES);
    let model = ApCtrlModel::new(map.build().unwrap(), copy).unwrap();
    let mut queue = open(&SimDevice::with_model(&board, board.port(), model), 2);
    for round in 0..20 {
        push(&mut queue, &pool, round);
        push(&mut queue, &pool, round + 100);
        for byte in [round, round + 100] {
            let mut look = || queue.wait(Duration::from_micros(1)).unwrap();
            is_copy(&std::iter::repeat_with(&mut look).flatten().next().unwrap(), byte);
        }
    }
    clean(&board);
}
