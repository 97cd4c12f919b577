//! The fake's counters.

macro_rules! functions {
    ($($name:ident)*) => {
        /// The driver's functions that are exported, by their names in `cuda.h`.
        #[allow(non_camel_case_types, missing_docs, reason = "the names are the C functions'")]
        #[repr(u32)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Function { $($name,)* }

        impl Function {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The name that the library exports.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)* }
            }
        }
    };
}

functions! {
    cuInit cuDriverGetVersion
    cuDeviceGetCount cuDeviceGet cuDeviceGetName cuDeviceGetAttribute cuDeviceTotalMem_v2
    cuDevicePrimaryCtxRetain cuDevicePrimaryCtxRelease_v2
    cuCtxCreate_v2 cuCtxDestroy_v2 cuCtxGetCurrent cuCtxSetCurrent cuCtxPushCurrent_v2
    cuCtxPopCurrent_v2 cuCtxGetDevice cuCtxSynchronize
    cuMemHostAlloc cuMemFreeHost cuMemHostRegister_v2 cuMemHostUnregister
    cuMemHostGetDevicePointer_v2 cuMemHostGetFlags
    cuPointerGetAttribute cuPointerGetAttributes
    cuMemAlloc_v2 cuMemFree_v2 cuMemGetInfo_v2 cuMemcpyAsync
    cuStreamCreate cuStreamDestroy_v2 cuStreamQuery cuStreamSynchronize
    cuEventCreate cuEventRecord cuEventQuery cuEventDestroy_v2
    cuModuleLoadDataEx cuModuleUnload cuModuleGetFunction cuLaunchKernel
}

const FUNCTIONS: usize = Function::ALL.len();

/// The live objects, and the calls since the configuration was set.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Counters {
    /// Live allocations of `cuMemHostAlloc`.
    pub host_allocs: u64,
    /// Live registrations of `cuMemHostRegister`.
    pub registrations: u64,
    /// Live allocations of `cuMemAlloc`.
    pub device_allocs: u64,
    /// Live streams, without the contexts' own.
    pub streams: u64,
    /// Live events.
    pub events: u64,
    /// Live modules.
    pub modules: u64,
    /// Live contexts of `cuCtxCreate`.
    pub created_contexts: u64,
    /// How often the primary contexts are retained, together.
    pub retained_contexts: u64,
    /// Kernels, copies and records that wait in streams.
    pub queued: u64,
    /// Kernels launched.
    pub launches: u64,
    /// Kernels that ended well.
    pub kernels_done: u64,
    /// Memory that was freed or unregistered, modules that were unloaded, and contexts that were
    /// released or destroyed, while a kernel or a copy could still use them.
    pub freed_under_a_kernel: u64,
    /// Allocations, registrations, streams, events and modules that ended with their context, not
    /// by a call.
    pub ended_with_their_context: u64,
    /// Allocations around which bytes were overwritten, seen when they were freed.
    pub overruns: u64,
    pub(crate) calls: [u64; FUNCTIONS],
    pub(crate) refused: [u64; FUNCTIONS],
}

/// A launch's dimensions.
#[derive(Clone, Copy, Debug)]
pub struct Launch {
    /// Blocks: x, y, z.
    pub grid: [u32; 3],
    /// Threads in a block: x, y, z.
    pub block: [u32; 3],
    /// Dynamic shared memory of a block.
    pub shared_bytes: u32,
}

impl Counters {
    pub(crate) const fn new() -> Self {
        Self {
            host_allocs: 0,
            registrations: 0,
            device_allocs: 0,
            streams: 0,
            events: 0,
            modules: 0,
            created_contexts: 0,
            retained_contexts: 0,
            queued: 0,
            launches: 0,
            kernels_done: 0,
            freed_under_a_kernel: 0,
            ended_with_their_context: 0,
            overruns: 0,
            calls: [0; FUNCTIONS],
            refused: [0; FUNCTIONS],
        }
    }

    /// Calls of `function`.
    #[must_use]
    pub fn calls(&self, function: Function) -> u64 {
        self.calls.get(function as usize).copied().unwrap_or(0)
    }

    /// Calls of `function` that were misuse: a value, handle, pointer, device or context that is
    /// none, also what was freed before.
    #[must_use]
    pub fn refused(&self, function: Function) -> u64 {
        self.refused.get(function as usize).copied().unwrap_or(0)
    }

    /// The objects that are still held: allocations, registrations, streams, events, modules,
    /// contexts. 0 when nothing leaked.
    #[must_use]
    pub const fn held(&self) -> u64 {
        self.host_allocs
            + self.registrations
            + self.device_allocs
            + self.streams
            + self.events
            + self.modules
            + self.created_contexts
            + self.retained_contexts
    }
}
