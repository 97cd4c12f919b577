//! One job at a time: what is written, what is refused, what goes wrong.

use super::*;
use contigo::types::MAX_TIMEOUT;

/// The kernel's sum, which it returns.
fn scale(call: &mut KernelCall<'_, '_>) -> Result<[u32; 4], KernelError> {
    let mut sum = 0_u64;
    for at in (0..call.len_bytes(0)).step_by(4) {
        let mut word = [0; 4];
        call.read(0, at, &mut word)?;
        let product = u64::from(u32::from_le_bytes(word)).wrapping_mul(call.scalar(2));
        sum = sum.wrapping_add(product);
        call.write(1, at, &(product as u32).to_le_bytes())?;
    }
    Ok([sum as u32, (sum >> 32) as u32, 0, 0])
}

fn scaler() -> ApCtrlModel {
    ApCtrlModel::new(SCALE, scale as KernelFn).unwrap()
}

fn with_kernel(faults: Faults, act: impl FnOnce(&SimBoard, &SimDevice<ApCtrlModel>, &Pool)) {
    let (board, _, pool) = faulty(5, faults, 8, 1024);
    act(&board, &SimDevice::with_model(&board, board.port(), scaler()), &pool);
    clean(&board);
    assert_eq!(pool.taken(), 0);
}

/// A job of three rows of five.
fn give<D: Driver>(queue: &mut Queue<D>, pool: &Pool) {
    queue.submit(copies(pool, ..60, ..60), &ROWS).unwrap();
}

#[test]
fn a_kernel_computes_and_returns_64_bits() {
    with_kernel(Faults::NONE, |_, kernel, pool| {
        let mut queue = open(kernel, 1);
        for round in 1..=20_u32 {
            let (mut from, to) = (pool.take().unwrap(), pool.take().unwrap());
            from.view_mut::<u32>().unwrap().fill(round);
            // 3 rows of 5, times 2^33 + 7: the low half of a product is 7 times.
            let operands = [from.to_device(..60), to.from_device(..60)];
            let done = queue.run(operands, &[3, 5, 7, 2], LIMIT).unwrap();
            assert_eq!(done.buffers[1].view_at::<u32>(..60).unwrap(), [7 * round; 15]);
            let sum = 15 * u64::from(round) * (7 + (2 << 32));
            assert_eq!(done.words[..2], [sum as u32, (sum >> 32) as u32]);
        }
        assert_eq!(queue.counts().completed, 20);
    });
}

/// Numbers in, a number out: a job without operands.
#[test]
fn a_kernel_without_a_pointer_takes_jobs() {
    let map = KernelMap::named("add", Protocol::Hs)
        .result("ap_return", 0x10, 32)
        .scalar("a", 0x18, 32)
        .scalar("b", 0x20, 32);
    let add: KernelFn = |call| Ok([(call.scalar(0) + call.scalar(1)) as u32, 0, 0, 0]);
    let board = SimBoard::new(3);
    let model = ApCtrlModel::new(map.build().unwrap(), add).unwrap();
    let mut queue = open(&SimDevice::with_model(&board, board.port(), model), 1);
    for round in 0..20_u32 {
        assert_eq!(queue.run([], &[round, 7], LIMIT).unwrap().words[0], round + 7);
    }
    cases! {
        queue.refuses([], &[1])
            => Error::Argument { name: "the count of argument words", min: 2, .. },
    }
    assert!(queue.is_empty());
}

#[test]
fn job_beyond_its_operands_is_refused() {
    with_kernel(Faults::NONE, |_, kernel, pool| {
        let mut queue = open(kernel, 1);
        let mut refused = |from: std::ops::Range<usize>, to: usize, args: &[u32]| {
            queue.refuses(copies(pool, from, ..to), args)
        };
        const ALL_BYTES: u64 = 4 * 0xFFFF_FFFF * 0xFFFF;
        cases! {
            refused(0..60, 59, &ROWS)
                => Error::BufferSize { index: 1, need_bytes: 60, have_bytes: 59 },
            refused(0..56, 60, &ROWS)
                => Error::BufferSize { index: 0, need_bytes: 60, have_bytes: 56 },
            refused(0..60, 60, &[u32::MAX, 0xFFFF, 1, 0])
                => Error::BufferSize { index: 0, need_bytes: ALL_BYTES, have_bytes: 60 },
            // The register has 16 bits, and would drop one.
            refused(0..60, 60, &[3, 0x1_0005, 1, 0])
                => Error::Argument { name: "scalar 1", value: 0x1_0005, max: 0xFFFF, .. },
            refused(2..62, 60, &[1, 1, 1, 0])
                => Error::BufferAlign { index: 0, align_bytes: 4, .. },
        }
        for count in [0, 3, 5, 32, 33, 40] {
            cases! {
                refused(0..60, 60, &vec![1; count]) => Error::Argument {
                    name: "the count of argument words", value, min: 4, max: 4, ..
                } if value == count as u64,
            }
        }
        let pointer = queue.driver().device().read32(0x1C);
        assert_eq!(pointer, u32::MAX, "no pointer was written");
    });
}

