#![allow(unsafe_code, reason = "the driver's functions are called")]
//! Memory objects.

use super::error::check;
use cl3::{
    memory::{
        CL_BUFFER_CREATE_TYPE_REGION, cl_buffer_region, create_sub_buffer, release_mem_object,
    },
    types::cl_mem,
};
use contigo::Result;
use core::ffi::c_void;

/// The `cl_mem` of a block. A plain number: it owns nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Buffer(pub(super) cl_mem);

// SAFETY: OpenCL's functions take a memory object on any thread (OpenCL 3.0, A.2).
unsafe impl Send for Buffer {}
// SAFETY: as for `Send`.
unsafe impl Sync for Buffer {}

/// A part of a block as an object of its own, released when it is dropped. Commands that were given
/// with it keep it (OpenCL 3.0, 5.5.1, `clReleaseMemObject`).
#[derive(Debug)]
pub(super) struct SubBuffer(cl_mem);

impl SubBuffer {
    /// `len_bytes` from `origin` of `block`.
    ///
    /// # Errors
    /// [`Error::Gpu`](contigo::Error::Gpu) with `clCreateSubBuffer`: -13, the origin is not
    /// aligned; -30, it is not inside; -61, no bytes.
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
