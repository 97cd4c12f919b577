//! The job of several modules: one row of 16 numbers times a matrix of 16 by 16, by gemm8.

use contigo::sim::{SimBoard, SimWindow};
use contigo::{CpuBuf, Operand, Pool, Queue, Region};
use contigo_gemm8::{Gemm, Gemm8, Gemm8Model, Output, SimGemm8};
use std::time::Duration;

pub(crate) const GEMM: Gemm = Gemm { m: 1, n: 16, k: 16, output: Output::Int32 { relu: false } };
/// A slot that holds any operand of [`GEMM`].
pub(crate) const SLOT: usize = 256;
/// Long enough for any job here.
pub(crate) const LIMIT: Duration = Duration::from_millis(20);

pub(crate) type GemmQueue = Queue<Gemm8<SimWindow<Gemm8Model>>>;

/// A region of the board's own memory.
pub(crate) fn region(board: &SimBoard, len_bytes: usize) -> Region {
    Region::new(board.memory(len_bytes).unwrap()).unwrap()
}

/// A queue of one job.
pub(crate) fn queue(device: &SimGemm8) -> GemmQueue {
    Queue::new(Gemm8::open_simulated(device.window().unwrap()).unwrap(), 1).unwrap()
}

/// Four buffers, for A, B, bias and C.
pub(crate) fn four(pool: &Pool) -> [CpuBuf; 4] {
    [(); 4].map(|()| pool.take().unwrap())
}

/// A, B, bias and C as [`GEMM`] takes them.
pub(crate) fn operands([a, b, bias, c]: [CpuBuf; 4]) -> [Operand; 4] {
    [a.to_device(..16), b.to_device(..), bias.to_device(..64), c.from_device(..64)]
}
