// error: E0277
// An engine cannot claim another number of buffers than its accelerator has.
use contigo::{
    Engine,
    drivers::gemm8::{Gemm8, Gemm8Model},
    sim::SimWindow,
};

fn arity(gemm: Gemm8<SimWindow<'_, Gemm8Model>>) {
    let _ = Engine::<_, 3>::new(gemm);
}

fn main() {}
