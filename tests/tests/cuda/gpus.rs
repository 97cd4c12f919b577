//! Drivers, GPUs, contexts, threads.

use super::{block, clean, code, current, driver, function, load, opened};
use contigo::cuda::{Cuda, CudaHost, Gpu};
use contigo::{Align, Error, Region};
use fake_cuda::{Config, Controls, Device, Function, code as answers};
use std::ffi::c_void;
use std::{ptr, thread};

#[test]
fn missing_driver_says_what_to_install() {
    // SAFETY: there is no such file.
    let refused = unsafe { Cuda::load_from(c"/nonexistent/libcuda.so.1") }.unwrap_err();
    assert!(
        matches!(refused, Error::NoLibrary { name: "libcuda.so.1", fix } if fix.contains("NVIDIA's driver")),
        "{refused:?}"
    );
    assert!(
        refused.to_string().starts_with("libcuda.so.1 cannot be loaded: install NVIDIA's driver"),
        "{refused}"
    );
    // A library that is none of NVIDIA's.
    // SAFETY: the C library, loaded already.
    let refused = unsafe { Cuda::load_from(c"libc.so.6") }.unwrap_err();
    assert!(matches!(refused, Error::Unsupported { what: "cuInit", .. }), "{refused:?}");
}

#[test]
fn drivers_and_gpus_that_cannot_be_used_say_why() {
    let controls = Controls::take(&Config { driver_version: 9_020, ..Config::default() });
    let refused = load().unwrap_err();
    assert!(
        matches!(refused, Error::Setting { name: "cuDriverGetVersion", value: 9_020, fix } if fix.contains("10.2")),
        "{refused:?}"
    );
    controls.configure(&Config { device_count: 0, ..Config::default() });
    assert_eq!(code(load().unwrap_err()), ("cuInit", answers::NO_DEVICE));
    controls.configure(&Config::default().failing(
        Function::cuInit,
        1,
        answers::SYSTEM_DRIVER_MISMATCH,
    ));
    assert_eq!(load().unwrap_err().to_string(), "cuInit: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803)");
    controls.configure(&Config { driver_version: 10_020, ..Config::default() });
    let cuda = load().unwrap();
    assert_eq!((cuda.version(), cuda.gpus()), (10_020, Ok(1)));
    let refused = Gpu::primary(&cuda, 1).unwrap_err();
    assert!(
        matches!(
            refused,
            Error::Argument { name: "the GPU's ordinal", value: 1, min: 0, max: 0, .. }
        ),
        "{refused:?}"
    );
    controls.configure(
        &Config::default()
            .with_devices(1, Device { can_map_host_memory: false, ..Device::default() }),
    );
    let cuda = load().unwrap();
    let refused = Gpu::primary(&cuda, 0).unwrap_err();
    assert!(
        matches!(
            refused,
            Error::Unsupported {
                what: "this GPU cannot use the CPU's memory (CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY is 0)",
                ..
            }
        ),
        "{refused:?}"
    );
    clean(&controls);
}

#[test]
fn every_call_that_opens_a_gpu_may_fail() {
    for function in [
        Function::cuDriverGetVersion,
        Function::cuDeviceGetCount,
        Function::cuDeviceGet,
        Function::cuDeviceGetName,
        Function::cuDeviceGetAttribute,
        Function::cuDeviceTotalMem_v2,
        Function::cuDevicePrimaryCtxRetain,
    ] {
        let controls = Controls::take(&Config::default().failing(function, 1, answers::UNKNOWN));
        let opened = load().and_then(|cuda| Gpu::primary(&cuda, 0).map(drop));
        let (call, found) = code(opened.unwrap_err());
        assert!(
            found == answers::UNKNOWN && function.name().starts_with(call),
            "{function:?}: {call}"
        );
        clean(&controls);
    }
}

