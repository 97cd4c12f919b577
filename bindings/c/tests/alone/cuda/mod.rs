//! Pinned memory and a GPU through the functions that C calls, on a driver that stands in for
//! NVIDIA's (`gpu/fake-cuda`) and is found as that one is, by its name. A GPU that was opened
//! stays open until the program ends, so each test is a process of its own.

mod errors;
mod jobs;
mod memory;
mod misuse;

use crate::common::*;
use crate::{counting, is_alone, run};
use contigo_c::*;
use fake_cuda::{Config, Controls, Device, Function};
use std::ffi::CString;
use std::fs;
use std::os::unix::fs::symlink;

/// Runs a test in a process of its own, with a driver like `config`.
fn alone(config: &Config, act: impl FnOnce(&Controls)) {
    if is_alone() {
        return act(&Controls::take(config));
    }
    let folder = tempfile::tempdir().unwrap();
    symlink(fake_cuda::library(), folder.path().join("libcuda.so.1")).unwrap();
    run(Some(folder.path()));
}

/// The same where the driver's file is no library, whatever else is installed.
fn without_a_driver(act: impl FnOnce()) {
    if is_alone() {
        return act();
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("libcuda.so.1"), "no library").unwrap();
    run(Some(folder.path()));
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

fn named(name: &str) -> CString {
    CString::new(name).unwrap()
}

/// One block of 256 threads; 1 row of 64 by 16 columns, to int32.
const ARGS: [u32; 11] = [1, 1, 1, 256, 1, 1, 0, 1, 16, 64, 0];

const PTX: &str = concat!(include_str!("../../../../../examples/gemm8/kernels/gemm8.ptx"), "\0");

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
    let port = find_port(&named(&format!("cuda:{ordinal}")));
    let region = pinned(ordinal, &region_options(0));
    let pool = open_pool(region, SLOT, 8, 256);
    let (status, module) = try_module(port, PTX.as_bytes());
    ok(status);
    let (status, engine) = try_kernel(module, c"gemm8");
    ok(status);
    OnGpu { port, region, pool, module, engine }
}

impl OnGpu {
    fn take(&self) -> contigo_buf {
        take(self.pool)
    }

    fn operands(&self) -> [contigo_operand; 4] {
        operands_of(self.pool)
    }

    fn try_start(&self, operands: &[contigo_operand; 4]) -> (contigo_status, contigo_job) {
        try_job(self.engine, operands, &ARGS)
    }

    #[track_caller]
    fn start(&self, operands: &[contigo_operand; 4]) -> contigo_job {
        start_job(self.engine, operands, &ARGS)
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
