//! Pinned, registered and device memory, and what an address is.

use super::*;

#[test]
fn pinned_memory_is_own_and_badly_aligned() {
    let fake = Fake::current(&Config::default());
    let p = pin(1000, DEVICEMAP).unwrap();
    assert_eq!(p.addr() % 32, 16);
    assert_ne!((byte(p, 0), byte(p, 999)), (0, 0));
    let addr = p.addr() as u64 + OFFSET;
    for (skip, expected) in [(0, Ok(addr)), (999, Ok(addr + 999)), (1000, Err(code::INVALID_VALUE))]
    {
        assert_eq!(device_pointer(p.wrapping_add(skip)), expected);
    }
    assert_eq!(out(|flags| cuMemHostGetFlags(flags, p.cast())), Ok(DEVICEMAP));
    assert_eq!(fake.counters().host_allocs, 1);
    assert_eq!(
        [free(p.wrapping_add(16)), free(p), free(p)],
        [code::INVALID_VALUE, OK, code::INVALID_VALUE]
    );
    assert_eq!(fake.counters().refused(Function::cuMemFreeHost), 2);
    assert_eq!((fake.counters().host_allocs, fake.counters().overruns), (0, 0));

    // Without its flag, memory is not mapped for the device.
    let unmapped = pin(16, 0).unwrap();
    assert_eq!(device_pointer(unmapped), Err(code::INVALID_VALUE));
    assert_eq!([pin(0, 0), pin(16, 8)], [Err(code::INVALID_VALUE); 2]);
    // Within the block's pages, and seen when it is freed.
    fill(unmapped.wrapping_add(16), 0, 1);
    assert_eq!((free(unmapped), fake.counters().overruns), (OK, 1));

    fake.again(&Config {
        device_pointer_offset: 0,
        host_alignment: 8192,
        pinned_limit_bytes: 4096,
        ..Config::default()
    });
    let p = pin(4000, DEVICEMAP).unwrap();
    assert_eq!((p.addr() % 16384, device_pointer(p)), (8192, Ok(p.addr() as u64)));
    assert_eq!(pin(97, 0), Err(code::OUT_OF_MEMORY));
    assert_eq!(free(p), OK);
    assert!(pin(97, 0).is_ok());
}

#[test]
fn the_cpu_has_no_freed_memory_and_no_device_memory() {
    let _fake = Fake::current(&Config::default());
    let p = pin(16, 0).unwrap();
    assert_eq!(signal_of_reading(p), None);
    assert_eq!(free(p), OK);
    assert_eq!(signal_of_reading(p), Some(libc::SIGSEGV));
    let addr = out(|addr| cuMemAlloc_v2(addr, 16)).unwrap();
    // A 32-bit processor has no pointer to it.
    if let Ok(addr) = usize::try_from(addr) {
        assert_eq!(signal_of_reading(ptr::with_exposed_provenance(addr)), Some(libc::SIGSEGV));
    }
}

