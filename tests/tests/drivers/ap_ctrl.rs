//! Kernels that HLS made, from data: their maps, the files they come from, and the driver on its
//! model.
#![allow(unsafe_code, reason = "what a kernel is, and what shares its window, is the test's word")]

mod chain;
mod files;
mod function;
mod gate;
mod gated;
mod maps;
mod one_job;

use crate::prelude::*;
use crate::regs::ap_ctrl as regs;
use contigo::OperandSpec;
use contigo::design::kernel::{KernelMap, Protocol};
use contigo::drivers::ap_ctrl::ApCtrl;
use contigo::sim::ap_ctrl::{ApCtrlModel, KernelCall, KernelError, KernelFn};

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

/// The arguments of three rows of five, times one, which have 60 bytes.
const ROWS: [u32; 4] = [3, 5, 1, 0];

type ScaleQueue = Queue<ApCtrl<SimWindow<ApCtrlModel>>>;

fn open(kernel: &SimDevice<ApCtrlModel>, jobs: usize) -> ScaleQueue {
    Queue::new(kernel.window().unwrap().driver().unwrap(), jobs).unwrap()
}
