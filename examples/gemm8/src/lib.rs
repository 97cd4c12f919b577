//! `gemm8`: an accelerator for Contigo, from its contract (`README.md` beside this crate) to a result.
//!
//! | feature | what it adds |
//! |---|---|
//! | `cuda` | `cuda`: the engine as a kernel of a GPU |
//! | `demo` | `demo`: handwritten digits through the engine, every score checked; it needs std |
#![no_std]

#[cfg(feature = "demo")]
extern crate std;

#[cfg(all(feature = "cuda", target_os = "linux", target_pointer_width = "64"))]
pub mod cuda;
#[cfg(feature = "demo")]
pub mod demo;
