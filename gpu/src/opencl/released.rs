#![allow(unsafe_code, reason = "the driver calls back, with a pointer that it was given")]
//! When the driver has let go of a block's bytes.

use super::{error::check, object::Buffer};
use cl3::{
    memory::{release_mem_object, set_mem_object_destructor_callback},
    types::cl_mem,
};
use contigo::{Error, Result, Spin, poll_until};
use core::{
    ffi::c_void,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

/// The flag that the driver sets when it has let go of a block's bytes.
pub(super) struct Released(AtomicBool);

impl Released {
    /// Releases `buffer`, and waits until the driver says that the bytes under it can be freed.
    /// `clReleaseMemObject` does not say so: commands, sub-buffers and a consumer may have the
    /// object still (OpenCL 3.0, 5.5.1, `clSetMemObjectDestructorCallback`: "can be reused or
    /// freed").
    ///
    /// # Errors
    /// [`Error::Timeout`]: somebody has it, and keeps the bytes. [`Error::Gpu`].
    ///
    /// # Safety
    /// It is a buffer, and this call releases it, nobody else.
    pub(super) unsafe fn release(buffer: Buffer, timeout: Duration) -> Result<()> {
        // Leaked where the driver does not call back in time: it may do so later.
        let this: *mut Self = Box::into_raw(Box::new(Self(AtomicBool::new(false))));
        // SAFETY: the buffer is one, and `this` stays until it was called back with it.
        let set = unsafe { set_mem_object_destructor_callback(buffer.0, let_go, this.cast()) };
        check("clSetMemObjectDestructorCallback", set)?;
        // SAFETY: the caller's promise.
        check("clReleaseMemObject", unsafe { release_mem_object(buffer.0) })?;
        // SAFETY: it is freed below only.
        let shared = unsafe { &*this };
        if !poll_until(&Spin, timeout, |_| shared.0.load(Ordering::Acquire))? {
            return Err(Error::Timeout { timeout_us: u32::try_from(timeout.as_micros()).unwrap_or(u32::MAX) });
        }
        // SAFETY: made by `into_raw`, and the driver calls back once: this was it.
        drop(unsafe { Box::from_raw(this) });
        Ok(())
    }
}

extern "C" fn let_go(_: cl_mem, this: *mut c_void) {
    // SAFETY: `release` gave this pointer, and frees it after it has seen this store alone.
    unsafe { &*this.cast::<Released>() }.0.store(true, Ordering::Release);
}
