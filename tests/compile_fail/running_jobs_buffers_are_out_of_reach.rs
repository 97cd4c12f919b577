// error: E0616
// A running job's buffers belong to the device.
use contigo::{
    Running,
    sim::SimWindow,
};
use contigo_gemm8::{Gemm8, Gemm8Model};

fn peek(job: &Running<'_, '_, Gemm8<SimWindow<Gemm8Model>>, 4>) {
    let _ = &job.operands;
}

fn main() {}
