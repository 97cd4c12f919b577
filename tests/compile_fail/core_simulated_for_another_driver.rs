// The window of a simulated device names its core: the driver of another one does not take it.
use contigo::sim::SimWindow;
use contigo_gemm8::Gemm8Model;

fn open(window: SimWindow<Gemm8Model>) {
    let _ = window.simple(); //~ E0599 no method named `simple` found for struct `SimWindow<Gemm8Model>` in the current scope
}

fn main() {}
