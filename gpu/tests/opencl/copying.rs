//! The same tests on a device that keeps a copy of the host's bytes, as OpenCL allows. There a
//! hand-over that is left out shows the wrong bytes. A library in C stands before the machine's
//! loader (`copying.c`), in a process of its own.

use super::child::{child, child_of, is_child, said, skipped};
use super::{LIMIT, built, device, in_place, module, region, run_there};
use contigo::job::Parameter::Operand;
use contigo::job::{Launch, Signature};
use contigo::{Error, OperandSpec, Queue};
use contigo_gpu::opencl::OpenClKernel;
use contigo_testkit::emulated;
use std::process::Command;
use std::time::Duration;
use std::{env, thread};

/// The binding looks here for a loader.
const LOADER: &str = "OPENCL_DYLIB_PATH";

#[test]
fn jobs_and_conformance_are_right_with_a_copy() {
    if is_child() {
        return it_is_a_copy();
    }
    if device().is_none() {
        return;
    }
    let library = match built("copying", "-Wl,--no-as-needed,-l:libOpenCL.so.1") {
        Ok(library) => library,
        Err(why) => return skipped(&why),
    };
    let run = |mut command: Command| {
        command.env(LOADER, &library);
        said(command)
    };
    assert!(run(child()).contains("CHILD: a copy"));
    for (test, name, value) in [
        (PARTLY, "CONTIGO_FAIL_MAP", "3"),
        (CUT, "CONTIGO_BORROWED", "1"),
        (PARTS, "CONTIGO_SLOW_UNMAP", "1"),
    ] {
        let mut child = child_of(test);
        child.env(name, value);
        assert!(run(child).contains("CHILD: as expected"));
    }
    let mut all = emulated::command(env::current_exe().unwrap());
    all.args(["conformance::", "jobs::", "scalars::", "tensors::the_handle"]);
    let said = run(all);
    let passed = said.matches("... ok").count();
    assert!(passed >= 26, "{passed} passed: {said}");
    std::fs::remove_file(library).unwrap();
}

const PARTLY: &str = "copying::a_job_comes_back_in_part";

/// The first buffer of a job was brought back, and the second was not. Both are the device's: the
/// next job works on what the device has.
#[test]
fn a_job_comes_back_in_part() {
    if !is_child() {
        return;
    }
    let gpu = device().unwrap();
    let (module, region) = (module(gpu), region(gpu, 1 << 16));
    // SAFETY: it is launched with as many items as there are bytes.
    let both = unsafe {
        OpenClKernel::new(
            &module,
            c"both",
            Signature::new("both", &[Operand(OperandSpec::in_out()); 2]).unwrap(),
        )
    };
    let (mut both, mut flip) = (
        Queue::new(both.unwrap(), 1).unwrap(),
        Queue::new(in_place(&module, "flip", c"flip"), 1).unwrap(),
    );
    let words = Launch::of(64, 64).with(&[]);
    let bufs = [(); 2].map(|()| {
        let mut buf = region.alloc(4096, gpu.align()).unwrap();
        buf.view_mut::<u8>().unwrap().fill(0x55);
        buf.in_out(..)
    });
    // The region's first look was the first mapping.
    both.submit(bufs, &words).unwrap();
    let failed = both.wait::<2>(LIMIT).unwrap_err();
    assert_eq!(
        failed.error,
        Error::Gpu { call: "clEnqueueMapBuffer", code: -12, name: "CL_MAP_FAILURE" }
    );
    for buf in failed.buffers.unwrap() {
        let [buf] = flip.run([buf.in_out(..)], &words, LIMIT).unwrap().buffers;
        assert_eq!(buf.view::<u8>().unwrap(), [0x55; 4096]);
    }
    println!("CHILD: as expected");
}

const CUT: &str = "copying::a_buffer_is_cut";

/// A buffer is cut, and one part goes to the device: the driver reads no byte of the other.
#[test]
fn a_buffer_is_cut() {
    if !is_child() {
        return;
    }
    let gpu = device().unwrap();
    let (module, region) = (module(gpu), region(gpu, 1 << 16));
    let mut queue = Queue::new(in_place(&module, "flip", c"flip"), 1).unwrap();
    let whole = region.alloc(8192, gpu.align()).unwrap();
    let [whole] =
        queue.run([whole.in_out(..)], &Launch::of(128, 64).with(&[]), LIMIT).unwrap().buffers;
    let (left, mut right) = whole.split_at(4096).unwrap();
    let borrowed = right.view_mut::<u8>().unwrap();
    borrowed.fill(0x5B);
    let [left] =
        queue.run([left.in_out(..)], &Launch::of(64, 64).with(&[]), LIMIT).unwrap().buffers;
    assert_eq!((left.view::<u8>().unwrap(), &*borrowed), (&[0; 4096][..], &[0x5B; 4096][..]));
    println!("CHILD: as expected");
}

const PARTS: &str = "copying::two_threads_have_a_part_each";

/// A buffer is cut, and two threads hand the parts over at once: what the CPU wrote last counts.
#[test]
fn two_threads_have_a_part_each() {
    if !is_child() {
        return;
    }
    let gpu = device().unwrap();
    let (module, region) = (module(gpu), region(gpu, 1 << 16));
    let [mut first, mut second] =
        [(); 2].map(|()| Queue::new(in_place(&module, "flip", c"flip"), 1).unwrap());
    let whole = region.alloc(8192, gpu.align()).unwrap();
    let [whole] =
        first.run([whole.in_out(..)], &Launch::of(128, 64).with(&[]), LIMIT).unwrap().buffers;
    let (left, mut right) = whole.split_at(4096).unwrap();
    right.view_mut::<u8>().unwrap().fill(0x11);
    let words = Launch::of(64, 64).with(&[]);
    thread::scope(|scope| {
        let other = scope.spawn(|| drop(first.run([left.in_out(..)], &words, LIMIT).unwrap()));
        thread::sleep(Duration::from_millis(150));
        let [right] = run_there(&mut second, [right.in_out(..)], &words);
        other.join().unwrap();
        assert_eq!(right.into_cpu().unwrap().view::<u8>().unwrap(), [0xEE; 4096]);
    });
    println!("CHILD: as expected");
}

/// The device's output is in no byte of the host's, until it is mapped.
fn it_is_a_copy() {
    let gpu = device().unwrap();
    let (module, region) = (module(gpu), region(gpu, 1 << 16));
    let mut queue = Queue::new(in_place(&module, "flip", c"flip"), 1).unwrap();
    let mut buf = region.alloc(4096, gpu.align()).unwrap();
    buf.view_mut::<u8>().unwrap().fill(0x55);
    let block = buf.as_mut_ptr();
    let [buf] = run_there(&mut queue, [buf.in_out(..)], &Launch::of(64, 64).with(&[]));
    // SAFETY: no job is under way, and there is no view.
    assert_eq!(unsafe { block.read_volatile() }, 0x55);
    assert_eq!(buf.into_cpu().unwrap().view::<u8>().unwrap(), [0xAA; 4096]);
    println!("CHILD: a copy");
}
