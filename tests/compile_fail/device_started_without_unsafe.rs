// A device is started by a queue, which knows that its buffers were handed over.
use contigo::{Driver, mem::DevSlice, sim::SimWindow};
use contigo_gemm8::{Gemm8, Gemm8Model};

fn by_hand(gemm: &mut Gemm8<SimWindow<Gemm8Model>>, slices: &[DevSlice], args: &[u32]) {
    let _ = gemm.submit(0, slices, args); //~ E0133 call to unsafe function `submit` is unsafe and requires unsafe block
}

fn main() {}
