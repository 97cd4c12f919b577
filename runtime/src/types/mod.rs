//! Words that everybody speaks: addresses and directions, the one error, the barrier, a time limit.
//!
//! Each address space is a type of its own, so that a bus address is never taken for a pointer.
//! [`Error`] carries the numbers of a refusal, and [`Refused`] gives back what was handed in. The
//! atomics and the lock of the runtime are here too, because a test of interleavings replaces them.
//!
//! Imports: no other wing.

pub(crate) mod addr;
pub(crate) mod atomic;
pub(crate) mod barrier;
pub(crate) mod error;
#[cfg(any(feature = "sim", all(feature = "linux", target_os = "linux")))]
pub(crate) mod lock;
pub(crate) mod refused;
pub(crate) mod timeout;

pub use addr::{Align, BaseAddr, Bus, DevAddr, Direction, PhysAddr};
pub use error::{Error, Result};
pub use refused::Refused;
pub use timeout::Timeout;
