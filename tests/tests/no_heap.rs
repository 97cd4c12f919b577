//! No heap: not one allocation from opening a backend to the end of a thousand jobs, on every backend that can run here. The
//! counting allocator sees what the runtime calls too: nix, memmap2, heapless, and std below them.
//!
//! It counts by thread, because the test harness allocates on others. What a fake of the kernel allocates in its own calls is
//! not the runtime's, and is not counted.
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that panics has failed, which is its purpose; allocators and fakes of the kernel are promises"
)]

#[path = "no_heap/counting.rs"]
mod counting;

use contigo::{
    Align, Arena, Attempt, Backend, CpuBuf, DevBuf, DmaHeap, Done, Engine, Error, HugeTlb, JobError, KernelPort, LocalPool, OneThread,
    Pool, Port, Queue, Region, Result, Stream, Timeout, UDmaBuf,
    dlpack::{Contract, DataType, Foreign, Imported, Shape, TensorSpec, TensorTable},
    drivers::zdma::Zdma,
    linux::memory::u_dma_buf::seam::Roots,
    names::{Attach, DeviceName, Inventory, MemoryName},
    sim::{Faults, OnBoard, SimBoard, SimConfig, SimDevice, SimWindow},
    trace::{self, Kind, Ledger},
};
use contigo_gemm8::{Gemm, Gemm8, Gemm8Model, Output, SimGemm8};
use contigo_testkit::{
    camera::{Camera, CameraConfig, CameraModel},
    emulated,
    fake_devices::FakeDevices,
    fake_dma_heap::{FakeHeap, HEAP, Pages},
    fake_port::{self, FakePort, PortConfig},
    fake_u_dma_buf::{Config, FakeUDmaBuf},
};
use counting::{Uncounted, count, uncounted};
use std::{fmt::Write as _, sync::Arc};

#[test]
fn the_counter_counts() {
    use std::hint::black_box;
    assert_eq!(count(|| drop(black_box(Box::new(1_u64)))).1, 1);
    assert_eq!(count(|| drop(black_box(vec![0_u8; 64]))).1, 1, "zeroed");
    let mut grown: Vec<u64> = Vec::with_capacity(1);
    assert_eq!(count(|| grown.extend(black_box([1, 2, 3]))).1, 1, "reallocated");
    assert_eq!(count(|| std::thread::spawn(|| ()).join().is_ok()).1.min(1), 1);
    assert_eq!(count(|| black_box([0_u8; 64])).1, 0);
    assert_eq!(count(|| uncounted(|| drop(black_box(Box::new(1_u64))))).1, 0);
}

#[test]
fn devices_are_found_and_opened_without_it() {
    let tree = FakeDevices::new();
    tree.uio(0, Some("dma@1000"), "dma");
    tree.map(0, 1, "0xf8004000", "0x1000", "0x0");
    tree.pci("0000:00:01.0", 0x1234, 0x11E8);
    let (found, allocations) = count(|| {
        let mut device = tree.find("dma")?;
        let registers = device.map(1)?;
        let (_, irq) = device.into_parts();
        let bell = irq.try_clone()?;
        let function = tree.find_pci(0x1234, 0x11E8)?;
        function.enable()?;
        let (bar, master) = (function.bar(0)?, function.bus_master()?);
        drop((registers, irq, bell, function, bar, master));
        let refused = [tree.find("none").is_err(), tree.find_pci(1, 1).is_err(), tree.open_pci("0000:00:02.0").is_err()];
        Ok::<_, Error>(refused)
    });
    assert_eq!((found, allocations), (Ok([true; 3]), 0));
}

#[test]
fn names_are_read_opened_and_listed_without_it() {
    let tree = FakeDevices::new();
    tree.uio(0, Some("dma@1000"), "dma");
    tree.file("dev/dma_heap/linux,cma", "");
    let (done, allocations) = count(|| {
        let inventory = Inventory::under(tree.root());
        let mut listed = Listed(0);
        write!(listed, "{}; {}", inventory.memory_answer(), inventory.device_answer()).map_err(|_| Error::Busy)?;
        let refused = "vfio:0".parse::<MemoryName>().is_err_and(|error| write!(listed, "{error}").is_ok());
        let name: DeviceName = "uio:dma".parse()?;
        // SAFETY: no driver is made of it that gives memory back.
        let device = unsafe { name.open_under(tree.root())? };
        let zdma = "sim:zdma".parse::<DeviceName>()?.open()?;
        let region = Region::new(zdma.memory(&"sim".parse::<MemoryName>()?, 1 << 20)?)?;
        let attached = zdma.attach(Attach::default())?;
        // SAFETY: the model is a ZDMA.
        let mut engine = Engine::new(unsafe { Zdma::simple(attached)? })?;
        let [from, to] = [region.carve(SLOT, Align::LINE)?.into_buf(), region.carve(SLOT, Align::LINE)?.into_buf()];
        let _both = engine.start([from.to_device(..), to.from_device(..)], &())?.wait(Timeout::ms(20))?;
        drop(device);
        Ok::<_, Error>((refused, listed.0 > 500))
    });
    assert_eq!((done, allocations), (Ok((true, true)), 0));
}

