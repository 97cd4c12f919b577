//! The driver's functions that tests on a GPU and their benchmark call beside the runtime, by their
//! names in C.
//!
//! `tests/tests/cuda/header.rs` compares each declaration with `cuda.h`, and each type with its
//! declaration.
#![allow(non_snake_case, clippy::too_many_arguments, reason = "they are C's")]
#![allow(dead_code, reason = "the tests call some of them, the benchmark others")]

use libloading::Library;
use std::{
    ffi::{c_char, c_int, c_uint, c_void},
    sync::OnceLock,
};

fn library() -> &'static Library {
    static LIBRARY: OnceLock<Library> = OnceLock::new();
    // SAFETY: NVIDIA's driver, which the runtime has loaded before, or the one that stands in for
    // it; it is never unloaded.
    LIBRARY.get_or_init(|| unsafe { Library::new("libcuda.so.1") }.unwrap())
}

macro_rules! functions {
    ($($(#[$declaration:meta])* fn $name:ident($($argument:ident: $type:ty),*);)*) => {$(
        $(#[$declaration])*
        ///
        /// # Safety
        /// As the driver's reference asks.
        pub(crate) unsafe fn $name($($argument: $type),*) -> c_int {
            type Function = unsafe extern "C" fn($($type),*) -> c_int;
            static FUNCTION: OnceLock<Function> = OnceLock::new();
            let function = FUNCTION.get_or_init(|| {
                // SAFETY: the type is that of the declaration.
                *unsafe { library().get::<Function>(stringify!($name)) }.unwrap()
            });
            // SAFETY: the caller's promise.
            unsafe { function($($argument),*) }
        }
    )*};
}

functions! {
    /// `CUresult cuDeviceGetAttribute(int *pi, CUdevice_attribute attrib, CUdevice dev)`
    fn cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: c_int);
    /// `CUresult cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)`
    fn cuDevicePrimaryCtxRetain(context: *mut *mut c_void, device: c_int);
    /// `CUresult cuCtxSetCurrent(CUcontext ctx)`
    fn cuCtxSetCurrent(context: *mut c_void);
    /// `CUresult cuCtxGetCurrent(CUcontext *pctx)`
    fn cuCtxGetCurrent(context: *mut *mut c_void);
    /// `CUresult cuCtxPushCurrent_v2(CUcontext ctx)`
    fn cuCtxPushCurrent_v2(context: *mut c_void);
    /// `CUresult cuCtxPopCurrent_v2(CUcontext *pctx)`
    fn cuCtxPopCurrent_v2(context: *mut *mut c_void);
    /// `CUresult cuCtxSynchronize(void)`
    fn cuCtxSynchronize();
    /// `CUresult cuMemGetInfo_v2(size_t *free, size_t *total)`
    fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
    /// `CUresult cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags)`
    fn cuMemHostAlloc(host: *mut *mut c_void, len_bytes: usize, flags: c_uint);
    /// `CUresult cuMemFreeHost(void *p)`
    fn cuMemFreeHost(host: *mut c_void);
    /// `CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)`
    fn cuMemAlloc_v2(device: *mut u64, len_bytes: usize);
    /// `CUresult cuMemFree_v2(CUdeviceptr dptr)`
    fn cuMemFree_v2(device: u64);
    /// `CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount,
    /// CUstream hStream)`
    fn cuMemcpyAsync(to: u64, from: u64, len_bytes: usize, stream: *mut c_void);
    /// `CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr)`
    fn cuPointerGetAttribute(value: *mut c_void, attribute: c_int, at: u64);
    /// `CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int numOptions,
    /// CUjit_option *options, void **optionValues)`
    fn cuModuleLoadDataEx(
        module: *mut *mut c_void, image: *const c_void, count: c_uint, options: *mut c_int,
        values: *mut *mut c_void
    );
    /// `CUresult cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name)`
    fn cuModuleGetFunction(function: *mut *mut c_void, module: *mut c_void, name: *const c_char);
    /// `CUresult cuModuleUnload(CUmodule hmod)`
    fn cuModuleUnload(module: *mut c_void);
    /// `CUresult cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
    /// unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
    /// unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream, void **kernelParams,
    /// void **extra)`
    fn cuLaunchKernel(
        function: *mut c_void, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint,
        block_y: c_uint, block_z: c_uint, shared_bytes: c_uint, stream: *mut c_void,
        parameters: *mut *mut c_void, extra: *mut *mut c_void
    );
    /// `CUresult cuStreamCreate(CUstream *phStream, unsigned int Flags)`
    fn cuStreamCreate(stream: *mut *mut c_void, flags: c_uint);
    /// `CUresult cuStreamQuery(CUstream hStream)`
    fn cuStreamQuery(stream: *mut c_void);
    /// `CUresult cuStreamSynchronize(CUstream hStream)`
    fn cuStreamSynchronize(stream: *mut c_void);
    /// `CUresult cuStreamDestroy_v2(CUstream hStream)`
    fn cuStreamDestroy_v2(stream: *mut c_void);
    /// `CUresult cuEventCreate(CUevent *phEvent, unsigned int Flags)`
    fn cuEventCreate(event: *mut *mut c_void, flags: c_uint);
    /// `CUresult cuEventRecord(CUevent hEvent, CUstream hStream)`
    fn cuEventRecord(event: *mut c_void, stream: *mut c_void);
    /// `CUresult cuEventQuery(CUevent hEvent)`
    fn cuEventQuery(event: *mut c_void);
    /// `CUresult cuEventDestroy_v2(CUevent hEvent)`
    fn cuEventDestroy_v2(event: *mut c_void);
}
