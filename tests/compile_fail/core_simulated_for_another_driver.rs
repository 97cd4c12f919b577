// error: E0308
// The window of a simulated device names its core: the driver of another one does not take it.
use contigo::{
    drivers::{gemm8::Gemm8Model, zdma::Zdma},
    sim::SimWindow,
};

fn open(window: SimWindow<'_, Gemm8Model>) {
    let _ = Zdma::simple_simulated(window);
}

fn main() {}
