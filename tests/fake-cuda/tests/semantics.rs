//! Contexts, streams, events and errors: the fake keeps to CUDA's documentation, and is as hostile
//! as it says.
#![allow(
    unsafe_code,
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a test that panics has failed, and it calls a C library"
)]

#[allow(dead_code, unused_imports, reason = "the other tests need more of it")]
mod driver;

use driver::{
    DEVICEMAP, Handle, OK, PTX, byte, cu, current, device_alloc, device_pointer, elsewhere, event, fill_bytes, free, function, initialised,
    launch, load, pin, query, query_event, record, retain, stream, symbol, synchronize,
};
use fake_cuda::{Config, Controls, Device, Function, LateError, code};
use std::{
    ffi::{CStr, c_char, c_int},
    ptr,
    time::{Duration, Instant},
};

#[test]
fn every_function_is_exported() {
    for function in Function::ALL {
        symbol(function.name());
    }
}

#[test]
fn nothing_works_before_cu_init() {
    let cuda = Controls::take(&Config::default());
    let mut number = 0;
    assert_eq!(cu!(cuDeviceGetCount(&mut number => &mut c_int)), code::NOT_INITIALIZED);
    assert_eq!(pin(16, 0), Err(code::NOT_INITIALIZED));
    assert_eq!(cu!(cuDriverGetVersion(&mut number => &mut c_int)), OK);
    assert_eq!(number, 12040);
    assert_eq!(cu!(cuInit(1 => u32)), code::INVALID_VALUE);
    assert_eq!(cuda.counters().refused(Function::cuDeviceGetCount), 1);

    cuda.configure(&Config { device_count: 0, driver_version: 9000, ..Config::default() });
    assert_eq!(cu!(cuInit(0 => u32)), code::NO_DEVICE);
    assert_eq!(cu!(cuDriverGetVersion(&mut number => &mut c_int)), OK);
    assert_eq!(number, 9000);
}

#[test]
fn codes_have_names_and_texts() {
    let _cuda = Controls::take(&Config::default());
    let mut text: *const c_char = ptr::null();
    assert_eq!(cu!(cuGetErrorName(700 => i32, &mut text => &mut *const c_char)), OK);
    // SAFETY: a C string of the library's.
    assert_eq!(unsafe { CStr::from_ptr(text) }, c"CUDA_ERROR_ILLEGAL_ADDRESS");
    assert_eq!(cu!(cuGetErrorString(2 => i32, &mut text => &mut *const c_char)), OK);
    // SAFETY: a C string of the library's.
    assert_eq!(unsafe { CStr::from_ptr(text) }, c"out of memory");
    assert_eq!(cu!(cuGetErrorName(12345 => i32, &mut text => &mut *const c_char)), code::INVALID_VALUE);
    assert!(text.is_null());
}

#[test]
fn devices_are_as_configured() {
    let discrete = Device { major: 9, minor: 0, integrated: false, can_map_host_memory: false, ..Device::default() };
    let _cuda = initialised(&Config::default().with_devices(2, discrete));
    let mut number = 0;
    assert_eq!((cu!(cuDeviceGetCount(&mut number => &mut c_int)), number), (OK, 2));
    assert_eq!((cu!(cuDeviceGet(&mut number => &mut c_int, 1 => c_int)), number), (OK, 1));
    for ordinal in [-1, 2] {
        assert_eq!(cu!(cuDeviceGet(&mut number => &mut c_int, ordinal => c_int)), code::INVALID_DEVICE);
    }
    let mut attribute = |which| (cu!(cuDeviceGetAttribute(&mut number => &mut c_int, which => u32, 1 => c_int)), number);
    assert_eq!([75, 76, 18, 19, 41, 86, 91].map(&mut attribute), [9, 0, 0, 0, 1, 0, 0].map(|value| (OK, value)));
    assert_eq!(attribute(0).0, code::INVALID_VALUE);
    let mut name = [0x7F_u8; 8];
    assert_eq!(cu!(cuDeviceGetName(name.as_mut_ptr() => *mut u8, 7 => c_int, 0 => c_int)), OK);
    assert_eq!(&name, b"Fake G\0\x7F");
    let mut bytes = 0;
    assert_eq!((cu!(cuDeviceTotalMem_v2(&mut bytes => &mut usize, 0 => c_int)), bytes), (OK, 1 << 30));
}

