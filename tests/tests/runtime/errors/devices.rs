//! Devices that fail, that will not stop, that are not what they should be, and a lock that
//! another thread keeps.

use super::{
    Watched,
    jobs::{GEMM, GemmQueue, LIMIT, SLOT, operands, queue, refusal},
};
use contigo::{
    Align, Error, JobError, Operand, OperandSpec, Port, Queue, Region,
    design::kernel::{self, KernelMap, Protocol},
    drivers::{
        ap_ctrl::ApCtrl,
        axi_dma::{AxiDmaConfig, Side},
    },
    hw::{MmioWindow, Wired},
    job::{Parts, Settings},
    linux::Spin,
    names::{self, Attach, DeviceName, GpuKind, MemoryName, provide, row},
    sim::{
        Faults, Model, SimBoard, SimBus, SimConfig, SimDevice,
        ap_ctrl::ApCtrlModel,
        axi_dma::{AxiDmaModel, CoreSpec},
    },
};
use contigo_gemm8::{Gemm8, SimGemm8, regs};
use std::{
    ptr::NonNull,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

#[test]
fn devices_that_fail() {
    that_fail();
}

#[test]
fn devices_that_will_not_stop() {
    that_will_not_stop();
}

#[test]
fn devices_that_are_not_there() {
    that_are_not_there();
}

/// One job on a board where that fault strikes every time. Where the job did not fail alone, the
/// device was stopped. The buffers are back, on its side.
fn failure(faults: Faults, alone: bool) -> Error {
    let (board, freed) =
        (SimBoard::with(SimConfig { seed: 3, faults }), Arc::new(AtomicUsize::new(0)));
    let region =
        Region::new(Watched { inner: board.memory(8192).unwrap(), freed: Arc::clone(&freed) })
            .unwrap();
    let pool = region.pool(4, SLOT).unwrap();
    let device = SimGemm8::new(&board, board.port());
    let mut queue = queue(&device);
    let operands = operands([(); 4].map(|()| pool.take().unwrap()));
    let JobError { error, cause, buffers, .. } =
        queue.run(operands, &GEMM.words(), Duration::from_millis(2)).unwrap_err();
    assert_eq!((cause, pool.taken()), (error, 4));
    drop(buffers.unwrap().map(Operand::into_cpu));
    let counts = queue.counts();
    assert_eq!((pool.taken(), queue.len(), queue.is_stopped()), (0, 0, false));
    assert_eq!(
        [counts.failed, counts.stopped, counts.cancelled],
        if alone { [1, 0, 0] } else { [0, 1, 1] }
    );
    drop((pool, region));
    assert_eq!(freed.load(Ordering::Relaxed), 1);
    error
}

pub(super) fn that_fail() -> Vec<Error> {
    let hung = failure(Faults { hang: 1000, ..Faults::NONE }, false);
    assert_eq!(hung, Error::Timeout { timeout_us: 2000 });
    let fault = failure(Faults { error: 1000, ..Faults::NONE }, true);
    let (status, what) = (regs::STATUS_READ, regs::describe(regs::STATUS_READ));
    assert_eq!(fault, Error::Fault { device: "gemm8", status, what });
    let short = failure(Faults { short: 1000, ..Faults::NONE }, false);
    assert!(matches!(short, Error::ShortTransfer { need_bytes: 64, done_bytes: 0..64 }), "{short}");
    vec![hung, fault, short, that_fails_at_an_address(), that_cuts_a_length(), that_goes_too_far()]
}

/// A kernel that copies 64 bytes, and a map that says 16.
fn that_goes_too_far() -> Error {
    let board = SimBoard::new(3);
    let region = Region::new(board.memory(8192).unwrap()).unwrap();
    let kernel = SimDevice::<ApCtrlModel>::new(&board, board.port());
    let (from, to) = (OperandSpec::to_device(), OperandSpec::from_device());
    let map =
        KernelMap::named("copy", Protocol::Chain).interrupt(true).result("ap_return", 0x10, 32);
    let map = map
        .pointer("from", 0x18, from, "16")
        .pointer("to", 0x24, to, "16")
        .scalar("n", 0x30, 32)
        .build()
        .unwrap();
    // SAFETY: the map is wrong, and what the model touches is the board's.
    let mut queue =
        Queue::new(unsafe { ApCtrl::open(kernel.window().unwrap(), map) }.unwrap(), 1).unwrap();
    let [from, to] = [(); 2].map(|()| region.alloc(64, Align::LINE).unwrap());
    let failed = queue
        .run([from.to_device(..16), to.from_device(..16)], &[64], Duration::from_millis(2))
        .unwrap_err();
    assert_eq!((failed.buffers.is_some(), queue.len()), (true, 0));
    assert_eq!(failed.error, Error::WrongAccess { device: "ap_ctrl", unowned: 2, stray: 0 });
    failed.error
}

/// A core whose length register has 14 bits, and a driver that was told of 15.
fn that_cuts_a_length() -> Error {
    let board = SimBoard::new(3);
    let region = Region::new(board.memory(32 * 1024).unwrap()).unwrap();
    let device = SimDevice::with_model(
        &board,
        board.port(),
        AxiDmaModel::new(CoreSpec { sg: false, ..CoreSpec::default() }),
    );
    let config = AxiDmaConfig { length_bits: 15, ..AxiDmaConfig::default() };
    let mut queue =
        Queue::new(device.window().unwrap().channel(Side::S2mm, config, None).unwrap(), 1).unwrap();
    let refused = queue
        .submit([region.alloc(16_384, Align::PAGE).unwrap().from_device(..)], &[])
        .unwrap_err();
    let cut = Error::LengthCut {
        device: "axi_dma s2mm",
        length_bits: 15,
        need_bytes: 16_384,
        done_bytes: 0,
    };
    assert_eq!((refused.error, refused.buffers.is_some()), (cut, true));
    cut
}

/// A core that says where memory answered with an error.
fn that_fails_at_an_address() -> Error {
    let board =
        SimBoard::with(SimConfig { seed: 3, faults: Faults { error: 1000, ..Faults::NONE } });
    let region = Region::new(board.memory(8192).unwrap()).unwrap();
    let pool = region.pool(1, SLOT).unwrap();
    let device = SimDevice::with_model(
        &board,
        board.port(),
        AxiDmaModel::new(CoreSpec { sg: false, ..CoreSpec::default() }),
    );
    let driver =
        device.window().unwrap().channel(Side::Mm2s, AxiDmaConfig::default(), None).unwrap();
    let mut queue = Queue::new(driver, 1).unwrap();
    let mut buf = pool.take().unwrap();
    let at = region.dev_addr_of(&board.port(), buf.as_mut_ptr(), SLOT).unwrap().0;
    let failed = queue.run([buf.to_device(..)], &[], Duration::from_millis(2)).unwrap_err();
    let Error::FaultAt { device: "axi_dma mm2s", what, addr, .. } = failed.error else {
        panic!("{}", failed.error)
    };
    assert!(addr == at && what.starts_with("DMASlvErr: "), "{}", failed.error);
    failed.error
}

/// Jobs on a board where about every second one sticks: their buffers stay in the queue, and come
/// back after a reset from outside, with which the queue works again.
pub(super) fn that_will_not_stop() -> Vec<Error> {
    let board =
        SimBoard::with(SimConfig { seed: 5, faults: Faults { stuck: 500, ..Faults::NONE } });
    let freed = Arc::new(AtomicUsize::new(0));
    let region =
        Region::new(Watched { inner: board.memory(8192).unwrap(), freed: Arc::clone(&freed) })
            .unwrap();
    let pool = region.pool(8, SLOT).unwrap();
    let device = SimGemm8::new(&board, board.port());
    let mut queue = queue(&device);
    let (mut stuck, mut good, mut provoked) = (0, 0, Vec::new());
    let take = || [(); 4].map(|()| pool.take().unwrap());
    let is_stuck = |queue: &mut GemmQueue| {
        queue.run(operands(take()), &GEMM.words(), Duration::from_millis(2)).err()
    };
    while stuck < 4 || good < 4 {
        match is_stuck(&mut queue) {
            None => good += 1,
            Some(failed) => {
                stuck += 1;
                assert!(
                    matches!(
                        failed.error,
                        Error::WillNotStop { device: "gemm8", status: 1, waited_us: 10_000 }
                    ),
                    "{}",
                    failed.error
                );
                assert_eq!(failed.cause, Error::Timeout { timeout_us: 2000 });
                assert!(failed.to_string().ends_with(&format!("; before that: {}", failed.cause)));
                assert!(failed.buffers.is_none(), "the device may write them");
                assert_eq!(queue.stop().unwrap_err(), failed.error, "it is still stuck");
                assert!(queue.take_back::<4>().unwrap().is_none(), "the device may write them");
                let (busy, _) = refusal(&mut queue, operands(take()), &GEMM);
                assert_eq!((busy, pool.taken(), queue.len()), (Error::Busy, 4, 1));
                device.reset().unwrap();
                queue.stop().unwrap();
                drop(queue.take_back::<4>().unwrap().unwrap().buffers);
                provoked.extend([failed.error, failed.cause, busy]);
            }
        }
        assert_eq!((pool.taken(), queue.len(), queue.is_stopped()), (0, 0, false));
    }
    while is_stuck(&mut queue).is_none() {}
    drop(queue);
    assert_eq!(pool.taken(), 4, "leaked, not freed");
    drop((pool, region));
    assert_eq!(freed.load(Ordering::Relaxed), 0, "a device may still write: the region is leaked");
    provoked
}

#[test]
fn queue_on_a_stuck_device_returns_its_driver() {
    let board =
        SimBoard::with(SimConfig { seed: 5, faults: Faults { stuck: 1000, ..Faults::NONE } });
    let pool = Region::new(board.memory(8192).unwrap()).unwrap().pool(4, SLOT).unwrap();
    let device = SimGemm8::new(&board, board.port());
    let mut first = queue(&device);
    first.submit(operands([(); 4].map(|()| pool.take().unwrap())), &GEMM.words()).unwrap();
    drop(first);
    let refused =
        GemmQueue::new(Gemm8::open_simulated(device.window().unwrap()).unwrap(), 1).unwrap_err();
    assert!(matches!(refused.error, Error::WillNotStop { .. }));
    device.reset().unwrap();
    assert!(GemmQueue::new(refused.into_returned(), 1).is_ok());
}

/// A device whose register reads do not end before a test ends them, and keep the board's lock
/// meanwhile.
struct Slow<'t>(&'t Kept);

