// error: E0499
use contigo::{
    CpuBuf, Engine, Operand,
    sim::SimWindow,
};
use contigo_gemm8::{Gemm, Gemm8, Gemm8Model};
use std::time::Duration;

type GemmEngine = Engine<Gemm8<SimWindow<Gemm8Model>>, 4>;

// An engine has one job at a time.
fn two<'p>(engine: &mut GemmEngine, one: [Operand<'p>; 4], two: [Operand<'p>; 4], gemm: &Gemm) {
    let first = engine.start(one, gemm).unwrap();
    let second = engine.start(two, gemm).unwrap();
    let _: [CpuBuf<'p>; 4] = first.wait(Duration::ZERO).unwrap().buffers;
    drop(second);
}

fn main() {}
