//! Any bytes, as a `.hwh`: each question about it is answered or refused.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| contigo_fuzz::hwh::run(bytes));
