#![allow(unsafe_code, reason = "functions that C calls")]
//! Pools: equal buffers, taken and released with no system call.

use super::raw;
use crate::handles::{contigo_buf, contigo_pool, contigo_region};
use crate::last_error::call;
use crate::object::buf::{Buf, POOLS, Pool};
use crate::status::contigo_status;
use contigo::Align;

/// Carves `slots` buffers of `slot_bytes` each, 1 to `CONTIGO_MAX_POOL_SLOTS`. `slot_bytes` is a
/// multiple of the region's cache line, so that no line has two owners. The first slot begins at a
/// multiple of `align_bytes`, a power of two; 0: a cache line. Close it with `contigo_pool_close`,
/// which gives the bytes back to the region.
///
/// # Safety
/// `pool` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_pool_open(
    region: contigo_region,
    slot_bytes: usize,
    slots: usize,
    align_bytes: usize,
    pool: *mut contigo_pool,
) -> contigo_status {
    // SAFETY: the caller's promise.
    unsafe {
        raw::opened(pool, "pool", || Pool::open(region, slot_bytes, slots, align(align_bytes)?))
    }
}

/// Takes a free slot, which the CPU owns. It holds the bytes that its last owner left in it. Any
/// thread may take one, and the call makes no system call and no allocation. Release the slot with
/// `contigo_buf_release`. `CONTIGO_E_NO_SLOTS` where all are taken; `CONTIGO_E_IN_CALL` while
/// another thread tries to close the pool.
///
/// # Safety
/// `buf` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_pool_take(
    pool: contigo_pool,
    buf: *mut contigo_buf,
) -> contigo_status {
    // SAFETY: the caller's promise.
    unsafe { raw::opened(buf, "buf", || Pool::take(pool)) }
}

/// Answers how many slots are free. Other threads may change that at once.
///
/// # Safety
/// `free` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_pool_free_slots(
    pool: contigo_pool,
    free: *mut usize,
) -> contigo_status {
    // SAFETY: the caller's promise.
    unsafe { raw::answer(free, "free", || Pool::free(pool)) }
}

/// Closes a pool. `CONTIGO_E_STILL_USED` while a slot is out.
#[unsafe(no_mangle)]
pub extern "C" fn contigo_pool_close(pool: contigo_pool) -> contigo_status {
    call(|| Ok(POOLS.close(pool)?))
}

/// Carves one buffer of `len_bytes`, rounded up to whole cache lines, at a multiple of
/// `align_bytes` for the CPU and for the device; 0: a cache line. It is for data that a program
/// plans once, such as weights. Release it with `contigo_buf_release`, which gives the bytes back
/// to the region.
///
/// # Safety
/// `buf` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_carve(
    region: contigo_region,
    len_bytes: usize,
    align_bytes: usize,
    buf: *mut contigo_buf,
) -> contigo_status {
    // SAFETY: the caller's promise.
    unsafe { raw::opened(buf, "buf", || Buf::carve(region, len_bytes, align(align_bytes)?)) }
}

/// 0: the region's own, which the runtime takes at least.
fn align(align_bytes: usize) -> Result<Align, contigo::Error> {
    if align_bytes == 0 { Ok(Align::MIN) } else { Align::new(align_bytes) }
}
