//! Programs that once reached through a hole, kept closed: what each did is said above it. Those
//! that no longer compile are in `compile_fail/`.

use contigo::{
    Align, Backend, Completion, Device, Direction, Driver, Error, Mmio, OperandSpec, Port, Queue,
    Region, Result, Wait,
    dlpack::{DataType, Shape, TensorSpec, TensorTable},
    forward,
    hw::Wired,
    linux::{Spin, memory::DmaHeap},
    mem::{DevSlice, DriverBuf, Mapping, SyncScope},
    sim::{OnBoard, SimBoard, SimSpec, SimWindow},
};
use contigo_gemm8::{Gemm, Gemm8, Gemm8Model, Output, SimGemm8, regs};
use contigo_testkit::{
    conformance::mutant::{Mutant, Mutation, REFUSAL},
    fake_dev_node::{DevNodeConfig, FakeDevNode},
    fake_dma_heap::{FakeHeap, HEAP, Pages},
    mapped::is_mapped,
};
use std::{
    cell::Cell,
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

const GEMM: Gemm = Gemm { m: 1, n: 16, k: 16, output: Output::Int8 { relu: false, shift: 0 } };
const LIMIT: Duration = Duration::from_millis(1);

fn queue(device: &SimGemm8) -> Queue<Gemm8<SimWindow<Gemm8Model>>> {
    Queue::new(Gemm8::open_simulated(device.window().unwrap()).unwrap(), 1).unwrap()
}

/// A job read a part of a line. The rest of the line, which the CPU had written, stayed dirty. A
/// later job wrote the same bytes, and the dirty bytes were lost or overwrote its result.
#[test]
fn part_line_is_cleaned_before_it_is_written() {
    for seed in 0..32 {
        let board = SimBoard::new(seed);
        let region = Region::new(board.memory(8192).unwrap()).unwrap();
        let pool = region.pool(8, 512).unwrap();
        let device = SimGemm8::new(&board, board.port());
        let mut queue = queue(&device);
        let [mut a, b, mut bias, c] = [0; 4].map(|_| pool.take().unwrap());
        bias.view_mut::<i32>().unwrap().fill(3);
        a.view_mut::<u8>().unwrap().fill(0);
        // The CPU's own, in the same line, not handed over.
        a.view_mut::<u8>().unwrap()[16..64].fill(0x55);
        queue
            .submit(
                [a.to_device(..16), b.to_device(..), bias.to_device(..), c.from_device(..)],
                &GEMM.words(),
            )
            .unwrap();
        let [a, b, bias, c] = queue.wait_device(LIMIT).unwrap().unwrap().buffers;
        let [_, _, _, a] = queue
            .run(
                [c.to_device(..), b.to_device(..), bias.to_device(..), a.from_device(..16)],
                &GEMM.words(),
                LIMIT,
            )
            .unwrap()
            .buffers;
        let view = a.view::<u8>().unwrap();
        assert_eq!(view[16..64], [0x55; 48], "seed {seed}: the CPU's bytes");
        assert_eq!(view[..16], [3; 16], "seed {seed}: the device's bytes");
    }
}

/// Under a whole-block sync, `from_device(range)` threw away what the CPU had written beside the
/// range.
#[test]
fn whole_block_sync_keeps_rest_of_buffer() {
    let board = SimBoard::new(1);
    let spec = SimSpec { len_bytes: 4096, scope: SyncScope::Whole, ..SimSpec::default() };
    let region = Region::new(board.memory_with(spec).unwrap()).unwrap();
    let others = Region::new(board.memory(8192).unwrap()).unwrap();
    // It came back: it does not count as another buffer in use.
    drop(region.alloc(64, Align::LINE).unwrap());
    let mut c = region.alloc(4096, Align::LINE).unwrap();
    c.view_mut::<u8>().unwrap().fill(0x55);
    let pool = others.pool(4, 512).unwrap();
    let device = SimGemm8::new(&board, board.port());
    let mut queue = queue(&device);
    let [a, b, bias] = [0; 3].map(|_| pool.take().unwrap());
    let [_, _, _, c] = queue
        .run(
            [a.to_device(..), b.to_device(..), bias.to_device(..), c.from_device(64..128)],
            &GEMM.words(),
            LIMIT,
        )
        .unwrap()
        .buffers;
    let view = c.view::<u8>().unwrap();
    assert_eq!((view[0], view[64], view[80], view[4095]), (0x55, 0, 0x55, 0x55));
}

/// A job that the device itself refused, after it had written, came back as CPU buffers whose
/// caches were stale.
#[test]
fn late_failed_start_returns_devices_side() {
    struct HalfStart<'d>(&'d SimGemm8, Gemm8<SimWindow<Gemm8Model>>);
    // SAFETY: all of it is Gemm8's; that `submit` fails after the doorbell is what its errors are
    // for.
    unsafe impl Driver for HalfStart<'_> {
        fn name(&self) -> &'static str {
            "half"
        }
        fn addr_bits(&self) -> u32 {
            64
        }
        fn operands(&self) -> &[OperandSpec] {
            self.1.operands()
        }
        fn port(&self) -> &Port {
            self.1.port()
        }
        fn check(&self, operands: &[DevSlice], args: &[u32]) -> Result<()> {
            self.1.check(operands, args)
        }
        unsafe fn submit(
            &mut self,
            slot: usize,
            operands: &[DevSlice],
            args: &[u32],
        ) -> Result<()> {
            // SAFETY: the caller's promise.
            unsafe { self.1.submit(slot, operands, args)? };
            self.0.run_for(1000)?;
            Err(Error::Fault { device: "half", status: 1, what: "late" })
        }
        fn poll(&mut self, timeout: Duration) -> Result<Option<Completion>> {
            self.1.poll(timeout)
        }
        fn stop(&mut self) -> Result<()> {
            self.1.stop()
        }
    }
    let board = SimBoard::new(1);
    let region = Region::new(board.memory(8192).unwrap()).unwrap();
    let pool = region.pool(8, 512).unwrap();
    let device = SimGemm8::new(&board, board.port());
    let driver = Gemm8::open_simulated(device.window().unwrap()).unwrap();
    let mut queue = Queue::new(HalfStart(&device, driver), 1).unwrap();
    let [a, b, mut bias, c] = [0; 4].map(|_| pool.take().unwrap());
    bias.view_mut::<i32>().unwrap().fill(3);
    let failed = queue
        .submit(
            [a.to_device(..), b.to_device(..), bias.to_device(..), c.from_device(..64)],
            &GEMM.words(),
        )
        .unwrap_err();
    assert_eq!(failed.error, Error::Fault { device: "half", status: 1, what: "late" });
    let [.., c] = failed.buffers.unwrap();
    let c = c.into_buf().unwrap_err().into_cpu().unwrap();
    assert_eq!(c.view::<u8>().unwrap()[..16], [3; 16]);
}

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
    let driver = scripted(
        slow,
        |value| {
            if value == 1 {
                aborted.set(Some(Instant::now()))
            }
        },
        Spin,
    );
    assert!(Queue::new(driver, 1).is_ok());

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
    struct Idle(Port);
    // SAFETY: it touches no memory.
    unsafe impl Driver for Idle {
        fn name(&self) -> &'static str {
            "idle"
        }
        fn addr_bits(&self) -> u32 {
            64
        }
        fn operands(&self) -> &[OperandSpec] {
            const { &[OperandSpec::from_device(); 2] }
        }
        fn port(&self) -> &Port {
            &self.0
        }
        fn check(&self, _: &[DevSlice], _: &[u32]) -> Result<()> {
            Ok(())
        }
        unsafe fn submit(&mut self, _: usize, _: &[DevSlice], _: &[u32]) -> Result<()> {
            Ok(())
        }
        fn poll(&mut self, _: Duration) -> Result<Option<Completion>> {
            Ok(Some(Completion::of(0)))
        }
        fn stop(&mut self) -> Result<()> {
            Ok(())
        }
    }
    let board = SimBoard::new(1);
    // Two syncs are the region's first touch, the third is the first output's.
    let memory = Mutant::new(board.memory(4096).unwrap(), Mutation::RefusedOnce(3));
    let region = Region::new(memory).unwrap();
    let mut queue = Queue::new(Idle(board.port()), 1).unwrap();
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

