#![allow(unsafe_code, reason = "the driver calls back, with a pointer that it was given")]
//! Memory objects: a block's, its parts, and when the driver has let go of a block's bytes.

use super::error::check;
use cl3::memory::{
    CL_BUFFER_CREATE_TYPE_REGION, cl_buffer_region, create_sub_buffer, release_mem_object,
    set_mem_object_destructor_callback,
};
use cl3::types::cl_mem;
use contigo::Result;
use contigo::hw::poll_until;
use contigo::linux::Spin;
use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::sync::atomic::{AtomicU8, Ordering};
use core::time::Duration;

/// The `cl_mem` of a block. A plain number: it owns nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Buffer(pub(super) cl_mem);

// SAFETY: OpenCL's functions take a memory object on any thread (OpenCL 3.0, A.2).
unsafe impl Send for Buffer {}
// SAFETY: as for `Send`.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Releases it, and waits until the driver says that the bytes under it can be freed.
    /// `clReleaseMemObject` does not say so: commands, sub-buffers and a consumer may have the
    /// object still (OpenCL 3.0, 5.5.1, `clSetMemObjectDestructorCallback`: "can be reused or
    /// freed"). The answer is something where the time was over.
    ///
    /// # Safety
    /// It is a buffer, and only this call releases it.
    pub(super) unsafe fn release(self, timeout: Duration) -> Result<Option<Later>> {
        let this = Released { state: AtomicU8::new(KEPT), bytes: UnsafeCell::new(None) };
        let this: *mut Released = Box::into_raw(Box::new(this));
        // SAFETY: the buffer is one, and `this` stays until it was called back with it.
        let set = unsafe { set_mem_object_destructor_callback(self.0, let_go, this.cast()) };
        check("clSetMemObjectDestructorCallback", set)?;
        // SAFETY: the caller's promise.
        check("clReleaseMemObject", unsafe { release_mem_object(self.0) })?;
        // SAFETY: it is freed below only, or by the callback after `Later::free`.
        let state = unsafe { &(*this).state };
        if !poll_until(&Spin, timeout, |_| state.load(Ordering::Acquire) == LET_GO)? {
            return Ok(Some(Later(this)));
        }
        // SAFETY: made by `into_raw`, and the driver calls back once: this was it.
        drop(unsafe { Box::from_raw(this) });
        Ok(None)
    }
}

/// A part of a block as an object of its own, released when it is dropped. Commands that were given
/// with it keep it (OpenCL 3.0, 5.5.1, `clReleaseMemObject`).
#[derive(Debug)]
pub(super) struct SubBuffer(cl_mem);

impl SubBuffer {
    /// `len_bytes` from `origin` of `block`.
    ///
    /// # Safety
    /// `block` is a buffer, and not released before this call has returned.
    pub(super) unsafe fn new(block: Buffer, origin: usize, len_bytes: usize) -> Result<Self> {
        let region = cl_buffer_region { origin, size: len_bytes };
        let info = (&raw const region).cast::<c_void>();
        // SAFETY: the caller's promise; the pointer is a reference to what this type of creation
        // takes. With flags of 0 it is as the block (OpenCL 3.0, 5.2.1).
        check("clCreateSubBuffer", unsafe {
            create_sub_buffer(block.0, 0, CL_BUFFER_CREATE_TYPE_REGION, info)
        })
        .map(Self)
    }

    pub(super) const fn raw(&self) -> cl_mem {
        self.0
    }
}

impl Drop for SubBuffer {
    fn drop(&mut self) {
        // SAFETY: this value owns one reference, and gives it back once.
        let _ = unsafe { release_mem_object(self.0) };
    }
}

// SAFETY: as for `Buffer`.
unsafe impl Send for SubBuffer {}

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
