//! Any bytes, as the files of a device tree, below a copied machine.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| contigo_fuzz::device_tree::run(bytes));
