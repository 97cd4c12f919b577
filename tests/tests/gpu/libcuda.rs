//! The driver's functions that tests on a GPU and their benchmark call beside the runtime, by their
//! names in `cuda.h`, where each is documented.
#![allow(non_snake_case, clippy::too_many_arguments, reason = "they are C's")]
#![allow(dead_code, reason = "the tests call some of them, the benchmark others")]

use libloading::Library;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

fn library() -> &'static Library {
    static LIBRARY: OnceLock<Library> = OnceLock::new();
    // SAFETY: NVIDIA's driver, which the runtime has loaded before, or the one that stands in for
    // it; it is never unloaded.
    LIBRARY.get_or_init(|| unsafe { Library::new("libcuda.so.1") }.unwrap())
}

macro_rules! functions {
    ($(fn $name:ident($($argument:ident: $type:ty),*);)*) => {$(
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
    fn cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: c_int);
    fn cuDevicePrimaryCtxRetain(context: *mut *mut c_void, device: c_int);
    fn cuCtxSetCurrent(context: *mut c_void);
    fn cuCtxGetCurrent(context: *mut *mut c_void);
    fn cuCtxPushCurrent_v2(context: *mut c_void);
    fn cuCtxPopCurrent_v2(context: *mut *mut c_void);
    fn cuCtxSynchronize();
    fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
    fn cuMemAlloc_v2(device: *mut u64, len_bytes: usize);
    fn cuMemcpyAsync(to: u64, from: u64, len_bytes: usize, stream: *mut c_void);
    fn cuPointerGetAttribute(value: *mut c_void, attribute: c_int, at: u64);
    fn cuModuleLoadDataEx(
        module: *mut *mut c_void, image: *const c_void, count: c_uint, options: *mut c_int,
        values: *mut *mut c_void
    );
    fn cuModuleGetFunction(function: *mut *mut c_void, module: *mut c_void, name: *const c_char);
    fn cuLaunchKernel(
        function: *mut c_void, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint,
        block_y: c_uint, block_z: c_uint, shared_bytes: c_uint, stream: *mut c_void,
        parameters: *mut *mut c_void, extra: *mut *mut c_void
    );
    fn cuStreamCreate(stream: *mut *mut c_void, flags: c_uint);
    fn cuStreamSynchronize(stream: *mut c_void);
    fn cuEventCreate(event: *mut *mut c_void, flags: c_uint);
    fn cuEventRecord(event: *mut c_void, stream: *mut c_void);
    fn cuEventQuery(event: *mut c_void);
}
