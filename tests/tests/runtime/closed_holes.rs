//! Programs that once reached through a hole, kept closed: what each did is said above it. Those
//! that no longer compile are in `compile_fail/`.

use contigo::dlpack::{DataType, Shape, TensorSpec, TensorTable};
use contigo::hw::Wired;
use contigo::linux::Spin;
use contigo::linux::memory::DmaHeap;
use contigo::mem::{DriverBuf, Mapping};
use contigo::sim::{OnBoard, SimBoard};
use contigo::{
    Align, Backend, DevBuf, Device, Direction, Driver, Error, Mmio, OperandSpec, Port, Queue,
    Region, Result, Wait, forward,
};
use contigo_gemm8::{Gemm8, SimGemm8, regs};
use contigo_testkit::conformance::mutant::{Mutant, Mutation, REFUSAL};
use contigo_testkit::fake_dev_node::{DevNodeConfig, FakeDevNode};
use contigo_testkit::fake_dma_heap::{FakeHeap, HEAP, Pages};
use contigo_testkit::mapped::is_mapped;
use contigo_testkit::scripted::Scripted;
use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A register window over closures: what a device answers to CTRL and ABORT.
struct Script<R, W>(R, W);

// SAFETY: there is no device, so nothing touches any memory.
unsafe impl<R: Fn() -> u32, W: Fn(u32)> Mmio for Script<R, W> {
    fn len_bytes(&self) -> usize {
        regs::WINDOW_BYTES
    }
    fn read32(&self, offset: usize) -> u32 {
        match offset {
            o if o == regs::ID.offset() => regs::ID_VALUE,
            o if o == regs::CTRL.offset() => (self.0)(),
            _ => 0,
        }
    }
    unsafe fn write32(&self, offset: usize, value: u32) {
        if offset == regs::ABORT.offset() {
            (self.1)(value);
        }
    }
}

fn scripted<I: Wait>(read: impl Fn() -> u32, abort: impl Fn(u32), irq: I) -> Gemm8<impl Device> {
    // SAFETY: there is no device, so every port is right.
    let device = unsafe { Wired::new(Script(read, abort), irq, SimBoard::new(0).port()) };
    // SAFETY: what is written to it touches no memory.
    unsafe { Gemm8::open(device) }.unwrap()
}

/// Without an interrupt, stopping gave up after 200 looks instead of 10 ms.
#[test]
fn stopping_takes_the_time_it_says() {
    let aborted = Cell::new(None::<Instant>);
    let slow = || {
        if aborted.get().is_some_and(|at| at.elapsed() > Duration::from_micros(2_600)) {
            regs::AP_IDLE
        } else {
            regs::AP_START
        }
    };
    let abort = |value| aborted.set((value == 1).then(Instant::now).or(aborted.get()));
    assert!(Queue::new(scripted(slow, abort, Spin), 1).is_ok());

    let begin = Instant::now();
    let refused = Queue::new(scripted(|| regs::AP_START, |_| (), Spin), 1).unwrap_err();
    assert_eq!(
        refused.error,
        Error::WillNotStop { device: "gemm8", status: regs::AP_START, waited_us: 10_000 }
    );
    assert!(begin.elapsed() >= Duration::from_millis(10));
}

/// An interrupt's file that failed left ABORT set: every later job was aborted.
#[test]
fn failed_interrupt_leaves_no_abort() {
    struct Broken;
    impl Wait for Broken {
        fn now_us(&self) -> u64 {
            0
        }
        fn wait_at_most(&self, _: u32) -> Result<()> {
            Err(Error::Os { call: "read", errno: 5 })
        }
    }
    let abort = Cell::new(0);
    let refused =
        Queue::new(scripted(|| regs::AP_START, |value| abort.set(value), Broken), 1).unwrap_err();
    assert_eq!(refused.error, Error::Os { call: "read", errno: 5 });
    assert_eq!(abort.get(), 0);
}

