//! A kernel that never ends, in a process of its own, which the parent ends.

use super::{child, device, in_place, is_child, memory::Part, module, region};
use contigo::{Backend, Direction, Driver, Error, Queue, job::Launch, mem::DevSlice};
use contigo_gpu::opencl::{OpenClKernel, OpenClMemory};
use std::{
    io::{BufRead, BufReader},
    process::Stdio,
    sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

const TEST: &str = "never_ends::it_is_left_alone_with_its_memory";
/// The last line of the child.
const END: &str = "the child has seen it all";

/// How long a child lives at most: far longer than its steps take, for a parent that does not end
/// it. A process whose kernel runs may not end by itself.
const LIFE: Duration = Duration::from_secs(120);

fn ends_in_time() {
    thread::spawn(|| {
        thread::sleep(LIFE);
        std::process::abort();
    });
}

/// Each step says how long it took, in words that the parent looks for.
fn as_child() {
    ends_in_time();
    let gpu = device(TEST).unwrap();
    let (module, others) = (module(gpu), region(gpu, 1 << 16));
    let since = Instant::now();
    let said = |what: &str| println!("CHILD {what} after {} ms", since.elapsed().as_millis());
    let block = {
        let region = region(gpu, 1 << 16);
        let mut buf = region.alloc(4096, gpu.align()).unwrap();
        let (block, addr) =
            (buf.as_mut_ptr(), region.dev_addr_of(&gpu.port(), buf.as_mut_ptr(), 4096).unwrap());
        // The driver alone first: it goes on, it goes on, it will not stop.
        let mut kernel = in_place(&module, "forever", c"forever");
        let (operands, words) =
            ([DevSlice { addr, offset_bytes: 0, len_bytes: 4096 }], Launch::of(1, 1).with(&[]));
        kernel.check(&operands, &words).unwrap();
        // SAFETY: the buffer is forgotten below, so that the device has it for ever.
        unsafe { kernel.submit(0, &operands, &words) }.unwrap();
        std::mem::forget(buf);
        for timeout in [Duration::ZERO, Duration::from_millis(20)] {
            assert_eq!(kernel.poll(timeout).unwrap(), None);
        }
        said("polled");
        let begun = Instant::now();
        match kernel.stop() {
            Err(Error::WillNotStop { device: "forever", status: 0, waited_us }) => {
                println!("CHILD stop: WillNotStop, {waited_us} us")
            }
            other => panic!("{other:?}"),
        }
        assert!(begun.elapsed() < OpenClKernel::STOP_LIMIT + Duration::from_secs(5));
        said("stopped");
        drop(kernel);
        block
    };
    said("dropped");
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
    let kept = memory.mapping().cpu;
    drop((memory, others));
    // SAFETY: leaked beside a kernel that hangs.
    assert_eq!(unsafe { kept.as_ptr().read_volatile() }, 0);
    said("kept");
    drop(module);
    println!("{END}");
    thread::sleep(LIFE);
}

#[test]
fn it_is_left_alone_with_its_memory() {
    if is_child() {
        return as_child();
    }
    if device(TEST).is_none() {
        return;
    }
    let mut child = child(TEST).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let (say, hear) = mpsc::channel();
    thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| say.send(line)));
    let mut heard = Vec::new();
    let ended = loop {
        match hear.recv_timeout(Duration::from_secs(90)) {
            Ok(line) => {
                let last = line.contains(END);
                heard.push(line);
                if last {
                    break true;
                }
            }
            Err(_) => break false,
        }
    };
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(ended, "{heard:#?}");
    for step in ["polled", "stop: WillNotStop", "stopped", "dropped", "kept"] {
        assert!(heard.iter().any(|line| line.contains(step)), "{step}: {heard:#?}");
    }
    println!("{heard:#?}");
}

/// A queue's run ends with what the driver says, and the buffers stay inside: dropped, it leaks the
/// region.
#[test]
fn a_queue_says_so_and_keeps_the_buffers() {
    const THIS: &str = "never_ends::a_queue_says_so_and_keeps_the_buffers";
    if !is_child() {
        return ends(THIS);
    }
    ends_in_time();
    let gpu = device(THIS).unwrap();
    let module = module(gpu);
    let region = region(gpu, 1 << 16);
    let mut queue = Queue::new(in_place(&module, "forever", c"forever"), 1).unwrap();
    let buf = region.alloc(4096, gpu.align()).unwrap();
    let failed = queue
        .run([buf.in_out(..)], &Launch::of(1, 1).with(&[]), Duration::from_millis(20))
        .unwrap_err();
    assert!(matches!(failed.error, Error::WillNotStop { .. }), "{failed}");
    assert!(failed.buffers.is_none() && queue.len() == 1 && queue.is_stopped());
    drop(queue);
    assert_eq!(region.users(), 2, "the buffer is the device's for ever");
    println!("{END}");
    thread::sleep(LIFE);
}

/// Every thread of a device that is the CPU runs a kernel that does not end. A hand-over has its
/// limit too, and its buffer never comes back: the driver may still read it.
#[test]
fn a_hand_over_beside_it_has_a_limit() {
    const THIS: &str = "never_ends::a_hand_over_beside_it_has_a_limit";
    if !is_child() {
        return ends(THIS);
    }
    ends_in_time();
    let gpu = device(THIS).unwrap();
    let (module, region) = (module(gpu), region(gpu, 1 << 20));
    let mut hanging = Queue::new(in_place(&module, "forever", c"forever"), 1).unwrap();
    let mut other = Queue::new(in_place(&module, "flip", c"flip"), 1).unwrap();
    let [first, second, third] = [(); 3].map(|()| region.alloc(4096, gpu.align()).unwrap());
    // As many groups as no machine has processors.
    hanging.submit([first.in_out(..)], &Launch::of(4096, 1).with(&[])).unwrap();
    thread::sleep(Duration::from_millis(100));
    // No kernel is for this one: the write that is late keeps it from the CPU, which would change
    // what the driver still reads.
    let since = Instant::now();
    // SAFETY: no device receives its address.
    let third = unsafe { third.hand_over(&gpu.port(), 64, ..4096, Direction::ToDevice) }.unwrap();
    let waited = since.elapsed() >= Duration::from_secs(10);
    match third.into_cpu() {
        Err(refused) => assert!(
            waited && matches!(refused.error, Error::Timeout { timeout_us: 10_000_000 }),
            "{}",
            refused.error
        ),
        Ok(_) => assert!(!waited, "the driver may still read it"),
    }
    let since = Instant::now();
    match other.submit([second.in_out(..)], &Launch::of(64, 64).with(&[])) {
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
    println!("{END}");
    thread::sleep(LIFE);
}

/// A job whose queue was dropped goes on, and everything stays; it ends, and memory goes again.
#[test]
fn late_end_of_job_releases_the_device() {
    const THIS: &str = "never_ends::late_end_of_job_releases_the_device";
    static DROPPED: AtomicUsize = AtomicUsize::new(0);
    if !is_child() {
        return ends(THIS);
    }
    ends_in_time();
    let gpu = device(THIS).unwrap();
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

/// Runs a test as a child until its last line, and ends it.
fn ends(test: &str) {
    if device(test).is_none() {
        return;
    }
    let mut child = child(test).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let ended = lines.any(|line| line.contains(END));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(ended);
}
