// error: E0616
// A running job's buffers are the device's.
use contigo::{
    Running,
    drivers::gemm8::{Gemm8, Gemm8Model},
    sim::SimWindow,
};

fn peek(job: &Running<'_, '_, Gemm8<SimWindow<'_, Gemm8Model>>, 4>) {
    let _ = &job.buffers;
}

fn main() {}