#[test]
fn contexts_are_stacks_of_each_thread() {
    let cuda = initialised(&Config::default());
    assert_eq!(pin(16, 0), Err(code::INVALID_CONTEXT));
    let primary = retain(0);
    assert_eq!(retain(0), primary);
    let (mut made, mut seen) = (0, 1);
    assert_eq!(cu!(cuCtxGetCurrent(&mut seen => &mut Handle)), OK);
    assert_eq!(seen, 0);
    assert_eq!(cu!(cuCtxPopCurrent_v2(&mut seen => &mut Handle)), code::INVALID_CONTEXT);
    assert_eq!(cu!(cuCtxSetCurrent(primary => Handle)), OK);
    assert_eq!(cu!(cuCtxCreate_v2(&mut made => &mut Handle, 0 => u32, 0 => c_int)), OK);
    assert_eq!((cu!(cuCtxGetCurrent(&mut seen => &mut Handle)), seen), (OK, made));
    assert_eq!((cu!(cuCtxPopCurrent_v2(&mut seen => &mut Handle)), seen), (OK, made));
    assert_eq!((cu!(cuCtxGetCurrent(&mut seen => &mut Handle)), seen), (OK, primary));
    assert_eq!(elsewhere(|| pin(16, 0).err()), Some(code::INVALID_CONTEXT));
    assert_eq!(cu!(cuCtxPushCurrent_v2(0x99 => Handle)), code::INVALID_CONTEXT);
    assert_eq!(cu!(cuCtxPushCurrent_v2(made => Handle)), OK);
    assert_eq!(elsewhere(|| cu!(cuCtxDestroy_v2(made => Handle))), OK);
    assert_eq!(pin(16, 0), Err(code::CONTEXT_IS_DESTROYED));
    assert_eq!(cu!(cuCtxDestroy_v2(made => Handle)), code::INVALID_CONTEXT);
    assert_eq!(cu!(cuCtxDestroy_v2(primary => Handle)), code::INVALID_CONTEXT);
    assert_eq!(cu!(cuCtxSetCurrent(0 => Handle)), OK);

    assert_eq!(cuda.counters().retained_contexts, 2);
    for _ in 0..2 {
        assert_eq!(cu!(cuDevicePrimaryCtxRelease_v2(0 => c_int)), OK);
    }
    assert_eq!(cu!(cuDevicePrimaryCtxRelease_v2(0 => c_int)), code::INVALID_CONTEXT);
    assert_eq!(pin(16, 0), Err(code::CONTEXT_IS_DESTROYED));
    assert_eq!(cuda.counters().held(), 0);

    // Another configuration has no context current anywhere.
    assert_eq!(cu!(cuCtxSetCurrent(retain(0) => Handle)), OK);
    cuda.configure(&Config::default());
    assert_eq!(cu!(cuInit(0 => u32)), OK);
    assert_eq!((cu!(cuCtxGetCurrent(&mut seen => &mut Handle)), seen), (OK, 0));
}

