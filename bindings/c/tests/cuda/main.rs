//! Pinned memory and a GPU through the functions that C calls, on a driver that stands in for
//! NVIDIA's (`gpu/fake-cuda`) and is found as that one is, by its name. A GPU that was opened
//! stays open until the program ends, so each test is a process of its own.
#![cfg(all(feature = "cuda", target_pointer_width = "64"))]
#![allow(
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that panics has failed, which is its purpose; the C functions take pointers, which are references here"
)]

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/counting.rs"]
mod counting;

mod errors;
mod jobs;
mod memory;
mod misuse;
mod no_heap;

use common::*;
use contigo_c::*;
use contigo_testkit::emulated;
use core::ffi::CStr;
use fake_cuda::{Config, Controls, Device, Function};
use std::{env, ffi::CString, fs, os::unix::fs::symlink, path::Path};

/// In the process of one test: its name.
const TEST: &str = "CONTIGO_C_CUDA_TEST";

/// Runs a test in a process of its own, with a driver like `config`.
fn alone(test: &str, config: &Config, act: impl FnOnce(&Controls)) {
    if is_alone(test) {
        return act(&Controls::take(config));
    }
    let folder = tempfile::tempdir().unwrap();
    symlink(fake_cuda::library(), folder.path().join("libcuda.so.1")).unwrap();
    run(test, folder.path());
}

/// The same where the driver's file is no library, whatever else is installed.
fn without_a_driver(test: &str, act: impl FnOnce()) {
    if is_alone(test) {
        return act();
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("libcuda.so.1"), "no library").unwrap();
    run(test, folder.path());
}

/// Is this the process of that test?
fn is_alone(test: &str) -> bool {
    env::var_os(TEST).is_some_and(|name| name == test)
}

