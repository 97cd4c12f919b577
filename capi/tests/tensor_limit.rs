//! As many tensors as there may be: in a process of its own, because the table is one for all.
#![allow(
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    clippy::unwrap_used,
    reason = "a test that panics has failed, which is its purpose; the C functions take pointers, which are references here"
)]

mod common;

use common::*;
use contigo::dlpack::abi::DlManagedTensorVersioned;
use contigo_c::*;
use core::{ffi::c_void, ptr};

const FLOAT: u8 = 2;

fn options(shape: &[i64]) -> contigo_tensor_options {
    contigo_tensor_options {
        struct_size: size_of::<contigo_tensor_options>(),
        shape: shape.as_ptr(),
        ndim: u32::try_from(shape.len()).unwrap(),
        dtype_code: FLOAT,
        dtype_bits: 32,
        reserved: 0,
        read_only: 0,
        keep_byte_offset: 0,
        legacy: 0,
        align_bytes: 64,
    }
}

fn lend(buf: contigo_buf, options: &contigo_tensor_options) -> (contigo_status, *mut DlManagedTensorVersioned) {
    let mut tensor: *mut c_void = ptr::dangling_mut();
    (unsafe { contigo_buf_lend(buf, options, &mut tensor) }, tensor.cast())
}

fn delete(tensor: *mut DlManagedTensorVersioned) {
    unsafe { ((*tensor).deleter.unwrap())(tensor) }
}

#[test]
fn so_many_are_out_and_no_more() {
    let board = Board::new();
    let pool = answer(|pool| unsafe { contigo_pool_open(board.heap, 64, 257, 64, pool) });
    let bufs: Vec<_> = (0..257).map(|_| answer(|buf| unsafe { contigo_pool_take(pool, buf) })).collect();
    let tensors: Vec<_> = bufs.iter().map(|&buf| lend(buf, &options(&[16]))).collect();
    let (last, first) = tensors.split_last().unwrap();
    assert!(first.iter().all(|(status, _)| *status == CONTIGO_OK) && first.len() == CONTIGO_MAX_TENSORS as usize);
    refused(last.0, CONTIGO_E_NO_SLOTS, "256 slots");
    for (buf, (status, tensor)) in bufs.into_iter().zip(tensors) {
        if status == CONTIGO_OK {
            delete(tensor);
            ok(contigo_buf_unlend(buf));
        }
        ok(contigo_buf_release(buf));
    }
    ok(contigo_pool_close(pool));
    board.close();
}