#[test]
fn nothing_is_seen_before_a_query_says_so() {
    let cuda = current(&Config { kernel_polls: 2, ..Config::default() });
    let p = pin(64, DEVICEMAP).unwrap();
    // SAFETY: the test's own memory.
    unsafe { p.write_bytes(1, 64) };
    let (fill, own, done) = (fill_bytes(), stream(1), event());
    assert_eq!(query_event(done), OK); // never recorded
    assert_eq!(launch(fill, own, [device_pointer(p).unwrap(), 0x107, 64]), OK);
    assert_eq!(record(done, own), OK);
    assert_eq!(cuda.counters().queued, 2);
    let other = stream(1);
    for _ in 0..5 {
        assert_eq!((query(other), byte(p, 0)), (OK, 1)); // another stream's query
    }
    assert_eq!([query_event(done), query_event(done)], [code::NOT_READY; 2]);
    assert_eq!(byte(p, 63), 1);
    assert_eq!(query_event(done), OK);
    assert_eq!((byte(p, 0), byte(p, 63)), (7, 7));
    assert_eq!((query(own), cuda.counters().queued, cuda.counters().kernels_done), (OK, 0, 1));
    assert_eq!(cuda.counters().last_launch.block, [32, 1, 1]);

    // A synchronise lets it happen at once.
    assert_eq!(launch(fill, own, [device_pointer(p).unwrap(), 9, 1]), OK);
    assert_eq!((byte(p, 0), synchronize(own), byte(p, 0), byte(p, 1)), (7, OK, 9, 7));
    assert_eq!(launch(fill, own, [device_pointer(p).unwrap(), 10, 1]), OK);
    assert_eq!((byte(p, 0), cu!(cuCtxSynchronize()), byte(p, 0)), (9, OK, 10));
}

#[test]
fn a_gpu_may_be_done_before_somebody_asks() {
    let cuda = current(&Config { late_error: LateError { launch: 2, ..Config::default().late_error }, ..Config::default() });
    let p = pin(64, DEVICEMAP).unwrap();
    let fill = fill_bytes();
    assert_eq!(launch(fill, 0, [device_pointer(p).unwrap(), 7, 64]), OK);
    cuda.let_time_pass();
    assert_eq!((byte(p, 0), cuda.counters().queued, query(0)), (7, 0, OK));
    // An error stays for the next call.
    let addr = device_pointer(p).unwrap();
    assert_eq!(launch(fill, 0, [addr, 8, 64]), OK);
    cuda.let_time_pass();
    assert_eq!((pin(16, 0), byte(p, 0)), (Err(code::LAUNCH_FAILED), 7));
}

#[test]
fn an_output_is_garbage_until_its_kernel_is_done() {
    let cuda = current(&Config { garbage_meanwhile: true, kernel_polls: 1, hang_launch: 2, ..Config::default() });
    let p = pin(64, DEVICEMAP).unwrap();
    let fill = fill_bytes();
    assert_eq!(launch(fill, 0, [device_pointer(p).unwrap(), 7, 64]), OK);
    assert_eq!((query(0), byte(p, 15)), (code::NOT_READY, 0xEE));
    assert_eq!((query(0), byte(p, 15)), (OK, 7));
    // One that never ends goes on for ever.
    assert_eq!(launch(fill, 0, [device_pointer(p).unwrap(), 8, 64]), OK);
    cuda.let_time_pass();
    assert_eq!((query(0), byte(p, 0), byte(p, 16)), (code::NOT_READY, 0xEE, 7));
    // An input is not written.
    cuda.configure(&Config { garbage_meanwhile: true, ..Config::default() });
    assert_eq!((cu!(cuInit(0 => u32)), cu!(cuCtxSetCurrent(retain(0) => Handle))), (OK, OK));
    let p = pin(64, DEVICEMAP).unwrap();
    // SAFETY: the test's own memory.
    unsafe { p.write_bytes(3, 64) };
    let copy = function(load(PTX).unwrap(), c"copy_bytes").unwrap();
    let on_device = device_pointer(p).unwrap();
    assert_eq!(launch(copy, 0, [on_device, on_device, 32]), OK);
    assert_eq!((query(0), byte(p, 0)), (code::NOT_READY, 3));
    assert_eq!(launch(copy, 0, [on_device + 32, on_device, 32]), OK);
    assert_eq!((synchronize(0), byte(p, 63)), (OK, 3));
}

#[test]
fn kernels_take_their_time() {
    let _cuda = current(&Config { kernel_polls: 0, kernel_us: 3000, ..Config::default() });
    let p = pin(64, DEVICEMAP).unwrap();
    let (fill, own) = (fill_bytes(), stream(1));
    assert_eq!(launch(fill, own, [device_pointer(p).unwrap(), 7, 64]), OK);
    assert_eq!(query(own), code::NOT_READY);
    let since = Instant::now();
    assert_eq!((synchronize(own), byte(p, 0)), (OK, 7));
    assert!(since.elapsed() >= Duration::from_micros(2000));
}

