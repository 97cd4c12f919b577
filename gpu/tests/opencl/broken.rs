//! Loaders and drivers with something wrong, each in a process of its own: typed errors with
//! numbers, in bounded time.

use super::child::{child, is_child, is_mapped, said, skipped};
use super::memory::Part;
use super::{LIMIT, built, device, in_place, keyed, module, region};
use contigo::job::Launch;
use contigo::{Backend, CpuBuf, DevBuf, Direction, Error, JobError, Operand, Queue, Region};
use contigo_gpu::opencl::{OpenClGpu, OpenClKernel, OpenClMemory};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

#[test]
fn machine_without_opencl_says_so() {
    if is_child() {
        println!(
            "CHILD: {} | {}",
            OpenClGpu::open(0).unwrap_err(),
            OpenClGpu::count().map_or_else(|error| error.to_string(), |n| n.to_string())
        );
        return;
    }
    let folder = format!("{}/no-loader-{}", env!("CARGO_TARGET_TMPDIR"), std::process::id());
    std::fs::create_dir_all(&folder).unwrap();
    // No library: a file of that name which is none.
    std::fs::write(format!("{folder}/libOpenCL.so.1"), "").unwrap();
    let mut nothing = child();
    nothing.env("LD_LIBRARY_PATH", &folder);
    let no_library = said(nothing);
    assert_eq!(
        no_library.matches("libOpenCL.so.1 cannot be loaded: install OpenCL's loader").count(),
        2,
        "{no_library}"
    );
    // A library that has none of the functions.
    let mut other = child();
    other.env("OPENCL_DYLIB_PATH", "libm.so.6");
    let lacks = said(other);
    assert!(lacks.contains("CHILD: clGetPlatformIDs: update OpenCL's loader"), "{lacks}");
    if device().is_some() {
        // A loader with no driver.
        let mut alone = child();
        alone.env("OCL_ICD_VENDORS", &folder);
        let alone = said(alone);
        assert!(
            alone.contains("CHILD: there is no such device of OpenCL; others that are here: 0 | 0"),
            "{alone}"
        );
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// Each driver that is wrong, and what is seen of it. Of a transfer that was given the bytes are
/// kept: no operand is the CPU's while the driver may use it.
#[test]
fn a_driver_that_is_wrong_is_found() {
    if is_child() {
        let broken = std::env::var(BROKEN).unwrap();
        let (_, is_seen) = ALL.into_iter().find(|(name, _)| *name == broken).unwrap();
        return println!("CHILD: {broken}, as expected: {}", is_seen());
    }
    if device().is_none() {
        return;
    }
    let library = match built("broken", "-Wl,--no-as-needed,-l:libOpenCL.so.1") {
        Ok(library) => library,
        Err(why) => return skipped(&why),
    };
    // Each in a process of its own, all at once: some wait for 10 s.
    std::thread::scope(|scope| {
        for (broken, _) in ALL {
            let mut child = child();
            child.env("OPENCL_DYLIB_PATH", &library).env(BROKEN, broken);
            scope.spawn(move || {
                let said = said(child);
                assert!(said.contains(&format!("CHILD: {broken}, as expected: true")), "{said}");
            });
        }
    });
    std::fs::remove_file(library).unwrap();
}

pub(super) const BROKEN: &str = "CONTIGO_BROKEN";

/// What is wrong with a driver (`broken.c`), and whether it is found.
type Check = (&'static str, fn() -> bool);

const ALL: [Check; 19] = [
    ("old", || {
        let refused = OpenClGpu::open(0);
        matches!(refused, Err(Error::Unsupported { what, .. }) if what.contains("1.1"))
    }),
    ("align", || {
        let name = "CL_DEVICE_MEM_BASE_ADDR_ALIGN";
        OpenClGpu::open(0).err() == Some(Error::Unexpected { name, value: 96 })
    }),
    ("lost", is_lost),
    // The first look of a region is refused, and the memory comes back.
    ("copies", || {
        let found = first_look().map(|(error, _)| error);
        matches!(found, Some(Error::Unexpected { name: "clEnqueueMapBuffer", .. }))
    }),
    ("refuses", || {
        let error = Error::Gpu { call: "clEnqueueMapBuffer", code: -12, name: "CL_MAP_FAILURE" };
        first_look().is_some_and(|(found, _)| found == error)
    }),
    ("stuck", is_stuck),
    ("retains", is_freed_all_the_same),
    ("keeps", is_kept),
    ("slow", is_freed_later),
    ("argument", forgets_what_was_set),
    ("nothing", || first_look().is_none()),
    ("late", is_waited_for),
    ("never", || second_is_refused(true)),
    ("second", || second_is_refused(false)),
    ("failed", is_leaked),
    ("failed first", is_leaked_with_its_neighbour),
    ("flush", is_leaked),
    ("unread", comes_back_late),
    ("mapped", stays_mapped),
];

/// The answer of a region to fresh memory, which comes back.
fn first_look() -> Option<(Error, OpenClMemory)> {
    let memory = OpenClMemory::allocate(OpenClGpu::open(0).unwrap(), 1 << 16).unwrap();
    Region::new(memory).err().map(|refused| refused.into_parts())
}

/// A kernel that ended with an error: its buffers stay with the device, which may be anywhere.
fn is_lost() -> bool {
    let gpu = OpenClGpu::open(0).unwrap();
    let (module, region) = (module(gpu), region(gpu, 1 << 16));
    let mut queue = Queue::new(in_place(&module, "flip", c"flip"), 1).unwrap();
    let buf = region.alloc(4096, gpu.align()).unwrap();
    let failed = queue.run([buf.in_out(..)], &Launch::of(64, 64).with(&[]), LIMIT).unwrap_err();
    println!("CHILD lost: {failed}");
    let code = (-5_i32).cast_unsigned();
    matches!(failed.error, Error::WillNotStop { device: "flip", status, .. } if status == code)
        && failed.buffers.is_none()
}

/// A hand-over that never ends: its limit, and the memory is leaked.
fn is_stuck() -> bool {
    let since = Instant::now();
    let Some((error, memory)) = first_look() else { return false };
    let cpu = memory.mapping().cpu;
    drop(memory);
    // SAFETY: leaked, because a command may still read it.
    let kept = unsafe { cpu.as_ptr().read_volatile() } == 0;
    let limit = Duration::from_secs(10);
    error == Error::Timeout { timeout_us: 10_000_000 }
        && kept
        && (limit..limit * 3).contains(&since.elapsed())
}

/// A kernel that keeps what it was launched with, and lives on: it keeps nothing of a job's.
fn is_freed_all_the_same() -> bool {
    static DROPPED: AtomicUsize = AtomicUsize::new(0);
    let gpu = OpenClGpu::open(0).unwrap();
    let module = module(gpu);
    let mut queue = Queue::new(in_place(&module, "flip", c"flip"), 1).unwrap();
    let region =
        Region::new(OpenClMemory::import(gpu, Part::new(0, 1 << 16, &DROPPED)).unwrap()).unwrap();
    let buf = region.alloc(4096, gpu.align()).unwrap();
    drop(queue.run([buf.in_out(..)], &Launch::of(64, 64).with(&[]), LIMIT).unwrap());
    drop(region);
    DROPPED.load(Ordering::SeqCst) == 1
}

/// The one job of a test: `flip` over 4096 bytes.
fn flipping(work: impl FnOnce(&mut Queue<OpenClKernel>, CpuBuf) -> bool) -> bool {
    let gpu = OpenClGpu::open(0).unwrap();
    let (module, region) = (module(gpu), region(gpu, 1 << 16));
    let mut queue = Queue::new(in_place(&module, "flip", c"flip"), 1).unwrap();
    let mut buf = region.alloc(4096, gpu.align()).unwrap();
    buf.view_mut::<u8>().unwrap().fill(0x11);
    work(&mut queue, buf)
}

fn words() -> contigo::job::Words {
    Launch::of(64, 64).with(&[])
}

/// A job that ends with an error, and its buffer, which stays the device's.
fn failing(queue: &mut Queue<OpenClKernel>, buf: CpuBuf) -> JobError<[DevBuf; 1]> {
    queue.submit([buf.in_out(..)], &words()).unwrap();
    queue.wait(LIMIT).unwrap_err()
}

/// A job with two operands, which the driver refuses.
fn two(queue: &mut Queue<OpenClKernel>, [from, to]: [CpuBuf; 2]) -> JobError<[Operand; 2]> {
    let words = Launch::of(1, 64).with(&[64, 1]);
    queue.submit([from.to_device(..), to.from_device(..)], &words).unwrap_err()
}

/// How late a transfer's end is reported, which is longer than a hand-over waits.
const LATE: Duration = Duration::from_secs(15);

/// The job starts, and its kernel waits for the transfer.
fn is_waited_for() -> bool {
    flipping(|queue, buf| {
        let since = Instant::now();
        let [buf] = queue.run([buf.in_out(..)], &words(), LIMIT).unwrap().buffers;
        since.elapsed() >= LATE && buf.view::<u8>().unwrap() == [0xEE; 4096]
    })
}

/// The second operand is refused: both come back; or neither, where the first one's transfer is
/// late.
fn second_is_refused(late: bool) -> bool {
    let gpu = OpenClGpu::open(0).unwrap();
    let (module, region) = (module(gpu), region(gpu, 1 << 16));
    let mut queue = Queue::new(keyed(&module), 1).unwrap();
    let failed = two(&mut queue, [4096, 2048].map(|len| region.alloc(len, gpu.align()).unwrap()));
    println!("CHILD second: {failed}");
    match failed.buffers {
        None => late && matches!(failed.error, Error::WillNotStop { .. }),
        Some(all) => {
            !late
                && matches!(failed.error, Error::Gpu { code: -5, .. })
                && all.into_iter().all(|one| one.into_buf().is_ok())
        }
    }
}

/// The transfer failed: the job does not start, and nothing comes back, also by another stop.
fn is_leaked() -> bool {
    flipping(|queue, buf| {
        let failed = queue.submit([buf.in_out(..)], &words()).unwrap_err();
        println!("CHILD leaked: {failed}");
        matches!(failed.error, Error::WillNotStop { .. })
            && failed.buffers.is_none()
            && queue.stop().is_err()
    })
}

/// The first transfer failed, and may not have ended. Bytes that no kernel was for do
/// not come back, nor the operands of a job whose second one is refused.
fn is_leaked_with_its_neighbour() -> bool {
    let gpu = OpenClGpu::open(0).unwrap();
    let (module, region) = (module(gpu), region(gpu, 1 << 16));
    let mut queue = Queue::new(keyed(&module), 1).unwrap();
    let [alone, from, to] = [4096, 4096, 2048].map(|len| region.alloc(len, gpu.align()).unwrap());
    let status = (-5_i32).cast_unsigned();
    let failed = two(&mut queue, [from, to]);
    println!("CHILD neighbour: {failed}");
    let lost = matches!(failed.error, Error::WillNotStop { .. }) && failed.buffers.is_none();
    // SAFETY: no device receives its address.
    let alone = unsafe { alone.hand_over(&gpu.port(), 64, ..4096, Direction::ToDevice) }.unwrap();
    let told = alone.into_cpu().unwrap_err().error;
    lost && told
        == Error::WillNotStop { device: "a hand-over of this device", status, waited_us: 0 }
}

/// The bytes that the device wrote are not brought in time. The next job waits for that, and works
/// on it.
fn comes_back_late() -> bool {
    flipping(|queue, buf| {
        let since = Instant::now();
        let failed = failing(queue, buf);
        let (in_time, [buf]) = (since.elapsed() < LATE, failed.buffers.unwrap());
        assert!(matches!(failed.error, Error::Timeout { .. }), "{}", failed.error);
        let [buf] = queue.run([buf.in_out(..)], &words(), LIMIT).unwrap().buffers;
        (since.elapsed() >= LATE || !in_time) && buf.view::<u8>().unwrap() == [0x11; 4096]
    })
}

/// Bytes that stay mapped are launched with no more.
fn stays_mapped() -> bool {
    flipping(|queue, buf| {
        let failed = failing(queue, buf);
        let [buf] = failed.buffers.unwrap();
        let again = queue.submit([buf.in_out(..)], &words()).unwrap_err();
        println!("CHILD mapped: {}, {again}", failed.error);
        failed.error
            == Error::Gpu { call: "clEnqueueUnmapMemObject", code: -5, name: "CL_OUT_OF_RESOURCES" }
            && again.buffers.is_none()
    })
}

/// A launch that is refused half way keeps no operand in the kernel.
fn forgets_what_was_set() -> bool {
    static DROPPED: AtomicUsize = AtomicUsize::new(0);
    let gpu = OpenClGpu::open(0).unwrap();
    let module = module(gpu);
    let mut queue = Queue::new(keyed(&module), 1).unwrap();
    let region =
        Region::new(OpenClMemory::import(gpu, Part::new(0, 1 << 16, &DROPPED)).unwrap()).unwrap();
    let failed = two(&mut queue, [(); 2].map(|()| region.alloc(4096, gpu.align()).unwrap()));
    let refused = failed.error
        == Error::Gpu { call: "clSetKernelArg", code: -5, name: "CL_OUT_OF_RESOURCES" };
    drop(failed);
    drop(region);
    refused && DROPPED.load(Ordering::SeqCst) == 1
}

/// A driver that does not let go of the bytes: they are leaked, in bounded time.
fn is_kept() -> bool {
    let memory = OpenClMemory::allocate(OpenClGpu::open(0).unwrap(), 1 << 16).unwrap();
    let (cpu, since) = (memory.mapping().cpu, Instant::now());
    drop(memory);
    // SAFETY: leaked, because the driver may still use it.
    let kept = unsafe { cpu.as_ptr().read_volatile() } == 0;
    kept && since.elapsed() < Duration::from_secs(5)
}

/// The driver lets go late. Memory of its own is freed then; a backend that may borrow stays.
fn is_freed_later() -> bool {
    static DROPPED: AtomicUsize = AtomicUsize::new(0);
    let gpu = OpenClGpu::open(0).unwrap();
    let memory = OpenClMemory::allocate(gpu, 1 << 16).unwrap();
    let first = memory.mapping().cpu.addr().get();
    let mapped = is_mapped(first);
    drop(OpenClMemory::import(gpu, Part::new(0, 1 << 16, &DROPPED)).unwrap());
    drop(memory);
    let kept = is_mapped(first);
    let deadline = Instant::now() + Duration::from_secs(10);
    while is_mapped(first) {
        if Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    mapped && kept && DROPPED.load(Ordering::SeqCst) == 0
}
