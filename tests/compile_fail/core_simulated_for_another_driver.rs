// error: E0308
// The window of a simulated device names its core: the driver of another one does not take it.
use contigo::{
    accel::zdma::Zdma,
    sim::{Gemm8Model, SimWindow},
};

fn open(window: SimWindow<'_, Gemm8Model>) {
    let _ = Zdma::simple_simulated(window);
}

fn main() {}
