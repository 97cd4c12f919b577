//! The tool of `examples/nvtx_lines.rs`, the program of `examples/copies.rs`, and the lines that
//! the one writes of the other.
#![allow(dead_code, reason = "each test takes of it")]

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::{env, fs};

/// The variable that names the tool.
pub(crate) const VARIABLE: &str = if cfg!(target_pointer_width = "64") {
    "NVTX_INJECTION64_PATH"
} else {
    "NVTX_INJECTION32_PATH"
};

/// A file that Cargo made of an example of this package, beside its tests.
fn example(name: &str) -> PathBuf {
    let own = env::current_exe().unwrap();
    let built = own.parent().unwrap().parent().unwrap().join("examples").join(name);
    assert!(
        built.exists(),
        "cargo test builds {} too, unless its arguments select other targets",
        built.display()
    );
    built
}

/// The tool.
pub(crate) fn library() -> PathBuf {
    example("libnvtx_lines.so")
}

/// The program, with no tool.
pub(crate) fn program() -> Command {
    let mut program = Command::new(example("copies"));
    program.env_remove(VARIABLE).stdin(Stdio::null());
    program
}

/// A line of the tool's.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) thread: u64,
    pub(crate) verb: String,
    /// Of a range that another thread may end; 0 for everything else.
    pub(crate) id: u64,
    pub(crate) domain: String,
    pub(crate) name: String,
    pub(crate) payload: Option<u64>,
}

/// Runs `program` with the tool: its output, and the tool's lines.
pub(crate) fn heard(program: &mut Command) -> (String, Vec<Line>) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lines");
    let output = program.env(VARIABLE, library()).env("NVTX_LINES", &file).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let lines = fs::read_to_string(&file).unwrap_or_default();
    (String::from_utf8(output.stdout).unwrap(), lines.lines().map(Line::read).collect())
}

impl Line {
    fn read(text: &str) -> Self {
        let [thread, verb, domain, name, payload] = text.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{text}")
        };
        let (verb, id) = verb.split_once(':').unwrap_or((verb, "0"));
        Self {
            thread: thread.parse().unwrap(),
            verb: verb.to_owned(),
            id: id.parse().unwrap(),
            domain: domain.to_owned(),
            name: name.to_owned(),
            payload: payload.parse().ok(),
        }
    }
}
