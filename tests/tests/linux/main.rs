//! Memory and devices of the kernel, over fakes of its interfaces. Real kernels are tested in the
//! lab.
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "a test that panics has failed, which is its purpose; a fake kernel is a promise"
)]

extern crate contigo as contigo_core;

mod board_tests;
mod dev_node;
mod dma_heap;
#[path = "../drivers/regs.rs"]
mod driver_regs;
mod emulated;
mod hugetlb;
mod pci;
mod u_dma_buf;
mod uio;
mod vfio;
