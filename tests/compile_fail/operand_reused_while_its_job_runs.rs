// error: E0382
use contigo::{
    Engine, Operand,
    sim::SimWindow,
};
use contigo_gemm8::{Gemm, Gemm8, Gemm8Model};

type GemmEngine = Engine<Gemm8<SimWindow<Gemm8Model>>, 4>;

// The operands belong to the job.
fn again(engine: &mut GemmEngine, operands: [Operand<'_>; 4], gemm: &Gemm) {
    let _job = engine.start(operands, gemm);
    drop(operands);
}

fn main() {}
