//! A CUDA driver for machines that have none: `libfake_cuda.so` exports the functions of `cuda.h`
//! (CUDA 12) under their C names, and tests load it in the place of NVIDIA's `libcuda.so.1`.
//!
//! It checks every call, and is as hostile as a driver may be. Device pointers differ from host
//! pointers, pinned memory is aligned to 16 bytes and filled with garbage, and freed memory is
//! unmapped. An error comes later than its cause and stays. The effects of a stream are seen in
//! memory only after a query or a synchronise lets them happen. A kernel is executed from its PTX,
//! and may touch the blocks that its parameters point into and nothing else. One that reads
//! volatile memory goes on a little whenever it is looked at, so that it can wait for the CPU.
//!
//! The library that a test loads and the one that it links are two copies, each with statics of its
//! own. [`Controls`] reaches the loaded one: [`Controls::take`] sets it to a [`Config`],
//! [`Controls::counters`] reads its [`Counters`].
//!
//! ```no_run
//! use fake_cuda::{Config, Controls, Function};
//! let cuda = Controls::take(&Config { kernel_polls: 3, ..Config::default() });
//! // … load fake_cuda::library() and use it …
//! assert_eq!(cuda.counters().host_allocs, 0);
//! assert_eq!(cuda.counters().refused(Function::cuMemFreeHost), 0);
//! ```
#![allow(
    unsafe_code,
    reason = "a C library's other side: exported names, callers' pointers, pinned memory, dlopen"
)]

mod config;
mod context;
mod controls;
mod counters;
mod exports;
mod kernels;
mod memory;
pub mod ptx;
mod state;
mod stream;
#[cfg(test)]
mod tests;

pub use self::config::{Config, DEVICES_MAX, Device, FAILURES_MAX, Failure, LateError};
pub use self::controls::{Controls, library};
pub use self::counters::{Counters, Function, Launch};

/// `CUresult`.
pub(crate) type Code = i32;

/// The codes that the fake answers, by their names in `cuda.h` without `CUDA_ERROR_`.
#[allow(missing_docs, reason = "the names are the C constants'")]
pub mod code {
    pub const SUCCESS: i32 = 0;
    pub const INVALID_VALUE: i32 = 1;
    pub const OUT_OF_MEMORY: i32 = 2;
    pub const NOT_INITIALIZED: i32 = 3;
    pub const NO_DEVICE: i32 = 100;
    pub const INVALID_DEVICE: i32 = 101;
    pub const INVALID_CONTEXT: i32 = 201;
    pub const ECC_UNCORRECTABLE: i32 = 214;
    pub const INVALID_PTX: i32 = 218;
    pub const OPERATING_SYSTEM: i32 = 304;
    pub const INVALID_HANDLE: i32 = 400;
    pub const NOT_FOUND: i32 = 500;
    pub const NOT_READY: i32 = 600;
    pub const ILLEGAL_ADDRESS: i32 = 700;
    pub const LAUNCH_OUT_OF_RESOURCES: i32 = 701;
    pub const LAUNCH_TIMEOUT: i32 = 702;
    pub const CONTEXT_IS_DESTROYED: i32 = 709;
    pub const HOST_MEMORY_ALREADY_REGISTERED: i32 = 712;
    pub const HOST_MEMORY_NOT_REGISTERED: i32 = 713;
    pub const MISALIGNED_ADDRESS: i32 = 716;
    pub const LAUNCH_FAILED: i32 = 719;
    pub const NOT_PERMITTED: i32 = 800;
    pub const NOT_SUPPORTED: i32 = 801;
    pub const SYSTEM_DRIVER_MISMATCH: i32 = 803;
    pub const UNKNOWN: i32 = 999;
}
