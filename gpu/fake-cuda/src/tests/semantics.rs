//! Contexts, streams, events and errors.

use super::*;
use std::time::Duration;

#[test]
fn nothing_works_before_cu_init() {
    let fake = Fake::configured(&Config::default());
    assert_eq!(out(|count| cuDeviceGetCount(count)), Err(code::NOT_INITIALIZED));
    assert_eq!(pin(16, 0), Err(code::NOT_INITIALIZED));
    assert_eq!(out(|version| cuDriverGetVersion(version)), Ok(12040));
    assert_eq!(cuInit(1), code::INVALID_VALUE);
    assert_eq!(fake.counters().refused(Function::cuDeviceGetCount), 1);

    lock().configure(&Config { device_count: 0, driver_version: 9000, ..Config::default() });
    assert_eq!(cuInit(0), code::NO_DEVICE);
    assert_eq!(out(|version| cuDriverGetVersion(version)), Ok(9000));
}

#[test]
fn contexts_are_stacks_of_each_thread() {
    let fake = Fake::configured(&Config::default());
    assert_eq!(cuInit(0), OK);
    assert_eq!(pin(16, 0), Err(code::INVALID_CONTEXT));
    let primary = retain(0);
    assert_eq!(retain(0), primary);
    let current = || out(|context| cuCtxGetCurrent(context));
    let pop = || out(|context| cuCtxPopCurrent_v2(context));
    assert_eq!((current(), pop()), (Ok(0), Err(code::INVALID_CONTEXT)));
    assert_eq!(cuCtxSetCurrent(primary), OK);
    let made = out(|context| cuCtxCreate_v2(context, 0, 0)).unwrap();
    assert_eq!([current(), pop(), current()], [Ok(made), Ok(made), Ok(primary)]);
    assert_eq!(elsewhere(|| pin(16, 0).err()), Some(code::INVALID_CONTEXT));
    assert_eq!([cuCtxPushCurrent_v2(0x99), cuCtxPushCurrent_v2(made)], [code::INVALID_CONTEXT, OK]);
    assert_eq!(elsewhere(|| cuCtxDestroy_v2(made)), OK);
    assert_eq!(pin(16, 0), Err(code::CONTEXT_IS_DESTROYED));
    assert_eq!([made, primary].map(|context| cuCtxDestroy_v2(context)), [code::INVALID_CONTEXT; 2]);
    assert_eq!(cuCtxSetCurrent(0), OK);

    assert_eq!(fake.counters().retained_contexts, 2);
    assert_eq!([(); 3].map(|()| cuDevicePrimaryCtxRelease_v2(0)), [OK, OK, code::INVALID_CONTEXT]);
    assert_eq!(pin(16, 0), Err(code::CONTEXT_IS_DESTROYED));
    assert_eq!(fake.counters().held(), 0);

    // Another configuration has no context current anywhere.
    assert_eq!(cuCtxSetCurrent(retain(0)), OK);
    lock().configure(&Config::default());
    assert_eq!((cuInit(0), current()), (OK, Ok(0)));
}

#[test]
fn nothing_is_seen_before_a_query_says_so() {
    let fake = Fake::current(&Config { kernel_polls: 2, ..Config::default() });
    let (p, addr) = block();
    fill(p, 1, 64);
    let stream = || out(|stream| cuStreamCreate(stream, 1)).unwrap();
    let (fill, own, other, done) = (fill_bytes(), stream(), stream(), event());
    assert_eq!(cuEventQuery(done), OK); // never recorded
    assert_eq!([launch(fill, own, [addr, 0x107, 64]), cuEventRecord(done, own)], [OK; 2]);
    assert_eq!(fake.counters().queued, 2);
    for _ in 0..5 {
        assert_eq!((cuStreamQuery(other), byte(p, 0)), (OK, 1)); // another stream's query
    }
    assert_eq!([cuEventQuery(done), cuEventQuery(done)], [code::NOT_READY; 2]);
    assert_eq!((byte(p, 63), cuEventQuery(done), byte(p, 0), byte(p, 63)), (1, OK, 7, 7));
    assert_eq!(cuStreamQuery(own), OK);
    assert_eq!((fake.counters().queued, fake.counters().kernels_done), (0, 1));

    // A synchronise lets it happen at once.
    assert_eq!(launch(fill, own, [addr, 9, 1]), OK);
    assert_eq!((byte(p, 0), cuStreamSynchronize(own), byte(p, 0), byte(p, 1)), (7, OK, 9, 7));
    assert_eq!(launch(fill, own, [addr, 10, 1]), OK);
    assert_eq!((byte(p, 0), cuCtxSynchronize(), byte(p, 0)), (9, OK, 10));
}

