// error: E0308
use contigo::{
    Engine, Operand,
    sim::SimWindow,
};
use contigo_gemm8::{Gemm, Gemm8, Gemm8Model};

type GemmEngine = Engine<Gemm8<SimWindow<Gemm8Model>>, 4>;

// The number of buffers is in the accelerator's type.
fn short(engine: &mut GemmEngine, operands: [Operand<'_>; 3], gemm: &Gemm) {
    let _ = engine.start(operands, gemm);
}

fn main() {}
