//! What the tests share: a fake beside every kernel interface, and the conformance suite.

pub mod fake_dma_heap;
pub mod fake_u_dma_buf;
