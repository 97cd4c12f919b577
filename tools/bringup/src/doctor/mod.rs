//! The doctor: reads a machine's files, and says what will keep DMA from working on it.
//!
//! A check is a row of a table with one small function. Each area has a file, and `facts.rs` has
//! what several of them read. Nothing is written, and no device is opened. Registers around the
//! fabric's ports are judged where the caller has read them ([`doctor_with`]).

mod access;
mod cma;
mod cuda;
mod fabric;
mod facts;
mod guard;
mod kernel;
mod libc;
mod masters;
mod ports;
mod u_dma_buf;
mod uio;
mod vfio;

use crate::{machine::Machine, plain, ports::Fact};
use facts::Facts;
use std::path::PathBuf;

/// The most letters of the numbers and names behind a verdict: a machine may have thousands.
const FOUND_MAX: usize = 400;

/// One thing that can be wrong with a machine.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    /// Its name, which stays the same: for scripts.
    pub id: &'static str,
    /// The part of the machine that it looks at.
    pub area: &'static str,
    /// The thing that should hold.
    pub title: &'static str,
    /// Why it matters.
    pub cause: &'static str,
    /// A command, a line of device tree, or the step that mends it.
    pub cure: &'static str,
    /// The thread, the kernel's file or the manual that it comes from.
    pub source: &'static str,
    look: fn(&Facts<'_>) -> Outcome,
}

/// The end of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// As it should be.
    Fine,
    /// It does not apply to this machine, or its files do not tell.
    Skipped,
    /// It may be meant so.
    Note,
    /// It keeps something from working.
    Fault,
}

impl Verdict {
    /// Its name, in tables and in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Fine => "fine",
            Self::Skipped => "skipped",
            Self::Note => "note",
            Self::Fault => "fault",
        }
    }
}

/// The answer of one check: a verdict, and the numbers and names behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The verdict.
    pub verdict: Verdict,
    /// The numbers and names that were found, or why nothing could be.
    pub found: String,
}

fn fine(found: impl Into<String>) -> Outcome {
    Outcome { verdict: Verdict::Fine, found: found.into() }
}

fn skipped(found: impl Into<String>) -> Outcome {
    Outcome { verdict: Verdict::Skipped, found: found.into() }
}

fn note(found: impl Into<String>) -> Outcome {
    Outcome { verdict: Verdict::Note, found: found.into() }
}

fn fault(found: impl Into<String>) -> Outcome {
    Outcome { verdict: Verdict::Fault, found: found.into() }
}

/// A fault that lists `bad`, or `good` where the list is empty.
fn none_of(bad: &[String], good: impl Into<String>) -> Outcome {
    if bad.is_empty() { fine(good) } else { fault(bad.join(", ")) }
}

/// The same as a note.
fn noted(bad: &[String], good: impl Into<String>) -> Outcome {
    if bad.is_empty() { fine(good) } else { note(bad.join(", ")) }
}

/// A machine can do without it: a note instead of a fault.
fn choice(outcome: Outcome) -> Outcome {
    if outcome.verdict == Verdict::Fault { note(outcome.found) } else { outcome }
}

/// A check, and its answer here.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The check.
    pub check: &'static Check,
    /// Its answer.
    pub outcome: Outcome,
}

/// The folder is no machine's, or a copy is larger than a machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DoctorError {
    /// There is no `proc/meminfo`: nothing is mounted, or the folder is another one.
    #[error(
        "{0} cannot be read: mount /proc and /sys, or name a folder that has a machine's copies of \
         both"
    )]
    NoProc(PathBuf),
    /// `proc/meminfo` does not say how much memory there is.
    #[error("{0} has no line MemTotal: copy the machine's /proc, /sys and /etc again, as text")]
    Nonsense(PathBuf),
    /// A copy has more files, or longer ones, than a machine: the last were not read.
    #[error(
        "{0} has more in its /proc and /sys than a machine, and was not read to its end: copy both \
         again, as text"
    )]
    TooLarge(PathBuf),
}

/// Every check, area by area.
pub fn checks() -> impl Iterator<Item = &'static Check> {
    let areas: [&[Check]; 16] = [
        cma::CHECKS,
        u_dma_buf::CHECKS,
        cma::HEAPS,
        masters::COHERENCY,
        uio::CHECKS,
        guard::CHECKS,
        vfio::CHECKS,
        masters::REACH,
        kernel::MEMORY,
        fabric::CHECKS,
        ports::CHECKS,
        access::CHECKS,
        kernel::LATENCY,
        kernel::CONFIG,
        libc::CHECKS,
        cuda::CHECKS,
    ];
    areas.into_iter().flatten()
}

/// Looks at all of `machine`.
///
/// # Errors
/// [`DoctorError`]: the folder is no machine's, or a copy is larger than a machine.
pub fn doctor(machine: &Machine) -> Result<Vec<Finding>, DoctorError> {
    doctor_with(machine, None)
}

/// The same with the registers around the ports ([`crate::ports::read`]), or with the reason why
/// they could not be read.
///
/// # Errors
/// [`DoctorError`]: the folder is no machine's, or a copy is larger than a machine.
pub fn doctor_with(
    machine: &Machine,
    registers: Option<Result<Vec<Fact>, String>>,
) -> Result<Vec<Finding>, DoctorError> {
    let meminfo = machine
        .bytes("proc/meminfo")
        .ok_or_else(|| DoctorError::NoProc(machine.path("proc/meminfo")))?;
    if !String::from_utf8_lossy(&meminfo).lines().any(|line| line.starts_with("MemTotal:")) {
        return Err(DoctorError::Nonsense(machine.path("proc/meminfo")));
    }
    let facts = Facts::of(machine, registers);
    let look = |check: &'static Check| {
        let Outcome { verdict, found } = (check.look)(&facts);
        Finding { check, outcome: Outcome { verdict, found: plain(&found, FOUND_MAX) } }
    };
    let findings = checks().map(look).collect();
    // A file that was not read would be told as one that is not there.
    if machine.is_spent() { Err(DoctorError::TooLarge(machine.path(""))) } else { Ok(findings) }
}
