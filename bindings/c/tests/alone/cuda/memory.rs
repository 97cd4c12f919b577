//! Regions of pinned memory: what their options ask for, and what closing gives back.

use super::*;
use core::ptr;

#[test]
fn region_aligned_freed_gpu_opened_once() {
    alone(&two(), |controls| {
        // Opened twice, and another GPU beside it.
        for (gpu, align_bytes) in [(0, 0), (0, 1 << 16), (1, 0)] {
            let region = pinned(gpu, &contigo_region_options { align_bytes, ..region_options(0) });
            let (port, align) =
                (find_port(&named(&format!("cuda:{gpu}"))), align_bytes.max(4096) as u64);
            let (base, buf) = (region_info(region).base, carve(region, SLOT, 0));
            let (status, host, _) = try_map(buf, CONTIGO_READ);
            ok(status);
            assert_eq!((base % align, host.addr() as u64 % align), (0, 0));
            ok(contigo_buf_unmap(buf));
            // A hand-over to a kernel of the program's own: its pointer, and no cache is touched.
            let (status, addr) = give(buf, port, 64, 128, CONTIGO_READS | CONTIGO_WRITES);
            ok(status);
            assert_eq!((addr, dev_addr(buf)), (base + 64, (base + 64, 128)));
            ok(contigo_buf_take_back(buf));
            let stats = region_info(region);
            assert_eq!((stats.syncs, stats.bytes_copied), (0, 0));
            let export = unsafe { contigo_region_export(region, &mut 0) };
            refused(export, CONTIGO_E_UNSUPPORTED, "no dma-buf");
            refused(contigo_region_close(region), CONTIGO_E_STILL_USED, "1 still use this region");
            ok(contigo_buf_release(buf));
            ok(contigo_region_close(region));
            ok(contigo_port_close(port));
            assert_eq!(controls.counters().host_allocs, 0, "closing gives it back");
        }
        let calls = |of| controls.counters().calls(of);
        let opened = [Function::cuInit, Function::cuDevicePrimaryCtxRetain].map(calls);
        assert_eq!(opened, [1, 2]);
        clean(controls, 2);
    });
}

#[test]
fn write_combined_memory_is_for_who_asks_for_it() {
    alone(&Config::default(), |controls| {
        const WRITE_COMBINED: u32 = 4;
        type GetFlags = unsafe extern "C" fn(*mut u32, *const u8) -> i32;
        for write_combined in [0, 1] {
            let region = pinned(0, &contigo_region_options { write_combined, ..region_options(0) });
            let mut context = ptr::null_mut();
            let (buf, mut flags) = (carve(region, 64, 0), 0);
            // The driver aligned the first block worse than to a page, so what it knows is not
            // where the region begins: any byte will do for it.
            let (_, host, _) = try_map(buf, CONTIGO_READ);
            unsafe {
                assert_eq!(
                    function::<unsafe extern "C" fn(*mut *mut u8, i32) -> i32>(
                        "cuDevicePrimaryCtxRetain"
                    )(&mut context, 0),
                    0
                );
                assert_eq!(
                    function::<unsafe extern "C" fn(*mut u8) -> i32>("cuCtxPushCurrent_v2")(
                        context
                    ),
                    0
                );
                assert_eq!(function::<GetFlags>("cuMemHostGetFlags")(&mut flags, host.cast()), 0);
                assert_eq!(
                    function::<unsafe extern "C" fn(*mut *mut u8) -> i32>("cuCtxPopCurrent_v2")(
                        &mut context
                    ),
                    0
                );
                assert_eq!(
                    function::<unsafe extern "C" fn(i32) -> i32>("cuDevicePrimaryCtxRelease_v2")(0),
                    0
                );
            }
            assert_eq!(flags & WRITE_COMBINED != 0, write_combined == 1, "{flags:#x}");
            ok(contigo_buf_unmap(buf));
            ok(contigo_buf_release(buf));
            ok(contigo_region_close(region));
        }
        clean(controls, 1);
    });
}
