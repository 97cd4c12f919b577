//! Buffers as a framework's tensors, through the functions that C calls.

use crate::common::*;
use contigo::dlpack::abi::{DlManagedTensor, DlManagedTensorVersioned};
use contigo_c::*;
use core::ptr;

#[track_caller]
fn lent(buf: contigo_buf, options: &contigo_tensor_options) -> *mut DlManagedTensorVersioned {
    let (status, tensor) = lend(buf, options);
    ok(status);
    tensor
}

fn tensor_info() -> contigo_tensor_info {
    empty::<contigo_tensor_info>()
}

#[test]
fn a_shape_is_read_at_any_alignment() {
    let board = Board::new();
    let buf = board.take();
    let mut bytes = [0_u8; 25];
    let odd = usize::from(bytes.as_ptr().addr() % 2 == 0);
    let shape = bytes[odd..].as_mut_ptr().cast::<i64>();
    [2, 3, 4]
        .into_iter()
        .enumerate()
        .for_each(|(at, dim)| unsafe { shape.add(at).write_unaligned(dim) });
    let tensor = lent(buf, &contigo_tensor_options { shape, ndim: 3, ..options(&[]) });
    assert_eq!(unsafe { [0, 1, 2].map(|at| (*tensor).tensor.shape.add(at).read()) }, [2, 3, 4]);
    delete(tensor);
    ok(contigo_buf_unlend(buf));
    ok(contigo_buf_release(buf));
    board.close();
}

#[test]
fn frame_alternates_framework_and_device() {
    let board = Board::new();
    let buf = board.take();
    for round in 0..3_u8 {
        fill(buf, round);
        let tensor = lent(buf, &options(&[8, 16]));
        let data = unsafe { (*tensor).tensor.data }.cast::<u8>();
        assert_eq!(
            unsafe { ((*tensor).tensor.ndim, *(*tensor).tensor.shape.add(1), data.read()) },
            (2, 16, round)
        );
        unsafe { data.write(round + 100) };
        // Nothing else can be done with it meanwhile.
        for status in [
            try_map(buf, CONTIGO_READ).0,
            contigo_buf_unlend(buf),
            contigo_buf_release(buf),
            lend(buf, &options(&[1])).0,
        ] {
            refused(status, CONTIGO_E_TENSOR_OUT, "deleter");
        }
        refused(
            give(buf, board.port, 0, 64, CONTIGO_READS | CONTIGO_WRITES).0,
            CONTIGO_E_TENSOR_OUT,
            "deleter",
        );
        refused(contigo_buf_take_back(buf), CONTIGO_E_TENSOR_OUT, "deleter");
        refused(contigo_region_close(board.region), CONTIGO_E_STILL_USED, "still use");
        std::thread::scope(|scope| {
            let tensor = tensor.expose_provenance();
            scope.spawn(move || delete(ptr::with_exposed_provenance_mut(tensor)));
        });
        ok(contigo_buf_unlend(buf));
        refused(contigo_buf_unlend(buf), CONTIGO_E_CPU_OWNED, "the CPU's");
        assert_eq!(bytes(buf)[0], round + 100, "what the framework wrote");
        let (status, addr) = give(buf, board.port, 0, 64, CONTIGO_READS | CONTIGO_WRITES);
        ok(status);
        // The device's view: a bus address, for a consumer that knows the device.
        let tensor = lent(buf, &contigo_tensor_options { align_bytes: 0, ..options(&[16]) });
        assert_eq!(
            unsafe { ((*tensor).tensor.device.device_type, (*tensor).tensor.data.addr() as u64) },
            (12, addr)
        );
        refused(contigo_buf_take_back(buf), CONTIGO_E_TENSOR_OUT, "deleter");
        delete(tensor);
        ok(contigo_buf_unlend(buf));
        refused(contigo_buf_unlend(buf), CONTIGO_E_DEVICE_OWNED, "a device's");
        ok(contigo_buf_take_back(buf));
    }
    let mut operands = board.operands();
    let tensor = lent(operands[1].buf, &options(&[16]));
    refused(board.try_start(&operands).0, CONTIGO_E_TENSOR_OUT, "deleter");
    delete(tensor);
    ok(contigo_buf_unlend(operands[1].buf));
    operands[1].offset_bytes = 0;
    ok(wait(board.start(&operands), 1_000_000));
    release_all(&operands);
    ok(contigo_buf_release(buf));
    board.close();
}

