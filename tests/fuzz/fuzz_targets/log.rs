//! Any bytes, as the ring of a log, and as the ELF file of its program.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| contigo_fuzz::log::run(bytes));