#[test]
fn copies_go_through_device_memory() {
    let fake = Fake::current(&Config::default());
    let ((p, at), addr) = (block(), out(|addr| cuMemAlloc_v2(addr, 64)).unwrap());
    assert_eq!(cuMemcpyAsync(addr, at, 64, 0), OK);
    // Read when the stream comes to it.
    fill(p, 6, 64);
    assert_eq!(cuStreamSynchronize(0), OK);
    fill(p, 0, 64);
    assert_eq!((cuMemcpyAsync(at, addr, 64, 0), byte(p, 63)), (OK, 0));
    assert_eq!((cuStreamSynchronize(0), byte(p, 63)), (OK, 6));
    assert_eq!(
        [cuMemcpyAsync(addr, at, 65, 0), cuMemcpyAsync(at, addr, 65, 0)],
        [code::INVALID_VALUE; 2]
    );

    let mut all = MaybeUninit::uninit();
    let free = out(|free| cuMemGetInfo_v2(free, Some(&mut all)));
    assert_eq!(free, Ok((1 << 30) - 64));
    assert_eq!(fake.counters().device_allocs, 1);
    assert_eq!(
        [addr + 1, addr, addr].map(|addr| cuMemFree_v2(addr)),
        [code::INVALID_VALUE, OK, code::INVALID_VALUE]
    );
    assert_eq!(out(|addr| cuMemAlloc_v2(addr, (1 << 30) + 1)), Err(code::OUT_OF_MEMORY));
}

#[test]
fn a_kernel_out_of_its_memory_loses_the_context() {
    let fake = Fake::current(&Config {
        late_error: LateError { after_calls: 0, ..Config::default().late_error },
        ..Config::default()
    });
    let ((p, _), fill) = (block(), fill_bytes());
    // The host's address differs from the device's.
    assert_eq!(launch(fill, 0, [p.addr() as u64, 7, 64]), OK);
    assert!(pin(16, 0).is_ok());
    assert_eq!(cuStreamSynchronize(0), code::ILLEGAL_ADDRESS);
    assert_eq!(
        [free(p), cuStreamSynchronize(0), cuStreamQuery(0), launch(fill, 0, [0, 0, 0])],
        [code::ILLEGAL_ADDRESS; 4]
    );
    assert_eq!(fake.counters().host_allocs, 2);
    // Its end ends all that the context had, and a retain makes it usable.
    assert_eq!(cuDevicePrimaryCtxRelease_v2(0), OK);
    assert_eq!(pin(16, 0), Err(code::CONTEXT_IS_DESTROYED));
    retain(0);
    assert_eq!(launch(fill, 0, [0, 0, 0]), code::INVALID_HANDLE);
    assert_eq!(free(p), code::INVALID_VALUE);
    // One byte too many is as bad.
    assert_eq!(launch(fill_bytes(), 0, [block().1 + 1, 7, 64]), OK);
    assert_eq!(cuStreamSynchronize(0), code::ILLEGAL_ADDRESS);
}

