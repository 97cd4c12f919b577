// error: E0277
// An engine cannot claim another number of buffers than its driver has.
use contigo::{
    Engine,
    sim::SimWindow,
};
use contigo_gemm8::{Gemm8, Gemm8Model};

fn arity(gemm: Gemm8<SimWindow<Gemm8Model>>) {
    let _ = Engine::<_, 3>::new(gemm);
}

fn main() {}
