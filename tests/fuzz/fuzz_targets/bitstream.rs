//! Any bytes, as a `.bit`, `.bin`, `.rbf` or `.xclbin`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| contigo_fuzz::bitstream::run(bytes));