/// A backend's transfer was late, and its bytes came back because the device had only read them, or
/// because a simulated board was over it. A tensor of them was lent, and a descriptor was written
/// anew, while the transfer read them.
#[test]
fn bytes_in_transfer_stay_with_device() {
    static TENSORS: TensorTable<1> = TensorTable::new();
    let (one, two) = (SimBoard::new(1), SimBoard::new(2));
    let port = Port { coherent: false, ..one.port() };
    let region =
        Region::new(OnBoard::new(&one, Unsettled::from(0, two.memory(8192).unwrap())).unwrap())
            .unwrap();
    let mut buf = region.alloc(4096, Align::LINE).unwrap();
    buf.view_mut::<u8>().unwrap().fill(1);
    // SAFETY: no device receives its address.
    let buf = unsafe { buf.hand_over(&port, 64, .., Direction::ToDevice) }.unwrap();
    let spec = TensorSpec {
        read_only: true,
        ..TensorSpec::new(DataType::U8, Shape::new(&[4096]).unwrap())
    };
    let refused = TENSORS.lend(buf, &spec).unwrap_err();
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
        let buf = region.alloc(4096, Align::LINE).unwrap();
        // SAFETY: no device receives its address.
        let buf = unsafe { buf.hand_over(&port, 64, .., Direction::ToDevice) }.unwrap();
        let spec =
            TensorSpec { read_only, ..TensorSpec::new(DataType::U8, Shape::new(&[4096]).unwrap()) };
        TENSORS
            .lend(buf, &spec)
            .map(|lent| drop(lent.take_back().unwrap()))
            .map_err(|refused| refused.error)
    };
    assert_eq!(lent(true), Ok(()));
    assert_eq!(lent(false), Err(GOES_ON));
}
