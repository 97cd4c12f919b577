//! Whole programs whose memory, pool and queue lie in one structure: built, moved to a thread, run
//! and dropped ten thousand times, they leave the process as it was. One test, because it measures
//! the process.
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that panics has failed; fakes of the kernel are promises"
)]

use contigo::job::{AnyDriver, Parts, Settings};
use contigo::linux::memory::{DmaHeap, HugeTlb};
use contigo::names::{AnyMemory, Attach, DeviceName, row};
use contigo::sim::zdma::ZdmaModel;
use contigo::sim::{SimBoard, SimDevice, SimSpec};
use contigo::types::BaseAddr;
use contigo::{Align, Backend, CpuBuf, PhysAddr, Pool, Queue, Region};
use contigo_testkit::fake_dma_heap::{FakeHeap, HEAP, Pages};
use contigo_testkit::fake_u_dma_buf::{Config, FakeUDmaBuf};
use contigo_testkit::{emulated, rounds};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{fs, thread};

const ROUNDS: u64 = 10_000;
const SLOT: usize = 4096;

/// What a program keeps. No lifetime.
struct App {
    region: Region,
    frames: Pool,
    weights: CpuBuf,
    queue: Option<Queue<AnyDriver>>,
}

impl App {
    fn new(backend: impl Backend + 'static, driver: Option<AnyDriver>) -> Self {
        let region = Region::new(backend).map_err(|refused| refused.error).unwrap();
        let frames = region.pool(4, SLOT).unwrap();
        let weights = region.alloc(10_000, Align::DLPACK).unwrap();
        let queue = driver.map(|driver| Queue::new(driver, 8).unwrap());
        Self { region, frames, weights, queue }
    }

    /// A copy by the device, and some of the CPU's own work. What is returned outlives the app.
    fn run(&mut self) -> CpuBuf {
        self.weights.view_mut::<u8>().unwrap().fill(3);
        let (mut from, to) = (self.frames.take().unwrap(), self.frames.take().unwrap());
        from.view_mut::<u8>().unwrap().fill(7);
        let Some(queue) = &mut self.queue else { return from };
        let [_, to] = queue
            .run([from.to_device(..), to.from_device(..)], &[], Duration::from_millis(200))
            .unwrap()
            .buffers;
        assert_eq!(to.view::<u8>().unwrap(), [7; SLOT]);
        to
    }
}

/// The driver of a simulated channel.
fn zdma(device: &SimDevice<ZdmaModel>) -> AnyDriver {
    AnyDriver::new(device.window().unwrap().simple().unwrap()).unwrap()
}

/// Memory of the device called `name`, and its driver. Neither keeps more of it than it needs.
fn by_name(name: &str, settings: &str) -> (AnyMemory, Option<AnyDriver>) {
    let device = name.parse::<DeviceName>().unwrap().open().unwrap();
    let memory = |len_bytes| device.memory(&"sim".parse().unwrap(), len_bytes).unwrap();
    let row = row(name.trim_start_matches("sim:")).unwrap();
    let own = (row.memory_bytes > 0)
        .then(|| Region::new(memory(4096)).unwrap().alloc(row.memory_bytes, Align::LINE).unwrap());
    let settings = Settings(settings);
    // SAFETY: the model is what the row is for, and no other code drives it.
    let driver = unsafe {
        let taken = device.take(row, settings, None, Attach::default()).unwrap();
        taken.open(Parts { device: (), memory: own, settings, map: None }).unwrap()
    };
    (memory(64 << 10), Some(driver))
}

/// What the process has, as the kernel counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Footprint {
    resident_kib: usize,
    files: usize,
    mappings: usize,
}

impl Footprint {
    fn now() -> Self {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        Self {
            resident_kib: resident.split_whitespace().next().unwrap().parse().unwrap(),
            files: fs::read_dir("/proc/self/fd").unwrap().count(),
            mappings: maps.lines().count(),
        }
    }
}

/// Many apps, each moved to a thread and dropped there, and its last buffer dropped here.
fn many<B: Backend + 'static>(name: &str, mut open: impl FnMut() -> (B, Option<AnyDriver>)) {
    let rounds = if emulated::why().is_some() { 100 } else { rounds(ROUNDS) };
    let mut round = || {
        let (backend, driver) = open();
        let mut app = App::new(backend, driver);
        let last = thread::spawn(move || {
            let last = app.run();
            assert_eq!(app.region.users(), 3, "the region, the pool, the weights");
            drop(app);
            last
        });
        let last = last.join().unwrap();
        assert_eq!(last.view::<u8>().unwrap(), [7; SLOT], "it keeps the memory");
    };
    // The first rounds make what the allocator and the threads keep for good.
    (0..rounds / 100).for_each(|_| round());
    let (before, began) = (Footprint::now(), Instant::now());
    (0..rounds).for_each(|_| round());
    let after = Footprint::now();
    println!(
        "{name}: {rounds} apps in {:.1} s; before {before:?}, after {after:?}",
        began.elapsed().as_secs_f64()
    );
    assert_eq!((after.files, after.mappings), (before.files, before.mappings), "{name}");
    // The control blocks are 24 KiB, and the memory 64: 12 that stayed would show.
    assert!(after.resident_kib <= before.resident_kib + 1024, "{name}: {before:?}, {after:?}");
}

#[test]
fn apps_leave_the_process_as_it_was() {
    let board = SimBoard::new(7);
    let device = SimDevice::<ZdmaModel>::new(&board, board.port());
    // At one address: the board gives each block that asks for none a new one, below 4 GiB.
    let spec = SimSpec {
        len_bytes: 64 << 10,
        base: Some(BaseAddr::Phys(PhysAddr(0x1000_0000))),
        ..SimSpec::default()
    };
    many("simulated memory, with a queue", || {
        (board.memory_with(spec).unwrap(), Some(zdma(&device)))
    });
    // The region and the driver's window are all that is left of the board and of the device.
    many("a simulated board of its own, with a queue", || {
        let board = SimBoard::new(7);
        (
            board.memory(64 << 10).unwrap(),
            Some(zdma(&SimDevice::<ZdmaModel>::new(&board, board.port()))),
        )
    });
    many("a device by its name", || by_name("sim:zdma", ""));
    many("a channel of a device by its name", || by_name("sim:pl330", "channel=3"));
    many("dma-heap (fake)", || {
        (
            DmaHeap::allocate_from(Arc::new(FakeHeap::new(Pages::Contiguous)), HEAP, 64 << 10)
                .unwrap(),
            None,
        )
    });
    let fake = FakeUDmaBuf::new(Config {
        size_bytes: 64 << 10,
        coherent: Some(true),
        ..Config::default()
    });
    many("u-dma-buf (fake)", || (fake.open().unwrap(), None));
    match HugeTlb::new(1) {
        Ok(block) => {
            drop(block);
            many("huge pages", || (HugeTlb::new(1).unwrap(), None));
        }
        Err(why) => contigo_testkit::skipped("own::huge_pages", &why.to_string()),
    }
}
