//! Linux: memory, devices, and the kernel module `contigo`.
//!
//! `os` wraps the system calls. `device` has uio and PCI, `contigo` the kernel module `contigo`,
//! `memory` a file or folder for each kind of memory, `vfio` a PCI device behind an IOMMU. Inside
//! this folder each of these imports only from those named before it.
//!
//! One trait has the system calls whose answers a test replaces (`os/kernel.rs`), and the running
//! kernel is its one implementor. With the feature `testkit`, a test puts its own kernel in that
//! place (`os/seam.rs`). Without it there is no such choice, and no call through a pointer.

#![cfg_attr(
    feature = "testkit",
    allow(unused_imports, reason = "a trait object's methods need no import of their trait")
)]
#![cfg_attr(
    not(feature = "testkit"),
    allow(
        unreachable_pub,
        reason = "the parts that a seam shows are only public where there is one"
    )
)]

#[cfg(test)]
mod barrier_tests;
pub mod dev_node;
pub mod device;
pub mod memory;
#[doc(hidden)]
pub mod os;
pub mod vfio;

pub use self::os::Spin;
pub use crate::types::platform::same_process;
