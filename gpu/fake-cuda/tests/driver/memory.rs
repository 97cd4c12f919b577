//! Memory of the fake: pinned, registered and device memory, and what an address is.

use super::*;
use std::{
    ffi::{c_int, c_void},
    ptr,
};

#[test]
fn pinned_memory_is_own_and_badly_aligned() {
    let cuda = current(&Config::default());
    let p = pin(1000, DEVICEMAP).unwrap();
    assert_eq!(p.addr() % 32, 16);
    assert_ne!((byte(p, 0), byte(p, 999)), (0, 0));
    assert_eq!(device_pointer(p), Ok(p.addr() as u64 + 0x10_0000_0000));
    assert_eq!(device_pointer(p.wrapping_add(999)), Ok(p.addr() as u64 + 0x10_0000_0000 + 999));
    assert_eq!(device_pointer(p.wrapping_add(1000)), Err(code::INVALID_VALUE));
    let mut flags = 0;
    assert_eq!(
        (cu!(cuMemHostGetFlags(&mut flags => &mut u32, p => *mut u8)), flags),
        (OK, DEVICEMAP)
    );
    assert_eq!((cuda.counters().host_allocs, cuda.counters().host_bytes), (1, 1000));
    assert_eq!(free(p.wrapping_add(16)), code::INVALID_VALUE);
    assert_eq!(free(p), OK);
    assert_eq!(free(p), code::INVALID_VALUE);
    assert_eq!(cuda.counters().refused(Function::cuMemFreeHost), 2);
    assert_eq!((cuda.counters().host_allocs, cuda.counters().overruns), (0, 0));

    // Without its flag, memory is not mapped for the device.
    let unmapped = pin(16, 0).unwrap();
    assert_eq!(device_pointer(unmapped), Err(code::INVALID_VALUE));
    assert_eq!([pin(0, 0), pin(16, 8)], [Err(code::INVALID_VALUE); 2]);
    // SAFETY: within the block's pages, and seen when it is freed.
    unsafe { unmapped.add(16).write(0) };
    assert_eq!(free(unmapped), OK);
    assert_eq!(cuda.counters().overruns, 1);

    cuda.configure(&Config {
        device_pointer_offset: 0,
        host_alignment: 8192,
        pinned_limit_bytes: 4096,
        ..Config::default()
    });
    assert_eq!((cu!(cuInit(0 => u32)), cu!(cuCtxSetCurrent(retain(0) => Handle))), (OK, OK));
    let p = pin(4000, DEVICEMAP).unwrap();
    assert_eq!((p.addr() % 16384, device_pointer(p)), (8192, Ok(p.addr() as u64)));
    assert_eq!(pin(97, 0), Err(code::OUT_OF_MEMORY));
    assert_eq!(free(p), OK);
    assert!(pin(97, 0).is_ok());
}

#[test]
fn freed_memory_is_unmapped() {
    let _cuda = current(&Config::default());
    let p = pin(16, 0).unwrap();
    assert_eq!(signal_of_reading(p), None);
    assert_eq!(free(p), OK);
    assert_eq!(signal_of_reading(p), Some(libc::SIGSEGV));
}

#[test]
fn device_memory_is_not_the_cpu_s() {
    let _cuda = current(&Config::default());
    let addr = device_alloc(16);
    // A 32-bit processor has no pointer to it.
    if let Ok(addr) = usize::try_from(addr) {
        assert_eq!(signal_of_reading(ptr::with_exposed_provenance(addr)), Some(libc::SIGSEGV));
    }
}

