//! The driver's functions that the tests call beside the runtime: a kernel that reads and writes wherever it is told, and what is free.
//! `tests/tests/cuda/header.rs` compares their types with `cuda.h`.

use contigo_boards::gemm8_cuda::PTX;
use libloading::Library;
use std::{
    ffi::{c_char, c_int, c_uint, c_void},
    ptr,
    sync::OnceLock,
};

/// The driver's function of this name.
///
/// # Safety
/// `F` is its type in `cuda.h`.
pub(crate) unsafe fn function<F: Copy>(name: &str) -> F {
    static LIBRARY: OnceLock<Library> = OnceLock::new();
    // SAFETY: NVIDIA's driver, which the runtime has loaded already.
    let library = LIBRARY.get_or_init(|| unsafe { Library::new("libcuda.so.1") }.unwrap());
    // SAFETY: the caller's promise, and the library is never unloaded.
    unsafe { *library.get::<F>(name).unwrap() }
}

/// `CUresult cuCtxGetCurrent(CUcontext *pctx)`
type GetCurrent = unsafe extern "C" fn(*mut *mut c_void) -> c_int;

/// The thread's context; null where none is current.
pub(crate) fn current() -> *mut c_void {
    let mut context = ptr::null_mut();
    // SAFETY: the type is `cuda.h`'s, and the pointer is a reference.
    assert_eq!(unsafe { function::<GetCurrent>("cuCtxGetCurrent")(&raw mut context) }, 0);
    context
}

/// `CUresult cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)`
type Retain = unsafe extern "C" fn(*mut *mut c_void, c_int) -> c_int;
/// `CUresult cuCtxSetCurrent(CUcontext ctx)`
type SetCurrent = unsafe extern "C" fn(*mut c_void) -> c_int;
/// `CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr)`
type Attribute = unsafe extern "C" fn(*mut c_void, c_int, u64) -> c_int;
/// `CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int numOptions, CUjit_option *options, void **optionValues)`
pub(crate) type Load = unsafe extern "C" fn(*mut *mut c_void, *const c_void, c_uint, *mut c_int, *mut *mut c_void) -> c_int;
/// `CUresult cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name)`
pub(crate) type Function = unsafe extern "C" fn(*mut *mut c_void, *mut c_void, *const c_char) -> c_int;
/// `CUresult cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ, unsigned int blockDimX,
/// unsigned int blockDimY, unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream, void **kernelParams, void **extra)`
pub(crate) type Launch = unsafe extern "C" fn(
    *mut c_void,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    *mut c_void,
    *mut *mut c_void,
    *mut *mut c_void,
) -> c_int;
/// `CUresult cuCtxSynchronize(void)`
type Synchronize = unsafe extern "C" fn() -> c_int;
/// `CUresult cuMemGetInfo_v2(size_t *free, size_t *total)`
type MemInfo = unsafe extern "C" fn(*mut usize, *mut usize) -> c_int;

/// GPU 0, by the driver's own functions.
#[derive(Debug)]
pub(crate) struct Raw {
    context: *mut c_void,
    copy: *mut c_void,
    set_current: SetCurrent,
    attribute: Attribute,
    launch: Launch,
    synchronize: Synchronize,
    mem_info: MemInfo,
}

// SAFETY: handles of the driver's, which any thread may use; each function here makes the context current first.
unsafe impl Send for Raw {}
// SAFETY: as for `Send`.
unsafe impl Sync for Raw {}

impl Raw {
    /// Loads the copying kernel into the primary context of GPU 0.
    pub(crate) fn open() -> Self {
        let (mut context, mut module, mut copy) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        // SAFETY: the types are `cuda.h`'s, here and below; the pointers are references; the device is there.
        assert_eq!(unsafe { function::<Retain>("cuDevicePrimaryCtxRetain")(&raw mut context, 0) }, 0);
        // SAFETY: as above.
        let set_current = unsafe { function::<SetCurrent>("cuCtxSetCurrent") };
        // SAFETY: retained above.
        assert_eq!(unsafe { set_current(context) }, 0);
        // SAFETY: as above.
        let load = unsafe { function::<Load>("cuModuleLoadDataEx") };
        // SAFETY: PTX, with its NUL; no options.
        assert_eq!(unsafe { load(&raw mut module, PTX.as_ptr().cast(), 0, ptr::null_mut(), ptr::null_mut()) }, 0);
        // SAFETY: the module was loaded above.
        assert_eq!(unsafe { function::<Function>("cuModuleGetFunction")(&raw mut copy, module, c"copy_bytes".as_ptr()) }, 0);
        // SAFETY: as above.
        unsafe {
            Self {
                context,
                copy,
                set_current,
                attribute: function("cuPointerGetAttribute"),
                launch: function("cuLaunchKernel"),
                synchronize: function("cuCtxSynchronize"),
                mem_info: function("cuMemGetInfo_v2"),
            }
        }
    }

    /// Makes the context current on this thread.
    pub(crate) fn current(&self) {
        // SAFETY: retained for ever.
        assert_eq!(unsafe { (self.set_current)(self.context) }, 0);
    }

    /// Is there memory of the CPU's at this address of the GPU's, all of it?
    pub(crate) fn is_there(&self, addr: u64, len_bytes: usize) -> bool {
        const HOST_POINTER: c_int = 4;
        self.current();
        let mut host: *mut u8 = ptr::null_mut();
        let last = addr.wrapping_add(len_bytes.saturating_sub(1) as u64);
        // SAFETY: the pointer is a reference to what this attribute is.
        [addr, last].into_iter().all(|addr| unsafe { (self.attribute)((&raw mut host).cast(), HOST_POINTER, addr) } == 0)
    }

    /// The GPU copies `len_bytes` from one address to another, and has ended when this returns.
    ///
    /// # Safety
    /// So many bytes are at both, and nobody else uses them.
    pub(crate) unsafe fn copy(&self, mut to: u64, mut from: u64, len_bytes: usize) {
        self.current();
        let mut len = len_bytes as u64;
        let mut parameters: [*mut c_void; 3] = [(&raw mut to).cast(), (&raw mut from).cast(), (&raw mut len).cast()];
        // SAFETY: `copy_bytes` has these three; the default stream; the bytes are there by the caller's promise.
        let launched =
            unsafe { (self.launch)(self.copy, 8, 1, 1, 256, 1, 1, 0, ptr::null_mut(), parameters.as_mut_ptr(), ptr::null_mut()) };
        // SAFETY: the context is current.
        assert_eq!((launched, unsafe { (self.synchronize)() }), (0, 0));
    }

    /// Waits until the GPU has nothing to do. Answers the driver's code.
    pub(crate) fn synchronize(&self) -> c_int {
        self.current();
        // SAFETY: the context is current.
        unsafe { (self.synchronize)() }
    }

    /// Free bytes of the GPU's memory.
    pub(crate) fn free_bytes(&self) -> usize {
        self.current();
        let (mut free, mut total) = (0, 0);
        // SAFETY: the pointers are references.
        assert_eq!(unsafe { (self.mem_info)(&raw mut free, &raw mut total) }, 0);
        free
    }
}