#[test]
fn an_error_is_reported_late() {
    let late_error = LateError { launch: 2, code: code::LAUNCH_FAILED, after_calls: 3 };
    let fake = Fake::current(&Config { late_error, ..Config::default() });
    let ((_, addr), fill) = (block(), fill_bytes());
    assert_eq!([launch(fill, 0, [addr, 7, 1]), launch(fill, 0, [addr, 7, 1])], [OK; 2]);
    assert!([pin(16, 0), pin(16, 0)].iter().all(Result::is_ok));
    assert_eq!(pin(16, 0), Err(code::LAUNCH_FAILED));
    assert_eq!(cuStreamQuery(0), code::LAUNCH_FAILED);
    assert_eq!((fake.counters().queued, fake.counters().kernels_done), (0, 0));
    // Other contexts are well, and this one's handling of contexts is.
    out(|context| cuCtxCreate_v2(context, 0, 0)).unwrap();
    assert!(pin(16, 0).is_ok());

    // A synchronise reports it at once.
    let late_error = LateError { launch: 1, code: code::ECC_UNCORRECTABLE, after_calls: 100 };
    fake.again(&Config { late_error, ..Config::default() });
    assert_eq!(launch(fill_bytes(), 0, [block().1, 7, 1]), OK);
    assert_eq!([cuStreamSynchronize(0), cuStreamSynchronize(0)], [code::ECC_UNCORRECTABLE; 2]);
}

#[test]
fn endless_kernel_ends_with_its_context() {
    let fake = Fake::current(&Config { hang_launch: 1, kernel_polls: 0, ..Config::default() });
    let done = event();
    assert_eq!(launch(fill_bytes(), 0, [block().1, 7, 1]), OK);
    assert_eq!(cuEventRecord(done, 0), OK);
    assert_eq!(
        (cuEventQuery(done), cuStreamSynchronize(0)),
        (code::NOT_READY, code::LAUNCH_TIMEOUT)
    );
    assert_eq!(fake.counters().queued, 2);

    fake.again(&Config { hang_launch: 1, ..Config::default() });
    assert_eq!(launch(fill_bytes(), 0, [block().1, 7, 1]), OK);
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(20));
            assert_eq!(cuDevicePrimaryCtxRelease_v2(0), OK);
        });
        assert_eq!(cuStreamSynchronize(0), code::CONTEXT_IS_DESTROYED);
    });
    let counters = fake.counters();
    assert_eq!((counters.queued, counters.host_allocs, counters.modules), (0, 0, 0));
    assert_eq!((counters.ended_with_their_context, counters.freed_under_a_kernel), (2, 1));
}

#[test]
fn streams_and_events_belong_to_a_context() {
    let fake = Fake::current(&Config::default());
    let (own, done) = (out(|stream| cuStreamCreate(stream, 0)).unwrap(), event());
    assert_eq!((fake.counters().streams, fake.counters().events), (1, 1));
    assert_eq!(out(|stream| cuStreamCreate(stream, 2)), Err(code::INVALID_VALUE));
    assert_eq!(out(|event| cuEventCreate(event, 4)), Err(code::INVALID_VALUE));
    let other = out(|context| cuCtxCreate_v2(context, 0, 0)).unwrap();
    assert_eq!(
        [cuStreamQuery(own), cuEventRecord(done, 0), cuStreamSynchronize(own)],
        [code::INVALID_HANDLE; 3]
    );
    assert_eq!(cuCtxDestroy_v2(other), OK);
    assert_eq!(
        [own, own, 0].map(|stream| cuStreamDestroy_v2(stream)),
        [OK, code::INVALID_HANDLE, code::INVALID_HANDLE]
    );
    assert_eq!(
        [cuEventDestroy_v2(done), cuEventDestroy_v2(done), cuEventQuery(done)],
        [OK, code::INVALID_HANDLE, code::INVALID_HANDLE]
    );
    assert_eq!((fake.counters().streams, fake.counters().events), (0, 0));
}
