//! Memory that CUDA pins, and a GPU as a device: one API for an FPGA's memory and a Jetson's.
//!
//! ```text
//!   Cuda::load ──► Gpu::primary, Gpu::adopt ──► CudaHost::allocate, ::register ──► Region ──► Pool, CpuBuf, Operand, Engine …
//!   libcuda.so.1   one GPU and its context      a Backend: pinned, mapped for the GPU
//! ```
//!
//! The host's view is what a [`CpuBuf`](crate::CpuBuf) shows; the GPU's is the address in a
//! [`DevBuf`](crate::DevBuf), on a bus of its own ([`Bus::Gpu`](crate::Bus::Gpu)), so that no FPGA
//! is given it. Nothing is copied: on a Jetson CPU and GPU share the memory, on a card the
//! GPU reads and writes across the bus.
//!
//! **Whose it is.** As with every other memory here: a buffer is the CPU's, or a device's. What a
//! kernel wrote is seen after the driver has said that the kernel is finished, by an event or a
//! stream (CUDA C++ Programming Guide, "Mapped Memory"); then no cache needs maintenance, which is
//! what [`SyncScope::Coherent`](crate::SyncScope) says. Below compute capability 7.2 an integrated
//! GPU gets that by leaving the CPU uncached ([`GpuFacts::cpu_uncached`]): correct, and slow to
//! read.
//!
//! **Without a copy, or with.** An integrated GPU and its CPU have one memory: there a copy is only
//! a loss (CUDA C++ Best Practices Guide, "Zero Copy"). To a card every access of the kernel
//! crosses the bus, whatever its size: what is read or written once, by neighbours together, is
//! best left where it is; of what is read again and again (a matrix product reads each row of A n
//! times) a copy pays, by [`CopyingFunction`]. `tests/gpu/run` measures where one becomes the other
//! on a machine, for a kernel that touches each byte once.
//!
//! **The driver is loaded when [`Cuda::load`] is called,** and nothing of CUDA is needed to build.
//! Its own functions allocate as they please; the runtime's do not.
//!
//! ```no_run
//! use contigo::{Align, Region, cuda::{Cuda, CudaHost, Gpu}};
//! let cuda = Cuda::load()?;
//! let gpu = Gpu::primary(&cuda, 0)?;
//! let region = Region::new(CudaHost::allocate(&gpu, 16 << 20, Align::DLPACK)?)?;
//! let mut frame = region.carve(1 << 20, Align::DLPACK)?.into_buf();
//! frame.view_mut::<u8>()?.fill(7);                                  // the CPU's view
//! println!("the GPU finds it at {:#x}", region.base().raw());       // the GPU's
//! # Ok::<(), contigo::Error>(())
//! ```
//!
//! Imports: `types`, `trace`, `mem`, `hw`, `job`, `linux`.

mod abi;
mod copying;
mod driver;
mod function;
mod gpu;
mod host;
mod module;
mod signature;
mod stream;

pub use abi::code_name;
pub use copying::CopyingFunction;
pub use driver::Cuda;
pub use function::CudaFunction;
pub use gpu::{Gpu, GpuFacts};
pub use host::CudaHost;
pub use module::{Image, Log, Module};
pub use signature::{Launch, Parameter, Signature, Words};
