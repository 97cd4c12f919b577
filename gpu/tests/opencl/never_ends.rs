//! A kernel that never ends, in a process of its own, which the parent ends.

use super::child::{END, child, ends_in_time, has_seen_it_all, is_mapped, said_until_end};
use super::memory::Part;
use super::{device, in_place, module, region};
use contigo::job::Launch;
use contigo::{Backend, Direction, Error, Queue, Region};
use contigo_gpu::opencl::{OpenClGpu, OpenClKernel, OpenClMemory, OpenClModule};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{env, thread};

/// Which of them a child runs.
const CHECK: &str = "CONTIGO_NEVER_ENDS";

const ALL: [(&str, fn()); 4] = [
    ("it is left alone with its memory", it_is_left_alone_with_its_memory),
    ("a hand-over beside it has a limit", a_hand_over_beside_it_has_a_limit),
    ("a job beside it has a limit", a_job_beside_it_has_a_limit),
    ("a late end releases the device", a_late_end_releases_the_device),
];

/// Each in a process of its own, all at once: they wait for 10 to 20 s.
#[test]
fn all_that_it_uses_is_kept_and_each_wait_beside_it_has_a_limit() {
    if let Ok(check) = env::var(CHECK) {
        ends_in_time();
        let (_, run) = ALL.into_iter().find(|(name, _)| *name == check).unwrap();
        return run();
    }
    if device().is_none() {
        return;
    }
    thread::scope(|scope| {
        for (check, _) in ALL {
            let mut child = child();
            child.env(CHECK, check);
            scope.spawn(|| said_until_end(child));
        }
    });
}

/// The queue returns the driver's error and keeps the buffer; all memory of the device stays.
fn it_is_left_alone_with_its_memory() {
    let gpu = device().unwrap();
    let (module, own, others) = (module(gpu), region(gpu, 1 << 16), region(gpu, 1 << 16));
    let mut queue = Queue::new(in_place(&module, "forever", c"forever"), 1).unwrap();
    let mut buf = own.alloc(4096, gpu.align()).unwrap();
    let block = buf.as_mut_ptr();
    queue.submit([buf.in_out(..)], &Launch::of(1, 1).with(&[])).unwrap();
    assert!(queue.wait::<1>(Duration::from_millis(20)).unwrap().is_none());
    let begun = Instant::now();
    let stopped = queue.stop();
    assert!(
        matches!(stopped, Err(Error::WillNotStop { device: "forever", status: 0, .. })),
        "{stopped:?}"
    );
    assert!(begun.elapsed() < OpenClKernel::STOP_LIMIT + Duration::from_secs(5));
    assert!(queue.take_back::<1>().unwrap().is_none() && queue.len() == 1 && queue.is_stopped());
    drop(queue);
    assert_eq!(own.users(), 2, "the buffer is the device's for ever");
    drop(own);
    // The memory is still mapped, and the kernel runs on: its count changes.
    // SAFETY: leaked, so that it is there; a number that a device changes is read volatile.
    let count = || unsafe { block.cast::<u32>().add(1).read_volatile() };
    let (before, deadline) = (count(), Instant::now() + Duration::from_secs(20));
    while before == count() {
        assert!(Instant::now() < deadline, "the kernel writes memory that is still there");
        thread::sleep(Duration::from_millis(1));
    }
    // Other memory of the same device is kept as well, and other regions go in bounded time.
    let memory = OpenClMemory::allocate(gpu, 1).unwrap();
    let kept = memory.mapping().cpu.addr().get();
    drop((memory, others, module));
    assert!(is_mapped(kept));
    has_seen_it_all();
}