#[derive(Default)]
struct Kept {
    taken: AtomicBool,
    over: AtomicBool,
}

impl Kept {
    /// Waits for a flag, at most for half a minute: a test that failed must not hang.
    fn wait(flag: &AtomicBool) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while !flag.load(Ordering::Acquire) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Says that it is over, also when a test fails.
struct GiveBack<'t>(&'t Kept);

impl Drop for GiveBack<'_> {
    fn drop(&mut self) {
        self.0.over.store(true, Ordering::Release);
    }
}

// SAFETY: it touches no memory.
unsafe impl Model for Slow<'_> {
    const WINDOW_BYTES: usize = 4;
    fn advance(&mut self, _: &mut SimBus<'_>) {}
    fn read32(&mut self, _: usize, _: &mut SimBus<'_>) -> u32 {
        self.0.taken.store(true, Ordering::Release);
        Kept::wait(&self.0.over);
        0
    }
    fn write32(&mut self, _: usize, _: u32, _: &mut SimBus<'_>) {}
    fn irq_at_ns(&self) -> Option<u64> {
        None
    }
    fn reset(&mut self) {}
}

pub(super) fn that_are_not_there() -> Vec<Error> {
    // Memory in a register window's place: all zeros, as an address where no gemm8 is.
    let mut words = [0_u32; regs::WINDOW_BYTES / 4];
    let port = SimBoard::new(1).port();
    let mut open = |len_bytes| {
        let base = NonNull::from(&mut words).cast();
        // SAFETY: the array is longer, outlives the window, and is no device: nothing reaches
        // memory by itself.
        let device = unsafe { Wired::new(MmioWindow::new(base, len_bytes), Spin, port) };
        // SAFETY: it is no gemm8, and no device at all: what is written to it stays in the array.
        unsafe { Gemm8::open(device) }.unwrap_err()
    };
    let small = open(regs::WINDOW_BYTES - 4);
    assert_eq!(
        small,
        Error::RegisterWindow { device: "gemm8", need_bytes: 0x90, have_bytes: 0x8C }
    );
    let absent = open(regs::WINDOW_BYTES);
    assert_eq!(
        absent,
        Error::WrongDevice { device: "gemm8", register: "ID", expected: regs::ID_VALUE, found: 0 }
    );
    let misspelt = names::row("axi_dam").unwrap_err();
    let told = misspelt.to_string();
    assert!(
        told.starts_with("there is no such driver; others that are here: axi_dma, ")
            && told.contains(", and "),
        "{told}"
    );
    assert_eq!(told.matches(", ").count(), 8, "eight names at most: {told}");
    vec![
        misspelt,
        small,
        absent,
        a_lock_that_another_keeps(port),
        a_gpu_that_another_crate_brings(),
    ]
}

/// A crate brings the names of a kind of GPU, and only of a kind that is known.
fn a_gpu_that_another_crate_brings() -> Error {
    const LOST: Error =
        Error::Gpu { call: "vkQueueSubmit", code: -4, name: "VK_ERROR_DEVICE_LOST" };
    static VULKAN: GpuKind = GpuKind {
        kind: "vulkan",
        open: |ordinal| if ordinal == 7 { Err(LOST) } else { panic!("{ordinal}") },
    };
    static UNKNOWN: GpuKind = GpuKind { kind: "metal", open: |_| Err(LOST) };
    let open = || "vulkan:7".parse::<DeviceName>().unwrap().open().map(drop);
    assert_eq!(provide(&UNKNOWN), Err(Error::NotFound { what: "kind of GPU", among: 2.into() }));
    assert_eq!(
        (provide(&VULKAN), provide(&VULKAN)),
        (Ok(()), Ok(())),
        "a second time changes nothing"
    );
    assert_eq!(
        "vulkan:7".parse::<MemoryName>().unwrap().open(4096).map(drop),
        Err(LOST),
        "the device's memory opens the device"
    );
    open().unwrap_err()
}

/// A cache maintenance call that has to wait too long is not done, and the job's buffers come back.
fn a_lock_that_another_keeps(port: Port) -> Error {
    let (board, lock) = (SimBoard::new(1), Kept::default());
    let pool = Region::new(board.memory(8192).unwrap()).unwrap().pool(4, SLOT).unwrap();
    let (device, slow) =
        (SimGemm8::new(&board, board.port()), SimDevice::with_model(&board, port, Slow(&lock)));
    let mut queue = queue(&device);
    let window = slow.window().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| contigo::Mmio::read32(&window, 0));
        let keeper = GiveBack(&lock);
        Kept::wait(&lock.taken);
        let (error, buffers) =
            refusal(&mut queue, operands([(); 4].map(|()| pool.take().unwrap())), &GEMM);
        drop(keeper);
        assert!(matches!(error, Error::Contended { tries: 1000.. }), "{error}");
        let _ = queue.run(operands(buffers), &GEMM.words(), LIMIT).unwrap();
        assert_eq!(pool.taken(), 0);
        error
    })
}