/// Counts what is written.
struct Listed(usize);

impl std::fmt::Write for Listed {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0 += text.len();
        Ok(())
    }
}

const GEMM: Gemm = Gemm { m: 1, n: 16, k: 16, output: Output::Int8 { relu: true, shift: 0 } };
const SLOT: usize = 256;
const LIMIT: Timeout = Timeout::us(500);
const JOBS: usize = 1_000;

/// Everything that goes wrong, and a device that sticks now and then.
const FAULTS: Faults = Faults { stuck: 5, ..Faults::OFTEN };

/// How the jobs ended.
#[derive(Debug, Default)]
struct Tally {
    good: usize,
    chained: usize,
    failed: usize,
    leaked: usize,
    refused: usize,
}

type GemmEngine<'d> = Engine<Gemm8<SimWindow<'d, Gemm8Model>>, 4>;
type Ended<'p> = Result<Done<[DevBuf<'p>; 4], ()>, JobError<[DevBuf<'p>; 4]>>;

impl Tally {
    /// The buffers of a job that worked out; after one that did not, the engine works again.
    fn settle<'p>(&mut self, ended: Ended<'p>, device: &SimGemm8<'_>, engine: &mut GemmEngine<'_>) -> Result<Option<[DevBuf<'p>; 4]>> {
        match ended {
            Ok(done) => return Ok(Some(done.buffers)),
            Err(JobError { buffers: Some(_), .. }) => self.failed += 1,
            Err(JobError { buffers: None, .. }) => {
                self.leaked += 1;
                device.reset()?;
                engine.recover()?;
            }
        }
        Ok(None)
    }
}