#[test]
fn the_null_stream_waits_for_the_others() {
    let _cuda = current(&Config { kernel_polls: 0, ..Config::default() });
    let p = pin(64, DEVICEMAP).unwrap();
    let (fill, addr) = (fill_bytes(), device_pointer(p).unwrap());
    let (blocking, apart) = (stream(0), stream(1));
    assert_eq!(launch(fill, blocking, [addr, 1, 1]), OK);
    assert_eq!(launch(fill, apart, [addr + 1, 1, 1]), OK);
    assert_eq!(launch(fill, 0, [addr + 2, 1, 1]), OK);
    assert_eq!(launch(fill, blocking, [addr + 3, 1, 1]), OK);
    let seen = || [0, 1, 2, 3].map(|index| byte(p, index) == 1);
    assert_eq!((query(0), seen()), (OK, [true, false, true, false]));
    assert_eq!((query(blocking), seen()), (OK, [true, false, true, true]));
    assert_eq!((query(apart), seen()), (OK, [true; 4]));
    // And a blocking one for the NULL stream.
    assert_eq!(launch(fill, 0, [addr, 2, 1]), OK);
    assert_eq!(launch(fill, blocking, [addr, 3, 1]), OK);
    assert_eq!((synchronize(blocking), byte(p, 0), query(0), byte(p, 0)), (OK, 3, OK, 3));
}

#[test]
fn copies_go_through_device_memory() {
    let cuda = current(&Config::default());
    let (p, own) = (pin(64, 0).unwrap(), stream(1));
    let addr = device_alloc(64);
    let mut pageable = [5_u8; 64];
    let up = |src: *const u8, len| cu!(cuMemcpyHtoDAsync_v2(addr => u64, src => *const u8, len => usize, own => Handle));
    let down = |dst: *mut u8, len| cu!(cuMemcpyDtoHAsync_v2(dst => *mut u8, addr => u64, len => usize, own => Handle));
    assert_eq!(up(pageable.as_ptr(), 64), OK);
    pageable.fill(0); // taken already
    assert_eq!((down(p, 64), byte(p, 0)), (OK, byte(p, 1)));
    assert_ne!(byte(p, 0), 5);
    assert_eq!((synchronize(own), byte(p, 63)), (OK, 5));
    // Pinned memory is read when the copy happens.
    assert_eq!(up(p, 64), OK);
    // SAFETY: the test's own memory.
    unsafe { p.write(6) };
    // Memory that is not pinned has it when the call returns.
    assert_eq!((down(pageable.as_mut_ptr(), 64), pageable[0], pageable[1]), (OK, 6, 5));
    assert_eq!((up(p, 65), down(p, 65)), (code::INVALID_VALUE, code::INVALID_VALUE));
    assert_eq!(cu!(cuMemsetD8_v2(addr => u64, 9 => u8, 64 => usize)), OK);
    assert_eq!(synchronize(0), OK);
    assert_eq!((down(pageable.as_mut_ptr(), 64), pageable[63]), (OK, 9));

    let (mut unused, mut all) = (0, 0);
    assert_eq!(cu!(cuMemGetInfo_v2(&mut unused => &mut usize, &mut all => &mut usize)), OK);
    assert_eq!((unused, all), ((1 << 30) - 64, 1 << 30));
    assert_eq!((cuda.counters().device_allocs, cuda.counters().device_bytes), (1, 64));
    assert_eq!(cu!(cuMemFree_v2(addr + 1 => u64)), code::INVALID_VALUE);
    assert_eq!([cu!(cuMemFree_v2(addr => u64)), cu!(cuMemFree_v2(addr => u64))], [OK, code::INVALID_VALUE]);
    let mut none = 0;
    assert_eq!(cu!(cuMemAlloc_v2(&mut none => &mut u64, (1 << 30) + 1 => usize)), code::OUT_OF_MEMORY);
}

