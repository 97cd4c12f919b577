//! The demo's digits through gemm8's Verilog: as many are right as on the model, bit for bit.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that panics has failed, which is its purpose")]

#[path = "cores/skip.rs"]
mod skip;

use contigo_rtl::{RtlConfig, RtlModel};
use std::process::Command;

#[test]
fn the_digits_are_those_of_the_demo() {
    if skip::or_skip("demo::the_digits_are_those_of_the_demo", RtlModel::new("gemm8", RtlConfig::default())).is_none() {
        return;
    }
    let run = Command::new(env!("CARGO_BIN_EXE_rtl-demo")).args(["--device", "rtl:gemm8"]).output().unwrap();
    let text = String::from_utf8_lossy(&run.stdout);
    println!("{text}");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    assert!(text.contains("right         869 of 897 images"), "{text}");
}