/// Texts: a driver's settings, and a kernel's map.
pub(crate) fn whose_settings_are_wrong() -> Vec<Error> {
    let settings = Settings("channel=two, evnet=1");
    let map = kernel::any(b"{\"name\": 1}", "").unwrap_err();
    vec![
        settings.number("channel", 0, 31).unwrap_err(),
        settings.only(&["channel", "event"]).unwrap_err(),
        Error::from(map),
        that_no_model_has(),
    ]
}

/// The refusal of a driver by its name on a simulated device by its name; `None`: it is opened.
fn by_name(device: &str, settings: &str, map: Option<&str>) -> Option<Error> {
    let name = device.parse::<DeviceName>().unwrap();
    let driver = row(device
        .trim_start_matches("sim:")
        .trim_end_matches("_camera")
        .trim_end_matches("_sink")
        .trim_end_matches("_hs"))
    .unwrap();
    let (device, settings) = (name.open().unwrap(), Settings(settings));
    let region =
        Region::new(device.memory(&"sim".parse::<MemoryName>().unwrap(), 64 * 1024).unwrap())
            .unwrap();
    let memory =
        (driver.memory_bytes > 0).then(|| region.alloc(driver.memory_bytes, Align::PAGE).unwrap());
    // SAFETY: the model is what the driver is for, and no other code drives it.
    let opened = unsafe {
        device.take(driver, settings, None, Attach::default()).and_then(|taken| {
            taken
                .open(Parts { device: (), memory, settings, map: map.map(str::as_bytes) })
                .map(drop)
        })
    };
    opened.err()
}