/// Every thread of a device that is the CPU runs a kernel that does not end.
fn hangs(gpu: &'static OpenClGpu, module: &OpenClModule, region: &Region) -> Queue<OpenClKernel> {
    let mut hanging = Queue::new(in_place(module, "forever", c"forever"), 1).unwrap();
    let buf = region.alloc(4096, gpu.align()).unwrap();
    // As many groups as no machine has processors.
    hanging.submit([buf.in_out(..)], &Launch::of(4096, 1).with(&[])).unwrap();
    thread::sleep(Duration::from_millis(100));
    hanging
}

/// A hand-over has its limit too, and its buffer never comes back: the driver may still read it.
fn a_hand_over_beside_it_has_a_limit() {
    let gpu = device().unwrap();
    let (module, region) = (module(gpu), region(gpu, 1 << 20));
    let hanging = hangs(gpu, &module, &region);
    let buf = region.alloc(4096, gpu.align()).unwrap();
    // No kernel is for this one: the write that is late keeps it from the CPU, which would change
    // what the driver still reads.
    let since = Instant::now();
    // SAFETY: no device receives its address.
    let buf = unsafe { buf.hand_over(&gpu.port(), 64, ..4096, Direction::ToDevice) }.unwrap();
    let waited = since.elapsed() >= Duration::from_secs(10);
    match buf.into_cpu() {
        Err(refused) => assert!(
            waited && matches!(refused.error, Error::Timeout { timeout_us: 10_000_000 }),
            "{}",
            refused.error
        ),
        Ok(_) => assert!(!waited, "the driver may still read it"),
    }
    std::mem::forget(hanging);
    has_seen_it_all();
}

/// A job that waits behind it is stopped in bounded time, and keeps its buffer.
fn a_job_beside_it_has_a_limit() {
    let gpu = device().unwrap();
    let (module, region) = (module(gpu), region(gpu, 1 << 20));
    let hanging = hangs(gpu, &module, &region);
    let mut other = Queue::new(in_place(&module, "flip", c"flip"), 1).unwrap();
    let buf = region.alloc(4096, gpu.align()).unwrap();
    let since = Instant::now();
    match other.submit([buf.in_out(..)], &Launch::of(64, 64).with(&[])) {
        Err(failed) => panic!("{failed}"),
        // A device with threads to spare, which is no processor.
        Ok(_) if since.elapsed() < Duration::from_secs(10) => {}
        Ok(_) => {
            assert!(other.wait::<1>(Duration::from_millis(20)).unwrap().is_none());
            assert!(matches!(other.stop(), Err(Error::WillNotStop { .. })) && other.len() == 1);
            assert!(since.elapsed() < Duration::from_secs(30));
        }
    }
    std::mem::forget((hanging, other));
    has_seen_it_all();
}

/// A job whose queue was dropped goes on, and everything stays; it ends, and memory goes again.
fn a_late_end_releases_the_device() {
    static DROPPED: AtomicUsize = AtomicUsize::new(0);
    let gpu = device().unwrap();
    let (module, region) = (module(gpu), region(gpu, 1 << 16));
    let mut queue = Queue::new(in_place(&module, "forever", c"forever"), 1).unwrap();
    let mut buf = region.alloc(4096, gpu.align()).unwrap();
    let word = buf.as_mut_ptr().cast::<u32>();
    queue.submit([buf.in_out(..)], &Launch::of(1, 1).with(&[])).unwrap();
    // It is asked to stop, waited for, and left alone.
    drop(queue);
    let goes = || {
        drop(OpenClMemory::import(gpu, Part::new(0, 1 << 16, &DROPPED)).unwrap());
        DROPPED.load(Ordering::SeqCst) != 0
    };
    assert!(!goes(), "the kernel goes on");
    // SAFETY: leaked, and on this device the very bytes. The kernel reads a number that changes.
    unsafe { word.write_volatile(7) };
    let deadline = Instant::now() + Duration::from_secs(10);
    while !goes() {
        assert!(Instant::now() < deadline, "the kernel has ended, and everything stays");
        thread::sleep(Duration::from_millis(100));
    }
    println!("{END}");
}
