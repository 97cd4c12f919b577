//! Pinned memory: alignment, both views, registration; nothing leaked by whatever fails.

use super::{block, code, driver, function, opened};
use contigo::cuda::{CudaHost, Gpu};
use contigo::mem::SyncScope;
use contigo::types::BaseAddr;
use contigo::{Align, Backend, Bus, DevAddr, Error, Region};
use fake_cuda::{Config, Device, Function, code as answers};

#[test]
fn both_views_have_the_asked_alignment() {
    // How the driver's pointers are aligned: only odd multiples of this.
    for host_alignment in [16, 32, 64, 256, 4096] {
        for offset in [0, 0x10_0000_0000] {
            let (_controls, gpu) = opened(&Config {
                host_alignment,
                device_pointer_offset: offset,
                ..Config::default()
            });
            for align in [Align::MIN, Align::LINE, Align::DLPACK, Align::PAGE] {
                for (len_bytes, whole_bytes) in
                    [(1, 64), (64, 64), (4_095, 4_096), (100_000, 100_032)]
                {
                    let memory = CudaHost::allocate(&gpu, len_bytes, align).unwrap();
                    let mapping = memory.mapping();
                    assert_eq!(
                        (mapping.len_bytes, mapping.bus, mapping.coherent),
                        (whole_bytes, Bus::Gpu(0), Some(true))
                    );
                    assert_eq!(mapping.scope, SyncScope::Coherent);
                    let (cpu, BaseAddr::Dev(DevAddr(gpu))) =
                        (mapping.cpu.addr().get() as u64, mapping.base)
                    else {
                        panic!("{mapping:?}")
                    };
                    let least = align.max(Align::LINE).bytes() as u64;
                    assert_eq!(
                        (cpu % least, gpu % least, gpu.wrapping_sub(cpu)),
                        (0, 0, offset),
                        "{host_alignment} {align:?}"
                    );
                    let region = Region::new(memory).unwrap();
                    let buf = region.alloc(whole_bytes, Align::LINE).unwrap();
                    assert!(
                        buf.view::<u8>().unwrap().iter().all(|byte| *byte == 0),
                        "the driver gives garbage, and a region has zeros"
                    );
                }
            }
        }
    }
}

#[test]
fn unalignable_view_is_refused() {
    let (_controls, gpu) =
        opened(&Config { device_pointer_offset: 0x10_0000_0020, ..Config::default() });
    let refused = CudaHost::allocate(&gpu, 4096, Align::LINE).unwrap_err();
    assert!(matches!(refused, Error::Misaligned { align_bytes: 64, .. }), "{refused:?}");
}

#[test]
fn addresses_translate_both_ways() {
    let (_controls, gpu) = opened(&Config::default());
    let region = Region::new(block(&gpu).unwrap()).unwrap();
    let mut buf = region.alloc(4096, Align::LINE).unwrap();
    let first = buf.as_mut_ptr();
    for offset in [0, 1, 63, 4095] {
        let inside = first.wrapping_add(offset);
        let addr = region.dev_addr_of(&gpu.port(), inside, 1).unwrap();
        assert_eq!(addr.0, inside.addr() as u64 + 0x10_0000_0000);
        assert_eq!(region.host_ptr_of(&gpu.port(), addr).unwrap().as_ptr(), inside);
    }
}

#[test]
fn write_combined_is_what_the_driver_is_told() {
    let (_controls, gpu) = opened(&Config::default());
    type GetFlags = unsafe extern "C" fn(*mut u32, *const u8) -> i32;
    for write_combined in [0, 4] {
        // SAFETY: no other thread sees it.
        let combined = || unsafe { CudaHost::allocate_write_combined(&gpu, 64, Align::LINE) };
        let memory = if write_combined == 0 {
            CudaHost::allocate(&gpu, 64, Align::LINE)
        } else {
            combined()
        }
        .unwrap();
        let mut context = std::ptr::null_mut();
        // SAFETY: the pointers are references; the device is there. Retained for the question,
        // which wants a current context.
        unsafe {
            assert_eq!(
                function::<unsafe extern "C" fn(*mut *mut u8, i32) -> i32>(
                    "cuDevicePrimaryCtxRetain"
                )(&raw mut context, 0),
                0
            );
            assert_eq!(
                function::<unsafe extern "C" fn(*mut u8) -> i32>("cuCtxSetCurrent")(context),
                0
            );
        }
        let (mut flags, first) = (0, memory.mapping().cpu.as_ptr());
        // SAFETY: the first pointer is a reference, and the second one the driver's.
        assert_eq!(unsafe { function::<GetFlags>("cuMemHostGetFlags")(&raw mut flags, first) }, 0);
        assert_eq!(
            (flags & 4, flags & 3, memory.name()),
            (write_combined, 3, "cuda-host"),
            "portable and mapped in any case"
        );
        let release = function::<unsafe extern "C" fn(i32) -> i32>("cuDevicePrimaryCtxRelease_v2");
        // SAFETY: retained above.
        assert_eq!(unsafe { release(0) }, 0);
    }
}

