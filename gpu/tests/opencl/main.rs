//! Memory and kernels of OpenCL, on pocl: the machine's own processors as a device. Each test is
//! skipped, by its name, where there is no device.
#![cfg(feature = "opencl")]
#![allow(
    unsafe_code,
    reason = "kernels are launched, and tensors are read as their consumer reads them"
)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that panics has failed"
)]

mod broken;
#[path = "../child/mod.rs"]
mod child;
mod conformance;
mod copying;
mod errors;
mod fork;
#[path = "../fork/mod.rs"]
mod forks;
#[path = "../jobs/mod.rs"]
mod jobs;
mod memory;
mod never_ends;
mod scalars;
mod tensors;

use contigo::job::Parameter::{Operand, Words};
use contigo::job::Signature;
use contigo::{Align, DevBuf, Error, OperandSpec, Queue, Region};
use contigo_gpu::opencl::{
    KIND, Log, OpenClGpu, OpenClGpu as Gpu, OpenClKernel, OpenClKernel as Kernel, OpenClMemory,
    OpenClMemory as Memory, OpenClModule,
};
use std::ffi::CStr;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Far above what a kernel here takes, also beside a build.
const LIMIT: Duration = Duration::from_secs(30);

/// `xor` and `scale` are those of `jobs`. `keyed` copies bytes and XORs them with a key, which is
/// narrower than a word. `add` has a scalar of two words. `flip` works in place, `both` on two.
/// `forever` ends when its first word is 7.
const SOURCE: &str = "
kernel void xor(global const uint *from, global uint *to, uint count, uint key) {
    size_t i = get_global_id(0);
    if (i < count) to[i] = from[i] ^ key;
}
kernel void scale(global uint *data, uint count, uint by) {
    size_t i = get_global_id(0);
    if (i < count) data[i] = data[i] * by + 1;
}
kernel void keyed(global const uchar *from, global uchar *to, uint count, uchar key) {
    size_t i = get_global_id(0);
    if (i < count) to[i] = from[i] ^ key;
}
kernel void add(global const ulong *from, global ulong *to, uint count, ulong by) {
    size_t i = get_global_id(0);
    if (i < count) to[i] = from[i] + by;
}
kernel void flip(global uchar *bytes) { bytes[get_global_id(0)] ^= 0xFF; }
kernel void both(global uchar *one, global uchar *two) {
    one[get_global_id(0)] ^= 0xFF;
    two[get_global_id(0)] ^= 0xFF;
}
kernel void forever(global volatile uint *word) { while (word[0] != 7) word[1] += 1; }
";

/// The first device; or none, and this thread's test is skipped.
fn device() -> Option<&'static OpenClGpu> {
    match OpenClGpu::open(0) {
        Ok(gpu) => Some(gpu),
        Err(error @ (Error::NoLibrary { .. } | Error::NotFound { .. })) => {
            child::skipped(&error.to_string());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn module(gpu: &'static OpenClGpu) -> OpenClModule {
    let mut log = Log::new();
    // SAFETY: the source above, whose kernels keep to their operands.
    unsafe { OpenClModule::build(gpu, SOURCE, c"", &mut log) }
        .unwrap_or_else(|error| panic!("{error}: {log}"))
}

fn region(gpu: &'static OpenClGpu, len_bytes: usize) -> Region {
    Region::new(OpenClMemory::allocate(gpu, len_bytes).unwrap()).unwrap()
}

/// A kernel `entry(from, to, count, key)`, whose operands have `item_bytes` for each of `count`.
fn copying_kernel(module: &OpenClModule, entry: &CStr, item_bytes: u64) -> OpenClKernel {
    let (from, to) = (Operand(OperandSpec::to_device()), Operand(OperandSpec::from_device()));
    let signature = Signature::new("copying", &[from, to, Words(1), Words(1)]).unwrap();
    let signature = signature.sized(0, item_bytes, &[0]).unwrap();
    let signature = signature.sized(1, item_bytes, &[0]).unwrap();
    // SAFETY: an item reads `from[i]` and writes `to[i]`, where `i < count`.
    unsafe { OpenClKernel::new(module, entry, signature) }.unwrap()
}

fn keyed(module: &OpenClModule) -> OpenClKernel {
    copying_kernel(module, c"keyed", 1)
}

/// `scale(data, count, by)`.
fn scale() -> Signature {
    let signature = Signature::new("scale", &[Operand(OperandSpec::in_out()), Words(1), Words(1)]);
    signature.unwrap().sized(0, 4, &[0]).unwrap()
}

/// The device with the kernels of `jobs`.
struct Opened {
    gpu: &'static OpenClGpu,
    module: OpenClModule,
}

fn opened() -> Option<Opened> {
    let gpu = device()?;
    Some(Opened { gpu, module: module(gpu) })
}

impl Opened {
    fn align(&self) -> Align {
        self.gpu.align()
    }

    fn region(&self, len_bytes: usize) -> Region {
        region(self.gpu, len_bytes)
    }

    fn xor(&self) -> Kernel {
        copying_kernel(&self.module, c"xor", 4)
    }

    fn scale(&self) -> Kernel {
        // SAFETY: an item touches `data[i]`, where `i < count`.
        unsafe { OpenClKernel::new(&self.module, c"scale", scale()) }.unwrap()
    }

    /// The code of `scale`, its entry point and its signature.
    fn code_of_scale(&self) -> (Vec<u8>, &'static CStr, Signature) {
        (SOURCE.into(), c"scale", scale())
    }
}

/// The kernel that works in place; a job has so many work items, and a byte for each.
fn in_place(module: &OpenClModule, name: &'static str, entry: &CStr) -> OpenClKernel {
    let signature = Signature::new(name, &[Operand(OperandSpec::in_out())]).unwrap();
    // SAFETY: `flip` is launched with as many items as there are bytes, `forever` with two words.
    unsafe { OpenClKernel::new(module, entry, signature) }.unwrap()
}

/// Runs one job, whose buffers stay the device's.
fn run_there<const N: usize>(
    queue: &mut Queue<OpenClKernel>,
    operands: [contigo::Operand; N],
    words: &[u32],
) -> [DevBuf; N] {
    queue.submit(operands, words).unwrap();
    queue.wait_device(LIMIT).unwrap().unwrap().buffers
}

/// A library in C of this folder, built by the machine's compiler; or why not.
fn built(name: &str, with: &str) -> Result<String, String> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let to = format!("{}/{name}-{}-{count}.so", env!("CARGO_TARGET_TMPDIR"), std::process::id());
    let from = format!("{}/tests/opencl/{name}.c", env!("CARGO_MANIFEST_DIR"));
    let mut cc = Command::new("cc");
    cc.args([
        "-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-O1", "-o", &to, &from,
        with,
    ]);
    let status = cc.status().map_err(|error| format!("no compiler for C: {error}"))?;
    assert!(status.success(), "{cc:?}");
    Ok(to)
}
