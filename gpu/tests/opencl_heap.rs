//! A job of OpenCL takes nothing of this program's heap. The driver's own is C's, and is not
//! counted.
#![cfg(feature = "opencl")]
#![allow(unsafe_code, reason = "a kernel")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that panics has failed")]

use contigo::{
    Error, OperandSpec, Queue, Region,
    job::{Launch, Parameter::Operand, Signature},
};
use contigo_exerciser::{CountingHeap, on_this_thread};
use contigo_gpu::opencl::{Log, OpenClGpu, OpenClKernel, OpenClMemory, OpenClModule};
use std::time::Duration;

#[global_allocator]
static HEAP: CountingHeap = CountingHeap;

#[test]
fn a_job_takes_nothing_of_the_heap() {
    let gpu = match OpenClGpu::open(0) {
        Ok(gpu) => gpu,
        Err(error @ (Error::NoLibrary { .. } | Error::NotFound { .. })) => {
            contigo_testkit::emulated::skipped(
                "opencl_heap::a_job_takes_nothing_of_the_heap",
                &error.to_string(),
            );
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let source = "kernel void flip(global uchar *bytes) { bytes[get_global_id(0)] ^= 0xFF; }";
    // SAFETY: the source above.
    let module = unsafe { OpenClModule::build(gpu, source, c"", &mut Log::new()) }.unwrap();
    let signature = Signature::new("flip", &[Operand(OperandSpec::in_out())]).unwrap();
    // SAFETY: it is launched with as many items as there are bytes.
    let mut queue =
        Queue::new(unsafe { OpenClKernel::new(&module, c"flip", signature) }.unwrap(), 1).unwrap();
    let region = Region::new(OpenClMemory::allocate(gpu, 1 << 16).unwrap()).unwrap();
    let mut buf = region.alloc(4096, gpu.align()).unwrap();
    let words = Launch::of(64, 64).with(&[]);
    let before = on_this_thread();
    for _ in 0..20 {
        [buf] = queue.run([buf.in_out(..)], &words, Duration::from_secs(30)).unwrap().buffers;
    }
    assert_eq!(on_this_thread() - before, 0);
    assert_eq!(buf.view::<u8>().unwrap(), [0; 4096]);
    // The count counts.
    drop(vec![0_u8; 1]);
    assert_eq!(on_this_thread() - before, 1);
}
