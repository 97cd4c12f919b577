//! Any text, as the settings of each driver, on its simulated core.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| contigo_fuzz::settings::run(bytes));
