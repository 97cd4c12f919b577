#![allow(
    unsafe_code,
    reason = "a buffer goes to the device's side and back with no job between, which is a promise that no job ran"
)]
//! The bytes that memory really holds, behind the CPU's caches.

use contigo::{CpuBuf, Port, Result, mem::DriverBuf};

/// The same buffer, its lines written back and fetched anew: a view of it shows what memory holds,
/// not what the caches remember. Without this, a byte that a device wrote where it should not,
/// behind a port that does not snoop, stays hidden until the line happens to leave the cache. On a
/// port that snoops there is nothing to do.
///
/// # Errors
/// An error of [`DriverBuf::new`] or of the backend's sync; the buffer is lost then.
pub fn refresh(buf: CpuBuf, port: &Port, addr_bits: u32) -> Result<CpuBuf> {
    if port.coherent {
        return Ok(buf);
    }
    let cleaned = DriverBuf::new(buf, port, addr_bits)?;
    // SAFETY: `addr_at` was never called, so no device was told of these bytes, and the buffer came
    // from the CPU's side, which no device had.
    let unused = unsafe { cleaned.release() };
    Ok(unused.into_cpu()?)
}
