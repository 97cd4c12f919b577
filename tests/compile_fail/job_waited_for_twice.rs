// error: E0382
// Waiting consumes the job: its buffers come back once.
use contigo::{
    Running,
    sim::SimWindow,
};
use contigo_gemm8::{Gemm8, Gemm8Model};
use std::time::Duration;

fn twice(job: Running<'_, '_, Gemm8<SimWindow<Gemm8Model>>, 4>) {
    let _ = job.wait(Duration::ZERO);
    let _ = job.wait(Duration::ZERO);
}

fn main() {}
