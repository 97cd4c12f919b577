// error: E0308
use contigo::{
    Engine, Operand,
    sim::SimWindow,
};
use contigo_gemm8::{Gemm, Gemm8, Gemm8Model};

type GemmEngine = Engine<Gemm8<SimWindow<Gemm8Model>>, 4>;

// One too many is as wrong.
fn long(engine: &mut GemmEngine, operands: [Operand<'_>; 5], gemm: &Gemm) {
    let _ = engine.start(operands, gemm);
}

fn main() {}
