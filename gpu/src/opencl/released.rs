#![allow(unsafe_code, reason = "the driver calls back, with a pointer that it was given")]
//! When the driver has let go of a block's bytes.

use super::{error::check, object::Buffer};
use cl3::{
    memory::{release_mem_object, set_mem_object_destructor_callback},
    types::cl_mem,
};
use contigo::{Result, hw::poll_until, linux::Spin};
use core::{
    cell::UnsafeCell,
    ffi::c_void,
    sync::atomic::{AtomicU8, Ordering},
    time::Duration,
};

/// The driver has not let go of the bytes.
const KEPT: u8 = 0;
/// It has.
const LET_GO: u8 = 1;
/// It has not, and no call waits any more: the callback frees them.
const LEFT: u8 = 2;

/// A word that the driver changes when it has let go of a block's bytes.
struct Released {
    state: AtomicU8,
    /// INVARIANT: `Later::free` fills it before the state is `LEFT`; then it is the callback's.
    bytes: UnsafeCell<Option<Box<dyn Send>>>,
}

/// Bytes that the driver has not let go of in time. Dropped, they stay for ever.
pub(super) struct Later(*mut Released);

/// Releases `buffer`, and waits until the driver says that the bytes under it can be freed.
/// `clReleaseMemObject` does not say so: commands, sub-buffers and a consumer may have the object
/// still (OpenCL 3.0, 5.5.1, `clSetMemObjectDestructorCallback`: "can be reused or freed"). The
/// answer is something where the time was over.
///
/// # Errors
/// [`Error::Gpu`](contigo::Error::Gpu): the driver will not report it.
///
/// # Safety
/// It is a buffer, and only this call releases it.
pub(super) unsafe fn release(buffer: Buffer, timeout: Duration) -> Result<Option<Later>> {
    let this = Released { state: AtomicU8::new(KEPT), bytes: UnsafeCell::new(None) };
    let this: *mut Released = Box::into_raw(Box::new(this));
    // SAFETY: the buffer is one, and `this` stays until it was called back with it.
    let set = unsafe { set_mem_object_destructor_callback(buffer.0, let_go, this.cast()) };
    check("clSetMemObjectDestructorCallback", set)?;
    // SAFETY: the caller's promise.
    check("clReleaseMemObject", unsafe { release_mem_object(buffer.0) })?;
    // SAFETY: it is freed below only, or by the callback after `Later::free`.
    let state = unsafe { &(*this).state };
    if !poll_until(&Spin, timeout, |_| state.load(Ordering::Acquire) == LET_GO)? {
        return Ok(Some(Later(this)));
    }
    // SAFETY: made by `into_raw`, and the driver calls back once: this was it.
    drop(unsafe { Box::from_raw(this) });
    Ok(None)
}

impl Later {
    /// Drops `bytes` once the driver has let go of them: in its callback, on its thread.
    pub(super) fn free(self, bytes: Box<dyn Send>) {
        // SAFETY: `release` made it, and left it to this value. The callback does not look at the
        // bytes before it sees `LEFT`.
        let state = unsafe {
            *(*self.0).bytes.get() = Some(bytes);
            &(*self.0).state
        };
        // Release: the callback finds the bytes. Acquire: the driver has done with them.
        if state.compare_exchange(KEPT, LEFT, Ordering::AcqRel, Ordering::Acquire).is_err() {
            // SAFETY: made by `into_raw`; it was called back just now, and that was the last time.
            drop(unsafe { Box::from_raw(self.0) });
        }
    }
}

extern "C" fn let_go(_: cl_mem, this: *mut c_void) {
    let this: *mut Released = this.cast();
    // SAFETY: `release` gave this pointer. Who waits frees it after this store alone, and who does
    // not wait leaves it to this call.
    if unsafe { &(*this).state }.swap(LET_GO, Ordering::AcqRel) == LEFT {
        // SAFETY: made by `into_raw`, and only this call still has it.
        drop(unsafe { Box::from_raw(this) });
    }
}