#[test]
fn a_kernel_out_of_its_memory_loses_the_context() {
    let cuda = current(&Config { late_error: LateError { after_calls: 0, ..Config::default().late_error }, ..Config::default() });
    let p = pin(64, DEVICEMAP).unwrap();
    let fill = fill_bytes();
    // The host's address is not the device's.
    assert_eq!(launch(fill, 0, [p.addr() as u64, 7, 64]), OK);
    assert!(pin(16, 0).is_ok());
    assert_eq!(synchronize(0), code::ILLEGAL_ADDRESS);
    assert_eq!([free(p), synchronize(0), query(0), launch(fill, 0, [0, 0, 0])], [code::ILLEGAL_ADDRESS; 4]);
    assert_eq!(pin(16, 0), Err(code::ILLEGAL_ADDRESS));
    assert_eq!(cuda.counters().host_allocs, 2);
    // Only a reset helps: it ends all that the context had, and a retain makes it usable.
    assert_eq!(cu!(cuDevicePrimaryCtxReset_v2(0 => c_int)), OK);
    assert_eq!(pin(16, 0), Err(code::CONTEXT_IS_DESTROYED));
    assert_eq!(cuda.counters().retained_contexts, 1);
    retain(0);
    assert_eq!(launch(fill, 0, [0, 0, 0]), code::INVALID_HANDLE);
    assert!(pin(16, 0).is_ok());
    assert_eq!(free(p), code::INVALID_VALUE);
    // One byte too many is as bad.
    let p = pin(64, DEVICEMAP).unwrap();
    assert_eq!(launch(fill_bytes(), 0, [device_pointer(p).unwrap() + 1, 7, 64]), OK);
    assert_eq!(synchronize(0), code::ILLEGAL_ADDRESS);
}

#[test]
fn an_error_is_reported_late() {
    let late_error = LateError { launch: 2, code: code::LAUNCH_FAILED, after_calls: 3 };
    let cuda = current(&Config { late_error, ..Config::default() });
    let (p, fill) = (pin(64, DEVICEMAP).unwrap(), fill_bytes());
    let addr = device_pointer(p).unwrap();
    assert_eq!([launch(fill, 0, [addr, 7, 1]), launch(fill, 0, [addr, 7, 1])], [OK; 2]);
    assert!([pin(16, 0), pin(16, 0)].iter().all(Result::is_ok));
    assert_eq!(pin(16, 0), Err(code::LAUNCH_FAILED));
    assert_eq!(query(0), code::LAUNCH_FAILED);
    assert_eq!((cuda.counters().queued, cuda.counters().kernels_done), (0, 0));
    // Other contexts are well, and this one's handling of contexts is.
    let mut other = 0;
    assert_eq!(cu!(cuCtxCreate_v2(&mut other => &mut Handle, 0 => u32, 0 => c_int)), OK);
    assert!(pin(16, 0).is_ok());
}

#[test]
fn a_synchronise_reports_an_error_at_once() {
    let late_error = LateError { launch: 1, code: code::ECC_UNCORRECTABLE, after_calls: 100 };
    let _cuda = current(&Config { late_error, ..Config::default() });
    let p = pin(64, DEVICEMAP).unwrap();
    assert_eq!(launch(fill_bytes(), 0, [device_pointer(p).unwrap(), 7, 1]), OK);
    assert_eq!([synchronize(0), synchronize(0)], [code::ECC_UNCORRECTABLE; 2]);
}