/// A thousand jobs, with what a program does around them. `true`: what the device wrote is compared too.
fn thousand_jobs<B: Backend>(device: &SimGemm8<'_>, port: Port, region: &Region<B>, compare: bool) -> Result<Tally> {
    let mut tally = Tally::default();
    let mut engine: GemmEngine<'_> = Engine::new(Gemm8::open_simulated(device.window()?)?)?;
    // Room for what stuck devices keep.
    let pool = Pool::<256>::new(region.carve(256 * SLOT, Align::DLPACK)?, SLOT)?;
    let local = LocalPool::<2>::new(region.carve(2 * SLOT, Align::LINE)?, SLOT)?;
    let arena = Arena::<8>::new(region.carve(4096, Align::LINE)?)?;
    for job in 0..JOBS {
        let (mut a, mut b) = (pool.take()?, pool.take()?);
        a.view_at_mut::<i8>(..16)?.fill(1);
        b.copy_from_slice(&[2; SLOT])?;
        let (mut bias, spare) = pool.take()?.split_at(128)?;
        drop(spare);
        bias.view_at_mut::<i32>(..64)?.fill(3);
        if job % 8 == 0 {
            // Into a block that one thread owns, and dropped under way.
            let (tensor, row) = (arena.take_aligned(300, Align::DLPACK)?, local.take()?);
            let (a, b, bias): (CpuBuf<'_, OneThread>, CpuBuf<'_, OneThread>, CpuBuf<'_, OneThread>) = (a.into(), b.into(), bias.into());
            let operands = [a.to_device(..16), b.to_device(..), bias.to_device(..64), tensor.from_device(..16)];
            drop((engine.start(operands, &GEMM)?, row));
            if engine.is_busy() {
                tally.leaked += 1;
                device.reset()?;
                engine.recover()?;
            }
            continue;
        }
        let c = pool.take()?;
        region.host_ptr_of(&port, region.dev_addr_of(&port, c.view::<u8>()?.as_ptr(), SLOT)?)?;
        let operands = [a.to_device(..16), b.to_device(..), bias.to_device(..64), c.from_device(..16)];
        let operands = match engine.start(operands, &Gemm { n: 17, ..GEMM }) {
            Err(JobError { buffers: Some(operands), .. }) => operands,
            _ => return Err(Error::Busy),
        };
        tally.refused += 1;
        let Attempt::Pending(running) = engine.start(operands, &GEMM)?.try_wait()? else { return Err(Error::Busy) };
        let ended = running.wait_device(LIMIT);
        let Some([a, b, bias, c]) = tally.settle(ended, device, &mut engine)? else { continue };
        // Its output is the next one's input.
        let operands = [c.to_device(..), b.to_device(..), bias.to_device(..), a.from_device(..)];
        tally.chained += 1;
        let ended = engine.start(operands, &GEMM)?.wait_device(LIMIT);
        let Some([c, _, _, a]) = tally.settle(ended, device, &mut engine)? else { continue };
        let (a, c) = (a.into_cpu()?, c.into_cpu()?);
        if compare && (a.view_at::<i8>(..16)? != [127; 16] || c.view_at::<i8>(..16)? != [35; 16]) {
            return Err(Error::Busy);
        }
        tally.good += 1;
    }
    Ok(tally)
}

/// Opens a backend and runs the jobs, all of it counted.
/// What every job here did, counted as it happened: to listen allocates nothing either.
static LEDGER: Ledger<64> = Ledger::new();

fn none_on<B: Backend>(name: &str, board: &SimBoard, port: Port, compare: bool, open: impl FnOnce() -> Result<B>) {
    // The first test sets it, for all of them.
    let _ = trace::set_listener(&LEDGER);
    let submitted = LEDGER.total(Kind::Submit).calls;
    let device = SimGemm8::new(board, port);
    let (tally, allocations) = count(|| {
        let region = Region::new(open()?)?;
        thousand_jobs(&device, port, &region, compare)
    });
    let tally = tally.unwrap();
    assert!(tally.good > 300 && tally.chained > 400 && tally.failed > 100 && tally.leaked > 0 && tally.refused > 800, "{tally:?}");
    assert_eq!(allocations, 0, "{name}: {tally:?}");
    assert!(LEDGER.total(Kind::Submit).calls >= submitted + 500, "{LEDGER:?}");
}

fn board() -> SimBoard {
    SimBoard::with(SimConfig { seed: 11, faults: FAULTS })
}

/// What real memory needs: a port that reaches all of it. On arm64 the runtime maintains the caches; elsewhere the port must
/// snoop.
fn wide(board: &SimBoard) -> Port {
    Port { addr_bits: 64, window: (0, u64::MAX), coherent: !cfg!(target_arch = "aarch64"), ..board.port() }
}

#[test]
fn none_on_the_simulated_boards_memory() {
    let board = board();
    none_on("sim", &board, board.port(), true, || board.memory(128 << 10));
    none_on("sim, snooped", &board, board.coherent_port(), true, || board.memory(128 << 10));
}

#[test]
fn none_on_huge_pages() {
    let board = board();
    match HugeTlb::new(1) {
        Ok(block) => drop(block),
        Err(why) => return emulated::skipped("no_heap::none_on_huge_pages", &why.to_string()),
    }
    none_on("hugetlb", &board, wide(&board), true, || OnBoard::new(&board, HugeTlb::new(2 << 20)?));
}

#[test]
fn none_on_u_dma_buf() {
    for (name, config) in [
        ("coherent", Config { coherent: Some(true), ..Config::default() }),
        ("by ioctl", Config::default()),
        ("by sysfs", Config { ioctls: false, ..Config::default() }),
    ] {
        let snooped = config.coherent == Some(true);
        let fake = FakeUDmaBuf::new(Config { size_bytes: 128 << 10, ..config });
        let (class, device) = (fake.class_dir(), fake.device_file());
        let roots = Roots { dev: device.parent().unwrap().to_str().unwrap(), class: class.ancestors().nth(2).unwrap().to_str().unwrap() };
        let kernel = Arc::new(Uncounted(fake.module().clone()));
        let board = board();
        let port = Port { coherent: snooped, ..wide(&board) };
        // The fake's bus is not the simulated board's, so a sync that is not snooped brings back nothing of its device.
        none_on(name, &board, port, snooped, || {
            // SAFETY: the fake's own folders and module.
            let block = unsafe { UDmaBuf::open_with("udmabuf0", roots, kernel, false)? };
            OnBoard::new(&board, block)
        });
        assert_eq!(fake.log().is_empty(), snooped, "the syncs reached the module");
    }
}

#[test]
fn none_on_a_dma_heap() {
    let (board, kernel) = (board(), Arc::new(Uncounted(FakeHeap::new(Pages::Contiguous))));
    none_on("dma-heap", &board, wide(&board), true, || OnBoard::new(&board, DmaHeap::allocate_from(kernel, HEAP, 128 << 10)?));
}

#[test]
fn none_on_a_dma_heap_by_the_kernel_module() {
    for coherent in [true, false] {
        let (board, heap) = (board(), Arc::new(Uncounted(FakeHeap::new(Pages::Entry(0)))));
        let fake = FakePort::new(PortConfig { coherent, ..PortConfig::default() });
        let kernel = Arc::new(Uncounted(fake.clone()));
        let (kernel_port, allocations) = count(|| KernelPort::open_from(kernel, fake_port::NAME));
        let (kernel_port, port) = (kernel_port.unwrap(), Port { coherent, ..wide(&board) });
        assert_eq!(allocations, 0);
        // The fake's bus is not the simulated board's, so a sync that is not snooped brings back nothing of its device.
        none_on("kernel module", &board, port, coherent, || {
            OnBoard::new(&board, DmaHeap::allocate_for_from(heap.clone(), &kernel_port, HEAP, 128 << 10)?)
        });
        let synced = fake.log().iter().any(|event| matches!(event, fake_port::Event::Synced { .. }));
        assert_eq!(synced, !coherent, "the syncs reached the module");
    }
}

#[test]
fn none_on_two_threads_that_share_a_pool() {
    let board = board();
    let region = Region::new(board.memory(64 << 10).unwrap()).unwrap();
    let pool = Pool::<8>::new(region.carve(8 * SLOT, Align::LINE).unwrap(), SLOT).unwrap();
    let work = || {
        let ((), allocations) = count(|| {
            for round in 0..=u8::MAX {
                let Ok(mut buf) = pool.take() else { continue };
                let _ = buf.view_mut::<u8>().map(|view| view.fill(round));
            }
        });
        allocations
    };
    let counts = std::thread::scope(|scope| [scope.spawn(work), scope.spawn(work)].map(|thread| thread.join().unwrap()));
    assert_eq!(counts, [0, 0]);
}

#[test]
fn none_in_a_queue_and_a_stream() {
    for port in [SimBoard::port as fn(&SimBoard) -> Port, SimBoard::coherent_port] {
        let board =
            SimBoard::with(SimConfig { seed: 12, faults: Faults { late_irq: 100, lost_irq: 100, short: 100, error: 10, ..Faults::NONE } });
        let device =
            SimDevice::with_model(&board, port(&board), CameraModel::new(CameraConfig { packet_bytes: 512, ..CameraConfig::default() }));
        let (done, allocations) = count(|| {
            let region = Region::new(board.memory(64 << 10)?)?;
            let pool = Pool::<8>::new(region.carve(8 * 512, Align::LINE)?, 512)?;
            let camera = |descriptors| Camera::open_simulated(device.window()?, descriptors, 4);
            let (mut packets, mut faults) = (0, 0);
            let mut queue: Queue<'_, _, 4> = Queue::new(camera(region.carve(512, Align::LINE)?.into_buf())?)?;
            for _ in 0..JOBS {
                while !queue.is_full() && !queue.is_stopped() {
                    queue.push([pool.take()?.from_device(..)], &())?;
                }
                match queue.next(LIMIT) {
                    Ok(Some(_)) => packets += 1,
                    Ok(None) => return Err(Error::Busy),
                    Err(_) => faults += 1,
                }
                while queue.take_back().is_some() {}
            }
            drop(queue);
            let mut stream: Stream<'_, _, _, 4> = Stream::new(camera(region.carve(512, Align::LINE)?.into_buf())?, &pool, &())?;
            for _ in 0..JOBS {
                if !stream.is_running() {
                    stream.start()?;
                }
                match stream.next(LIMIT) {
                    Ok(Some(frame)) => stream.give_back(frame.buf).map(|()| packets += 1)?,
                    Ok(None) => return Err(Error::Busy),
                    Err(_) => faults += 1,
                }
            }
            stream.stop()?;
            Ok::<_, Error>((packets > 1_900, faults > 5, packets + faults))
        });
        assert_eq!((done, allocations), (Ok((true, true, 2 * JOBS)), 0));
    }
}

/// From the driver's loading on: what the driver itself asks for is its own.
#[cfg(target_pointer_width = "64")]
#[test]
fn none_on_memory_that_cuda_pinned() {
    use contigo::cuda::{Cuda, CudaHost, Gpu, Log};
    use contigo_gemm8::cuda::Gemm8Module;
    use std::{ffi::CString, os::unix::ffi::OsStrExt};
    let _controls = fake_cuda::Controls::take(&fake_cuda::Config::default());
    let file = CString::new(fake_cuda::library().as_os_str().as_bytes()).unwrap();
    let (done, allocations) = count(|| {
        // SAFETY: it behaves as the driver's reference says.
        let cuda = unsafe { Cuda::load_from(&file)? };
        let gpu = Gpu::primary(&cuda, 0)?;
        let module = Gemm8Module::load(&gpu, &mut Log::new())?;
        let region = Region::new(CudaHost::allocate(&gpu, 64 * 1024, Align::DLPACK)?)?;
        let pool = Pool::<4>::new(region.carve(4 * SLOT, Align::DLPACK)?, SLOT)?;
        let mut engine = Engine::new(module.kernel()?)?;
        for _ in 0..JOBS {
            let [a, b, bias, c] = [pool.take()?, pool.take()?, pool.take()?, pool.take()?];
            let operands = [a.to_device(..16), b.to_device(..), bias.to_device(..64), c.from_device(..16)];
            drop(engine.start(operands, &GEMM)?.wait(LIMIT)?);
        }
        Ok::<_, Error>(engine.jobs().completed)
    });
    assert_eq!((done, allocations), (Ok(JOBS as u64), 0));
}

#[test]
fn none_for_tensors_there_and_back() {
    static TENSORS: TensorTable<2> = TensorTable::new();
    let board = board();
    let region = Region::new(board.memory(64 << 10).unwrap()).unwrap();
    let pool = Pool::<2>::new(region.carve(2 * SLOT, Align::DLPACK).unwrap(), SLOT).unwrap();
    let frames = || {
        let spec = TensorSpec { contract: Contract::TVM, ..TensorSpec::new(DataType::F32, Shape::new(&[4, 4])?) };
        let (mut buf, mut last) = (pool.take()?, None);
        for _ in 0..1000 {
            let mut lent = TENSORS.lend(buf, &spec)?;
            // SAFETY: the runtime's own tensor, handed on as it is: its deleter is the runtime's.
            let foreign = unsafe { Foreign::from_versioned(lent.tensor()?.as_ptr()) }?;
            let imported = Imported::new(&region, foreign, &Contract::TVM)?;
            last = Some(imported.dev_addr(&board.port())?);
            buf = imported.into_buf(lent)?.whole();
        }
        Ok::<_, Error>(last)
    };
    let (last, allocations) = count(frames);
    assert!(last.unwrap().is_some());
    assert_eq!(allocations, 0);
}

#[test]
fn a_kernels_map_is_read_and_its_jobs_run_without_it() {
    use contigo::drivers::ap_ctrl::{SimApCtrl, describe};
    const HEADER: &[u8] = include_bytes!("ap_ctrl/xfilter_hw.h");
    const HWH: &[u8] = include_bytes!("ap_ctrl/system.hwh");
    let mut text = String::with_capacity(4096);
    let ((), allocations) = count(|| {
        let map = describe::any(HEADER, "").unwrap().length("to_r", "4*n").build().unwrap();
        write!(text, "{map}").unwrap();
        assert_eq!(describe::any(text.as_bytes(), "").unwrap().build().unwrap(), map);
        assert!(describe::any(HWH, "filter_0").unwrap().build().is_ok());
        assert!(describe::any(&HWH[..5_000], "filter_0").is_err());
        let board = SimBoard::new(1);
        let region = Region::new(board.memory(64 * 1024).unwrap()).unwrap();
        let pool = Pool::<4>::new(region.carve(4 * 1024, Align::LINE).unwrap(), 1024).unwrap();
        let kernel = <SimApCtrl<'_>>::new(&board, board.port());
        let mut queue =
            Queue::<_, 2, 2>::new(contigo::drivers::ap_ctrl::ApCtrl::open_simulated(kernel.window().unwrap()).unwrap()).unwrap();
        for _ in 0..100 {
            for _ in 0..2 {
                queue.push([pool.take().unwrap().to_device(..64), pool.take().unwrap().from_device(..64)], &[64]).unwrap();
            }
            for _ in 0..2 {
                assert!(queue.next(Timeout::ms(1)).unwrap().is_some());
            }
        }
    });
    assert_eq!(allocations, 0);
}
