//! The demo's digits through cores in Verilog: as many are right as on the model, bit for bit.

use super::skip;
use contigo_rtl::{Core, PowerOn};
use std::fs;
use std::process::{Command, Output};

fn demo(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rtl-demo")).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

fn is_here() -> bool {
    skip::or_skip(Core::open("gemm8", PowerOn::Zeros)).is_some()
}

#[test]
fn the_digits_are_those_of_the_demo() {
    if !is_here() {
        return;
    }
    let run = demo(&["--device", "rtl:gemm8"]);
    println!("{}", text(&run.stdout));
    assert!(run.status.success(), "{}", text(&run.stderr));
    assert!(text(&run.stdout).contains("right         869 of 897 images"));
}

#[test]
fn a_trace_and_json_are_there_for_the_asking() {
    if !is_here() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("demo.vcd");
    let run = demo(&["--images", "2", "--json", "--trace", path.to_str().unwrap()]);
    let expected = r#"{"engine":"rtl:gemm8","seed":1,"images":2,"correct":2,"scores_checked":32,"mismatches":0,"jobs":4,"cycles":"#;
    assert!(text(&run.stdout).starts_with(expected), "{}{}", text(&run.stdout), text(&run.stderr));
    assert!(fs::read_to_string(path).unwrap().contains("$scope"), "the core's signals");
}

#[test]
fn wrong_words_are_answered_with_the_right_ones() {
    for (arguments, answer) in [
        (["--device", "rtl:gem"], "there are rtl:gemm8, rtl:nngen, rtl:nngen_gated"),
        (["--images", "898"], "write a number from 1 to 897"),
        (["--pictures", "3"], "usage: rtl-demo"),
    ] {
        let run = demo(&arguments);
        assert_eq!((run.status.code(), text(&run.stdout)), (Some(2), ""));
        assert!(text(&run.stderr).contains(answer), "{}", text(&run.stderr));
    }
}
