// error: E0277
// An engine cannot claim another number of buffers than its accelerator has.
use contigo::{
    Engine,
    accel::gemm8::Gemm8,
    sim::{Gemm8Model, SimWindow},
};

fn arity(gemm: Gemm8<SimWindow<'_, Gemm8Model>>) {
    let _ = Engine::<_, 3>::new(gemm);
}

fn main() {}
