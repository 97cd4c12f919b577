//! The cost of a call, beside the same thing in Rust: printed with `--release -- --nocapture`, and
//! bounded only against disasters.

use crate::common::*;
use contigo::dlpack::abi::DlManagedTensorVersioned;
use contigo::job::{AnyDriver, Parts};
use contigo::mem::DevSlice;
use contigo::names::{AnyDevice, AnyMemory, DriverRow, register};
use contigo::sim::zdma::ZdmaModel;
use contigo::sim::{AnyModel, SimBoard};
use contigo::{Align, Completion, Device, Driver, OperandSpec, Port, Queue, Region, Result};
use contigo_c::*;
use std::collections::VecDeque;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Nanoseconds of one `act`: the least of 20 runs, which is the least disturbed.
fn nanoseconds(what: &str, mut act: impl FnMut()) -> f64 {
    const TIMES: u32 = 2_000;
    let least = (0..20).map(|_| {
        let start = Instant::now();
        (0..TIMES).for_each(|_| act());
        start.elapsed().as_secs_f64() * 1e9 / f64::from(TIMES)
    });
    let least = least.fold(f64::INFINITY, f64::min);
    println!("{what}: {least:.1} ns");
    least
}

/// A driver that does nothing: what remains is what the layers cost. Its port is the board's that
/// snoops.
struct Nothing(Port, VecDeque<usize>);

// SAFETY: it touches no memory.
unsafe impl Driver for Nothing {
    fn name(&self) -> &'static str {
        "nothing"
    }
    fn port(&self) -> &Port {
        &self.0
    }
    fn addr_bits(&self) -> u32 {
        64
    }
    fn operands(&self) -> &[OperandSpec] {
        const { &[OperandSpec::in_out()] }
    }
    fn depth(&self) -> usize {
        8
    }
    fn check(&self, _: &[DevSlice], _: &[u32]) -> Result<()> {
        Ok(())
    }
    unsafe fn submit(&mut self, slot: usize, _: &[DevSlice], _: &[u32]) -> Result<()> {
        self.1.push_back(slot);
        Ok(())
    }
    fn poll(&mut self, _: Duration) -> Result<Option<Completion>> {
        Ok(self.1.pop_front().map(Completion::of))
    }
    fn stop(&mut self) -> Result<()> {
        self.1.clear();
        Ok(())
    }
}

unsafe fn open(parts: Parts<'_, AnyDevice>) -> Result<AnyDriver> {
    AnyDriver::new(Nothing(*parts.device.port(), VecDeque::with_capacity(16)))
}

static NOTHING: DriverRow = DriverRow::new("nothing", "does nothing", open);

/// The same job in C and in Rust, on memory of a simulated board, whose own bookkeeping both pay:
/// the difference is C's.
#[test]
fn jobs_cost_little_more_than_in_rust() {
    register(&NOTHING).unwrap();
    contigo::sim::register("nothing", || AnyModel::new(ZdmaModel::default())).unwrap();
    let board = Board::new();
    let coherent = sim_port(board.sim, 1);
    let device = sim_device(board.sim, c"nothing");
    let engine = open_engine(&engine_options(c"nothing", device, coherent, 0));
    let operand = part(board.take(), 64);
    let start = || start_job(engine, &[operand], &[]);
    let in_c = nanoseconds("contigo_job_start, contigo_job_wait_device", || {
        ok(wait_device(black_box(start()), 100))
    });
    let in_c_next = nanoseconds("contigo_job_start, contigo_queue_next", || {
        black_box(start());
        assert_eq!(next(engine, 100).0, CONTIGO_OK);
    });
    ok(contigo_buf_release(operand.buf));
    [contigo_engine_close(engine), contigo_device_close(device), contigo_port_close(coherent)]
        .into_iter()
        .for_each(|status| ok(status));
    board.close();

    let sim = SimBoard::new(1);
    // As a region of C's has it: memory of any kind.
    let region = Region::new(AnyMemory::new(sim.memory(64 * 1024).unwrap()).unwrap()).unwrap();
    let driver = || AnyDriver::new(Nothing(sim.coherent_port(), VecDeque::with_capacity(16)));
    let mut queue = Queue::new(driver().unwrap(), 8).unwrap();
    let mut buf = Some(region.alloc(SLOT, Align::LINE).unwrap());
    let in_rust = nanoseconds("for comparison, Rust's Queue: submit, wait", || {
        queue.submit([buf.take().unwrap().in_out(..64)], &[]).unwrap();
        let [back] = queue.wait(Duration::from_micros(100)).unwrap().unwrap().buffers;
        buf = Some(back);
    });
    println!(
        "C's part: {:.1} ns of start and wait_device, {:.1} ns of start and next",
        in_c - in_rust,
        in_c_next - in_rust
    );
    // As below.
    assert!([in_c, in_c_next, in_rust].into_iter().all(|each| each < 200_000.0));
}

#[test]
fn calls_are_cheap() {
    let board = Board::new();
    let take = nanoseconds("contigo_pool_take, contigo_buf_release", || {
        ok(contigo_buf_release(black_box(board.take())))
    });
    let buf = board.take();
    let map = nanoseconds("contigo_buf_map, contigo_buf_unmap", || {
        black_box(try_map(buf, CONTIGO_READ));
        ok(contigo_buf_unmap(buf));
    });
    let split =
        nanoseconds("contigo_pool_take, contigo_buf_split, contigo_buf_release of both", || {
            let buf = board.take();
            ok(contigo_buf_release(split(buf, 1024)));
            ok(contigo_buf_release(buf));
        });
    let coherent = sim_port(board.sim, 1);
    let hand = nanoseconds("contigo_buf_give, contigo_buf_take_back, a port that snoops", || {
        ok(give(buf, coherent, 0, SLOT, CONTIGO_READS | CONTIGO_WRITES).0);
        ok(contigo_buf_take_back(buf));
    });
    let shape = [1_i64, 3, 16, 16];
    let options = options(&shape);
    let lend = nanoseconds("contigo_buf_lend, the tensor's deleter, contigo_buf_unlend", || {
        let mut tensor = core::ptr::null_mut();
        ok(unsafe { contigo_buf_lend(buf, &options, &mut tensor) });
        let tensor = black_box(tensor.cast::<DlManagedTensorVersioned>());
        unsafe { ((*tensor).deleter.unwrap())(tensor) };
        ok(contigo_buf_unlend(buf));
    });
    let (_, host, _) = try_map(buf, CONTIGO_READ);
    let addr = nanoseconds("contigo_dev_addr_of", || {
        black_box(answer(|addr| unsafe {
            contigo_dev_addr_of(board.region, board.port, host, 64, addr)
        }));
    });
    ok(contigo_buf_unmap(buf));
    ok(contigo_buf_release(buf));
    let stale = nanoseconds("a refusal, its text included", || {
        black_box(contigo_buf_release(buf));
    });
    ok(contigo_port_close(coherent));
    board.close();

    let sim = SimBoard::new(1);
    let region = Region::new(sim.memory(64 * 1024).unwrap()).unwrap();
    let pool = region.pool(8, SLOT).unwrap();
    nanoseconds("for comparison, Rust's Pool: take, drop", || {
        drop(black_box(pool.take().unwrap()))
    });
    // A system call or a lock that sleeps would be far above this, also in a debug build under an
    // emulator.
    assert!([take, split, map, hand, lend, addr, stale].into_iter().all(|each| each < 200_000.0));
}
