// error: E0616
// A running job's buffers are the device's.
use contigo::{
    Running,
    accel::gemm8::Gemm8,
    sim::{Gemm8Model, SimWindow},
};

fn peek(job: &Running<'_, '_, Gemm8<SimWindow<'_, Gemm8Model>>, 4>) {
    let _ = &job.buffers;
}

fn main() {}