#[test]
fn facts_are_the_driver_s() {
    let nano = Device { major: 5, minor: 3, integrated: true, ..Device::default() };
    let card = Device {
        major: 5,
        minor: 3,
        integrated: false,
        memory_bytes: 8 << 30,
        host_native_atomic_supported: true,
        ..Device::default()
    };
    for (device, uncached) in [
        (nano, true),
        (Device { major: 6, minor: 2, ..nano }, true),
        (Device { major: 7, minor: 1, ..nano }, true),
        (Device { major: 7, minor: 2, ..nano }, false),
        (Device { major: 8, minor: 0, ..nano }, false),
        (card, false),
    ] {
        let (_controls, cuda) = driver(&Config::default().with_devices(1, device));
        let gpu = Gpu::primary(&cuda, 0).unwrap();
        let facts = gpu.facts();
        assert_eq!(
            facts.compute_capability,
            (device.major.unsigned_abs(), device.minor.unsigned_abs())
        );
        assert_eq!(
            (facts.integrated, facts.cpu_uncached(), facts.total_bytes),
            (device.integrated, uncached, device.memory_bytes)
        );
        assert_eq!(facts.host_native_atomics, device.host_native_atomic_supported);
        assert!(!facts.name.is_empty());
    }
}

type Create = unsafe extern "C" fn(*mut *mut c_void, u32, i32) -> i32;
type One = unsafe extern "C" fn(*mut c_void) -> i32;

#[test]
fn a_thread_needs_no_context_and_keeps_its_own() {
    let (_controls, gpu) = opened(&Config::default());
    assert!(current().is_null(), "the primary context is current on no thread until it is used");
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let region = Region::new(block(&gpu).unwrap()).unwrap();
                    drop(region.alloc(64, Align::LINE).unwrap());
                    assert!(current().is_null());
                }
            });
        }
    });
    let mut other = ptr::null_mut();
    // SAFETY: the pointer is a reference; the context is destroyed below.
    assert_eq!(unsafe { function::<Create>("cuCtxCreate_v2")(&raw mut other, 0, 0) }, 0);
    assert_eq!(current(), other);
    drop(block(&gpu).unwrap());
    assert_eq!(current(), other, "the thread keeps its context");
    // SAFETY: made above.
    assert_eq!(unsafe { function::<One>("cuCtxDestroy_v2")(other) }, 0);
}

#[test]
fn a_context_of_another_library_is_adopted() {
    let (controls, cuda) = driver(&Config::default().with_devices(2, Device::default()));
    // SAFETY: there is none.
    let refused = unsafe { Gpu::adopt(&cuda) }.unwrap_err();
    assert_eq!(code(refused), ("cuCtxGetCurrent", answers::INVALID_CONTEXT));
    let mut context = ptr::null_mut();
    // SAFETY: the pointer is a reference; the context is destroyed below, after the GPU.
    assert_eq!(unsafe { function::<Create>("cuCtxCreate_v2")(&raw mut context, 0, 1) }, 0);
    // SAFETY: as above.
    let gpu = unsafe { Gpu::adopt(&cuda) }.unwrap();
    assert_eq!((gpu.facts().ordinal, gpu.port().bus), (1, contigo::Bus::Gpu(1)));
    drop(Region::new(block(&gpu).unwrap()).unwrap());
    drop(gpu);
    let counters = controls.counters();
    assert_eq!(
        (counters.created_contexts, counters.retained_contexts),
        (1, 0),
        "it is not ours to release"
    );
    // SAFETY: made above.
    assert_eq!(unsafe { function::<One>("cuCtxDestroy_v2")(context) }, 0);
    clean(&controls);
}

#[test]
fn memory_of_one_gpu_is_not_another_s() {
    let (controls, cuda) = driver(&Config::default().with_devices(2, Device::default()));
    let (first, second) = (Gpu::primary(&cuda, 0).unwrap(), Gpu::primary(&cuda, 1).unwrap());
    let region = Region::new(CudaHost::allocate(&first, 4096, Align::LINE).unwrap()).unwrap();
    let mut buf = region.alloc(64, Align::LINE).unwrap();
    let inside = buf.as_mut_ptr();
    assert!(region.dev_addr_of(&first.port(), inside, 64).is_ok());
    let refused = region.dev_addr_of(&second.port(), inside, 64).unwrap_err();
    assert!(
        matches!(refused, Error::WrongBus { port: "gpu", memory: contigo::Bus::Gpu(0) }),
        "{refused:?}"
    );
    drop(buf);
    drop(region);
    drop((first, second));
    clean(&controls);
}
