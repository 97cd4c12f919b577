#![no_std]
#![doc = "Contigo."]

#[cfg(test)]
extern crate std;

pub mod accel;
mod addr;
mod arena;
mod atomic;
pub mod backend;
mod barrier;
mod buf;
mod engine;
mod error;
mod event;
pub mod irq;
mod lock;
pub mod mmio;
mod pool;
mod port;
mod refused;
mod region;
#[cfg(feature = "sim")]
pub mod sim;
mod span;
mod stats;
mod timeout;

pub use addr::{Align, BaseAddr, Bus, DevAddr, Direction, PhysAddr};
pub use arena::Arena;
pub use backend::{Backend, Mapping, Segment, SyncScope};
pub use buf::{AnyThread, CpuBuf, DevBuf, DevSlice, OneThread, Operand};
pub use engine::{Accelerator, Attempt, Engine, JobCounts, JobError, Running};
pub use error::{Error, Result};
#[cfg(all(feature = "linux", target_os = "linux"))]
pub use irq::Spin;
pub use irq::{Irq, poll_until};
pub use mmio::{Mmio, MmioWindow};
pub use pool::{LocalPool, Pool};
pub use port::Port;
pub use refused::Refused;
pub use region::{Carve, Region, Requirements};
pub use stats::Stats;
pub use timeout::Timeout;
