#![allow(unsafe_code, reason = "a map that is not the kernel's is claimed to be")]
//! One job at a time: what is written, what is refused, what goes wrong.

use super::SCALE;
use crate::regs::ap_ctrl as regs;
use contigo::{
    Align, CpuBuf, Device, Driver, Error, Mmio, Operand, OperandSpec, Pool, Queue, Region, Wait,
    design::kernel::{KernelMap, Protocol},
    drivers::ap_ctrl::ApCtrl,
    sim::{
        BusError, Faults, SimBoard, SimConfig, SimDevice,
        ap_ctrl::{ApCtrlModel, KernelCall, KernelFn},
    },
    types::MAX_TIMEOUT,
};
use std::time::Duration;

const LIMIT: Duration = Duration::from_millis(20);

/// The kernel's sum, which it returns.
fn scale(call: &mut KernelCall<'_, '_>) -> Result<[u32; 4], BusError> {
    let mut sum = 0_u64;
    for at in (0..call.len_bytes(0)).step_by(4) {
        let mut word = [0; 4];
        call.read(0, at, &mut word)?;
        let product = u64::from(u32::from_le_bytes(word)).wrapping_mul(call.scalar(2));
        sum = sum.wrapping_add(product);
        call.write(1, at, &u32::try_from(product & 0xFFFF_FFFF).unwrap().to_le_bytes())?;
    }
    Ok([u32::try_from(sum & 0xFFFF_FFFF).unwrap(), u32::try_from(sum >> 32).unwrap(), 0, 0])
}

fn with_kernel<R>(
    faults: Faults,
    seed: u64,
    act: impl FnOnce(&SimBoard, &SimDevice<ApCtrlModel>, &Pool) -> R,
) -> R {
    let board = SimBoard::with(SimConfig { seed, faults });
    let region = Region::new(board.memory(64 * 1024).unwrap()).unwrap();
    let pool = region.pool(8, 1024).unwrap();
    let kernel = SimDevice::with_model(
        &board,
        board.port(),
        ApCtrlModel::new(SCALE, scale as KernelFn).unwrap(),
    );
    let result = act(&board, &kernel, &pool);
    assert_eq!((board.counts().stray_accesses, board.counts().unowned_accesses), (0, 0));
    result
}