/// All ones, which is what a bus answers for a device that is gone, counted as done and idle.
#[test]
fn all_ones_is_neither_done_nor_idle() {
    let mut driver = scripted(|| u32::MAX, |_| (), Spin);
    assert_eq!(driver.poll(Duration::from_micros(50)), Ok(None));
    assert!(matches!(driver.stop(), Err(Error::WillNotStop { status: u32::MAX, .. })));
}

/// Two drivers of one device could mix their pointers in its registers.
#[test]
fn a_device_has_one_driver() {
    let board = SimBoard::new(1);
    let device = SimGemm8::new(&board, board.port());
    let window = device.window().unwrap();
    assert_eq!(device.window().unwrap_err(), Error::HasDriver);
    drop(window);
    assert!(device.window().is_ok());
    // A window that was forgotten keeps the registers for ever.
    std::mem::forget(device.window());
    assert_eq!(device.clone().window().unwrap_err(), Error::HasDriver);
    assert!(matches!(device.reset(), Ok(())), "its reset line is the board's");
    assert_eq!(device.window().unwrap_err(), Error::HasDriver);
}

/// Of two outputs one had been handed over when the other's sync was refused: its bytes were thrown
/// away.
#[test]
fn half_refused_job_leaves_outputs_alone() {
    struct TwoOutputs(Scripted);
    // SAFETY: it touches no memory.
    unsafe impl Driver for TwoOutputs {
        forward!(|this| this.0 => name, addr_bits, port, check, submit, poll, stop);
        fn operands(&self) -> &[OperandSpec] {
            const { &[OperandSpec::from_device(); 2] }
        }
    }
    let board = SimBoard::new(1);
    // Two syncs are the region's first touch, the third is the first output's.
    let memory = Mutant::new(board.memory(4096).unwrap(), Mutation::RefusedOnce(3));
    let region = Region::new(memory).unwrap();
    let driver = TwoOutputs(Scripted::new(board.port(), OperandSpec::from_device()));
    let mut queue = Queue::new(driver, 1).unwrap();
    let buffers = [1, 2].map(|value| {
        let mut buf = region.alloc(64, Align::LINE).unwrap();
        buf.view_mut::<u8>().unwrap().fill(value);
        buf.from_device(..)
    });
    let refused = queue.submit(buffers, &[]).unwrap_err();
    assert_eq!((refused.error, refused.operand), (REFUSAL, Some(1)));
    assert!(refused.to_string().starts_with("operand 1: "), "{refused}");
    let [one, two] = refused.buffers.unwrap().map(|operand| operand.into_buf().unwrap());
    assert_eq!(
        (one.view::<u8>().unwrap(), two.view::<u8>().unwrap()),
        (&[1; 64][..], &[2; 64][..])
    );
}

/// A block that a region leaks stays mapped, also when whatever its backend borrowed is gone
/// (`Backend`, 2).
#[test]
fn leaked_block_outlives_board_and_port() {
    fn leaked(backend: impl Backend + 'static) -> (usize, usize) {
        let Mapping { cpu, len_bytes, .. } = backend.mapping();
        let region = contigo::Region::new(backend).unwrap();
        std::mem::forget(region.alloc(64, Align::LINE).unwrap());
        (cpu.as_ptr().addr(), len_bytes)
    }
    let on_sim = leaked(SimBoard::new(1).memory(4096).unwrap());
    let on_board =
        leaked(OnBoard::new(&SimBoard::new(1), SimBoard::new(2).memory(4096).unwrap()).unwrap());
    let dev_node = FakeDevNode::new(DevNodeConfig::default()).open_dev_node().unwrap();
    let imported = leaked(
        DmaHeap::allocate_for_from(Arc::new(FakeHeap::new(Pages::Entry(0))), &dev_node, HEAP, 4096)
            .unwrap(),
    );
    let own = leaked(dev_node.allocate(4096).unwrap());
    drop(dev_node);
    for (cpu, len_bytes) in [on_sim, on_board, imported, own] {
        assert!(is_mapped(cpu, len_bytes), "{len_bytes} bytes at {cpu:#x}");
    }
}

