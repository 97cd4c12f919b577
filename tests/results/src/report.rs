//! A report as `contigo-board-tests --report` writes it, field by field. A field that is missing,
//! unknown or of another type is an error; `sanity` checks the numbers against one another.
#![allow(missing_docs, reason = "tests/src/bin/contigo-board-tests/report says what each field is")]

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::num::NonZeroU64;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    #[serde(deserialize_with = "first_schema")]
    pub schema: u32,
    pub tool: Tool,
    pub taken_unix_s: u64,
    pub emulated: Option<String>,
    pub board: Board,
    pub kernel: Kernel,
    pub processor: Processor,
    pub c_library: String,
    pub memories: Vec<Memory>,
    pub engines: Vec<Engine>,
    pub options: Options,
    pub counts: Counts,
    pub rows: Vec<Row>,
    pub latency_definition: String,
    pub latency: Vec<Latency>,
    pub cyclictest: Option<Cyclictest>,
    pub energy: Vec<Energy>,
    pub soak: Option<Soak>,
    pub missing: BTreeMap<Part, String>,
}

/// It rises when a reader of older files would misread a new one.
fn first_schema<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    match u32::deserialize(from)? {
        1 => Ok(1),
        other => Err(D::Error::custom(format_args!("this is schema {other}, and 1 is known"))),
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    pub name: ToolName,
    pub version: String,
    #[serde(deserialize_with = "commit")]
    pub commit: Option<String>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub enum ToolName {
    #[serde(rename = "contigo-board-tests")]
    BoardTests,
}

fn commit<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let commit = Option::<String>::deserialize(from)?;
    let is_hash = |text: &str| {
        (7..=64).contains(&text.len())
            && text.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'))
    };
    match commit {
        Some(text) if !is_hash(&text) => {
            Err(D::Error::custom(format_args!("{text:?} is no hash of a commit")))
        }
        commit => Ok(commit),
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Board {
    pub name: Option<String>,
    pub may_be: Vec<String>,
    pub model: Option<String>,
    pub compatible: Vec<String>,
    pub soc: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kernel {
    pub release: String,
    pub version: String,
    pub preempt_rt: bool,
    pub command_line: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Processor {
    pub architecture: String,
    pub model: Option<String>,
    pub processors: NonZeroU64,
    pub pointer_bits: u32,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    pub name: String,
    pub why_not: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Engine {
    pub name: String,
    pub device: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    pub jobs: NonZeroU64,
    pub seed: u64,
    pub filter: String,
    pub lab: bool,
    pub user: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    pub passed: usize,
    pub failed: usize,
    pub skipped: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Passed,
    Failed,
    Skipped,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Jobs,
    Check,
    Latency,
    Energy,
}

/// How a job's end was waited for; a check has no mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Mode {
    #[serde(rename = "")]
    None,
    #[serde(rename = "polled")]
    Polled,
    #[serde(rename = "interrupt")]
    Interrupt,
}

/// What a report may leave out, if it says why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    Latency,
    Cyclictest,
    Energy,
    Soak,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    pub kind: Kind,
    pub name: String,
    pub memory: String,
    pub engine: String,
    pub mode: Mode,
    pub user: String,
    pub jobs: u64,
    pub bytes: u64,
    pub mismatches: u64,
    pub canary_hits: u64,
    pub interrupts: Option<u64>,
    pub allocations: u64,
    pub syscalls: Option<u64>,
    pub seconds: f64,
    pub status: Status,
    pub reason: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Latency {
    pub memory: String,
    pub engine: String,
    pub mode: Mode,
    pub len_bytes: NonZeroU64,
    pub n: NonZeroU64,
    pub without_interrupt: u64,
    pub resolution_ns: NonZeroU64,
    pub clock_read_ns: u64,
    pub min_ns: u64,
    pub p50_ns: u64,
    pub p99_ns: u64,
    pub max_ns: u64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cyclictest {
    pub arguments: Vec<String>,
    pub n: NonZeroU64,
    pub min_us: u64,
    pub mean_us: u64,
    pub max_us: u64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Energy {
    pub rail: String,
    pub memory: String,
    pub engine: String,
    pub jobs: NonZeroU64,
    pub len_bytes: NonZeroU64,
    pub readings: u64,
    pub idle_microwatts: i64,
    pub microjoules: u64,
    pub nanojoules_per_job: u64,
}

/// Why a soak ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum EndedBy {
    #[serde(rename = "time")]
    Time,
    #[serde(rename = "SIGINT")]
    Interrupted,
    #[serde(rename = "SIGTERM")]
    Terminated,
    #[serde(rename = "fault")]
    Fault,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Soak {
    pub seed: u64,
    pub planned_s: u64,
    pub seconds: u64,
    pub ended_by: EndedBy,
    pub jobs: u64,
    pub bytes: u64,
    pub rounds: u64,
    pub faults_expected: u64,
    pub faults_unexpected: u64,
    pub kills: u64,
    pub unbinds: u64,
    pub pressures: u64,
    pub clock_moves: u64,
    pub rss_first_kib: u64,
    pub rss_last_kib: u64,
    pub rss_max_kib: u64,
    pub rss_bound_kib: u64,
    pub engines: Vec<Soaked>,
    pub left_out: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Soaked {
    pub name: String,
    pub polled: u64,
    pub interrupt: u64,
    pub queued: u64,
}
