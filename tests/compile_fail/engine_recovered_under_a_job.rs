// error: E0499
use contigo::{
    Engine, Operand,
    sim::SimWindow,
};
use contigo_gemm8::{Gemm, Gemm8, Gemm8Model};

type GemmEngine = Engine<Gemm8<SimWindow<Gemm8Model>>, 4>;

// Nobody stops the device behind a running job's back.
fn stop(engine: &mut GemmEngine, operands: [Operand<'_>; 4], gemm: &Gemm) {
    let job = engine.start(operands, gemm).unwrap();
    engine.recover().unwrap();
    drop(job);
}

fn main() {}
