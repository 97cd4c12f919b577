//! **Contigo** gets physically contiguous, aligned DMA memory from what a board really has, hands its bus address to an
//! accelerator's driver, and brings the result back: no heap allocation, no copy, and never the CPU and the device on the
//! same bytes at once.
//!
//! # The picture
//!
//! ```text
//!   Backend ──────► Region ──────► Carve ─────► Pool, LocalPool, Arena
//!   one block       checked,       a piece,     equal slots; blocks of any size
//!   of memory       owns it        planned         │ take()
//!                                     └─ into_buf ─┤
//!                                                  ▼
//!            ┌──────────────────────────────── CpuBuf ◄──────────────┐  views, no address
//!            │ to_device(..) from_device(..)                         │
//!            ▼                                                       │
//!         Operand ──► Engine::start ──► Running ──► wait ────────────┘  neither
//!            ▲        reach, caches,    the device     bounded; stops
//!            │        doorbell          owns them      what will not end
//!            └─────────── DevBuf ◄─────── wait_device                   address, no views
//! ```
//!
//! | file | what it is |
//! |---|---|
//! | `addr.rs`, `port.rs` | addresses, each space a type; one bus master's way to memory |
//! | `error.rs`, `refused.rs` | the one error; what a refusal gives back |
//! | `backend/` | where memory comes from: `UDmaBuf`, `DmaHeap`, `HugeTlb`, or `sim::Sim` |
//! | `region/`, `span.rs` | one block, checked and carved; which caches a hand-over concerns |
//! | `pool/`, `arena/` | buffers out of a carve, with no heap and in bounded time |
//! | `buf/` | [`CpuBuf`], [`Operand`], [`DevBuf`], [`DriverBuf`]: the type says who owns the bytes |
//! | `dlpack/` | buffers lent to a framework as tensors, and its tensors taken back |
//! | `engine/` | [`Accelerator`], all that a driver author writes; [`Engine`], [`Running`] |
//! | `device/`, `mmio.rs`, `irq.rs`, `barrier.rs` | one device: its port, `Uio`, PCI; typed registers, waiting; ordering |
//! | `accel/` | drivers: [`gemm8`](accel::gemm8), [`pl330`](accel::pl330), [`zdma`](accel::zdma) |
//! | `process.rs` | whether this is the process that asked first, or a child of it |
//! | `kernel_port/` | a bus master by the kernel module: dma-bufs with address and ranged syncs, and what stops it after a crash |
//! | `vfio/` | a PCI device behind an IOMMU: memory, registers, interrupt, confined by the kernel |
//! | `audit/` | what a run allocated, copied and synchronised, by site |
//! | `cuda/` | a GPU as a device, and memory that it shares with the CPU |
//! | `sim/` | the simulated board: two memories per block, faults, virtual time |
//!
//! # From memory to a result
//!
//! ```
//! use contigo::{Align, Engine, Pool, Region, Timeout};
//! use contigo::accel::gemm8::{Gemm, Gemm8, Output};
//! use contigo::sim::{SimBoard, SimGemm8};
//!
//! let board = SimBoard::new(7);                                    // or a real one: UDmaBuf::open("udmabuf0")?
//! let region = Region::new(board.memory(256 * 1024)?)?;
//! let mut weights = region.carve(64 * 32, Align::LINE)?.into_buf(); // planned once, at a fixed offset
//! let mut bias = region.carve(4 * 32, Align::LINE)?.into_buf();
//! let frames = Pool::<8>::new(region.carve(8 * 4096, Align::DLPACK)?, 4096)?;
//! let device = SimGemm8::new(&board, board.port());
//! let mut gemm = Engine::new(Gemm8::open_simulated(device.window()?)?)?;
//!
//! weights.view_mut::<i8>()?.fill(1);
//! bias.view_mut::<i32>()?.fill(0);
//! let mut input = frames.take()?;                                  // one atomic: no system call, no heap
//! input.view_at_mut::<i8>(..64)?.fill(2);
//! let args = Gemm { m: 1, n: 32, k: 64, output: Output::Int32 { relu: false } };
//! let job = gemm.start(
//!     [input.to_device(..64), weights.to_device(..), bias.to_device(..), frames.take()?.from_device(..128)],
//!     &args,
//! )?;
//! let [_, _, _, output] = job.wait(Timeout::ms(20))?;              // interrupt or poll, always bounded
//! assert_eq!(output.view_at::<i32>(..128)?, [128; 32]);
//! # Ok::<(), contigo::Error>(())
//! ```
//!
//! # What holds, and where
//!
//! 1. No reference to memory that a device can touch: views exist only on a [`CpuBuf`], and a
//!    device has addresses only from a job's operands, or from [`CpuBuf::hand_over`], whose caller
//!    promises when the device has stopped (`buf/cpu.rs`).
//! 2. Safety never rests on `Drop`: buffers are moved, and what is forgotten is leaked. A [`Region`] frees its block only
//!    when everything carved from it came back (`region/mod.rs`).
//! 3. Caches and barriers are the engine's business: by range, rounded out to lines, refused where a line has two owners
//!    (`span.rs`).
//! 4. Every loop, queue, table and wait has a bound, a constant with its reason.
//! 5. `unsafe` is in the files that begin with `#![allow(unsafe_code, reason = …)]`, and nowhere else.
//! 6. No heap: this crate is `no_std` and names no `alloc`.
//! 7. What a device wrote is compared, never used as an index, a length or an address.
//! 8. A child of fork(2) gets no real memory and no registers: each mapping is kept from it
//!    (`backend/map.rs`), except for what CUDA maps.
//!
//! # Programs that fork
//!
//! A child that calls exec(3) at once, as `std::process::Command` does, inherits nothing: every
//! file is close-on-exec. A child that goes on without exec(3) has open files and no mappings. It
//! uses and drops no value of this crate: a look at a buffer or a register ends it with SIGSEGV,
//! and a drop would unmap whatever it has mapped at that address meanwhile. It keeps locks, pinned
//! huge pages, and devices open, until it ends too: bus mastering of a dead parent's device stays
//! on. So it ends with `_exit`. `fork` is an unsafe function for such reasons. Bindings, which
//! cannot leave that to their users, ask `same_process` first.
//!
//! Memory and registers of the simulated board are copied to a child. Nothing fails there, and
//! nothing that the child does reaches the parent: a program's forks are tested on real memory.
//!
//! # Features
//!
//! `linux` (default): the kernel's memory, and a clock. `sim` (default): the simulated board. `log`, `defmt`: events as text.
//! `cuda`: memory that CUDA pins; NVIDIA's driver is loaded at run time.
//! `audit`: events to a listener, with the line that asked for each.
#![no_std]