#[test]
fn the_interrupt_ends_a_wait_and_is_taken_back() {
    let (board, _, pool) = bench(4, 8, 1024);
    for clears_on_read in [false, true] {
        let mut model = scaler();
        model.clears_on_read = clears_on_read;
        let mut queue = open(&SimDevice::with_model(&board, board.port(), model), 1);
        for _ in 0..3 {
            let before_ns = board.now_ns();
            drop(queue.run(copies(&pool, ..60, ..60), &ROWS, LIMIT).unwrap());
            let took_ns = board.now_ns() - before_ns;
            assert!(took_ns < 10_000, "a job takes some microseconds, the limit 20,000");
            assert_eq!(regs::ISR.read(queue.driver().device()), 0);
        }
    }
}

#[test]
fn hung_or_wild_kernel_keeps_its_buffers() {
    for faults in [HANG, STUCK] {
        with_kernel(faults, |board, kernel, pool| {
            let driver = kernel.window().unwrap().driver().unwrap().named("scale");
            let driver = driver.stops_within(Duration::from_millis(3)).unwrap();
            let mut queue = Queue::new(driver, 1).unwrap();
            let before_ns = board.now_ns();
            let ran = queue.run(copies(pool, ..60, ..60), &ROWS, Duration::from_millis(1));
            let failed = ran.unwrap_err();
            cases! {
                failed.error => Error::WillNotStop { device: "scale", waited_us: 3_000, .. },
                failed.cause => Error::Timeout { timeout_us: 1_000 },
                // Both limits, and not more.
                board.now_ns() - before_ns => 4_000_000..4_500_000,
            }
            assert!(failed.buffers.is_none() && queue.stop().is_err() && !queue.is_empty());
            kernel.reset().unwrap();
            queue.clear().unwrap();
        });
    }
}

/// A program that died left it on: the kernel runs again and again.
#[test]
fn opening_stops_auto_restart() {
    with_kernel(Faults::NONE, |_, kernel, pool| {
        let window = kernel.window().unwrap();
        // SAFETY: its arguments say no bytes.
        unsafe { regs::CTRL.write(&window, regs::AP_START | regs::AUTO_RESTART) };
        for _ in 0..3 {
            window.wait_at_most(50).unwrap();
            let ctrl = regs::CTRL.read_and_clear(&window);
            let expected = regs::AUTO_RESTART | regs::AP_START | regs::AP_DONE | regs::AP_READY;
            assert_eq!(ctrl, expected, "it has run, and runs again");
        }
        let mut queue = Queue::new(window.driver().unwrap(), 1).unwrap();
        let ctrl = regs::CTRL.read_and_clear(queue.driver().device());
        assert_eq!(ctrl & (regs::AUTO_RESTART | regs::IDLE_MASK), regs::AP_IDLE);
        drop(queue.run(copies(pool, ..60, ..60), &ROWS, LIMIT).unwrap());
    });
}

#[test]
fn stopping_waits_no_longer_than_an_hour() {
    with_kernel(Faults::NONE, |_, kernel, _| {
        let open = |limit| kernel.window().unwrap().driver().unwrap().stops_within(limit).map(drop);
        cases! {
            open(MAX_TIMEOUT) => Ok(()),
            open(MAX_TIMEOUT + Duration::from_nanos(1)) => Err(Error::Argument {
                name: "time limit in microseconds", value: 3_600_000_001, max: 3_600_000_000, ..
            }),
        }
    });
}

#[test]
fn what_ends_while_it_is_stopped_is_told_once() {
    with_kernel(Faults::NONE, |_, kernel, pool| {
        let mut queue = open(kernel, 1);
        give(&mut queue, pool);
        queue.stop().unwrap();
        // The kernel cannot be aborted: it came to its end.
        let _ = queue.end::<2>();
        assert_eq!(queue.drain::<2>(), 0);
        // The caller does not wait for the job that ended: its end is not taken for the next one's.
        give(&mut queue, pool);
        queue.stop_one::<2>();
        give(&mut queue, pool);
        assert!(queue.wait::<2>(Duration::ZERO).unwrap().is_none(), "it has hardly begun");
        let _ = queue.end::<2>();
    });
}

#[test]
fn the_stop_program_waits_for_the_end() {
    with_kernel(Faults::NONE, |_, kernel, pool| {
        let mut queue = open(kernel, 1);
        give(&mut queue, pool);
        let program = queue.driver().stop_program();
        assert_eq!(program.steps().len(), 3, "the interrupt and auto-restart off, and one poll");
        kernel.run_for(1000).unwrap();
        assert!(regs::is_idle(queue.driver().device().read32(0)));
        queue.clear().unwrap();
        assert_eq!(queue.driver().device().port().name, queue.port().name);
    });
}

/// A map of the wrong protocol: the second job would seem done before it began.
#[test]
fn chain_behind_an_hs_map_fails_at_the_first_job() {
    let (board, _, pool) = bench(1, 2, 64);
    let kernel = SimDevice::with_model(&board, board.port(), <ApCtrlModel>::default());
    let map = KernelMap::named("copy", Protocol::Hs)
        .interrupt(true)
        .pointer("from", 0x18, OperandSpec::to_device(), "n")
        .pointer("to", 0x24, OperandSpec::from_device(), "n")
        .scalar("n", 0x30, 32)
        .build()
        .unwrap();
    // SAFETY: the model is that kernel, except for its protocol, which is the test.
    let driver = unsafe { ApCtrl::open(kernel.window().unwrap(), map) }.unwrap();
    let mut queue = Queue::new(driver, 1).unwrap();
    let failed = queue.run(copies(&pool, .., ..), &[64], LIMIT).unwrap_err();
    assert!(failed.buffers.is_some());
    assert!(failed.to_string().contains("its map says ap_ctrl_hs"), "{failed}");
}
