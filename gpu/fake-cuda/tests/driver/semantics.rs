//! Contexts, streams, events and errors.

use super::*;
use std::{ffi::c_int, time::Duration};

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
fn copies_go_through_device_memory() {
    let cuda = current(&Config::default());
    let (p, addr, own) = (pin(64, DEVICEMAP).unwrap(), device_alloc(64), stream(1));
    let at = device_pointer(p).unwrap();
    let copy = |dst: u64, src: u64, len| cu!(cuMemcpyAsync(dst => u64, src => u64, len => usize, own => Handle));
    assert_eq!(copy(addr, at, 64), OK);
    // Read when the stream comes to it.
    // SAFETY: the test's own memory.
    unsafe { p.write_bytes(6, 64) };
    assert_eq!(synchronize(own), OK);
    // SAFETY: as above.
    unsafe { p.write_bytes(0, 64) };
    assert_eq!((copy(at, addr, 64), byte(p, 63), synchronize(own), byte(p, 63)), (OK, 0, OK, 6));
    assert_eq!([copy(addr, at, 65), copy(at, addr, 65)], [code::INVALID_VALUE; 2]);

    let (mut unused, mut all) = (0, 0);
    assert_eq!(cu!(cuMemGetInfo_v2(&mut unused => &mut usize, &mut all => &mut usize)), OK);
    assert_eq!((unused, all), ((1 << 30) - 64, 1 << 30));
    assert_eq!((cuda.counters().device_allocs, cuda.counters().device_bytes), (1, 64));
    assert_eq!(cu!(cuMemFree_v2(addr + 1 => u64)), code::INVALID_VALUE);
    assert_eq!(
        [cu!(cuMemFree_v2(addr => u64)), cu!(cuMemFree_v2(addr => u64))],
        [OK, code::INVALID_VALUE]
    );
    let mut none = 0;
    assert_eq!(
        cu!(cuMemAlloc_v2(&mut none => &mut u64, (1 << 30) + 1 => usize)),
        code::OUT_OF_MEMORY
    );
}

#[test]
fn a_kernel_out_of_its_memory_loses_the_context() {
    let cuda = current(&Config {
        late_error: LateError { after_calls: 0, ..Config::default().late_error },
        ..Config::default()
    });
    let p = pin(64, DEVICEMAP).unwrap();
    let fill = fill_bytes();
    // The host's address differs from the device's.
    assert_eq!(launch(fill, 0, [p.addr() as u64, 7, 64]), OK);
    assert!(pin(16, 0).is_ok());
    assert_eq!(synchronize(0), code::ILLEGAL_ADDRESS);
    assert_eq!(
        [free(p), synchronize(0), query(0), launch(fill, 0, [0, 0, 0])],
        [code::ILLEGAL_ADDRESS; 4]
    );
    assert_eq!(pin(16, 0), Err(code::ILLEGAL_ADDRESS));
    assert_eq!(cuda.counters().host_allocs, 2);
    // Its end ends all that the context had, and a retain makes it usable.
    assert_eq!(cu!(cuDevicePrimaryCtxRelease_v2(0 => c_int)), OK);
    assert_eq!(pin(16, 0), Err(code::CONTEXT_IS_DESTROYED));
    retain(0);
    assert_eq!(launch(fill, 0, [0, 0, 0]), code::INVALID_HANDLE);
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
fn endless_kernel_ends_with_its_context() {
    let cuda = current(&Config {
        hang_launch: 1,
        kernel_polls: 0,
        wait_bound_us: 2000,
        ..Config::default()
    });
    let (p, done) = (pin(64, DEVICEMAP).unwrap(), event());
    assert_eq!(launch(fill_bytes(), 0, [device_pointer(p).unwrap(), 7, 1]), OK);
    assert_eq!(record(done, 0), OK);
    assert_eq!((query_event(done), synchronize(0)), (code::NOT_READY, code::LAUNCH_TIMEOUT));
    assert_eq!((cuda.counters().unended_waits, cuda.counters().queued), (1, 2));

    cuda.configure(&Config { hang_launch: 1, wait_bound_us: 60_000_000, ..Config::default() });
    assert_eq!((cu!(cuInit(0 => u32)), cu!(cuCtxSetCurrent(retain(0) => Handle))), (OK, OK));
    let p = pin(64, DEVICEMAP).unwrap();
    assert_eq!(launch(fill_bytes(), 0, [device_pointer(p).unwrap(), 7, 1]), OK);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(20));
            assert_eq!(cu!(cuDevicePrimaryCtxRelease_v2(0 => c_int)), OK);
        });
        assert_eq!(synchronize(0), code::CONTEXT_IS_DESTROYED);
    });
    assert_eq!(
        (cuda.counters().queued, cuda.counters().host_allocs, cuda.counters().modules),
        (0, 0, 0)
    );
    assert_eq!(
        (cuda.counters().ended_with_their_context, cuda.counters().freed_under_a_kernel),
        (2, 1)
    );
}

#[test]
fn streams_and_events_belong_to_a_context() {
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
    assert_eq!(
        [destroy(own), destroy(own), destroy(0)],
        [OK, code::INVALID_HANDLE, code::INVALID_HANDLE]
    );
    let destroy = |event| cu!(cuEventDestroy_v2(event => Handle));
    assert_eq!(
        [destroy(done), destroy(done), query_event(done)],
        [OK, code::INVALID_HANDLE, code::INVALID_HANDLE]
    );
    assert_eq!((cuda.counters().streams, cuda.counters().events), (0, 0));
}
