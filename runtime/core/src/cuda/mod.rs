//! Memory that CUDA pins, and a GPU as a device: one API for an FPGA's memory and a Jetson's.
//!
//! ```text
//!   Cuda::load ──► Gpu::primary, Gpu::adopt ──► CudaHost::allocate, ::register ──► Region ──► Pool, CpuBuf, Operand, Queue …
//!   libcuda.so.1   one GPU and its context      a Backend: pinned, mapped for the GPU
//! ```
//!
//! A [`CpuBuf`](crate::CpuBuf) shows the host's view. A [`DevBuf`](crate::DevBuf) has the GPU's
//! address, on a separate bus ([`Bus::Gpu`](crate::Bus::Gpu)), so it never reaches an FPGA. Nothing
//! is copied: on a Jetson CPU and GPU share the memory, and on a card the GPU reads and writes
//! across the bus.
//!
//! **Owners.** As with all memory here, a buffer belongs to the CPU or to a device. The CPU sees a
//! kernel's output after the driver has reported the kernel's end, by an event or a stream (CUDA
//! C++ Programming Guide, "Mapped Memory"). Then no cache needs maintenance, so the scope is
//! [`SyncScope::Coherent`](crate::mem::SyncScope). Below compute capability 7.2 an integrated GPU
//! is coherent because the CPU does not cache the memory ([`GpuFacts::cpu_uncached`]): correct, and
//! slow to read.
//!
//! **With or without a copy.** An integrated GPU and its CPU have one memory, so there a copy is
//! only a loss (CUDA C++ Best Practices Guide, "Zero Copy"). On a card every access of the kernel
//! crosses the bus, whatever its size. Bytes that neighbours read or write once, together, are best
//! left in place. A copy, by [`CopyingFunction`], pays for bytes that are read again and again: a
//! matrix product reads each row of A n times.
//!
//! Where a kernel reads each byte once and writes it once, an NVIDIA H200 took 0.49 to 0.95 of the
//! time with copies, from 4 KiB to 64 MiB. Zero-copy stops paying where bytes are read again. A
//! product of 16 rows took 0.7 of the time with copies, one of 32 rows 1.5, one of 256 rows 17.
//! `tests/gpu/run` measured it, and `docs/measured.md` has the tables.
//!
//! **Every type here is an owning handle** without a lifetime, and moves to any thread: a kernel
//! holds its module, and module and memory hold the GPU. The last handle frees the object. What a
//! kernel may still use is kept for ever, whatever is dropped.
//!
//! **[`Cuda::load`] loads the driver,** and building needs nothing of CUDA. The driver's functions
//! may allocate at any time; the runtime's do not.
//!
//! ```no_run
//! use contigo::{Align, cuda::{Cuda, CudaHost, Gpu}, Region};
//! let cuda = Cuda::load()?;
//! let gpu = Gpu::primary(&cuda, 0)?;
//! let region = Region::new(CudaHost::allocate(&gpu, 16 << 20, Align::DLPACK)?)?;
//! let mut frame = region.alloc(1 << 20, Align::DLPACK)?;
//! frame.view_mut::<u8>()?.fill(7);                                  // the CPU's view
//! println!("the GPU finds it at {:#x}", region.base().raw());       // the GPU's
//! # Ok::<(), contigo::Error>(())
//! ```

mod abi;
mod copying;
mod driver;
mod function;
mod gpu;
mod host;
mod module;
mod packed;
mod stream;

pub use crate::job::{Launch, Parameter, Signature, Words};
pub use abi::code_name;
pub use copying::CopyingFunction;
pub use driver::Cuda;
pub use function::CudaFunction;
pub use gpu::{Gpu, GpuFacts};
pub use host::CudaHost;
pub use module::{Image, Log, Module};
