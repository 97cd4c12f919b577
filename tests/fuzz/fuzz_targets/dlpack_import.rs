//! Any bytes, as a tensor: imported, or refused by a rule that it breaks.
#![no_main]

use contigo_testkit::fuzz_dlpack::Rig;
use libfuzzer_sys::fuzz_target;

thread_local! {
    // libFuzzer has one thread.
    static RIG: &'static Rig = Box::leak(Box::new(Rig::new()));
}

fuzz_target!(|bytes: &[u8]| {
    RIG.with(|rig| rig.run(bytes));
});
