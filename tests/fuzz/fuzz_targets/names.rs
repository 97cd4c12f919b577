//! Any text, as the name of a memory and of a device.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| contigo_fuzz::names::run(bytes));
