// error: E0133
// A device is started by an engine, which knows that its buffers were handed over.
use contigo::{
    Accelerator, DevSlice,
    sim::SimWindow,
};
use contigo_gemm8::{Gemm, Gemm8, Gemm8Model};

fn by_hand(gemm: &mut Gemm8<SimWindow<'_, Gemm8Model>>, slices: &[DevSlice; 4], args: &Gemm) {
    let _ = gemm.start(slices, args);
}

fn main() {}
