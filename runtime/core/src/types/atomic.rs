//! The atomics that the lock-free parts use, named in one place: the model checker's tests put
//! loom's here instead.

pub use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicUsize, Ordering};
