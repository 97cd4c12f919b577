//! Any calls on buffers, tensors and jobs, as the bindings make them: each keeps the rules of a
//! model.
#![no_main]

#[path = "../../../bindings/objects/tests/random/world/mod.rs"]
mod world;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| world::run(bytes));
