//! Any bytes, as a kernel's map in JSON.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| contigo_fuzz::json::run(bytes));
