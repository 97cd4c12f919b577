//! Memory, buffers, queues, registers and the kernel: what Contigo's drivers and backends stand
//! on. A program uses the crate `contigo`, which shows all of it under the same names.
//!
//! It knows no driver and no file format, and of a simulated board one question: which device may
//! touch these bytes ([`mem::Holder`]). Each folder imports only from those above it in this table:
//!
//! | folder | what it is |
//! |---|---|
//! | [`types`] | what all others use: addresses, each space a type; the error; the barrier |
//! | [`trace`] | the steps of a run, such as copies and syncs, by the line that asked for them |
//! | [`mem`] | memory, and its owners: [`Backend`], [`Region`], [`Pool`], [`CpuBuf`], [`DevBuf`] |
//! | [`hw`] | one device: typed registers ([`hw::mmio`]), waiting ([`hw::wait`]), its [`Port`] |
//! | [`job`] | [`Driver`], all that a driver author writes; [`Queue`], [`Stream`] |
//! | `linux/` | the kernel: memory, devices, VFIO, and the module that stops a device after a crash |
//! | `cuda/` | a GPU as a device, and memory that it shares with the CPU |
//! | [`dlpack`] | buffers lent to a framework as tensors, and its tensors taken back |
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(test)]
extern crate std;

#[cfg(all(feature = "cuda", target_os = "linux", target_pointer_width = "64"))]
pub mod cuda;
pub mod dlpack;
pub mod hw;
pub mod job;
#[cfg(all(feature = "linux", target_os = "linux"))]
pub mod linux;
pub mod mem;
pub mod trace;
pub mod types;

pub use hw::{Device, Mmio, Wait};
pub use job::{Completion, Done, Driver, JobError, OperandSpec, Queue, Stream};
pub use mem::{Backend, CpuBuf, DevBuf, Limits, Operand, Pool, Port, Region};
pub use types::{Align, Bus, DevAddr, Direction, Error, ErrorKind, PhysAddr, Result};
