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
mod map;
mod nvtx;
mod overlay;
mod pages;
mod refused;
mod selftest;
mod usage;

use contigo_testkit::emulated;
use pages::machines::Root;
use serde_json::Value;
use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::process::Output;
use tempfile::TempDir;

type Answer<T> = Result<T, Box<dyn Error>>;
type Outcome = Answer<()>;

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
    fn of(args: &[&str]) -> Answer<Self> {
        Self::with(args, &[])
    }

    /// The same with more variables in its environment.
    fn with(args: &[&str], variables: &[(&str, &str)]) -> Answer<Self> {
        let folder = TempDir::new()?;
        let mut command = emulated::command(env!("CARGO_BIN_EXE_contigo"));
        command.args(args).current_dir(folder.path()).env_remove("COLUMNS");
        let output = command.envs(variables.iter().copied()).output()?;
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

    /// Checks the exit status.
    #[track_caller]
    fn ends(self, status: i32) -> Self {
        assert_eq!(self.status(), Some(status), "{}{}", self.stdout(), self.stderr());
        self
    }

    /// Checks that standard output has each of these texts.
    #[track_caller]
    fn says(self, parts: &[&str]) -> Self {
        let text = self.stdout();
        for part in parts {
            assert!(text.contains(part), "{part:?} is not in:\n{text}");
        }
        self
    }

    /// Checks that standard error has each of these texts.
    #[track_caller]
    fn complains(self, parts: &[&str]) -> Self {
        let text = self.stderr();
        for part in parts {
            assert!(text.contains(part), "{part:?} is not in:\n{text}");
        }
        self
    }

    /// Checks for status 1, an empty standard output, and one line on standard error that begins
    /// with the tool's name and has this text.
    #[track_caller]
    fn refuses(self, why: &str) -> Self {
        let run = self.ends(1).complains(&[why]);
        assert_eq!((run.stdout().as_str(), run.stderr().lines().count()), ("", 1), "{why}");
        assert!(run.stderr().starts_with("contigo: "), "{}", run.stderr());
        run
    }

    /// Standard output as JSON, after any exit status.
    fn any_json(&self) -> Answer<Value> {
        Ok(serde_json::from_slice(&self.output.stdout)?)
    }

    /// Standard output as JSON, after success.
    #[track_caller]
    fn json(self) -> Answer<Value> {
        self.ends(0).any_json()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// A copy of a machine in a folder of its own, empty at first.
struct Copied {
    folder: TempDir,
    root: Root,
}

impl Copied {
    fn new() -> Answer<Self> {
        let folder = TempDir::new()?;
        Ok(Self { root: Root(folder.path().to_owned()), folder })
    }

    /// Runs the program on it.
    fn run(&self, args: &[&str]) -> Answer<Run> {
        let place = self.folder.path().to_str().ok_or("a path that is not text")?;
        Run::of(&[args, &["--machine", place]].concat())
    }
}

/// The number that a header line of the weights file gives.
fn promised(key: &str) -> Answer<u64> {
    let text = fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../examples/gemm8/data/digits-mlp.txt"
    ))?;
    let line = text.lines().find_map(|line| line.strip_prefix(key)).ok_or("no such line")?;
    Ok(line.split_whitespace().next().ok_or("no number")?.parse()?)
}
