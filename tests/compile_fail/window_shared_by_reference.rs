// Nor can two drivers share them by reference.
use contigo::{
    sim::SimWindow,
};
use contigo_gemm8::{Gemm8, Gemm8Model};

fn shared(window: &SimWindow<Gemm8Model>) {
    let _ = unsafe { Gemm8::open(window) }; //~ E0277 the trait bound `&SimWindow<Gemm8Model>: contigo::Device` is not satisfied
}

fn main() {}