#[test]
fn registered_memory_is_the_callers() {
    let fake = Fake::current(&Config::default());
    let mut memory = vec![0_u8; 4096];
    let p = memory.as_mut_ptr();
    let register = |p: *mut u8, len, flags| cuMemHostRegister_v2(p.cast(), len, flags);
    let unregister = |p: *mut u8| cuMemHostUnregister(p.cast());
    assert_eq!(register(p, 4096, DEVICEMAP), OK);
    assert_eq!(register(p.wrapping_add(4095), 1, DEVICEMAP), code::HOST_MEMORY_ALREADY_REGISTERED);
    assert_eq!(device_pointer(p), Ok(p.addr() as u64 + OFFSET));
    assert_eq!(free(p), code::INVALID_VALUE);
    assert_eq!(unregister(p.wrapping_add(1)), code::HOST_MEMORY_NOT_REGISTERED);
    assert_eq!(fake.counters().registrations, 1);
    assert_eq!([unregister(p), unregister(p)], [OK, code::HOST_MEMORY_NOT_REGISTERED]);
    let nowhere = ptr::without_provenance_mut(0x1000);
    assert_eq!(
        [(ptr::null_mut(), 1, 0), (p, 0, 0), (p, 1, 16), (nowhere, 1, 0)]
            .map(|(p, len, flags)| register(p, len, flags)),
        [code::INVALID_VALUE; 4]
    );
    let pinned = pin(16, 0).unwrap();
    assert_eq!(unregister(pinned), code::HOST_MEMORY_NOT_REGISTERED);
    assert_eq!(register(pinned, 16, 0), code::HOST_MEMORY_ALREADY_REGISTERED);

    let device = Device { can_use_host_pointer_for_registered_mem: true, ..Device::default() };
    fake.again(&Config::default().with_devices(1, device));
    assert_eq!((register(p, 4096, DEVICEMAP), device_pointer(p)), (OK, Ok(p.addr() as u64)));
    let device = Device { host_register_supported: false, ..Device::default() };
    fake.again(&Config::default().with_devices(1, device));
    assert_eq!(register(p, 4096, DEVICEMAP), code::NOT_SUPPORTED);
}

#[test]
fn memory_freed_under_a_kernel_is_counted() {
    let fake = Fake::current(&Config {
        late_error: LateError { after_calls: 0, ..Config::default().late_error },
        ..Config::default()
    });
    let ((p, addr), (other, _)) = (block(), block());
    assert_eq!(launch(fill_bytes(), 0, [addr, 7, 64]), OK);
    assert_eq!((free(other), fake.counters().freed_under_a_kernel), (OK, 0));
    assert_eq!((free(p), fake.counters().freed_under_a_kernel), (OK, 1));
    byte(p, 0); // still mapped: the count tells
    assert_eq!(cuStreamSynchronize(0), code::ILLEGAL_ADDRESS);

    // A context that ends frees too.
    fake.again(&Config { hang_launch: 1, ..Config::default() });
    assert_eq!(launch(fill_bytes(), 0, [block().1, 7, 64]), OK);
    let ended = (cuDevicePrimaryCtxRelease_v2(0), fake.counters().freed_under_a_kernel);
    assert_eq!(ended, (OK, 1));
}

#[test]
fn pointers_are_told_apart() {
    let _fake = Fake::current(&Config::default());
    let ((p, at), addr) = (block(), out(|addr| cuMemAlloc_v2(addr, 32)).unwrap());
    let (mut word, mut long) = (0_u32, 0_u64);
    // SAFETY: of a type of memory a word is written, of a pointer two.
    let mut kind = |of| unsafe { (cuPointerGetAttribute((&raw mut word).cast(), 2, of), word) };
    let host = p.addr() as u64;
    assert_eq!([kind(host), kind(at), kind(addr + 31)], [(OK, 1), (OK, 1), (OK, 2)]);
    assert_eq!(kind(addr + 32).0, code::INVALID_VALUE);
    // SAFETY: as above.
    let mut pointer =
        |which, of| unsafe { (cuPointerGetAttribute((&raw mut long).cast(), which, of), long) };
    assert_eq!(pointer(3, host + 3), (OK, at + 3));
    assert_eq!(pointer(3, addr + 5), (OK, addr + 5));
    assert_eq!(pointer(4, addr).0, code::INVALID_VALUE);
    // Of several, one that an address does not have is 0, and no error.
    let (mut host, mut kind) = (9_u64, 9_u32);
    let data = [(&raw mut host).cast::<c_void>(), (&raw mut kind).cast()];
    let which = [4_u32, 2];
    let none = ptr::from_ref(&which).addr() as u64;
    // SAFETY: two attributes, with room for each.
    let answer = unsafe { cuPointerGetAttributes(2, which.as_ptr(), data.as_ptr(), none) };
    assert_eq!((answer, host, kind), (OK, 0, 0));
}