#[test]
fn lengths_that_no_memory_has_are_refused() {
    let (_controls, gpu) = opened(&Config { pinned_limit_bytes: 1 << 20, ..Config::default() });
    for len_bytes in [0, usize::MAX, isize::MAX as usize] {
        let refused = CudaHost::allocate(&gpu, len_bytes, Align::LINE).unwrap_err();
        assert!(
            matches!(refused, Error::Argument { name: "len_bytes", .. }),
            "{len_bytes}: {refused:?}"
        );
    }
    let half = Align::new(1 << 63).unwrap();
    assert!(matches!(
        CudaHost::allocate(&gpu, 64, half).unwrap_err(),
        Error::Argument { name: "len_bytes", max: 0, .. }
    ));
    let refused = CudaHost::allocate(&gpu, 2 << 20, Align::LINE).unwrap_err();
    assert_eq!(code(refused), ("cuMemHostAlloc", answers::OUT_OF_MEMORY));
    assert_eq!(refused.to_string(), "cuMemHostAlloc: CUDA_ERROR_OUT_OF_MEMORY (2)");
}

/// Memory of the program's own, for ever.
fn own(len_bytes: usize) -> &'static mut [u8] {
    let mut room = Vec::leak(vec![7_u8; len_bytes + 64]);
    let skip = room.as_ptr().align_offset(64);
    room = &mut room[skip..skip + len_bytes];
    room
}

#[test]
fn own_memory_registers_and_comes_back() {
    for can_use_host_pointer_for_registered_mem in [false, true] {
        let device = Device { can_use_host_pointer_for_registered_mem, ..Device::default() };
        let (_controls, gpu) = opened(&Config::default().with_devices(1, device));
        assert_eq!(
            gpu.facts().host_pointer_for_registered,
            can_use_host_pointer_for_registered_mem
        );
        let memory = own(8192);
        let first = memory.as_mut_ptr();
        let registered = CudaHost::register(&gpu, memory).unwrap();
        assert_eq!(
            (registered.name(), registered.mapping().cpu.as_ptr()),
            ("cuda-registered", first)
        );
        let same = registered.mapping().base.raw() == first.addr() as u64;
        assert_eq!(same, can_use_host_pointer_for_registered_mem, "asked for, not guessed");
        // SAFETY: by `register`.
        let back = unsafe { registered.unregister() }.unwrap();
        assert_eq!((back.as_mut_ptr(), back.len(), back[8191]), (first, 8192, 7));
        // In a region, and given back by dropping that.
        let region = Region::new(CudaHost::register(&gpu, back).unwrap()).unwrap();
        let buf = region.alloc(64, Align::LINE).unwrap();
        assert_eq!(buf.view::<u8>().unwrap()[0], 7, "its bytes are kept");
    }
}

