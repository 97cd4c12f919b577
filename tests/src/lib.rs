//! What the tests share: the conformance suite, a fake beside every kernel interface, how tests run under an emulator, the import of
//! tensors as a fuzzer drives it, what is had of NVIDIA without a GPU, and drivers of devices that only emulators have.

pub mod board_vfio;
pub mod conformance;
pub mod direct;
pub mod edu;
pub mod emulated;
pub mod fake_devices;
pub mod fake_dma_heap;
pub mod fake_port;
pub mod fake_u_dma_buf;
pub mod fake_vfio;
pub mod fuzz_dlpack;
pub mod mapped;
pub mod nvidia;
