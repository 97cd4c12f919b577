//! The functions and numbers of the driver API that the runtime uses.
//!
//! Source: NVIDIA's `cuda.h` and CUDA Driver API reference. The `_v2` of a name is the one that the
//! header's macros choose for 64-bit addresses. `tests/tests/cuda/header.rs` compares this whole
//! file with the headers of CUDA 11.8, 12.9 and 13.5. A result is a plain number here: a newer
//! driver may return one that this list does not have.

use core::ffi::{c_char, c_int, c_uint, c_void};

pub(super) type CuResult = c_int;
pub(super) type CuDevice = c_int;
pub(super) type CuDevicePtr = u64;
/// A context: opaque, like the other types here.
pub(super) type CuContext = *mut c_void;
pub(super) type CuStream = *mut c_void;
pub(super) type CuEvent = *mut c_void;
pub(super) type CuModule = *mut c_void;
pub(super) type CuFunction = *mut c_void;
/// An enumeration, like the next two; the numbers are in modules below.
pub(super) type CuDeviceAttribute = c_int;
pub(super) type CuPointerAttribute = c_int;
pub(super) type CuJitOption = c_int;

macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident: [$($symbol:literal),+] ($($arg:ty),*);)*) => {
        /// The functions that were found in the library.
        #[derive(Clone, Copy, Debug)]
        pub(super) struct Api {
            $($(#[$doc])* pub(super) $name: unsafe extern "C" fn($($arg),*) -> CuResult,)*
        }

        /// Fills in an [`Api`]: `$look` finds each function by its names, the newest first.
        macro_rules! api {
            ($look:expr) => {
                $crate::cuda::abi::Api { $($name: $look(&[$($symbol),+])?,)* }
            };
        }
        pub(super) use api;
    };
}

functions! {
    init: [c"cuInit"](c_uint);
    driver_version: [c"cuDriverGetVersion"](*mut c_int);
    device_count: [c"cuDeviceGetCount"](*mut c_int);
    device: [c"cuDeviceGet"](*mut CuDevice, c_int);
    device_name: [c"cuDeviceGetName"](*mut c_char, c_int, CuDevice);
    device_attribute: [c"cuDeviceGetAttribute"](*mut c_int, CuDeviceAttribute, CuDevice);
    device_total: [c"cuDeviceTotalMem_v2"](*mut usize, CuDevice);
    /// Older drivers (JetPack 4) have only the first form.
    primary_release: [c"cuDevicePrimaryCtxRelease_v2", c"cuDevicePrimaryCtxRelease"](CuDevice);
    primary_retain: [c"cuDevicePrimaryCtxRetain"](*mut CuContext, CuDevice);
    context_current: [c"cuCtxGetCurrent"](*mut CuContext);
    context_device: [c"cuCtxGetDevice"](*mut CuDevice);
    context_push: [c"cuCtxPushCurrent_v2"](CuContext);
    context_pop: [c"cuCtxPopCurrent_v2"](*mut CuContext);
    host_alloc: [c"cuMemHostAlloc"](*mut *mut c_void, usize, c_uint);
    host_free: [c"cuMemFreeHost"](*mut c_void);
    host_register: [c"cuMemHostRegister_v2"](*mut c_void, usize, c_uint);
    host_unregister: [c"cuMemHostUnregister"](*mut c_void);
    host_device_pointer: [c"cuMemHostGetDevicePointer_v2"](*mut CuDevicePtr, *mut c_void, c_uint);
    stream_create: [c"cuStreamCreate"](*mut CuStream, c_uint);
    stream_destroy: [c"cuStreamDestroy_v2"](CuStream);
    stream_query: [c"cuStreamQuery"](CuStream);
    event_create: [c"cuEventCreate"](*mut CuEvent, c_uint);
    event_destroy: [c"cuEventDestroy_v2"](CuEvent);
    event_record: [c"cuEventRecord"](CuEvent, CuStream);
    event_query: [c"cuEventQuery"](CuEvent);
    module_load: [c"cuModuleLoadDataEx"](
        *mut CuModule, *const c_void, c_uint, *mut CuJitOption, *mut *mut c_void
    );
    module_unload: [c"cuModuleUnload"](CuModule);
    module_function: [c"cuModuleGetFunction"](*mut CuFunction, CuModule, *const c_char);
    /// Function, grid (3), block (3), shared bytes, stream, parameters, extra.
    launch: [c"cuLaunchKernel"](
        CuFunction, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, CuStream,
        *mut *mut c_void, *mut *mut c_void
    );
    device_alloc: [c"cuMemAlloc_v2"](*mut CuDevicePtr, usize);
    device_free: [c"cuMemFree_v2"](CuDevicePtr);
    /// To, from, bytes, stream. Both are in the unified address space, as pinned memory is.
    copy: [c"cuMemcpyAsync"](CuDevicePtr, CuDevicePtr, usize, CuStream);
    pointer_attributes: [c"cuPointerGetAttributes"](
        c_uint, *mut CuPointerAttribute, *mut *mut c_void, CuDevicePtr
    );
}

/// `CUdevice_attribute`.
pub(super) mod attribute {
    pub(in crate::cuda) const INTEGRATED: i32 = 18;
    pub(in crate::cuda) const CAN_MAP_HOST_MEMORY: i32 = 19;
    pub(in crate::cuda) const COMPUTE_CAPABILITY_MAJOR: i32 = 75;
    pub(in crate::cuda) const COMPUTE_CAPABILITY_MINOR: i32 = 76;
    pub(in crate::cuda) const HOST_NATIVE_ATOMIC_SUPPORTED: i32 = 86;
    pub(in crate::cuda) const CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM: i32 = 91;
}

/// `CUpointer_attribute`.
pub(super) mod pointer {
    /// A `CUmemorytype`.
    pub(in crate::cuda) const MEMORY_TYPE: i32 = 2;
    pub(in crate::cuda) const DEVICE_POINTER: i32 = 3;
    pub(in crate::cuda) const HOST_POINTER: i32 = 4;
    /// `CU_MEMORYTYPE_HOST`.
    pub(in crate::cuda) const HOST: u32 = 1;
}

/// `CU_MEMHOSTALLOC_*`; the first two are `CU_MEMHOSTREGISTER_*` too.
pub(super) const PORTABLE: c_uint = 1;
pub(super) const DEVICE_MAP: c_uint = 2;
pub(super) const WRITE_COMBINED: c_uint = 4;

/// `CU_STREAM_NON_BLOCKING`: the stream does not wait for work on the default stream.
pub(super) const NON_BLOCKING: c_uint = 1;
/// `CU_EVENT_DISABLE_TIMING`: for an event that is polled often.
pub(super) const DISABLE_TIMING: c_uint = 2;
/// `CUjit_option`.
pub(super) const JIT_ERROR_LOG_BUFFER: c_int = 5;
pub(super) const JIT_ERROR_LOG_BUFFER_SIZE_BYTES: c_int = 6;

/// `CUDA_ERROR_NOT_READY`: not finished; not an error.
pub(super) const NOT_READY: CuResult = 600;
/// `CUDA_ERROR_INVALID_CONTEXT`.
pub(super) const INVALID_CONTEXT: CuResult = 201;

/// Returns the name of a result in `cuda.h`; `"an error that cuda.h 13 does not have"` for an
/// unknown number.
///
/// ```
/// assert_eq!(contigo::cuda::code_name(700), "CUDA_ERROR_ILLEGAL_ADDRESS");
/// ```
#[must_use]
#[allow(clippy::too_many_lines, reason = "a table")]
pub const fn code_name(code: i32) -> &'static str {
    match code {
        0 => "CUDA_SUCCESS",
        1 => "CUDA_ERROR_INVALID_VALUE",
        2 => "CUDA_ERROR_OUT_OF_MEMORY",
        3 => "CUDA_ERROR_NOT_INITIALIZED",
        4 => "CUDA_ERROR_DEINITIALIZED",
        5 => "CUDA_ERROR_PROFILER_DISABLED",
        6 => "CUDA_ERROR_PROFILER_NOT_INITIALIZED",
        7 => "CUDA_ERROR_PROFILER_ALREADY_STARTED",
        8 => "CUDA_ERROR_PROFILER_ALREADY_STOPPED",
        34 => "CUDA_ERROR_STUB_LIBRARY",
        36 => "CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER",
        46 => "CUDA_ERROR_DEVICE_UNAVAILABLE",
        47 => "CUDA_ERROR_MULTICAST_RESOURCE_FULL",
        100 => "CUDA_ERROR_NO_DEVICE",
        101 => "CUDA_ERROR_INVALID_DEVICE",
        102 => "CUDA_ERROR_DEVICE_NOT_LICENSED",
        200 => "CUDA_ERROR_INVALID_IMAGE",
        201 => "CUDA_ERROR_INVALID_CONTEXT",
        202 => "CUDA_ERROR_CONTEXT_ALREADY_CURRENT",
        205 => "CUDA_ERROR_MAP_FAILED",
        206 => "CUDA_ERROR_UNMAP_FAILED",
        207 => "CUDA_ERROR_ARRAY_IS_MAPPED",
        208 => "CUDA_ERROR_ALREADY_MAPPED",
        209 => "CUDA_ERROR_NO_BINARY_FOR_GPU",
        210 => "CUDA_ERROR_ALREADY_ACQUIRED",
        211 => "CUDA_ERROR_NOT_MAPPED",
        212 => "CUDA_ERROR_NOT_MAPPED_AS_ARRAY",
        213 => "CUDA_ERROR_NOT_MAPPED_AS_POINTER",
        214 => "CUDA_ERROR_ECC_UNCORRECTABLE",
        215 => "CUDA_ERROR_UNSUPPORTED_LIMIT",
        216 => "CUDA_ERROR_CONTEXT_ALREADY_IN_USE",
        217 => "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED",
        218 => "CUDA_ERROR_INVALID_PTX",
        219 => "CUDA_ERROR_INVALID_GRAPHICS_CONTEXT",
        220 => "CUDA_ERROR_NVLINK_UNCORRECTABLE",
        221 => "CUDA_ERROR_JIT_COMPILER_NOT_FOUND",
        222 => "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
        223 => "CUDA_ERROR_JIT_COMPILATION_DISABLED",
        224 => "CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY",
        225 => "CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC",
        226 => "CUDA_ERROR_CONTAINED",
        227 => "CUDA_ERROR_INSUFFICIENT_LOADER_VERSION",
        300 => "CUDA_ERROR_INVALID_SOURCE",
        301 => "CUDA_ERROR_FILE_NOT_FOUND",
        302 => "CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND",
        303 => "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED",
        304 => "CUDA_ERROR_OPERATING_SYSTEM",
        400 => "CUDA_ERROR_INVALID_HANDLE",
        401 => "CUDA_ERROR_ILLEGAL_STATE",
        402 => "CUDA_ERROR_LOSSY_QUERY",
        500 => "CUDA_ERROR_NOT_FOUND",
        600 => "CUDA_ERROR_NOT_READY",
        700 => "CUDA_ERROR_ILLEGAL_ADDRESS",
        701 => "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
        702 => "CUDA_ERROR_LAUNCH_TIMEOUT",
        703 => "CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING",
        704 => "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED",
        705 => "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED",
        708 => "CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE",
        709 => "CUDA_ERROR_CONTEXT_IS_DESTROYED",
        710 => "CUDA_ERROR_ASSERT",
        711 => "CUDA_ERROR_TOO_MANY_PEERS",
        712 => "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
        713 => "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
        714 => "CUDA_ERROR_HARDWARE_STACK_ERROR",
        715 => "CUDA_ERROR_ILLEGAL_INSTRUCTION",
        716 => "CUDA_ERROR_MISALIGNED_ADDRESS",
        717 => "CUDA_ERROR_INVALID_ADDRESS_SPACE",
        718 => "CUDA_ERROR_INVALID_PC",
        719 => "CUDA_ERROR_LAUNCH_FAILED",
        720 => "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE",
        721 => "CUDA_ERROR_TENSOR_MEMORY_LEAK",
        800 => "CUDA_ERROR_NOT_PERMITTED",
        801 => "CUDA_ERROR_NOT_SUPPORTED",
        802 => "CUDA_ERROR_SYSTEM_NOT_READY",
        803 => "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
        804 => "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
        805 => "CUDA_ERROR_MPS_CONNECTION_FAILED",
        806 => "CUDA_ERROR_MPS_RPC_FAILURE",
        807 => "CUDA_ERROR_MPS_SERVER_NOT_READY",
        808 => "CUDA_ERROR_MPS_MAX_CLIENTS_REACHED",
        809 => "CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED",
        810 => "CUDA_ERROR_MPS_CLIENT_TERMINATED",
        811 => "CUDA_ERROR_CDP_NOT_SUPPORTED",
        812 => "CUDA_ERROR_CDP_VERSION_MISMATCH",
        900 => "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
        901 => "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
        902 => "CUDA_ERROR_STREAM_CAPTURE_MERGE",
        903 => "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",
        904 => "CUDA_ERROR_STREAM_CAPTURE_UNJOINED",
        905 => "CUDA_ERROR_STREAM_CAPTURE_ISOLATION",
        906 => "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
        907 => "CUDA_ERROR_CAPTURED_EVENT",
        908 => "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD",
        909 => "CUDA_ERROR_TIMEOUT",
        910 => "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE",
        911 => "CUDA_ERROR_EXTERNAL_DEVICE",
        912 => "CUDA_ERROR_INVALID_CLUSTER_SIZE",
        913 => "CUDA_ERROR_FUNCTION_NOT_LOADED",
        914 => "CUDA_ERROR_INVALID_RESOURCE_TYPE",
        915 => "CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION",
        916 => "CUDA_ERROR_KEY_ROTATION",
        917 => "CUDA_ERROR_STREAM_DETACHED",
        918 => "CUDA_ERROR_GRAPH_RECAPTURE_FAILURE",
        919 => "CUDA_ERROR_FABRIC_NOT_READY",
        999 => "CUDA_ERROR_UNKNOWN",
        _ => "an error that cuda.h 13 does not have",
    }
}
