//! As many tensors as there may be: in a process of its own, because the table is one for all.
#![allow(
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    clippy::unwrap_used,
    reason = "a test that panics has failed, which is its purpose; the C functions take pointers, which are references here"
)]

mod common;

use common::*;
use contigo_c::*;

#[test]
fn so_many_are_out_and_no_more() {
    let board = Board::new();
    let pool = answer(|pool| unsafe { contigo_pool_open(board.region, 64, 257, 64, pool) });
    let bufs: Vec<_> =
        (0..257).map(|_| answer(|buf| unsafe { contigo_pool_take(pool, buf) })).collect();
    let tensors: Vec<_> = bufs.iter().map(|&buf| lend(buf, &options(&[16]))).collect();
    let (last, first) = tensors.split_last().unwrap();
    assert!(
        first.iter().all(|(status, _)| *status == CONTIGO_OK)
            && first.len() == CONTIGO_MAX_TENSORS as usize
    );
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
