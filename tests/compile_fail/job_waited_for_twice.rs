// error: E0382
// Waiting consumes the job: its buffers come back once.
use contigo::{
    Running, Timeout,
    sim::SimWindow,
};
use contigo_gemm8::{Gemm8, Gemm8Model};

fn twice(job: Running<'_, '_, Gemm8<SimWindow<'_, Gemm8Model>>, 4>) {
    let _ = job.wait(Timeout::NOW);
    let _ = job.wait(Timeout::NOW);
}

fn main() {}
