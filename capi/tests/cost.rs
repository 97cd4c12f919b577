//! What a call costs, beside the same thing in Rust: printed with `--release -- --nocapture`, and bounded only against disasters.
#![allow(
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that panics has failed, which is its purpose; the C functions take pointers, which are references here"
)]

mod common;

use common::*;
use contigo::{Align, Pool, Region, dlpack::abi::DlManagedTensorVersioned, sim::SimBoard};
use contigo_c::*;
use std::{hint::black_box, time::Instant};

/// Nanoseconds of one `act`: the least of 20 runs, which is the least disturbed.
fn nanoseconds(what: &str, mut act: impl FnMut()) -> f64 {
    const TIMES: u32 = 2_000;
    let least = (0..20).map(|_| {
        let start = Instant::now();
        (0..TIMES).for_each(|_| act());
        start.elapsed().as_secs_f64() * 1e9 / f64::from(TIMES)
    });
    let least = least.fold(f64::INFINITY, f64::min);
    println!("{what}: {least:.1} ns");
    least
}

#[test]
fn calls_are_cheap() {
    let board = Board::new();
    let take = nanoseconds("contigo_pool_take, contigo_buf_release", || ok(contigo_buf_release(black_box(board.take()))));
    let buf = board.take();
    let map = nanoseconds("contigo_buf_map, contigo_buf_unmap", || {
        black_box(try_map(buf, CONTIGO_READ));
        ok(contigo_buf_unmap(buf));
    });
    let split = nanoseconds("contigo_pool_take, contigo_buf_split, contigo_buf_release of both", || {
        let buf = board.take();
        ok(contigo_buf_release(answer(|rest| unsafe { contigo_buf_split(buf, 1024, rest) })));
        ok(contigo_buf_release(buf));
    });
    let coherent = answer(|port| unsafe { contigo_sim_port(board.sim, 1, port) });
    let hand = nanoseconds("contigo_buf_to_device, contigo_buf_to_cpu, a port that snoops", || {
        ok(to_device(buf, coherent, 0, SLOT, CONTIGO_IN_OUT).0);
        ok(contigo_buf_to_cpu(buf));
    });
    let shape = [1_i64, 3, 16, 16];
    let options = contigo_tensor_options {
        struct_size: size_of::<contigo_tensor_options>(),
        shape: shape.as_ptr(),
        ndim: 4,
        dtype_code: 2,
        dtype_bits: 32,
        reserved: 0,
        read_only: 0,
        keep_byte_offset: 0,
        legacy: 0,
        align_bytes: 64,
    };
    let lend = nanoseconds("contigo_buf_lend, the tensor's deleter, contigo_buf_unlend", || {
        let mut tensor = core::ptr::null_mut();
        ok(unsafe { contigo_buf_lend(buf, &options, &mut tensor) });
        let tensor = black_box(tensor.cast::<DlManagedTensorVersioned>());
        unsafe { ((*tensor).deleter.unwrap())(tensor) };
        ok(contigo_buf_unlend(buf));
    });
    let (_, host, _) = try_map(buf, CONTIGO_READ);
    let addr = nanoseconds("contigo_dev_addr_of", || {
        black_box(answer(|addr| unsafe { contigo_dev_addr_of(board.heap, board.port, host, 64, addr) }));
    });
    ok(contigo_buf_unmap(buf));
    ok(contigo_buf_release(buf));
    let stale = nanoseconds("a refusal, its text included", || {
        black_box(contigo_buf_release(buf));
    });
    ok(contigo_port_close(coherent));
    board.close();

    let sim = SimBoard::new(1);
    let region = Region::new(sim.memory(64 * 1024).unwrap()).unwrap();
    let pool = Pool::<8>::new(region.carve(8 * SLOT, Align::LINE).unwrap(), SLOT).unwrap();
    nanoseconds("for comparison, Rust's Pool: take, drop", || drop(black_box(pool.take().unwrap())));
    // A system call or a lock that sleeps would be far above this, also in a debug build under an emulator.
    assert!([take, split, map, hand, lend, addr, stale].into_iter().all(|each| each < 200_000.0));
}
