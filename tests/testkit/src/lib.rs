//! The tools that test a driver or a backend, also one of another repository.
//!
//! | module | purpose | feature |
//! |---|---|---|
//! | `conformance` | the duties of every backend: one list of checks | `fakes` |
//! | `fake_*` | one beside every interface of the kernel's | `fakes` |
//! | `suite` | the duties of every driver: random jobs under random faults, and the price of a job | `fakes` |
//! | `edu` | a driver of a device that only emulators have | `edu` |
//! | `fuzz_dlpack` | the import of tensors, as a fuzzer drives it | `fakes` |
//! | `lent` | windows that a test keeps, or that a program loses for a while | `fakes` |
//! | `scripted` | a device that touches nothing, and gives the answers of a test | `fakes` |
//! | `nvidia` | NVIDIA's headers and drivers, for machines without a GPU | `fakes` |
//! | `barrier` | threads that meet, and end where one of them does not come | `fakes` |
//! | `emulated`, `direct`, `mapped`, `rounds` | how a test runs under an emulator, its questions to the system, and how often it repeats | `fakes` |
// On docs.rs, and there alone, each item says which feature it needs.
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "fakes")]
pub mod barrier;
#[cfg(feature = "fakes")]
pub mod conformance;
#[cfg(feature = "fakes")]
pub mod direct;
#[cfg(feature = "edu")]
pub mod edu;
#[cfg(feature = "fakes")]
pub mod emulated;
#[cfg(feature = "fakes")]
pub mod fake_dev_node;
#[cfg(feature = "fakes")]
pub mod fake_devices;
#[cfg(feature = "fakes")]
pub mod fake_dma_heap;
#[cfg(feature = "fakes")]
pub mod fake_u_dma_buf;
#[cfg(feature = "fakes")]
pub mod fake_vfio;
#[cfg(feature = "fakes")]
pub mod fnv;
#[cfg(feature = "fakes")]
pub mod fuzz_dlpack;
#[cfg(feature = "fakes")]
pub mod lent;
pub mod litepcie;
#[cfg(feature = "fakes")]
pub mod mapped;
#[cfg(feature = "fakes")]
pub mod nvidia;
#[cfg(feature = "fakes")]
mod rounds;
#[cfg(feature = "fakes")]
pub mod scripted;
#[cfg(feature = "fakes")]
mod skipped;
#[cfg(feature = "fakes")]
pub mod suite;

#[cfg(feature = "fakes")]
pub use rounds::rounds;
#[cfg(feature = "fakes")]
pub use skipped::{skipped, take_skipped};
