//! Usage errors, help, and a reader of the output that goes away.

use super::{Outcome, Run};
use contigo_testkit::emulated;
use std::process::Stdio;

#[test]
fn wrong_usage_is_status_2_and_says_how() -> Outcome {
    let cases: &[(&[&str], &str)] = &[
        (&["demo", "--memory", "udmabuf0"], "there is no such kind; write contigo[:DEVICE] or "),
        (
            &["demo", "--memory", "u-dma-buf:../../etc/passwd"],
            "at byte 12: a name is of ASCII, without spaces and without /; write u-dma-buf:NAME;",
        ),
        (&["selftest", "--device", "vfio:1"], "a PCI function is written as 0000:01:00.0"),
        (&["demo", "--images", "898"], "a number from 1 to 897"),
        (&["demo", "--images", "0"], "a number from 1 to 897"),
        (&["demo", "--images", "many"], "a number from 1 to 897"),
        (
            &["demo", "--device", "rtl:gemm8"],
            "cargo run -p contigo-rtl --bin rtl-demo -- --device rtl:gemm8",
        ),
        (
            &["demo", "--device", "sim:zdma"],
            "the engine is the simulated gemm8, or the GPU of --memory cuda",
        ),
        (&["demo", "--seed", "-1"], "for '--seed <S>'"),
        (
            &["selftest", "--driver", "gpu"],
            "no driver is called gpu and copies memory; there are axi_dma, ",
        ),
        (&["selftest", "--driver", "sim-pl330"], "there are axi_dma, "),
        (&["selftest", "--dev-mem", "f8003000"], "write an address as 0xf8003000"),
        (&["selftest", "--seconds", "0"], "1..=86400"),
        (&["selftest", "--jobs", "10", "--seconds", "1"], "cannot be used with"),
        (&["reset", "gpiochip99:5", "--active", "down"], "write low or high"),
        (&["reset", "--dry-run"], "<LINE>"),
        (&["fpga"], "Usage:"),
        (&["fpga", "load"], "<FILE>"),
        (&["fpga", "load", "a.bit", "--outside", "/dev/uio0"], "--partial"),
        (&["fpga", "load", "a.bit", "--force"], "'--force'"),
        (&["demmo"], "demo"),
        (&[], "Usage:"),
    ];
    for (args, said) in cases {
        Run::of(args)?.ends(2).complains(&[said]);
    }
    Ok(())
}

#[test]
fn a_reader_that_has_gone_is_no_panic() -> Outcome {
    let mut child = emulated::command(env!("CARGO_BIN_EXE_contigo"))
        .arg("boards")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    drop(child.stdout.take());
    let output = child.wait_with_output()?;
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0));
    Ok(())
}

/// The tool that was built with no decoder.
#[cfg(not(feature = "log"))]
#[test]
fn without_its_decoder_log_says_how_to_get_it() -> Outcome {
    Run::of(&["log", "/nowhere"])?.refuses("cargo install --path tools/contigo --features log");
    Ok(())
}
