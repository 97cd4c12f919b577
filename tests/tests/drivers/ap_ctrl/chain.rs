//! `ap_ctrl_chain`: two jobs in the kernel at once.
#![allow(unsafe_code, reason = "a stop program is run on a device that its driver still has")]

use crate::regs::ap_ctrl as regs;
use contigo::{
    CpuBuf, Driver, Error, Mmio, OperandSpec, Pool, Queue, Region, Wait,
    design::kernel::{KernelMap, Protocol},
    drivers::ap_ctrl::ApCtrl,
    forward,
    sim::{
        Faults, SimBoard, SimConfig, SimDevice, SimWindow,
        ap_ctrl::{ApCtrlModel, KernelFn},
    },
};
use std::time::Duration;

const LIMIT: Duration = Duration::from_millis(20);
const BYTES: usize = 4096;

type CopyQueue = Queue<ApCtrl<SimWindow<ApCtrlModel>>>;

/// The model's own kernel, `copy`, and buffers.
fn with_copier<R>(
    faults: Faults,
    seed: u64,
    act: impl FnOnce(&SimBoard, &SimDevice<ApCtrlModel>, &Pool) -> R,
) -> R {
    let board = SimBoard::with(SimConfig { seed, faults });
    let region = Region::new(board.memory(128 * 1024).unwrap()).unwrap();
    let pool = region.pool(8, BYTES).unwrap();
    let kernel = SimDevice::<ApCtrlModel>::new(&board, board.port());
    let result = act(&board, &kernel, &pool);
    assert_eq!((board.counts().stray_accesses, board.counts().unowned_accesses), (0, 0));
    result
}

fn filled(pool: &Pool, byte: u8) -> CpuBuf {
    let mut buf = pool.take().unwrap();
    buf.view_mut::<u8>().unwrap().fill(byte);
    buf
}

fn open(kernel: &SimDevice<ApCtrlModel>) -> ApCtrl<SimWindow<ApCtrlModel>> {
    kernel.window().unwrap().driver().unwrap()
}

fn push(queue: &mut CopyQueue, pool: &Pool, byte: u8) {
    let bytes = u32::try_from(BYTES).unwrap();
    queue
        .submit([filled(pool, byte).to_device(..), filled(pool, 0).from_device(..)], &[bytes])
        .unwrap();
}

/// `jobs` copies with `SLOTS` in flight: how long each takes on average, in nanoseconds.
fn pace<const SLOTS: usize>(jobs: u32) -> u64 {
    with_copier(Faults::NONE, 1, |board, kernel, pool| {
        let mut queue = Queue::new(open(kernel), SLOTS).unwrap();
        let bytes = u32::try_from(BYTES).unwrap();
        let begin_ns = board.now_ns();
        let (mut pushed, mut done) = (0, 0);
        while done < jobs {
            while pushed < jobs && !queue.is_full() {
                let operands = [
                    filled(pool, pushed.to_le_bytes()[0]).to_device(..),
                    filled(pool, 0).from_device(..),
                ];
                queue.submit(operands, &[bytes]).unwrap();
                pushed += 1;
            }
            let ended = queue.wait::<2>(LIMIT).unwrap().unwrap();
            assert_eq!(ended.words[0], bytes);
            assert!(
                ended.buffers[1].view::<u8>().unwrap() == [done.to_le_bytes()[0]; BYTES],
                "job {done}"
            );
            done += 1;
        }
        (board.now_ns() - begin_ns) / u64::from(jobs)
    })
}

#[test]
fn two_jobs_in_flight_overlap() {
    let (one, two) = (pace::<1>(200), pace::<2>(200));
    assert!(two * 10 < one * 7, "{two} ns a job with two in flight, {one} with one");
}

