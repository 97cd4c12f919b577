//! A report, as far as its sense is looked at. The schema has seen to the rest.
#![allow(missing_docs, reason = "the schema says what each field is")]

use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Clone, Debug, Deserialize)]
pub struct Report {
    pub tool: Tool,
    pub taken_unix_s: u64,
    pub emulated: Option<String>,
    pub board: Board,
    pub kernel: Kernel,
    pub engines: Vec<Engine>,
    pub options: Options,
    pub counts: Counts,
    pub rows: Vec<Row>,
    pub latency: Vec<Latency>,
    pub cyclictest: Option<Cyclictest>,
    pub energy: Vec<Energy>,
    pub soak: Option<Soak>,
    pub missing: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Tool {
    pub version: String,
    pub commit: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Board {
    pub name: Option<String>,
    pub may_be: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Kernel {
    pub release: String,
    pub preempt_rt: bool,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Engine {
    pub name: String,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Options {
    pub lab: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
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

#[derive(Clone, Debug, Deserialize)]
pub struct Row {
    pub kind: String,
    pub name: String,
    pub memory: String,
    pub engine: String,
    pub mode: String,
    pub jobs: u64,
    pub mismatches: u64,
    pub canary_hits: u64,
    pub status: Status,
    pub reason: String,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Latency {
    pub memory: String,
    pub engine: String,
    pub mode: String,
    pub n: u64,
    pub without_interrupt: u64,
    pub resolution_ns: u64,
    pub min_ns: u64,
    pub p50_ns: u64,
    pub p99_ns: u64,
    pub max_ns: u64,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Cyclictest {
    pub min_us: u64,
    pub mean_us: u64,
    pub max_us: u64,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Energy {
    pub rail: String,
    pub memory: String,
    pub engine: String,
    pub jobs: u64,
    pub microjoules: u64,
    pub nanojoules_per_job: u64,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Soak {
    pub planned_s: u64,
    pub seconds: u64,
    pub ended_by: String,
    pub jobs: u64,
    pub bytes: u64,
    pub faults_unexpected: u64,
    pub kills: u64,
    pub unbinds: u64,
    pub rss_first_kib: u64,
    pub rss_last_kib: u64,
    pub rss_max_kib: u64,
    pub rss_bound_kib: u64,
    pub engines: Vec<Soaked>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Soaked {
    pub name: String,
    pub polled: u64,
    pub interrupt: u64,
    pub queued: u64,
}