#[test]
fn a_kernel_that_never_ends_is_ended_by_a_reset() {
    let cuda = current(&Config { hang_launch: 1, kernel_polls: 0, wait_bound_us: 2000, ..Config::default() });
    let (p, fill, done) = (pin(64, DEVICEMAP).unwrap(), fill_bytes(), event());
    assert_eq!(launch(fill, 0, [device_pointer(p).unwrap(), 7, 1]), OK);
    assert_eq!(record(done, 0), OK);
    assert_eq!(query_event(done), code::NOT_READY);
    assert_eq!(synchronize(0), code::LAUNCH_TIMEOUT);
    assert_eq!(cu!(cuEventSynchronize(done => Handle)), code::LAUNCH_TIMEOUT);
    assert_eq!((cuda.counters().unended_waits, cuda.counters().queued), (2, 2));

    cuda.configure(&Config { hang_launch: 1, wait_bound_us: 60_000_000, ..Config::default() });
    assert_eq!((cu!(cuInit(0 => u32)), cu!(cuCtxSetCurrent(retain(0) => Handle))), (OK, OK));
    let p = pin(64, DEVICEMAP).unwrap();
    assert_eq!(launch(fill_bytes(), 0, [device_pointer(p).unwrap(), 7, 1]), OK);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(20));
            assert_eq!(cu!(cuDevicePrimaryCtxReset_v2(0 => c_int)), OK);
        });
        assert_eq!(synchronize(0), code::CONTEXT_IS_DESTROYED);
    });
    assert_eq!((cuda.counters().queued, cuda.counters().host_allocs, cuda.counters().modules), (0, 0, 0));
    assert_eq!(cuda.counters().ended_with_their_context, 2);
}

#[test]
fn calls_fail_where_they_are_told_to() {
    let config = Config::default().failing(Function::cuMemHostAlloc, 2, code::OUT_OF_MEMORY);
    let config = config.failing(Function::cuMemFreeHost, 0, code::INVALID_VALUE);
    let cuda = current(&config);
    let p = pin(16, 0).unwrap();
    assert_eq!(pin(16, 0), Err(code::OUT_OF_MEMORY));
    assert!(pin(16, 0).is_ok());
    assert_eq!([free(p), free(p)], [code::INVALID_VALUE; 2]);
    let counters = cuda.counters();
    assert_eq!((counters.calls(Function::cuMemHostAlloc), counters.calls(Function::cuMemFreeHost)), (3, 2));
    assert_eq!((counters.host_allocs, counters.refused(Function::cuMemFreeHost)), (2, 0));
}

#[test]
fn streams_and_events_are_handles_of_their_context() {
    let cuda = current(&Config::default());
    let (own, done) = (stream(0), event());
    assert_eq!((cuda.counters().streams, cuda.counters().events), (1, 1));
    let mut none = 0;
    assert_eq!(cu!(cuStreamCreate(&mut none => &mut Handle, 2 => u32)), code::INVALID_VALUE);
    assert_eq!(cu!(cuEventCreate(&mut none => &mut Handle, 4 => u32)), code::INVALID_VALUE);
    let mut other = 0;
    assert_eq!(cu!(cuCtxCreate_v2(&mut other => &mut Handle, 0 => u32, 0 => c_int)), OK);
    assert_eq!([query(own), record(done, 0), synchronize(own)], [code::INVALID_HANDLE; 3]);
    assert_eq!(cu!(cuCtxDestroy_v2(other => Handle)), OK);
    let destroy = |stream| cu!(cuStreamDestroy_v2(stream => Handle));
    assert_eq!([destroy(own), destroy(own), destroy(0)], [OK, code::INVALID_HANDLE, code::INVALID_HANDLE]);
    let destroy = |event| cu!(cuEventDestroy_v2(event => Handle));
    assert_eq!([destroy(done), destroy(done), query_event(done)], [OK, code::INVALID_HANDLE, code::INVALID_HANDLE]);
    assert_eq!((cuda.counters().streams, cuda.counters().events), (0, 0));
}

#[test]
fn threads_use_it_together() {
    let cuda = initialised(&Config::default());
    let context = retain(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                assert_eq!(cu!(cuCtxSetCurrent(context => Handle)), OK);
                let (fill, own) = (fill_bytes(), stream(1));
                for round in 0..50 {
                    let p = pin(256, DEVICEMAP).unwrap();
                    assert_eq!(launch(fill, own, [device_pointer(p).unwrap(), round, 256]), OK);
                    while query(own) == code::NOT_READY {}
                    assert_eq!((u64::from(byte(p, 255)), free(p)), (round, OK));
                }
                assert_eq!(cu!(cuStreamDestroy_v2(own => Handle)), OK);
            });
        }
    });
    let counters = cuda.counters();
    assert_eq!((counters.kernels_done, counters.held(), counters.freed_under_a_kernel), (200, 5, 0)); // four modules, one retain
}