#[test]
fn the_kernel_has_taken_both() {
    with_copier(Faults::NONE, 2, |_, kernel, pool| {
        let mut queue = Queue::new(open(kernel), 2).unwrap();
        push(&mut queue, pool, 1);
        push(&mut queue, pool, 2);
        assert_eq!(
            queue
                .submit(
                    [pool.take().unwrap().to_device(..), pool.take().unwrap().from_device(..)],
                    &[1]
                )
                .unwrap_err()
                .error,
            Error::QueueFull { depth: 2 }
        );
        // The second waits until the kernel has taken the first; a look gives it.
        kernel.run_for(2).unwrap();
        assert!(queue.wait::<2>(Duration::ZERO).unwrap().is_none(), "the first is at work");
        kernel.run_for(2).unwrap();
        let ctrl = queue.driver().device().read32(regs::CTRL.offset());
        assert_eq!(
            ctrl & (regs::AP_START | regs::AP_DONE | regs::AP_IDLE),
            0,
            "both were taken, and none has ended: {ctrl:#x}"
        );
        assert_eq!(queue.len(), 2);
        for byte in [1, 2] {
            assert!(
                queue.wait::<2>(LIMIT).unwrap().unwrap().buffers[1].view::<u8>().unwrap()
                    == [byte; BYTES]
            );
        }
        assert_eq!(regs::ISR.read(queue.driver().device()), 0, "both interrupts were taken back");
        assert_eq!(queue.counts().ran_dry, 1);
    });
}

#[test]
fn the_stop_program_ends_both_jobs_unseen() {
    for wait_us in 0..12 {
        with_copier(Faults::NONE, 4, |board, kernel, pool| {
            let mut queue = Queue::new(open(kernel), 2).unwrap();
            push(&mut queue, pool, 1);
            push(&mut queue, pool, 2);
            kernel.run_for(wait_us).unwrap();
            let _ = queue.wait::<2>(Duration::ZERO).unwrap();
            let program = queue.driver().stop_program();
            // SAFETY: it is a stop program, whose steps start nothing.
            unsafe { program.run(&Shared(queue.driver().device()), 1) }.unwrap();
            let owned = board.counts().bytes_written;
            kernel.run_for(1000).unwrap();
            assert_eq!(
                (board.counts().bytes_written, regs::is_idle(kernel_ctrl(&queue))),
                (owned, true),
                "after {wait_us} us"
            );
            queue.clear().unwrap();
        });
    }
}

fn kernel_ctrl(queue: &CopyQueue) -> u32 {
    queue.driver().device().read32(regs::CTRL.offset())
}

/// A device that its driver still has.
struct Shared<'a, D>(&'a D);

// SAFETY: the registers belong to one device; the driver does nothing meanwhile.
unsafe impl<D: Mmio> Mmio for Shared<'_, D> {
    forward!(|this| this.0 => len_bytes, read32, write32);
}

impl<D: Wait> Wait for Shared<'_, D> {
    forward!(|this| this.0 => now_us, wait_at_most, looks_before_clock);
}

/// `copy` without interrupt registers, and with a pointer of 32 bits.
const QUIET: KernelMap = {
    let map = KernelMap::named("copy", Protocol::Chain)
        .pointer32("from", 0x10, OperandSpec::to_device(), "n")
        .pointer("to", 0x1C, OperandSpec::from_device(), "n")
        .scalar("n", 0x28, 32);
    match map.build() {
        Ok(map) => map,
        Err(_) => panic!("the table is wrong"),
    }
};

#[test]
fn without_an_interrupt_no_end_is_taken_for_the_next_one() {
    let board = SimBoard::new(6);
    let region = Region::new(board.memory(128 * 1024).unwrap()).unwrap();
    let pool = region.pool(8, BYTES).unwrap();
    let copy: KernelFn = |call| {
        let mut bytes = [0; BYTES];
        call.read(0, 0, &mut bytes)?;
        call.write(1, 0, &bytes)?;
        Ok([0; 4])
    };
    let kernel =
        SimDevice::with_model(&board, board.port(), ApCtrlModel::new(QUIET, copy).unwrap());
    let mut queue = Queue::new(open(&kernel), 2).unwrap();
    for round in 0..20 {
        push(&mut queue, &pool, round);
        push(&mut queue, &pool, round + 100);
        for byte in [round, round + 100] {
            let done = loop {
                if let Some(done) = queue.wait::<2>(Duration::from_micros(1)).unwrap() {
                    break done;
                }
            };
            assert!(done.buffers[1].view::<u8>().unwrap() == [byte; BYTES], "round {round}");
        }
    }
    assert_eq!((board.counts().stray_accesses, board.counts().unowned_accesses), (0, 0));
}