/// A backend whose syncs for the device end, except for those from this number on.
struct Unsettled<B> {
    inner: B,
    first: usize,
    begun: AtomicUsize,
}

impl<B> Unsettled<B> {
    const fn from(first: usize, inner: B) -> Self {
        Self { inner, first, begun: AtomicUsize::new(0) }
    }
}

const GOES_ON: Error = Error::Timeout { timeout_us: 10_000_000 };

// SAFETY: all of it is the inner one's, and `settled` refuses more than that does.
unsafe impl<B: Backend> Backend for Unsettled<B> {
    forward!(|this| this.inner => name, mapping, segment, sync_for_cpu, held_by, wrong_accesses);
    unsafe fn sync_for_device(&self, range: Range<usize>, direction: Direction) -> Result<()> {
        self.begun.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { self.inner.sync_for_device(range, direction) }
    }
    fn settled(&self, _: Range<usize>) -> Result<()> {
        if self.begun.load(Ordering::Relaxed) > self.first { Err(GOES_ON) } else { Ok(()) }
    }
}

/// The device reads all of `buf`, whose address it never gets.
fn read_by_a_device(buf: contigo::CpuBuf, port: &Port) -> DevBuf {
    // SAFETY: no device receives its address.
    unsafe { buf.hand_over(port, 64, .., Direction::ToDevice) }.unwrap()
}

fn page(read_only: bool) -> TensorSpec {
    TensorSpec { read_only, ..TensorSpec::new(DataType::U8, Shape::new(&[4096]).unwrap()) }
}

/// A backend's transfer was late, and its bytes came back because the device had only read them, or
/// because a simulated board was over it. A tensor of them was lent, and a descriptor was written
/// anew, while the transfer read them.
#[test]
fn bytes_in_transfer_stay_with_device() {
    static TENSORS: TensorTable<1> = TensorTable::new();
    let (one, two) = (SimBoard::new(1), SimBoard::new(2));
    let port = Port { coherent: false, ..one.port() };
    let late = Unsettled::from(0, two.memory(8192).unwrap());
    let region = Region::new(OnBoard::new(&one, late).unwrap()).unwrap();
    let buf = read_by_a_device(region.alloc(4096, Align::LINE).unwrap(), &port);
    let refused = TENSORS.lend(buf, &page(true)).unwrap_err();
    assert_eq!(refused.error, GOES_ON);
    let refused = refused.into_returned().into_cpu().unwrap_err();
    assert_eq!(refused.error, GOES_ON);
    let mut words = DriverBuf::new(region.alloc(64, Align::LINE).unwrap(), &port, 64).unwrap();
    // SAFETY: no device receives its address.
    assert_eq!(unsafe { words.write(0, &[1]) }, Err(GOES_ON));
}

/// A tensor was lent to a consumer that writes, and its own hand-over went on.
#[test]
fn a_tensor_waits_for_its_own_hand_over() {
    static TENSORS: TensorTable<1> = TensorTable::new();
    let board = SimBoard::new(1);
    let port = Port { coherent: false, ..board.port() };
    // Number 0 is the region's own, and 1 and 2 are the hand-overs'.
    let region = Region::new(Unsettled::from(3, board.memory(8192).unwrap())).unwrap();
    let lent = |read_only| {
        let buf = read_by_a_device(region.alloc(4096, Align::LINE).unwrap(), &port);
        let lent = TENSORS.lend(buf, &page(read_only));
        lent.map(|lent| drop(lent.take_back().unwrap())).map_err(|refused| refused.error)
    };
    assert_eq!((lent(true), lent(false)), (Ok(()), Err(GOES_ON)));
}