/// What no register tells, a simulated core is built with: another number is refused with both.
fn that_no_model_has() -> Error {
    let refused = |device, settings, what, value, min, max| {
        assert_eq!(
            by_name(device, settings, None),
            Some(Error::OtherModel { what, value, min, max }),
            "{device} {settings}"
        );
    };
    refused("sim:axi_dma_sink", "channel=1", "channel", 1, 0, 0);
    let stores = "hsize_bytes=64,vsize_lines=64,frame_stores=1";
    refused("sim:axi_vdma", stores, "frame_stores", 1, 3, 32);
    refused("sim:axi_mcdma", "channel=0,address_bits=64", "address_bits", 64, 32, 32);
    refused("sim:msgdma", "resp_at=0x40", "resp_at", 0x40, 0, 0);
    refused("sim:litepcie", "reader_at=0x100", "reader_at", 0x100, 0x6020, 0x6020);
    // Of a length and a width by its name a core has all that a design can have.
    for (device, settings) in [
        ("sim:axi_dma", "length_bits=26,address_bits=32,mm2s_data_bits=512"),
        ("sim:axi_cdma", "length_bits=26,address_bits=64,data_bits=128,dre=0"),
        ("sim:axi_vdma_sink", "channel=0,hsize_bytes=1920,vsize_lines=1080"),
        ("sim:litepcie", "reader_at=0x6020"),
    ] {
        assert_eq!(by_name(device, settings, None), None, "{device} {settings}");
    }
    // `int fir(x, y, coef, n)`, on the kernel `copy(from, to, n)`.
    let copy = r#"{"name": "copy", "protocol": "ap_ctrl_chain", "interrupt": true,
        "pointers": [{"name": "from", "offset": "0x18", "direction": "in", "bytes": "n"},
                     {"name": "to", "offset": "0x24", "direction": "out", "bytes": "n"}],
        "scalars": [{"name": "n", "offset": "0x30"}], "results": [{"name": "ap_return", "offset": "0x10"}]}"#;
    let without = copy.replace(r#", "results": [{"name": "ap_return", "offset": "0x10"}]"#, "");
    for map in [copy, &without, &copy.replace("\"n\"}", "\"4*n\"}")] {
        assert_eq!(
            by_name("sim:ap_ctrl", "", Some(map)),
            None,
            "the same registers, other names and lengths"
        );
    }
    let other = |device, map: &str| by_name(device, "", Some(map)).unwrap();
    let protocol = "the map's protocol (0: ap_ctrl_hs, 1: ap_ctrl_chain)";
    assert_eq!(
        other("sim:ap_ctrl_hs", copy),
        Error::OtherModel { what: protocol, value: 1, min: 0, max: 0 }
    );
    for (from, to, what, value, at) in [
        ("0x24", "0x28", "a pointer's offset in the map", 0x28, 0x24),
        ("0x30", "0x3C", "a scalar's offset in the map", 0x3C, 0x30),
        ("0x10", "0x14", "a result's offset in the map", 0x14, 0x10),
    ] {
        let moved = other("sim:ap_ctrl", &copy.replace(from, to));
        assert_eq!(moved, Error::OtherModel { what, value, min: at, max: at });
    }
    let fir = copy.replace(
        r#""bytes": "n"}],"#,
        r#""bytes": "n"}, {"name": "coef", "offset": "0x3C", "bytes": "64"}],"#,
    );
    let failed = other("sim:ap_ctrl", &fir);
    assert_eq!(
        failed,
        Error::OtherModel { what: "the count of pointers in the map", value: 3, min: 2, max: 2 }
    );
    failed
}
