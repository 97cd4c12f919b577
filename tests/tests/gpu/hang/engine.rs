//! The runtime beside a kernel that never ends.

use super::{BEGUN, ENDED, Flag, SOON, Word, forbidden, module, say, shared, spin};
use crate::raw::Raw;
use crate::{alone, cuda};
use contigo::cuda::{CudaFunction, CudaHost, Gpu, Log};
use contigo::{Align, CpuBuf, Driver, Error, Queue, Region};
use contigo_gemm8::cuda::Gemm8Module;
use contigo_gemm8::{Gemm, Output};
use contigo_testkit::skipped;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

const NAME: &str = "endless_kernel_is_given_up_nothing_waits";
/// A call that does not wait for the kernel takes microseconds, or a tenth of a second where it
/// looks for an end.
const AT_ONCE: Duration = Duration::from_secs(1);
/// The kernel is ended by then: a call that waits for it comes back, and is found by its time.
/// Twice what the test itself takes.
const PATIENCE: Duration = Duration::from_secs(30);
const LIMIT: Duration = Duration::from_millis(100);

/// One job of another queue.
fn gemm(queue: &mut Queue<impl Driver>, region: &Region) -> bool {
    let args = Gemm { m: 1, n: 16, k: 16, output: Output::Int32 { relu: false } };
    let [a, b, bias, c] =
        [16, 256, 64, 64].map(|len_bytes| region.alloc(len_bytes, Align::LINE).unwrap());
    let operands =
        [a.to_device(..16), b.to_device(..256), bias.to_device(..64), c.from_device(..64)];
    queue.run(operands, &args.words(), Duration::from_secs(1)).is_ok()
}

/// The kernel's operand, and the word in it, which stays where the buffer is leaked.
fn output(region: &Region) -> (CpuBuf, Word) {
    let mut buf = region.alloc(64, Align::LINE).unwrap();
    buf.view_mut::<u8>().unwrap().fill(0);
    let cpu = shared(NonNull::new(buf.as_mut_ptr()).unwrap());
    (buf, Word { cpu, addr: 0 })
}

/// Runs `call`, notes its time, and finds it short.
fn timed<T>(what: &str, call: impl FnOnce() -> T) -> T {
    let since = Instant::now();
    let done = call();
    let took = since.elapsed();
    say(&format!("  {what:<48} {:>10} us", took.as_micros()));
    assert!(took < AT_ONCE, "{what} waited for the kernel: {took:?}");
    done
}

#[test]
fn endless_kernel_is_given_up_nothing_waits() {
    let Some((_, _alone)) = alone() else { return };
    if let Some(why) = forbidden() {
        return skipped(NAME, why);
    }
    // One of its own: beside a kernel that hangs everything of it is leaked. Its context is the
    // other tests'.
    let gpu = Gpu::primary(cuda().unwrap(), 0).unwrap();
    let raw = Raw::open();
    let block = |len_bytes| {
        Region::new(CudaHost::allocate(&gpu, len_bytes, Align::DLPACK).unwrap()).unwrap()
    };
    let spinning = module(&gpu);
    let queue = || Queue::new(spin(&spinning), 1).unwrap();
    let region = block(4096);
    let flag = Flag(Word::new(&gpu));
    let args =
        [flag.0.addr & 0xFFFF_FFFF, flag.0.addr >> 32].map(|half| u32::try_from(half).unwrap());

    // Once with the flag up: it ends, and everything is loaded that a driver loads late.
    flag.end();
    let (mut dropped, mut kept) = (queue(), queue());
    let (buf, word) = output(&region);
    drop(dropped.run([buf.from_device(..)], &args, Duration::from_secs(5)).unwrap());
    assert!(word.becomes(ENDED));
    let gemm8 = Gemm8Module::load(&gpu, &mut Log::new()).unwrap();
    let (mut other, idle) = (
        Queue::new(gemm8.kernel().unwrap(), 1).unwrap(),
        Queue::new(gemm8.kernel().unwrap(), 1).unwrap(),
    );
    let (beside, free, unused) =
        (block(4096), block(4096), Gemm8Module::load(&gpu, &mut Log::new()).unwrap());
    assert!(gemm(&mut other, &beside));

    flag.spin();
    say(&format!("beside a kernel that spins, on {}:", gpu.facts().name));
    let (over, watch) = mpsc::channel::<()>();
    let word_of_flag = flag.0;
    // Where a call waits for the kernel, the kernel ends.
    let watchdog = thread::spawn(move || {
        if watch.recv_timeout(PATIENCE).is_err() {
            Flag(word_of_flag).end();
        }
    });

    let (buf, word) = output(&region);
    timed("Queue::submit", || dropped.submit([buf.from_device(..)], &args).unwrap());
    assert!(word.becomes(BEGUN), "the kernel did not begin");
    assert!(timed("Queue::try_next", || dropped.try_next::<1>().unwrap()).is_none(), "it ended");
    assert!(
        timed("Queue::wait, 100 ms", || dropped.wait::<1>(LIMIT).unwrap()).is_none(),
        "it ended"
    );
    // It is waited for as it is stopped, and then keeps its buffer.
    let (since, most) = (Instant::now(), CudaFunction::STOP_LIMIT + AT_ONCE + AT_ONCE);
    let failed = dropped.stop().unwrap_err();
    say(&format!(
        "  {:<48} {:>10} us",
        "Queue::stop, 5 s for its end",
        since.elapsed().as_micros()
    ));
    assert!(since.elapsed() < most, "{:?}", since.elapsed());
    assert!(matches!(failed, Error::WillNotStop { device: "spin", status: 600, .. }), "{failed:?}");
    assert_eq!((dropped.len(), dropped.is_stopped()), (1, true));
    assert!(dropped.take_back::<1>().unwrap().is_none(), "the kernel has it");
    let (buf, _) = output(&region);
    assert_eq!(
        dropped.submit([buf.from_device(..)], &args).unwrap_err().error,
        Error::QueueStopped { in_flight: 1 }
    );
    // A second one, whose queue is kept.
    let (buf, word_of_kept) = output(&region);
    let failed = kept.run([buf.from_device(..)], &args, LIMIT).unwrap_err();
    assert!(
        matches!(failed.error, Error::WillNotStop { device: "spin", status: 600, .. })
            && failed.buffers.is_none(),
        "{failed:?}"
    );
    assert_eq!(failed.cause, Error::Timeout { timeout_us: 100_000 });
    drop(failed);

    timed("drop: another queue, idle", || drop(idle));
    timed("drop: another block of pinned memory", || drop(free));
    timed("drop: another module", || drop(unused));
    timed("drop: the queue of the kernel", || drop(dropped));
    assert!(gpu.is_in_use(), "leaked objects keep the context");
    // For the table: a card runs it beside the other; CUDA does not promise it of every GPU.
    let since = Instant::now();
    let done = if gemm(&mut other, &beside) { "done" } else { "not done" };
    say(&format!(
        "  {:<48} {:>10} us, {done}",
        "a job of another queue",
        since.elapsed().as_micros()
    ));
    assert_eq!(word.cpu.load(Ordering::Acquire), BEGUN, "it ended by itself");

    flag.end();
    assert!(
        word.becomes(ENDED) && word_of_kept.becomes(ENDED),
        "the flag is up, and the kernels go on"
    );
    kept.clear().unwrap();
    let (buf, _) = output(&region);
    drop(kept.run([buf.from_device(..)], &args, Duration::from_secs(5)).unwrap());
    let since = Instant::now();
    assert_eq!(raw.synchronize(), 0);
    assert!(since.elapsed() < SOON);
    drop(over);
    watchdog.join().unwrap();
}
