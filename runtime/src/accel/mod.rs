//! Drivers of accelerators, each an [`Accelerator`](crate::Accelerator) over a register window and an interrupt.

pub mod gemm8;
pub mod pl330;
pub mod zdma;