#[test]
fn a_kernel_computes_and_returns_64_bits() {
    with_kernel(Faults::NONE, 1, |_, kernel, pool| {
        let mut queue = Queue::new(kernel.window().unwrap().driver().unwrap(), 1).unwrap();
        for round in 1..=20_u32 {
            let (mut from, to) = (pool.take().unwrap(), pool.take().unwrap());
            from.view_mut::<u32>().unwrap().fill(round);
            // 3 rows of 5, times 2^33 + 7: the low half of a product is 7 times.
            let done = queue
                .run([from.to_device(..60), to.from_device(..60)], &[3, 5, 7, 2], LIMIT)
                .unwrap();
            assert_eq!(done.buffers[1].view_at::<u32>(..60).unwrap(), [7 * round; 15]);
            let sum = 15 * u64::from(round) * (7 + (2 << 32));
            assert_eq!(
                done.words[..2],
                [u32::try_from(sum & 0xFFFF_FFFF).unwrap(), u32::try_from(sum >> 32).unwrap()]
            );
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
    let add = |call: &mut KernelCall<'_, '_>| {
        Ok([u32::try_from(call.scalar(0) + call.scalar(1)).unwrap(), 0, 0, 0])
    };
    let board = SimBoard::new(3);
    let kernel = SimDevice::with_model(
        &board,
        board.port(),
        ApCtrlModel::new(map.build().unwrap(), add).unwrap(),
    );
    let driver = kernel.window().unwrap().driver().unwrap();
    let mut queue = Queue::new(driver, 1).unwrap();
    for round in 0..20_u32 {
        assert_eq!(queue.run([], &[round, 7], LIMIT).unwrap().words[0], round + 7);
    }
    let wrong = queue.submit([], &[1]).unwrap_err().error;
    assert!(
        matches!(wrong, Error::Argument { name: "the count of argument words", min: 2, .. }),
        "{wrong}"
    );
    assert!(queue.is_empty());
}

#[test]
fn job_beyond_its_operands_is_refused() {
    with_kernel(Faults::NONE, 2, |_, kernel, pool| {
        let mut queue = Queue::new(kernel.window().unwrap().driver().unwrap(), 1).unwrap();
        let mut refused = |from: usize, to: usize, args: &[u32]| {
            let [a, b] = [pool.take().unwrap(), pool.take().unwrap()];
            queue.submit([a.to_device(..from), b.from_device(..to)], args).unwrap_err().error
        };
        assert_eq!(
            refused(60, 59, &[3, 5, 1, 0]),
            Error::BufferSize { index: 1, need_bytes: 60, have_bytes: 59 }
        );
        assert_eq!(
            refused(56, 60, &[3, 5, 1, 0]),
            Error::BufferSize { index: 0, need_bytes: 60, have_bytes: 56 }
        );
        let all = [u32::MAX, 0xFFFF, 1, 0];
        let need_bytes = 4 * u64::from(u32::MAX) * 0xFFFF;
        assert_eq!(
            refused(60, 60, &all),
            Error::BufferSize { index: 0, need_bytes, have_bytes: 60 }
        );
        let wide = Error::Argument {
            name: "scalar 1",
            value: 0x1_0005,
            min: 0,
            max: 0xFFFF,
            multiple_of: 1,
        };
        assert_eq!(
            refused(60, 60, &[3, 0x1_0005, 1, 0]),
            wide,
            "the register has 16 bits, and would drop one"
        );
        for count in [0, 3, 5, 32, 33, 40] {
            let words = |value| Error::Argument {
                name: "the count of argument words",
                value,
                min: 4,
                max: 4,
                multiple_of: 1,
            };
            assert_eq!(refused(60, 60, &vec![1; count]), words(count as u64));
        }
        let from = pool.take().unwrap().into_dev_at(2);
        let error = queue
            .submit([from, pool.take().unwrap().from_device(..60)], &[1, 1, 1, 0])
            .unwrap_err()
            .error;
        assert!(matches!(error, Error::BufferAlign { index: 0, align_bytes: 4, .. }), "{error}");
        let pointer = contigo::hw::mmio::Register::<contigo::hw::mmio::ReadOnly>::at(0x1C);
        assert_eq!(pointer.read(queue.driver().device()), u32::MAX, "no pointer was written");
    });
}

/// An operand that begins at byte `at`.
trait At {
    fn into_dev_at(self, at: usize) -> Operand;
}

impl At for CpuBuf {
    fn into_dev_at(self, at: usize) -> Operand {
        self.to_device(at..at + 60)
    }
}

#[test]
fn the_interrupt_ends_a_wait_and_is_taken_back() {
    let board = SimBoard::new(4);
    let region = Region::new(board.memory(64 * 1024).unwrap()).unwrap();
    let pool = region.pool(8, 1024).unwrap();
    for clears_on_read in [false, true] {
        let mut model = ApCtrlModel::new(SCALE, scale as KernelFn).unwrap();
        model.clears_on_read = clears_on_read;
        let kernel = SimDevice::with_model(&board, board.port(), model);
        let mut queue = Queue::new(kernel.window().unwrap().driver().unwrap(), 1).unwrap();
        for _ in 0..3 {
            let before_ns = board.now_ns();
            drop(
                queue
                    .run(
                        [
                            pool.take().unwrap().to_device(..60),
                            pool.take().unwrap().from_device(..60),
                        ],
                        &[3, 5, 1, 0],
                        LIMIT,
                    )
                    .unwrap(),
            );
            assert!(
                board.now_ns() - before_ns < 10_000,
                "a job takes some microseconds, the limit 20,000"
            );
            assert_eq!(regs::ISR.read(queue.driver().device()), 0);
        }
    }
}

#[test]
fn hung_or_wild_kernel_keeps_its_buffers() {
    for faults in [Faults { hang: 1000, ..Faults::NONE }, Faults { stuck: 1000, ..Faults::NONE }] {
        with_kernel(faults, 5, |board, kernel, pool| {
            let driver = kernel
                .window()
                .unwrap()
                .driver()
                .unwrap()
                .named("scale")
                .stops_within(Duration::from_millis(3))
                .unwrap();
            let mut queue = Queue::new(driver, 1).unwrap();
            let before_ns = board.now_ns();
            let failed = queue
                .run(
                    [pool.take().unwrap().to_device(..60), pool.take().unwrap().from_device(..60)],
                    &[3, 5, 1, 0],
                    Duration::from_millis(1),
                )
                .unwrap_err();
            assert!(
                matches!(
                    failed.error,
                    Error::WillNotStop { device: "scale", waited_us: 3_000, .. }
                ),
                "{}",
                failed.error
            );
            assert_eq!(
                (failed.cause, failed.buffers.is_none()),
                (Error::Timeout { timeout_us: 1_000 }, true)
            );
            assert!(
                (4_000_000..4_500_000).contains(&(board.now_ns() - before_ns)),
                "both limits, and not more"
            );
            assert!(queue.stop().is_err() && !queue.is_empty());
            kernel.reset().unwrap();
            queue.clear().unwrap();
            assert_eq!(pool.taken(), 0);
        });
    }
}

/// A program that died left it on: the kernel runs again and again.
#[test]
fn opening_stops_auto_restart() {
    with_kernel(Faults::NONE, 9, |_, kernel, pool| {
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
        assert_eq!(
            regs::CTRL.read_and_clear(queue.driver().device())
                & (regs::AUTO_RESTART | regs::IDLE_MASK),
            regs::AP_IDLE
        );
        assert!(
            queue
                .run(
                    [pool.take().unwrap().to_device(..60), pool.take().unwrap().from_device(..60)],
                    &[3, 5, 1, 0],
                    LIMIT
                )
                .is_ok()
        );
    });
}

#[test]
fn stopping_waits_no_longer_than_an_hour() {
    with_kernel(Faults::NONE, 7, |_, kernel, _| {
        let open = || kernel.window().unwrap().driver().unwrap();
        assert!(open().stops_within(MAX_TIMEOUT).is_ok());
        let refused = open().stops_within(MAX_TIMEOUT + Duration::from_nanos(1)).map(drop);
        let max = 3_600_000_000;
        assert_eq!(
            refused,
            Err(Error::Argument {
                name: "time limit in microseconds",
                value: max + 1,
                min: 0,
                max,
                multiple_of: 1
            })
        );
    });
}

#[test]
fn what_ends_while_it_is_stopped_is_told_once() {
    with_kernel(Faults::NONE, 6, |_, kernel, pool| {
        let driver = kernel.window().unwrap().driver().unwrap();
        let mut queue = Queue::new(driver, 1).unwrap();
        let operands =
            || [pool.take().unwrap().to_device(..60), pool.take().unwrap().from_device(..60)];
        queue.submit(operands(), &[3, 5, 1, 0]).unwrap();
        queue.stop().unwrap();
        assert!(
            queue.wait::<2>(LIMIT).unwrap().is_some(),
            "the kernel cannot be aborted: it came to its end"
        );
        assert!(
            queue.wait::<2>(LIMIT).unwrap().is_none() && queue.take_back::<2>().unwrap().is_none()
        );
        // The caller does not wait for the job that ended: its end is not taken for the next one's.
        queue.submit(operands(), &[3, 5, 1, 0]).unwrap();
        queue.stop().unwrap();
        drop(queue.take_back::<2>().unwrap().unwrap());
        queue.submit(operands(), &[3, 5, 1, 0]).unwrap();
        assert!(queue.wait::<2>(Duration::ZERO).unwrap().is_none(), "it has hardly begun");
        assert!(queue.wait::<2>(LIMIT).unwrap().is_some());
    });
}

#[test]
fn the_stop_program_waits_for_the_end() {
    with_kernel(Faults::NONE, 7, |_, kernel, pool| {
        let mut queue = Queue::new(kernel.window().unwrap().driver().unwrap(), 1).unwrap();
        queue
            .submit(
                [pool.take().unwrap().to_device(..60), pool.take().unwrap().from_device(..60)],
                &[3, 5, 1, 0],
            )
            .unwrap();
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
    let board = SimBoard::new(1);
    let region = Region::new(board.memory(64 * 1024).unwrap()).unwrap();
    let kernel = SimDevice::with_model(&board, board.port(), <ApCtrlModel>::default());
    let map = KernelMap::named("copy", Protocol::Hs)
        .interrupt(true)
        .pointer("from", 0x18, OperandSpec::to_device(), "n")
        .pointer("to", 0x24, OperandSpec::from_device(), "n")
        .scalar("n", 0x30, 32)
        .build()
        .unwrap();
    // SAFETY: the model is that kernel, except for its protocol, which is the test.
    let mut queue =
        Queue::new(unsafe { ApCtrl::open(kernel.window().unwrap(), map) }.unwrap(), 1).unwrap();
    let [from, to] = [(); 2].map(|()| region.alloc(64, Align::LINE).unwrap());
    let failed = queue
        .run([from.to_device(..), to.from_device(..)], &[64], Duration::from_millis(20))
        .unwrap_err();
    assert!(
        failed.buffers.is_some() && failed.to_string().contains("its map says ap_ctrl_hs"),
        "{failed}"
    );
}
