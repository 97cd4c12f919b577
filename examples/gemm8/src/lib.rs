//! `gemm8`, an int8 matrix engine: an accelerator for Contigo, from its contract (`README.md`
//! beside this crate) to a result. Like a user's driver, it uses only the runtime's public items.
//!
//! | feature | what it adds |
//! |---|---|
//! | `linux` | `AsFd` for the interrupt, for an event loop; `register`, its name for C and Python |
//! | `sim` | `SimGemm8`, the engine's model on the simulated board |
//! | `cuda` | `cuda`: the engine as a kernel of a GPU |
//! | `vulkan`, `opencl` | the same engine on any GPU that these interfaces reach; they need std |
//! | `demo` | `demo`: handwritten digits through the engine, every score checked; it needs std |
//!
//! ```
//! # #[cfg(feature = "sim")] {
//! use contigo::{Queue, Region, sim::SimBoard};
//! use core::time::Duration;
//! use contigo_gemm8::{Gemm, Gemm8, Output, SimGemm8};
//! let board = SimBoard::new(1);
//! let region = Region::new(board.memory(64 * 1024)?)?;
//! let pool = region.pool(4, 1024)?;
//! let device = SimGemm8::new(&board, board.port());
//! let mut queue = Queue::new(Gemm8::open_simulated(device.window()?)?, 1)?;
//!
//! let [mut a, mut b, mut bias, c] = [pool.take()?, pool.take()?, pool.take()?, pool.take()?];
//! a.view_mut::<i8>()?.fill(1);
//! b.view_mut::<i8>()?.fill(2);
//! bias.view_mut::<i32>()?.fill(100);
//! let gemm = Gemm { m: 1, n: 16, k: 32, output: Output::Int32 { relu: false } };
//! let operands =
//!     [a.to_device(..32), b.to_device(..512), bias.to_device(..64), c.from_device(..64)];
//! let [_, _, _, c] = queue.run(operands, &gemm.words(), Duration::from_millis(20))?.buffers;
//! assert_eq!(c.view_at::<i32>(..64)?, [164; 16]); // 32 times 1 times 2, and the bias
//! # }
//! # Ok::<(), contigo::Error>(())
//! ```
#![no_std]
// Only on docs.rs, each item shows which feature it needs.
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(any(feature = "demo", all(feature = "linux", target_os = "linux")))]
extern crate std;

#[cfg(all(feature = "cuda", target_os = "linux", target_pointer_width = "64"))]
pub mod cuda;
#[cfg(feature = "demo")]
pub mod demo;
mod driver;
#[cfg(any(feature = "cuda", feature = "opencl", feature = "vulkan"))]
mod gpu;
#[cfg(feature = "sim")]
mod model;
#[cfg(all(feature = "opencl", target_os = "linux"))]
pub mod opencl;
pub mod regs;
#[cfg(all(feature = "linux", target_os = "linux"))]
mod row;
#[cfg(all(feature = "vulkan", target_os = "linux"))]
pub mod vulkan;

pub use driver::{Gemm, Gemm8, MAP, Output, requantize};
#[cfg(feature = "sim")]
pub use model::{Gemm8Model, SimGemm8};
#[cfg(all(feature = "linux", target_os = "linux"))]
pub use row::register;
