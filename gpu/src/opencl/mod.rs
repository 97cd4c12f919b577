//! Memory as OpenCL takes it, and its kernels as drivers.
//!
//! ```text
//!   OpenClGpu::open ─┬► OpenClMemory::allocate, ::import ──► Region ──► Pool, CpuBuf, Operand …
//!                    └► OpenClModule::build ──► OpenClKernel: a Driver, by a Signature
//! ```
//!
//! **The same bytes.** A block is one `cl_mem` over bytes that are there already
//! (`CL_MEM_USE_HOST_PTR`). An operand is a sub-buffer of it, with the offset as its origin. A
//! device that shares the CPU's memory uses these bytes; one that does not keeps a copy, and the
//! same program is right there too.
//!
//! **The hand-over.** CPU and device have bytes in turn, and OpenCL's driver must hear of each turn
//! (OpenCL 3.0, 5.2.4). So [`port`](OpenClGpu::port) is not coherent, and the runtime calls the
//! backend at each turn:
//! - To the device: the CPU's bytes are declared the latest, by `clEnqueueWriteBuffer` from the
//!   block's own pointer. A mapping would not do, for a driver may fill that from the device first.
//! - Back to the CPU: what a device wrote is mapped to be read, and unmapped. Between the two the
//!   driver brings it. The pointer must be the block's own.
//! - Nothing stays mapped. So a kernel, or a consumer of its tensor, uses bytes that are not
//!   mapped. A buffer that is cut while the CPU has it goes to the device in parts. Each write
//!   names the part's own bytes, and the driver reads no other.
//!
//! OpenCL allows the write where the buffer object is neither mapped nor in use (5.2.2, the notes
//! on `CL_MEM_USE_HOST_PTR`). "The buffer object being written" is read as the sub-buffer that is
//! made for this write: other parts of the block may be in use by a kernel meanwhile. Each command
//! has a sub-buffer of its own, as a tensor's byte offset asks. The block's own object may not be
//! used while another part of it is the CPU's (5.5.3).
//!
//! pocl's mapping and unmapping touch no byte where the pointers are the same
//! (`lib/CL/devices/common_driver.c`: `pocl_driver_map_mem`, `pocl_driver_unmap_mem`). Its write
//! is a `memcpy` of bytes onto themselves (`pocl_driver_write`), which glibc ends at once. With
//! pocl 3.1 a job of 16 MiB took 0.13 ms, from its start to the buffer that the CPU has again.
//!
//! **A transfer that was given keeps its bytes.** A hand-over waits for its transfer's end, 10 s at
//! most. It is no error where that is not seen: the runtime would give the bytes back to the CPU
//! while the driver may use them.
//! - The transfer is late: the kernels that use its bytes wait for it, and `stop` waits for them.
//! - It failed, or the queue cannot be flushed: the device is lost. No kernel starts any more, and
//!   the operands of each that should have are leaked ([`Error::WillNotStop`](contigo::Error)).
//! - An operand is refused while another transfer is late: as if that had failed.
//!
//! - Of a transfer whose end cannot be known, all bytes of the device stay with it.
//!
//! Nothing waits for a late transfer where no kernel of this module uses its bytes: after
//! [`CpuBuf::hand_over`](contigo::CpuBuf::hand_over), or in the queue of a tensor's consumer. A
//! hand-over of these that took 10 s may have left one. Until it has ended, the bytes do not come
//! back, and no tensor of them is lent ([`Backend::settled`](contigo::Backend::settled)).
//!
//! **A child of fork** hands nothing over, starts no kernel, and leaks what it drops. None of these
//! calls the driver ([`Error::Forked`](contigo::Error)).
//!
//! **No wait without a limit.** No `clFinish`, and no blocking flag. Events are looked at.
//! `clWaitForEvents` is called for events alone that are complete: that is a synchronisation point,
//! and a look is none.
//!
//! **Operands begin at multiples of [`align`](OpenClGpu::align).** It is the region's line, so that
//! buffers, slots and written operands do. An operand that begins elsewhere is
//! [`Error::BufferAlign`](contigo::Error::BufferAlign).
//!
//! `OPENCL_DYLIB_PATH` in the environment names another loader than `libOpenCL.so.1`, as the
//! binding has it.

mod error;
mod event;
mod facts;
mod gpu;
mod kernel;
mod late;
mod launches;
mod memory;
mod module;
mod names;
mod object;

pub use facts::{OpenClFacts, OpenClKind};
pub use gpu::OpenClGpu;
pub use kernel::OpenClKernel;
pub use memory::OpenClMemory;
pub use module::{Log, OpenClModule};
pub use names::KIND;
