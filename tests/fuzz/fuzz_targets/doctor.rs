//! Any bytes, as a copied machine: its files, links, pipes and folders.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| contigo_fuzz::doctor::run(bytes));