#[test]
fn both_forms_and_both_offsets() {
    let board = Board::new();
    let (first, before) = (board.take(), board.take());
    let buf = split(before, 256);
    let (_, base, _) = try_map(first, CONTIGO_READ);
    ok(contigo_buf_unmap(first));
    let offset = info(buf).offset_bytes;
    for (keep, expected) in [(0, (base.addr() + offset, 0)), (1, (base.addr(), offset as u64))] {
        let tensor = lent(
            buf,
            &contigo_tensor_options { keep_byte_offset: keep, read_only: 1, ..options(&[256]) },
        );
        let seen = unsafe { ((*tensor).tensor.data.addr(), (*tensor).tensor.byte_offset) };
        assert_eq!((seen, unsafe { (*tensor).flags }), (expected, 1));
        delete(tensor);
        ok(contigo_buf_unlend(buf));
    }
    let (status, tensor) = lend(buf, &contigo_tensor_options { legacy: 1, ..options(&[256]) });
    ok(status);
    let legacy = tensor.cast::<DlManagedTensor>();
    let mut found = tensor_info();
    ok(unsafe { contigo_tensor_locate(board.region, legacy.cast(), 1, 256, &mut found) });
    assert_eq!((found.offset_bytes, found.len_bytes, found.read_only), (offset, 1024, 0));
    unsafe { ((*legacy).deleter.unwrap())(legacy) };
    ok(contigo_buf_unlend(buf));
    let (status, tensor) =
        lend(buf, &contigo_tensor_options { legacy: 1, read_only: 1, ..options(&[256]) });
    assert!(tensor.is_null());
    refused(status, CONTIGO_E_TENSOR, "flags");
    fill(buf, 9);
    release([first, before, buf]);
    board.close();
}

#[test]
fn what_is_no_tensor_is_refused() {
    let board = Board::new();
    let buf = board.take();
    let good = options(&[16]);
    let status = |options: &contigo_tensor_options| {
        let (status, tensor) = lend(buf, options);
        assert!(tensor.is_null());
        status
    };
    for (options, code, word) in [
        (
            contigo_tensor_options { struct_size: 8, ..good },
            CONTIGO_E_STRUCT,
            "contigo_tensor_options",
        ),
        (contigo_tensor_options { shape: ptr::null(), ..good }, CONTIGO_E_NULL, "shape"),
        (contigo_tensor_options { ndim: 9, ..good }, CONTIGO_E_TENSOR, "dimensions, at most 8"),
        (contigo_tensor_options { dtype_bits: 12, ..good }, CONTIGO_E_TENSOR, "bits"),
        (contigo_tensor_options { reserved: 1, ..good }, CONTIGO_E_VALUE, "reserved"),
        (contigo_tensor_options { read_only: 2, ..good }, CONTIGO_E_VALUE, "read_only"),
        (
            contigo_tensor_options { keep_byte_offset: 2, ..good },
            CONTIGO_E_VALUE,
            "keep_byte_offset",
        ),
        (contigo_tensor_options { legacy: 7, ..good }, CONTIGO_E_VALUE, "legacy"),
        (
            contigo_tensor_options { align_bytes: 1 << 30, ..good },
            CONTIGO_E_TENSOR,
            "a multiple of 1073741824",
        ),
    ] {
        refused(status(&options), code, word);
    }
    refused(status(&options(&[1025])), CONTIGO_E_TENSOR, "4100");
    refused(status(&options(&[2, -1])), CONTIGO_E_TENSOR, "dimension");
    refused(unsafe { contigo_buf_lend(buf, &good, ptr::null_mut()) }, CONTIGO_E_NULL, "tensor");
    refused(
        unsafe { contigo_buf_lend(buf, ptr::null(), &mut ptr::null_mut()) },
        CONTIGO_E_NULL,
        "contigo_tensor_options",
    );
    refused(lend(0, &good).0, CONTIGO_E_HANDLE, "buffer");
    ok(try_map(buf, CONTIGO_READ).0);
    refused(status(&good), CONTIGO_E_MAPPED, "mapped (views: 1)");
    ok(contigo_buf_unmap(buf));
    // A scalar needs no shape.
    delete(lent(buf, &contigo_tensor_options { shape: ptr::null(), ndim: 0, ..good }));
    ok(contigo_buf_unlend(buf));
    ok(contigo_buf_release(buf));
    board.close();
}

#[test]
fn tensors_of_others_are_located_or_copied() {
    let board = Board::new();
    let (buf, other) = (board.take(), board.take());
    fill(buf, 7);
    let tensor = lent(buf, &options(&[16]));
    let mut found = tensor_info();
    let locate = |tensor: *mut DlManagedTensorVersioned,
                  legacy,
                  align,
                  info: *mut contigo_tensor_info| unsafe {
        contigo_tensor_locate(board.region, tensor.cast(), legacy, align, info)
    };
    ok(locate(tensor, 0, 64, &mut found));
    assert_eq!(found.len_bytes, 64);
    refused(locate(ptr::null_mut(), 0, 0, &mut found), CONTIGO_E_TENSOR, "pointer to a tensor");
    refused(locate(tensor, 3, 0, &mut found), CONTIGO_E_VALUE, "legacy");
    refused(locate(tensor, 0, 0, ptr::null_mut()), CONTIGO_E_NULL, "contigo_tensor_info");
    refused(
        unsafe { contigo_tensor_locate(0, tensor.cast(), 0, 0, &mut found) },
        CONTIGO_E_HANDLE,
        "region",
    );
    // The same tensor, elsewhere.
    let mut elsewhere = [3_u32; 16];
    let mine = unsafe { (*tensor).tensor.data };
    unsafe { (*tensor).tensor.data = elsewhere.as_mut_ptr().cast() };
    refused(locate(tensor, 0, 0, &mut found), CONTIGO_E_NOT_OURS, "64 bytes");
    unsafe { (*tensor).tensor.data = mine };
    delete(tensor);
    ok(contigo_buf_unlend(buf));
    assert_eq!(bytes(buf)[0], 7);
    release([buf, other]);
    board.close();
}
