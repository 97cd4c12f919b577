//! Types that the whole runtime uses: addresses, directions, the error, the barrier, a time limit.
//!
//! Each address space has its own type, so a bus address is never taken for a pointer. [`Error`]
//! carries the numbers of a refusal, and [`Refused`] returns the value that the caller passed. The
//! runtime's atomics and lock are here too, because a test of interleavings replaces them. Modules
//! that the documentation does not show are for the runtime's own crates.

pub(crate) mod addr;
mod align;
#[doc(hidden)]
pub mod atomic;
pub(crate) mod barrier;
#[doc(hidden)]
pub mod boxed;
pub(crate) mod count;
pub(crate) mod error;
pub(crate) mod forward;
#[allow(dead_code, reason = "the simulated board and Linux lock; a runtime with neither does not")]
#[doc(hidden)]
pub mod lock;
#[doc(hidden)]
pub mod name;
#[doc(hidden)]
pub mod near;
#[cfg_attr(all(feature = "linux", target_os = "linux"), path = "platform/linux.rs")]
#[cfg_attr(not(all(feature = "linux", target_os = "linux")), path = "platform/none.rs")]
#[allow(dead_code, reason = "the simulated board alone asks for memory and drivers for files")]
#[doc(hidden)]
pub mod platform;
pub(crate) mod refused;
#[doc(hidden)]
pub mod shared;
mod tensor_rule;
pub(crate) mod timeout;

pub use addr::{BaseAddr, Bus, DevAddr, Direction, PhysAddr};
pub use align::Align;
pub use error::{Error, ErrorKind, ErrorRow, Result};
#[cfg(all(feature = "std", not(target_os = "none")))]
pub use error::{IoError, with_text};
pub use near::Among;
pub use refused::Refused;
pub use tensor_rule::TensorRule;
pub use timeout::{MAX_TIMEOUT, timeout_us};
