//! **Contigo** gets physically contiguous, aligned DMA memory from whatever a board offers, hands
//! its bus address to an accelerator's driver, and brings the result back. Nothing is allocated on
//! a heap, and nothing is copied unless the program asks. The CPU and the device never own the same
//! bytes at once.
//!
//! # The picture
//!
//! ```text
//!   Backend ──────► Region ──────► Pool         one block of memory; buffers of any size, or equal slots
//!                     │ alloc()      │ take()
//!                     └──────┬───────┘
//!                            ▼
//!            ┌─────────── CpuBuf ◄──────────────────────────────┐  views, no address
//!            │ to_device(..) from_device(..)                    │
//!            ▼                                                  │
//!         Operand ──► Queue::submit ─────────► Queue::wait ─────┤  neither: the device owns it
//!            ▲        reach, caches, doorbell  bounded          │
//!            └─────────── DevBuf ◄──── wait_device              │  address, no views
//!                            └───────── into_cpu ───────────────┘
//! ```
//!
//! Regions, pools, buffers, queues and opened devices own what they use, by counted handles like an
//! `Arc`: they have no lifetime, fit in one structure, and are dropped in any order.
//!
//! The names that most programs use are at the root. Everything else is in the module that has it:
//!
//! | module | what it is |
//! |---|---|
//! | [`mem`] | memory, and its owners: [`Backend`], [`Region`], [`Pool`], [`CpuBuf`], [`DevBuf`] |
//! | [`hw`] | one device: typed registers ([`hw::mmio`]), waiting ([`hw::wait`]), its [`Port`] |
//! | [`job`] | [`Driver`], all that a driver author writes; [`Queue`], [`Stream`] |
//! | `linux` | the kernel: memory, devices, VFIO, and the module that stops a device after a crash |
//! | `cuda` | a GPU as a device, and memory that it shares with the CPU |
//! | [`dlpack`] | buffers lent to a framework as tensors, and its tensors taken back |
//! | [`trace`](trace/index.html) | the steps of a run, such as copies and syncs, by the line that asked for them |
//! | [`types`] | words that all modules use: addresses, each space a type; the one error |
//! | [`drivers`] | a folder a core: its registers, its driver |
//! | [`design`] | what FPGA tools write: kernels of HLS as maps, block designs of Vivado's |
//! | `sim` | the simulated board, and a model for each driver |
//! | `names` | memory and devices opened by name, the same text in every language |
//!
//! This crate has `names`. The others lie in `contigo-core`, `contigo-drivers`, `contigo-design`
//! and `contigo-sim`, which a program need not name.
//!
//! # From memory to a result
//!
//! ```
//! use contigo::{Align, Queue, Region};
//! use core::time::Duration;
//! use contigo::sim::{SimDevice, SimBoard, zdma::ZdmaModel};
//!
//! let board = SimBoard::new(7);                           // or a real one: UDmaBuf::open("udmabuf0")?
//! let region = Region::new(board.memory(256 * 1024)?)?;
//! let output = region.alloc(4096, Align::LINE)?;
//! let frames = region.pool(8, 4096)?;
//! let device = SimDevice::<ZdmaModel>::new(&board, board.port());
//! let mut copy = Queue::new(device.window()?.simple()?, 4)?;
//!
//! let mut input = frames.take()?;                         // one atomic: no system call, no heap
//! input.view_at_mut::<i32>(..128)?.fill(2);
//! let operands = [input.to_device(..128), output.from_device(..128)];
//! let [_, output] = copy.run(operands, &[], Duration::from_millis(20))?.buffers; // interrupt or poll, always bounded
//! assert_eq!(output.view_at::<i32>(..128)?, [2; 32]);
//! # Ok::<(), contigo::Error>(())
//! ```
//!
//! # What holds, and where
//!
//! 1. No reference to memory that a device can touch. Views exist only on a [`CpuBuf`]. A device
//!    has addresses only from a job's operands, or from [`CpuBuf::hand_over`], whose caller
//!    promises when the device has stopped (`core/src/mem/buf/cpu.rs`).
//! 2. Safety never rests on `Drop`: buffers are moved, and a forgotten buffer is leaked. A
//!    region frees its block only when every buffer of it came back
//!    (`core/src/mem/region/control.rs`).
//! 3. The queue handles caches and barriers: by range, rounded out to lines, refused where a line
//!    has two owners (`core/src/mem/span.rs`).
//! 4. Every loop, queue, table and wait has a bound, a constant with its reason.
//! 5. `unsafe` is in the files that begin with `#![allow(unsafe_code, reason = …)]`, and nowhere
//!    else.
//! 6. No heap: these crates are `no_std` and name no `alloc`.
//! 7. A number that a device wrote is a length or a status only after it was compared with the
//!    bytes that were handed over. It is never an index or an address.
//! 8. A child of fork(2) inherits no real memory and no registers: each mapping is kept from it
//!    (`core/src/linux/os/map.rs`), except for CUDA's.
//!
//! # Programs that fork
//!
//! A child that calls exec(3) at once, as `std::process::Command` does, inherits nothing: every
//! file is close-on-exec. A child that goes on without exec(3) has open files and no mappings. It
//! must neither use nor drop a value of this crate: reading a buffer or a register ends it with
//! SIGSEGV, and a drop would unmap whatever it has mapped at that address meanwhile. Until it ends,
//! it also keeps locks, pinned huge pages and open devices: bus mastering of a dead parent's device
//! stays on. So it ends with `_exit`. Such reasons make `fork` an unsafe function. Bindings cannot
//! leave that to their users, and call `same_process` first.
//!
//! A child gets a copy of the simulated board's memory and registers. Nothing fails there, and
//! nothing that the child does reaches the parent: test a program's forks on real memory.
//!
//! # Features
//!
//! `linux` (default): the kernel's memory, devices, and a clock. `std` (default): `From` for
//! `std::io::Error`, which takes the heap; on a target without an operating system it adds nothing.
//! `sim`: the simulated board, for tests and trials; firmware does not have it unless it asks.
//! `log`, `defmt`: events as text. `cuda`: memory that CUDA pins; NVIDIA's driver is loaded at run
//! time. `audit`: events to a listener, with the line that asked for each.
#![no_std]
// On docs.rs only, each item shows which feature it needs.
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(test)]
extern crate std;

#[cfg(all(feature = "linux", target_os = "linux"))]
pub mod names;

#[cfg(all(feature = "cuda", target_os = "linux", target_pointer_width = "64"))]
pub use contigo_core::cuda;
#[cfg(all(feature = "linux", target_os = "linux"))]
pub use contigo_core::linux;
pub use contigo_core::{
    Align, Backend, Bus, Completion, CpuBuf, DevAddr, DevBuf, Device, Direction, Done, Driver,
    Error, ErrorKind, JobError, Limits, Mmio, Operand, OperandSpec, PhysAddr, Pool, Port, Queue,
    Region, Result, Stream, Wait, dlpack, forward, hw, job, mem, trace, types,
};
pub use contigo_design as design;
pub use contigo_drivers as drivers;
#[cfg(feature = "sim")]
pub use contigo_sim as sim;

/// Pages for people: how to write a driver, and how a program holds what it opened.
#[cfg(feature = "sim")]
pub mod guide {
    #[doc = include_str!("../guide/write-a-driver.md")]
    pub mod write_a_driver {}
    #[doc = include_str!("../guide/threads.md")]
    pub mod threads {}
    #[doc = include_str!("../guide/event-loop.md")]
    pub mod event_loop {}
}
