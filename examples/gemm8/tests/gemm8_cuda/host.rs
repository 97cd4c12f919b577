//! The kernels' source, compiled for this machine's processor.

use super::{CRATE, jobs::Job};
use contigo_testkit::emulated;
use std::{
    io::Write,
    iter,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
};

/// The compiled host program, in a folder that goes with it.
pub(crate) struct Host {
    _folder: tempfile::TempDir,
    program: PathBuf,
}

impl Host {
    /// None, with the reason said, where `test` cannot run.
    pub(crate) fn build(test: &str, more: &[&str]) -> Option<Self> {
        let skip = |why: &str| emulated::skipped(test, why);
        if let Some(why) = emulated::why() {
            skip(&why);
            return None;
        }
        if !Command::new("c++").arg("--version").output().is_ok_and(|output| output.status.success()) {
            skip("c++ is not here");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("host");
        let compile = |source: &Path, flags: &[&str]| {
            let warnings = ["-std=c++11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O2"];
            Command::new("c++").args(warnings).args(flags).arg(source).arg("-o").arg(&program).output().unwrap()
        };
        let empty = folder.path().join("empty.cpp");
        std::fs::write(&empty, "int main() {}\n").unwrap();
        if !compile(&empty, more).status.success() {
            skip(&format!("c++ {} does not link", more.join(" ")));
            return None;
        }
        let output = compile(&Path::new(CRATE).join("tests/gemm8_cuda/host.cpp"), more);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Some(Self { _folder: folder, program })
    }

    /// Runs all of `jobs` in one process, and says which one came out otherwise than expected.
    pub(crate) fn run(&self, jobs: &[Job]) {
        let mut child = Command::new(&self.program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let output = thread::scope(|scope| {
            scope.spawn(move || jobs.iter().try_for_each(|job| stdin.write_all(&input(job))));
            child.wait_with_output().unwrap()
        });
        assert!(output.status.success(), "{}", output.status);
        let mut rest = output.stdout.as_slice();
        for job in jobs {
            let (found, after) = rest.split_at(job.expected.len());
            let wrong = found.iter().zip(&job.expected).position(|(found, expected)| found != expected);
            assert_eq!(wrong, None, "the first wrong byte of {}", job.what());
            rest = after;
        }
        assert!(rest.is_empty(), "{} bytes more than asked for", rest.len());
    }
}

/// As host.cpp reads it.
fn input(job: &Job) -> Vec<u8> {
    let header = iter::once(job.kernel as u32).chain(job.grid).chain(job.arguments).flat_map(u32::to_ne_bytes);
    header.chain(job.operands.iter().flatten().copied()).collect()
}
