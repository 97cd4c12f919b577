//! Any bytes, as HLS' `x<name>_hw.h`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| contigo_fuzz::header::run(bytes));
