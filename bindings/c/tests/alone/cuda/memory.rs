//! Regions of pinned memory: both views, pools, hand-overs, tensors, and what closing gives back.

use super::*;
use contigo::dlpack::abi::device;
use core::ptr;

/// From a pointer of the CPU's to the GPU's: the stand-in's.
const OFFSET: u64 = 0x10_0000_0000;

#[test]
fn both_views_are_aligned_and_zeroed_and_their_addresses_are_the_driver_s() {
    alone(
        "cuda::memory::both_views_are_aligned_and_zeroed_and_their_addresses_are_the_driver_s",
        &two(),
        |controls| {
            // Opened twice, and another GPU beside it.
            for (gpu, align_bytes) in [(0, 0), (0, 1 << 16), (1, 0)] {
                let region =
                    pinned(gpu, &contigo_region_options { align_bytes, ..region_options(0) });
                let port = port(&format!("cuda:{gpu}"));
                let align = align_bytes.max(4096) as u64;
                let base = region_info(region).base;
                assert_eq!(
                    (region_info(region).len_bytes, region_info(region).line_bytes, base % align),
                    (1 << 20, 64, 0)
                );
                let buf = carve(region, SLOT, 0);
                assert!(
                    bytes(buf).iter().all(|byte| *byte == 0),
                    "zeroes, though the driver gives garbage"
                );
                let (status, host, len) = try_map(buf, CONTIGO_WRITE);
                ok(status);
                assert_eq!(
                    (len, host.addr() as u64 + OFFSET, host.addr() as u64 % align),
                    (SLOT, base, 0)
                );
                assert_eq!(
                    answer(|addr| unsafe {
                        contigo_dev_addr_of(region, port, host.byte_add(65), 1, addr)
                    }),
                    base + 65
                );
                let mut back = ptr::null_mut();
                ok(unsafe { contigo_host_ptr_of(region, port, base + 65, &mut back) });
                assert_eq!(back, host.wrapping_byte_add(65));
                ok(contigo_buf_unmap(buf));
                // A hand-over to a kernel of the program's own: its pointer, and no cache is
                // touched.
                let (status, addr) = give(buf, port, 64, 128, CONTIGO_READS | CONTIGO_WRITES);
                ok(status);
                assert_eq!((addr, dev_addr(buf)), (base + 64, (base + 64, 128)));
                ok(contigo_buf_take_back(buf));
                let stats = region_info(region);
                assert_eq!(
                    (stats.syncs, stats.bytes_synced_for_device, stats.bytes_copied),
                    (0, 0, 0)
                );
                refused(
                    unsafe { contigo_region_export(region, &mut 0) },
                    CONTIGO_E_UNSUPPORTED,
                    "no dma-buf",
                );
                refused(
                    contigo_region_close(region),
                    CONTIGO_E_STILL_USED,
                    "1 still use this region",
                );
                ok(contigo_buf_release(buf));
                ok(contigo_region_close(region));
                ok(contigo_port_close(port));
                assert_eq!(controls.counters().host_allocs, 0, "closing gives it back");
            }
            let counters = controls.counters();
            assert_eq!(
                (
                    counters.calls(Function::cuInit),
                    counters.calls(Function::cuDevicePrimaryCtxRetain)
                ),
                (1, 2)
            );
            clean(controls, 2);
        },
    );
}

