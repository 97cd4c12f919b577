//! The command-line tool as its users run it: each command has a file, and so has each way to be
//! refused.
#![allow(
    clippy::indexing_slicing,
    reason = "a JSON value answers an absent key with null, and an assertion then fails"
)]

mod board;
mod clocks;
mod copied;
mod demo;
mod doctor;
mod fpga;
#[cfg(all(feature = "cuda", target_pointer_width = "64"))]
mod gpu;
mod listed;
mod nvtx;
mod overlay;
mod pages;
mod refused;
mod reset;
mod selftest;
mod tables;
mod trace;
mod usage;

use contigo_testkit::emulated;
use serde_json::Value;
use std::{error::Error, fs, path::PathBuf, process::Output};
use tempfile::TempDir;

type Outcome = Result<(), Box<dyn Error>>;

/// Held-out images, in a folder of the package that the program is built from.
const HELD_OUT: u64 = 897;
/// Of the demo's memory: what `Region` cleans and invalidates at first touch.
const REGION_BYTES: u64 = 8192;

/// One run of the program in a folder of its own.
struct Run {
    folder: TempDir,
    output: Output,
}

impl Run {
    fn of(args: &[&str]) -> Result<Self, Box<dyn Error>> {
        Self::within(None, args)
    }

    /// The same with `COLUMNS` in its environment, or without.
    fn within(columns: Option<u16>, args: &[&str]) -> Result<Self, Box<dyn Error>> {
        let folder = TempDir::new()?;
        let mut command = emulated::command(env!("CARGO_BIN_EXE_contigo"));
        command.args(args).current_dir(folder.path()).env_remove("COLUMNS");
        if let Some(columns) = columns {
            command.env("COLUMNS", columns.to_string());
        }
        let output = command.output()?;
        Ok(Self { folder, output })
    }

    fn status(&self) -> Option<i32> {
        self.output.status.code()
    }

    fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.output.stdout).into_owned()
    }

    fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }

    /// Standard output as JSON, after success.
    fn json(&self) -> Result<Value, Box<dyn Error>> {
        assert_eq!(self.status(), Some(0), "{}", self.stderr());
        Ok(serde_json::from_slice(&self.output.stdout)?)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// The number that a header line of the weights file gives.
fn promised(key: &str) -> Result<u64, Box<dyn Error>> {
    let text = fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../examples/gemm8/data/digits-mlp.txt"
    ))?;
    let line = text.lines().find_map(|line| line.strip_prefix(key)).ok_or("no such line")?;
    Ok(line.split_whitespace().next().ok_or("no number")?.parse()?)
}
