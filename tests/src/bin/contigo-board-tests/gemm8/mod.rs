//! gemm8's Verilog: what its tests share, and the tests of the one behind the gate (`contigo-pci
//! --model gemm8-gated`), by UIO and by the module contigo. Those over VFIO are in `vfio/gemm8.rs`.

mod gated;
mod ground;
mod kills;
pub(crate) mod product;

pub(crate) use gated::{GUARD, Test, UIO};
