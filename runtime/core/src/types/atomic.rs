//! The atomics of the lock-free parts, in one place: the model checker's tests use loom's here
//! instead.

pub use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicUsize, Ordering};
