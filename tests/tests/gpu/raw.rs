//! The GPU by the driver's own functions: a kernel that copies between any two addresses, and how
//! much memory is free.

use super::libcuda::{
    cuCtxGetCurrent, cuCtxSetCurrent, cuCtxSynchronize, cuDevicePrimaryCtxRetain, cuLaunchKernel,
    cuMemGetInfo_v2, cuModuleGetFunction, cuModuleLoadDataEx, cuPointerGetAttribute,
};
use contigo_gemm8::cuda::PTX;
use std::ffi::{c_int, c_void};
use std::ptr;

/// The thread's context; null where none is current.
pub(crate) fn current() -> *mut c_void {
    let mut context = ptr::null_mut();
    // SAFETY: the pointer is a reference.
    assert_eq!(unsafe { cuCtxGetCurrent(&raw mut context) }, 0);
    context
}

/// GPU 0, by the driver's own functions.
#[derive(Debug)]
pub(crate) struct Raw {
    context: *mut c_void,
    copy: *mut c_void,
}

// SAFETY: handles of the driver's, which any thread may use; each function here makes the context
// current first.
unsafe impl Send for Raw {}
// SAFETY: as for `Send`.
unsafe impl Sync for Raw {}

impl Raw {
    /// Loads the copying kernel into the primary context of GPU 0.
    pub(crate) fn open() -> Self {
        let (mut context, mut module, mut copy) =
            (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        // SAFETY: the pointers are references; the device is there; PTX ends with its NUL, and
        // there are no options.
        unsafe {
            assert_eq!(cuDevicePrimaryCtxRetain(&raw mut context, 0), 0);
            assert_eq!(cuCtxSetCurrent(context), 0);
            assert_eq!(
                cuModuleLoadDataEx(
                    &raw mut module,
                    PTX.as_ptr().cast(),
                    0,
                    ptr::null_mut(),
                    ptr::null_mut()
                ),
                0
            );
            assert_eq!(cuModuleGetFunction(&raw mut copy, module, c"copy_bytes".as_ptr()), 0);
        }
        Self { context, copy }
    }

    /// Makes the context current on this thread.
    pub(crate) fn current(&self) {
        // SAFETY: retained for ever.
        assert_eq!(unsafe { cuCtxSetCurrent(self.context) }, 0);
    }

    /// Is there memory of the CPU's at this address of the GPU's, all of it?
    pub(crate) fn is_there(&self, addr: u64, len_bytes: usize) -> bool {
        const HOST_POINTER: c_int = 4;
        self.current();
        let mut host: *mut u8 = ptr::null_mut();
        let last = addr.wrapping_add(len_bytes.saturating_sub(1) as u64);
        // SAFETY: the pointer is a reference to what this attribute is.
        let mut ask =
            |at| unsafe { cuPointerGetAttribute((&raw mut host).cast(), HOST_POINTER, at) };
        ask(addr) == 0 && ask(last) == 0
    }

    /// The GPU copies `len_bytes` from one address to another, and has ended when this returns.
    ///
    /// # Safety
    /// So many bytes are at both, and no other code uses them.
    pub(crate) unsafe fn copy(&self, mut to: u64, mut from: u64, len_bytes: usize) {
        self.current();
        let mut len = len_bytes as u64;
        let mut parameters: [*mut c_void; 3] =
            [(&raw mut to).cast(), (&raw mut from).cast(), (&raw mut len).cast()];
        // SAFETY: `copy_bytes` has these three; the default stream; the bytes are there by the
        // caller's promise.
        let launched = unsafe {
            cuLaunchKernel(
                self.copy,
                8,
                1,
                1,
                256,
                1,
                1,
                0,
                ptr::null_mut(),
                parameters.as_mut_ptr(),
                ptr::null_mut(),
            )
        };
        // SAFETY: the context is current.
        assert_eq!((launched, unsafe { cuCtxSynchronize() }), (0, 0));
    }

    /// Waits until the GPU has nothing to do. Answers the driver's code.
    pub(crate) fn synchronize(&self) -> c_int {
        self.current();
        // SAFETY: the context is current.
        unsafe { cuCtxSynchronize() }
    }

    /// Free bytes of the GPU's memory.
    pub(crate) fn free_bytes(&self) -> usize {
        self.current();
        let (mut free, mut total) = (0, 0);
        // SAFETY: the pointers are references.
        assert_eq!(unsafe { cuMemGetInfo_v2(&raw mut free, &raw mut total) }, 0);
        free
    }
}