#[test]
fn registered_memory_is_the_callers() {
    let cuda = current(&Config::default());
    let mut memory = vec![0_u8; 4096];
    let p = memory.as_mut_ptr();
    let register = |p: *mut u8, len, flags| cu!(cuMemHostRegister_v2(p => *mut u8, len => usize, flags => u32));
    let unregister = |p| cu!(cuMemHostUnregister(p => *mut u8));
    assert_eq!(register(p, 4096, DEVICEMAP), OK);
    assert_eq!(register(p.wrapping_add(4095), 1, DEVICEMAP), code::HOST_MEMORY_ALREADY_REGISTERED);
    assert_eq!(device_pointer(p), Ok(p.addr() as u64 + 0x10_0000_0000));
    assert_eq!(free(p), code::INVALID_VALUE);
    assert_eq!(unregister(p.wrapping_add(1)), code::HOST_MEMORY_NOT_REGISTERED);
    assert_eq!(cuda.counters().registrations, 1);
    assert_eq!(unregister(p), OK);
    assert_eq!(unregister(p), code::HOST_MEMORY_NOT_REGISTERED);
    assert_eq!(
        [register(ptr::null_mut(), 1, 0), register(p, 0, 0), register(p, 1, 16)],
        [code::INVALID_VALUE; 3]
    );
    assert_eq!(register(ptr::without_provenance_mut(0x1000), 1, 0), code::INVALID_VALUE);
    let pinned = pin(16, 0).unwrap();
    assert_eq!(unregister(pinned), code::HOST_MEMORY_NOT_REGISTERED);
    assert_eq!(register(pinned, 16, 0), code::HOST_MEMORY_ALREADY_REGISTERED);

    let device = Device { can_use_host_pointer_for_registered_mem: true, ..Device::default() };
    cuda.configure(&Config::default().with_devices(1, device));
    assert_eq!((cu!(cuInit(0 => u32)), cu!(cuCtxSetCurrent(retain(0) => Handle))), (OK, OK));
    assert_eq!((register(p, 4096, DEVICEMAP), device_pointer(p)), (OK, Ok(p.addr() as u64)));
    let device = Device { host_register_supported: false, ..Device::default() };
    cuda.configure(&Config::default().with_devices(1, device));
    assert_eq!((cu!(cuInit(0 => u32)), cu!(cuCtxSetCurrent(retain(0) => Handle))), (OK, OK));
    assert_eq!(register(p, 4096, DEVICEMAP), code::NOT_SUPPORTED);
}

#[test]
fn memory_freed_under_a_kernel_is_counted() {
    let cuda = current(&Config {
        late_error: LateError { after_calls: 0, ..Config::default().late_error },
        ..Config::default()
    });
    let (p, q, fill) = (pin(64, DEVICEMAP).unwrap(), pin(64, DEVICEMAP).unwrap(), fill_bytes());
    assert_eq!(launch(fill, 0, [device_pointer(p).unwrap(), 7, 64]), OK);
    assert_eq!((free(q), cuda.counters().freed_under_a_kernel), (OK, 0));
    assert_eq!((free(p), cuda.counters().freed_under_a_kernel), (OK, 1));
    byte(p, 0); // still mapped: the count tells
    assert_eq!(synchronize(0), code::ILLEGAL_ADDRESS);

    // A context that ends frees too.
    cuda.configure(&Config { hang_launch: 1, ..Config::default() });
    assert_eq!((cu!(cuInit(0 => u32)), cu!(cuCtxSetCurrent(retain(0) => Handle))), (OK, OK));
    let p = pin(64, DEVICEMAP).unwrap();
    assert_eq!(launch(fill_bytes(), 0, [device_pointer(p).unwrap(), 7, 64]), OK);
    assert_eq!(
        (cu!(cuDevicePrimaryCtxRelease_v2(0 => c_int)), cuda.counters().freed_under_a_kernel),
        (OK, 1)
    );
}

#[test]
fn pointers_are_told_apart() {
    let _cuda = current(&Config::default());
    let (p, addr) = (pin(64, DEVICEMAP).unwrap(), device_alloc(32));
    let (mut word, mut long) = (0_u32, 0_u64);
    let mut words = |which, of: u64| {
        (cu!(cuPointerGetAttribute(&mut word => &mut u32, which => u32, of => u64)), word)
    };
    let of_host = p.addr() as u64;
    assert_eq!(
        [words(2, of_host), words(2, device_pointer(p).unwrap()), words(2, addr + 31)],
        [(OK, 1), (OK, 1), (OK, 2)]
    );
    assert_eq!(words(2, addr + 32).0, code::INVALID_VALUE);
    let mut longs = |which, of: u64| {
        (cu!(cuPointerGetAttribute(&mut long => &mut u64, which => u32, of => u64)), long)
    };
    assert_eq!(longs(3, of_host + 3), (OK, device_pointer(p).unwrap() + 3));
    assert_eq!(longs(3, addr + 5), (OK, addr + 5));
    assert_eq!(longs(4, addr).0, code::INVALID_VALUE);
    let (mut host, mut kind) = (9_u64, 9_u32);
    let mut data = [ptr::from_mut(&mut host).cast::<c_void>(), ptr::from_mut(&mut kind).cast()];
    let mut which = [4_u32, 2];
    let none = ptr::from_ref(&which).addr() as u64;
    let (which_at, data_at) = (which.as_mut_ptr(), data.as_mut_ptr());
    assert_eq!(
        cu!(cuPointerGetAttributes(
            2 => u32, which_at => *mut u32, data_at => *mut *mut c_void, none => u64
        )),
        OK
    );
    assert_eq!((host, kind), (0, 0));
}
