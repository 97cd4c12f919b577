//! What the tests share: the conformance suite, and a fake beside every kernel interface.

pub mod conformance;
pub mod direct;
pub mod fake_dma_heap;
pub mod fake_u_dma_buf;