/// Runs the process of a test, which finds its driver in `folder`, and answers its output.
fn run(test: &str, folder: &Path) -> String {
    let mut command = emulated::command(env::current_exe().unwrap());
    let output = command
        .args(["--exact", test, "--nocapture"])
        .env(TEST, test)
        .env("LD_LIBRARY_PATH", folder)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    // A name that no test has runs nothing, and succeeds.
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{test}: {said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    said
}

/// A driver with two GPUs.
fn two() -> Config {
    Config::default().with_devices(2, Device::default())
}

/// Memory that is pinned for that GPU.
#[track_caller]
fn pinned(gpu: u32, options: &contigo_region_options) -> contigo_region {
    open_region(&CString::new(format!("cuda:{gpu}")).unwrap(), options)
}

/// The same, where it is refused.
fn try_pinned(gpu: u32, options: &contigo_region_options) -> contigo_status {
    try_region(&CString::new(format!("cuda:{gpu}")).unwrap(), options)
}

fn try_port(name: &str) -> (contigo_status, contigo_port) {
    let (name, mut port) = (CString::new(name).unwrap(), 1);
    (unsafe { contigo_port_find(name.as_ptr(), &mut port) }, port)
}

#[track_caller]
fn port(name: &str) -> contigo_port {
    let (status, port) = try_port(name);
    ok(status);
    port
}

/// `gemm8(a, b, bias, c, m, n, k, flags)`, a kernel whose operands only the program knows.
fn parameters() -> [contigo_parameter; 8] {
    let pointer = |uses| contigo_parameter {
        operand: contigo_operand_spec { r#use: uses, ..Default::default() },
        ..Default::default()
    };
    let word = contigo_parameter { words: 1, ..Default::default() };
    let read = pointer(CONTIGO_READS);
    [read, read, read, pointer(CONTIGO_WRITES), word, word, word, word]
}

/// One block of 256 threads; 1 row of 64 by 16 columns, to int32.
const ARGS: [u32; 11] = [1, 1, 1, 256, 1, 1, 0, 1, 16, 64, 0];

fn try_module(port: contigo_port) -> (contigo_status, contigo_module) {
    let (ptx, mut module) =
        (concat!(include_str!("../../../../examples/gemm8/kernels/gemm8.ptx"), "\0"), 1);
    (unsafe { contigo_module_load(port, ptx.as_ptr(), ptx.len(), &mut module) }, module)
}

fn try_kernel(module: contigo_module, entry: &CStr) -> (contigo_status, contigo_engine) {
    let mut engine = 1;
    (
        unsafe {
            contigo_engine_open_kernel(
                module,
                entry.as_ptr(),
                parameters().as_ptr(),
                8,
                &mut engine,
            )
        },
        engine,
    )
}

/// A region, a pool of eight slots and a kernel on a GPU.
#[derive(Clone, Copy, Debug)]
struct OnGpu {
    port: contigo_port,
    region: contigo_region,
    pool: contigo_pool,
    module: contigo_module,
    engine: contigo_engine,
}

fn gpu(ordinal: u32) -> OnGpu {
    let port = port(&format!("cuda:{ordinal}"));
    let region = pinned(ordinal, &region_options(0));
    let pool = answer(|pool| unsafe { contigo_pool_open(region, SLOT, 8, 256, pool) });
    let (status, module) = try_module(port);
    ok(status);
    let (status, engine) = try_kernel(module, c"gemm8");
    ok(status);
    OnGpu { port, region, pool, module, engine }
}

/// A of ones, B of twos, bias of zeroes, and C, from the slots of `pool`.
fn operands_of(pool: contigo_pool) -> [contigo_operand; 4] {
    [(1, 64), (2, 1024), (0, 64), (0x55, 64)].map(|(value, len_bytes)| {
        let buf = answer(|buf| unsafe { contigo_pool_take(pool, buf) });
        fill(buf, value);
        part(buf, len_bytes)
    })
}

impl OnGpu {
    fn take(&self) -> contigo_buf {
        answer(|buf| unsafe { contigo_pool_take(self.pool, buf) })
    }

    fn operands(&self) -> [contigo_operand; 4] {
        operands_of(self.pool)
    }

    fn try_start(&self, operands: &[contigo_operand; 4]) -> (contigo_status, contigo_job) {
        let mut job = 1;
        (
            unsafe {
                contigo_job_start(
                    self.engine,
                    operands.as_ptr(),
                    4,
                    ARGS.as_ptr(),
                    ARGS.len(),
                    &mut job,
                )
            },
            job,
        )
    }

    #[track_caller]
    fn start(&self, operands: &[contigo_operand; 4]) -> contigo_job {
        let (status, job) = self.try_start(operands);
        ok(status);
        job
    }
}

fn close(gpu: OnGpu) {
    ok(contigo_engine_close(gpu.engine));
    ok(contigo_module_close(gpu.module));
    ok(contigo_pool_close(gpu.pool));
    ok(contigo_region_close(gpu.region));
    ok(contigo_port_close(gpu.port));
}

/// All that was closed was given back, each of `gpus` GPUs keeps its context once, and the driver
/// had to refuse nothing.
fn clean(controls: &Controls, gpus: u64) {
    let counters = controls.counters();
    let closed = [
        counters.host_allocs,
        counters.streams,
        counters.events,
        counters.freed_under_a_kernel,
        counters.overruns,
    ];
    assert_eq!(
        (closed, counters.retained_contexts, counters.modules),
        ([0; 5], gpus, 0),
        "{counters:?}"
    );
    for function in Function::ALL {
        assert_eq!(counters.refused(*function), 0, "{function:?}");
    }
}

/// A function of the driver, for what a program does beside this library.
fn function<F: Copy>(name: &str) -> F {
    let name = CString::new(name).unwrap();
    unsafe {
        let driver = libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW);
        let found = libc::dlsym(driver, name.as_ptr());
        assert!(!found.is_null(), "{name:?}");
        core::mem::transmute_copy(&found)
    }
}
