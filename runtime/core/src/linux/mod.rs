//! The kernel's side: memory, devices, and the module that guards them. The feature `linux` stands
//! here, once.
//!
//! `os` is the floor of system calls. `device` has uio and PCI, `guard` the kernel module
//! `contigo`, `memory` a file or folder for each kind of memory, `vfio` a PCI device behind an
//! IOMMU. Inside this folder each of these imports only from those named before it.
//!
//! Each room that asks the kernel has a seam. With the feature `testkit`, a test puts a kernel of
//! its own into `seam`. Without it the seam's trait is private to the room, and has one
//! implementor.

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
pub mod device;
pub mod guard;
pub mod memory;
#[doc(hidden)]
pub mod os;
pub mod vfio;

pub use self::os::Spin;
pub use crate::types::platform::same_process;