#[test]
fn write_combined_memory_is_for_who_asks_for_it() {
    alone(
        "cuda::memory::write_combined_memory_is_for_who_asks_for_it",
        &Config::default(),
        |controls| {
            const WRITE_COMBINED: u32 = 4;
            type GetFlags = unsafe extern "C" fn(*mut u32, *const u8) -> i32;
            for write_combined in [0, 1] {
                let region =
                    pinned(0, &contigo_region_options { write_combined, ..region_options(0) });
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
                    assert_eq!(
                        function::<GetFlags>("cuMemHostGetFlags")(&mut flags, host.cast()),
                        0
                    );
                    assert_eq!(
                        function::<unsafe extern "C" fn(*mut *mut u8) -> i32>("cuCtxPopCurrent_v2")(
                            &mut context
                        ),
                        0
                    );
                    assert_eq!(
                        function::<unsafe extern "C" fn(i32) -> i32>(
                            "cuDevicePrimaryCtxRelease_v2"
                        )(0),
                        0
                    );
                }
                assert_eq!(flags & WRITE_COMBINED != 0, write_combined == 1, "{flags:#x}");
                ok(contigo_buf_unmap(buf));
                ok(contigo_buf_release(buf));
                ok(contigo_region_close(region));
            }
            clean(controls, 1);
        },
    );
}

/// A tensor's memory: type and number of the device, and the pointer.
fn shown(tensor: *mut contigo::dlpack::abi::DlManagedTensorVersioned) -> (i32, i32, u64) {
    let tensor = unsafe { &(*tensor).tensor };
    assert_eq!(tensor.byte_offset, 0);
    (tensor.device.device_type, tensor.device.device_id, tensor.data.addr() as u64)
}

#[test]
fn each_view_s_tensor_has_its_tag_its_pointer_and_its_gpu() {
    alone(
        "cuda::memory::each_view_s_tensor_has_its_tag_its_pointer_and_its_gpu",
        &two(),
        |controls| {
            for ordinal in [0, 1] {
                let gpu = gpu(ordinal);
                let ordinal = i32::try_from(ordinal).unwrap();
                let operands = gpu.operands();
                let c = operands[3].buf;
                let (_, host, _) = try_map(c, CONTIGO_READ);
                ok(contigo_buf_unmap(c));
                let host = host.addr() as u64;

                let (status, tensor) = lend(c, &options(&[4, 4]));
                ok(status);
                assert_eq!(shown(tensor), (device::CUDA_HOST, 0, host), "the CPU's");
                let mut found = contigo_tensor_info {
                    struct_size: size_of::<contigo_tensor_info>(),
                    ..Default::default()
                };
                ok(unsafe { contigo_tensor_locate(gpu.region, tensor.cast(), 0, 64, &mut found) });
                assert_eq!(
                    (region_info(gpu.region).base + found.offset_bytes as u64, found.len_bytes),
                    (host + OFFSET, 64)
                );
                // No kernel gets it meanwhile.
                refused(gpu.try_start(&operands).0, CONTIGO_E_TENSOR_OUT, "deleter");
                delete(tensor);
                ok(contigo_buf_unlend(c));

                // Bytes that a kernel has written, and that the CPU has not taken back.
                ok(wait_device(gpu.start(&operands), 1_000_000));
                let (status, tensor) = lend(c, &options(&[4, 4]));
                ok(status);
                assert_eq!(shown(tensor), (device::CUDA, ordinal, host + OFFSET), "the GPU's");
                refused(contigo_buf_take_back(c), CONTIGO_E_TENSOR_OUT, "deleter");
                delete(tensor);
                ok(contigo_buf_unlend(c));

                // The form before DLPack 1.0.
                let (status, tensor) =
                    lend(c, &contigo_tensor_options { legacy: 1, ..options(&[16]) });
                ok(status);
                let legacy = tensor.cast::<contigo::dlpack::abi::DlManagedTensor>();
                let tags = unsafe {
                    ((*legacy).tensor.device.device_type, (*legacy).tensor.device.device_id)
                };
                assert_eq!(tags, (device::CUDA, ordinal));
                unsafe { ((*legacy).deleter.unwrap())(legacy) };
                ok(contigo_buf_unlend(c));

                operands.iter().for_each(|operand| ok(contigo_buf_take_back(operand.buf)));
                release_all(&operands);
                close(gpu);
            }
            clean(controls, 2);
        },
    );
}
