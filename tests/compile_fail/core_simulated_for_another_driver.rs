// error: E0599
// The window of a simulated device names its core: the driver of another one does not take it.
use contigo::sim::SimWindow;
use contigo_gemm8::Gemm8Model;

fn open(window: SimWindow<Gemm8Model>) {
    let _ = window.simple();
}

fn main() {}
