// A device's registers belong to one driver.
use contigo::{
    sim::SimWindow,
};
use contigo_gemm8::{Gemm8, Gemm8Model};

fn twice(window: SimWindow<Gemm8Model>) {
    let _one = Gemm8::open_simulated(window);
    let _two = Gemm8::open_simulated(window); //~ E0382 use of moved value: `window`
}

fn main() {}
