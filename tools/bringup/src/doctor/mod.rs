//! The doctor: reads a machine's files, and reports what will keep DMA from working on it.
//!
//! A check is a row of a table with one small function. Each area has a file, and `facts.rs` has
//! the facts that several areas use. Nothing is written, and no device is opened. Registers around
//! the fabric's ports are judged if the caller has read them ([`doctor_with`]).

mod access;
mod cma;
mod cuda;
mod dev_node;
mod fabric;
mod facts;
mod kernel;
mod libc;
mod masters;
mod ports;
mod u_dma_buf;
mod uio;
mod vfio;

use crate::machine::Machine;
use crate::plain;
use crate::ports::Fact;
use facts::Facts;
use std::path::PathBuf;

/// The longest list of numbers and names in a finding, in letters: a machine may have thousands.
const FOUND_MAX: usize = 400;

/// One thing that can be wrong with a machine.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    /// Its name. Scripts rely on it, so it never changes.
    pub id: &'static str,
    /// The condition that should hold.
    pub title: &'static str,
    /// The reason why it matters.
    pub cause: &'static str,
    /// The cure: a command, a line of device tree, or a step.
    pub cure: &'static str,
    /// The source: a thread, a kernel file or a manual.
    pub source: &'static str,
    look: fn(&Facts<'_>) -> Outcome,
}

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// As it should be.
    Fine,
    /// It does not apply to this machine, or the machine's files do not tell.
    Skipped,
    /// It may be intended.
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

/// The outcome of one check: a verdict, and the numbers and names behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The verdict.
    pub verdict: Verdict,
    /// The numbers and names that were found, or the reason why none were.
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

/// A note that lists `bad`, or `good` if the list is empty.
fn noted(bad: &[String], good: impl Into<String>) -> Outcome {
    if bad.is_empty() { fine(good) } else { note(bad.join(", ")) }
}

/// Turns a fault into a note, because a machine can work without it.
fn choice(outcome: Outcome) -> Outcome {
    if outcome.verdict == Verdict::Fault { note(outcome.found) } else { outcome }
}

/// A check, and its outcome on this machine.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The part of the machine that was checked.
    pub area: &'static str,
    /// The check.
    pub check: &'static Check,
    /// Its outcome.
    pub outcome: Outcome,
}

/// The folder is not that of a machine, or a copy is larger than a machine.
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
    /// A copy has more files, or longer files, than a machine: the last ones were not read.
    #[error(
        "{0} has more in its /proc and /sys than a machine, and was not read to its end: copy both \
         again, as text"
    )]
    TooLarge(PathBuf),
}

/// All checks, each after the name of the part of the machine that it checks.
pub fn checks() -> impl Iterator<Item = (&'static str, &'static Check)> {
    let areas: [(_, &[Check]); 16] = [
        ("CMA", cma::CHECKS),
        ("u-dma-buf", u_dma_buf::CHECKS),
        ("dma-heap", cma::HEAPS),
        ("coherency", masters::COHERENCY),
        ("UIO", uio::CHECKS),
        ("contigo", dev_node::CHECKS),
        ("VFIO", vfio::CHECKS),
        ("memory", masters::REACH),
        ("memory", kernel::MEMORY),
        ("fabric", fabric::CHECKS),
        ("ports", ports::CHECKS),
        ("rights", access::CHECKS),
        ("latency", kernel::LATENCY),
        ("kernel", kernel::CONFIG),
        ("C library", libc::CHECKS),
        ("CUDA", cuda::CHECKS),
    ];
    areas.into_iter().flat_map(|(area, checks)| checks.iter().map(move |check| (area, check)))
}

/// Runs all checks on `machine`.
///
/// # Errors
/// [`DoctorError`]: the folder is not that of a machine, or a copy is larger than a machine.
pub fn doctor(machine: &Machine) -> Result<Vec<Finding>, DoctorError> {
    doctor_with(machine, None)
}

/// Runs all checks with the registers around the ports ([`crate::ports::read`]), or with the reason
/// why they could not be read.
///
/// # Errors
/// [`DoctorError`]: the folder is not that of a machine, or a copy is larger than a machine.
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
    let look = |(area, check): (_, &'static Check)| {
        let Outcome { verdict, found } = (check.look)(&facts);
        Finding { area, check, outcome: Outcome { verdict, found: plain(&found, FOUND_MAX) } }
    };
    let findings = checks().map(look).collect();
    // A file that was not read would be reported as a missing one.
    if machine.is_spent() { Err(DoctorError::TooLarge(machine.path(""))) } else { Ok(findings) }
}