#[test]
fn unregistrable_memory_comes_back() {
    let (controls, cuda) = driver(&Config::default());
    let gpu = Gpu::primary(&cuda, 0).unwrap();
    let memory = own(4096);
    let len_bytes = memory.len();
    let registered = CudaHost::register(&gpu, memory).unwrap();
    // SAFETY: registered already, which is what is tried: nothing is done to it.
    let again =
        unsafe { CudaHost::register_raw(&gpu, registered.mapping().cpu, len_bytes) }.unwrap_err();
    assert_eq!(code(again), ("cuMemHostRegister", answers::HOST_MEMORY_ALREADY_REGISTERED));
    // SAFETY: by `register`.
    let back = unsafe { registered.unregister() }.unwrap();
    let refused = CudaHost::register(&gpu, &mut []).unwrap_err();
    assert!(matches!(refused.error, Error::Argument { value: 0, .. }), "{refused:?}");
    assert!(refused.into_returned().is_empty());
    // Bytes that are not whole lines are registered, and are no region.
    let region = Region::new(CudaHost::register(&gpu, &mut back[1..100]).unwrap()).unwrap_err();
    assert!(matches!(region.error, Error::BlockSize { len_bytes: 99, .. }), "{region:?}");
    drop(region);
    // No slice is behind memory that was allocated here.
    // SAFETY: refused, because it was not registered.
    let refused = unsafe { block(&gpu).unwrap().unregister() }.unwrap_err();
    assert!(matches!(refused.error, Error::Unsupported { .. }), "{refused:?}");
    drop(refused);
    drop(gpu);
    let counters = controls.counters();
    assert_eq!(
        (
            counters.held(),
            counters.refused(Function::cuMemFreeHost),
            counters.refused(Function::cuMemHostUnregister)
        ),
        (0, 0, 0)
    );

    let device = Device { host_register_supported: false, ..Device::default() };
    controls.configure(&Config::default().with_devices(1, device));
    let cuda = super::load().unwrap();
    let gpu = Gpu::primary(&cuda, 0).unwrap();
    let refused = CudaHost::register(&gpu, own(4096)).unwrap_err();
    assert_eq!(
        (code(refused.error), refused.into_returned().len()),
        (("cuMemHostRegister", answers::NOT_SUPPORTED), 4096)
    );
}

#[test]
fn what_is_leaked_keeps_its_context() {
    let (controls, cuda) = driver(&Config::default());
    let gpu = Gpu::primary(&cuda, 0).unwrap();
    let region = Region::new(block(&gpu).unwrap()).unwrap();
    std::mem::forget(region.alloc(64, Align::LINE).unwrap());
    drop(region);
    drop(gpu);
    let counters = controls.counters();
    assert_eq!(
        (counters.host_allocs, counters.retained_contexts, counters.ended_with_their_context),
        (1, 1, 0),
        "{counters:?}"
    );
}

#[test]
fn unfreeable_memory_leaks_with_context() {
    let config = Config::default().failing(Function::cuMemFreeHost, 1, answers::UNKNOWN);
    let (controls, cuda) = driver(&config);
    let gpu = Gpu::primary(&cuda, 0).unwrap();
    drop(block(&gpu).unwrap());
    drop(gpu);
    let counters = controls.counters();
    assert_eq!((counters.host_allocs, counters.retained_contexts), (1, 1), "{counters:?}");
}

/// Every call that an allocation and a registration make, failing in its turn.
#[test]
fn whatever_fails_leaves_nothing_behind() {
    let mut seen = Vec::new();
    for function in [
        Function::cuCtxPushCurrent_v2,
        Function::cuMemHostAlloc,
        Function::cuMemHostRegister_v2,
        Function::cuMemHostGetDevicePointer_v2,
        Function::cuPointerGetAttributes,
    ] {
        for nth in 1..=4 {
            let (controls, cuda) =
                driver(&Config::default().failing(function, nth, answers::UNKNOWN));
            let gpu = Gpu::primary(&cuda, 0).unwrap();
            let allocated = block(&gpu).map(drop);
            let registered = CudaHost::register(&gpu, own(4096)).map(drop).map_err(|refused| {
                let (error, returned) = refused.into_parts();
                assert_eq!(returned.len(), 4096);
                error
            });
            for error in [allocated.err(), registered.err()].into_iter().flatten() {
                let (call, found) = code(error);
                assert!(
                    found == answers::UNKNOWN && function.name().starts_with(call),
                    "{function:?} {nth}: {error:?}"
                );
                seen.push(function);
            }
            drop(gpu);
            // A context that could not be made current when the memory was to go is the one way to
            // lose it.
            let counters = controls.counters();
            if function != Function::cuCtxPushCurrent_v2 {
                assert_eq!(counters.held(), 0, "{function:?} {nth}: {counters:?}");
            }
        }
    }
    for function in [
        Function::cuMemHostAlloc,
        Function::cuMemHostRegister_v2,
        Function::cuMemHostGetDevicePointer_v2,
        Function::cuPointerGetAttributes,
    ] {
        assert!(seen.contains(&function), "{function:?} was never reached");
    }
}
