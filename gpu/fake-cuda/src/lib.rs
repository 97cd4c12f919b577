//! A CUDA driver for machines that have none: `libfake_cuda.so` exports the functions of `cuda.h`
//! (CUDA 12) under their C names, and tests load it in the place of NVIDIA's `libcuda.so.1`.
//!
//! It checks every call, and is as hostile as a driver may be. Device pointers differ from host
//! pointers, pinned memory is aligned to 16 bytes and filled with garbage, and freed memory is
//! unmapped. An error comes later than its cause and stays. The effects of a stream are seen in
//! memory only after a query or a synchronise lets them happen. A kernel is executed from its PTX,
//! and may touch its operands and nothing else. A kernel that this project does not have goes on a
//! little whenever it is looked at, so that it can wait for the CPU.
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
    reason = "a C library's other side: exported names, callers' pointers, pinned memory of its own, and dlopen"
)]

mod codes;
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

pub use self::{
    codes::code,
    config::{Config, DEVICES_MAX, Device, FAILURES_MAX, Failure, LateError},
    controls::{Controls, library},
    counters::{Counters, Function, Launch},
};
