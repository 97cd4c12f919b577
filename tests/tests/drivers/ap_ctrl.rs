//! Kernels that HLS made, from data: their maps, the files they come from, and the driver on its
//! model.

mod chain;
mod files;
mod gated;
mod maps;
mod one_job;

use contigo::{
    Align, OperandSpec,
    design::kernel::{KernelMap, Protocol},
};

/// `long scale(const int *from, int *to, int m, int n, long factor)`: `m` rows of `n`, times
/// `factor`.
const SCALE: KernelMap = {
    let words = match Align::new(4) {
        Ok(align) => align,
        Err(_) => Align::LINE,
    };
    let map = KernelMap::named("scale", Protocol::Hs)
        .interrupt(true)
        .result("ap_return", 0x10, 64)
        .pointer("from", 0x1C, OperandSpec::to_device().aligned(words), "4*m*n")
        .pointer("to", 0x28, OperandSpec::from_device().aligned(words), "4*m*n")
        .scalar("m", 0x34, 32)
        .scalar("n", 0x3C, 16)
        .scalar("factor", 0x44, 64);
    match map.build() {
        Ok(map) => map,
        Err(_) => panic!("the table is wrong"),
    }
};