#[cfg(test)]
extern crate std;

pub mod accel;
mod addr;
mod arena;
mod atomic;
pub mod audit;
pub mod backend;
mod barrier;
mod buf;
#[cfg(all(feature = "cuda", target_os = "linux", target_pointer_width = "64"))]
pub mod cuda;
mod device;
pub mod dlpack;
mod engine;
mod error;
#[cfg(all(feature = "linux", target_os = "linux"))]
mod event;
pub mod irq;
#[cfg(all(feature = "linux", target_os = "linux"))]
pub mod kernel_port;
#[cfg(any(feature = "sim", all(feature = "linux", target_os = "linux")))]
mod lock;
pub mod mmio;
mod pool;
mod port;
#[cfg(all(feature = "linux", target_os = "linux"))]
mod process;
mod refused;
mod region;
#[cfg(feature = "sim")]
pub mod sim;
mod span;
mod stats;
mod timeout;
#[cfg(all(feature = "linux", target_os = "linux"))]
pub mod vfio;

pub use addr::{Align, BaseAddr, Bus, DevAddr, Direction, PhysAddr};
pub use arena::Arena;
pub use backend::{Backend, Mapping, Segment, SyncScope};
#[cfg(all(feature = "linux", target_os = "linux"))]
pub use backend::{DmaHeap, ExportedFd, HugeTlb, UDmaBuf};
pub use buf::{AnyThread, CpuBuf, DevBuf, DevSlice, DriverBuf, OneThread, Operand};
#[cfg(all(feature = "linux", target_os = "linux"))]
pub use device::{BusMaster, PciFunction, Registers, Uio, UioIrq};
pub use device::{Device, Wired};
pub use dlpack::TensorRule;
pub use engine::{Accelerator, Attempt, Engine, JobCounts, JobError, QuiesceProgram, QuiesceStep, Running};
pub use error::{Error, Result};
#[cfg(all(feature = "linux", target_os = "linux"))]
pub use irq::Spin;
pub use irq::{Irq, poll_every, poll_until};
#[cfg(all(feature = "linux", target_os = "linux"))]
pub use kernel_port::{DmaBuf, KernelPort};
pub use mmio::{Mmio, MmioWindow};
pub use pool::{LocalPool, Pool};
#[doc(hidden)]
pub use pool::{RawPool, RawSlots};
pub use port::Port;
#[cfg(all(feature = "linux", target_os = "linux"))]
pub use process::same_process;
pub use refused::Refused;
pub use region::{Carve, Region, Requirements};
pub use stats::Stats;
pub use timeout::Timeout;
