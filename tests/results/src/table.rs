//! The table of `docs/results/README.md`.

use crate::report::{Latency, Mode, Report};
use std::fmt::Write;

/// The line before the table, and the one after it.
pub const START: &str = "<!-- The table of results: tests/results writes it. -->";
/// See [`START`].
pub const END: &str = "<!-- Its end. -->";

const HEAD: &str =
    "| board | kernel | engine | by interrupt: p50, p99, max | polled: p50, p99, max | \
     cyclictest, max | rows | soak | file |
|---|---|---|---|---|---|---|---|---|
";
const NOTHING: &str = "**No result of silicon yet.** None was sent in.\n";

/// Results in the order of their files.
#[derive(Debug, Default)]
pub struct Table(String);

impl Table {
    /// One result more.
    pub fn add(&mut self, file: &str, report: &Report) {
        let board = report.board.name.as_deref().unwrap_or("?");
        let rt = if report.kernel.preempt_rt { ", PREEMPT_RT" } else { "" };
        let counts = report.counts;
        let rows = format!(
            "{} passed, {} failed, {} skipped",
            counts.passed, counts.failed, counts.skipped
        );
        let soak = report.soak.as_ref().map_or("–".into(), |soak| {
            format!(
                "{} min, {} jobs, {} kills, {} faults",
                soak.seconds / 60,
                soak.jobs,
                soak.kills,
                soak.faults_unexpected
            )
        });
        let cyclic =
            report.cyclictest.as_ref().map_or("–".into(), |test| format!("{} µs", test.max_us));
        for engine in &report.engines {
            let of = |mode| {
                report
                    .latency
                    .iter()
                    .find(|latency| latency.engine == engine.name && latency.mode == mode)
            };
            let [interrupt, polled] = [Mode::Interrupt, Mode::Polled]
                .map(|mode| of(mode).map_or("–".into(), microseconds));
            let _ = writeln!(
                self.0,
                "| {board} | {}{rt} | {} | {interrupt} | {polled} | {cyclic} | {rows} | {soak} | \
                 [{file}]({file}) |",
                plain(&report.kernel.release),
                plain(&engine.name),
            );
        }
    }

    /// With its head; a sentence where there is no result.
    #[must_use]
    pub fn text(&self) -> String {
        if self.0.is_empty() { NOTHING.into() } else { format!("{HEAD}{}", self.0) }
    }

    /// `page` with this table between [`START`] and [`END`]; `None` where it has no such lines.
    #[must_use]
    pub fn within(&self, page: &str) -> Option<String> {
        let (before, rest) = page.split_once(START)?;
        let (_, after) = rest.split_once(END)?;
        Some(format!("{before}{START}\n\n{}\n{END}{after}", self.text()))
    }
}

/// In µs with one digit.
fn microseconds(latency: &Latency) -> String {
    let [p50, p99, max] = [latency.p50_ns, latency.p99_ns, latency.max_ns]
        .map(|ns| format!("{}.{}", ns / 1000, ns % 1000 / 100));
    format!("{p50}, {p99}, {max} µs of {}", latency.n)
}

/// A text of a report, for a cell: without characters that Markdown reads.
fn plain(text: &str) -> String {
    text.chars()
        .map(
            |letter| {
                if letter.is_control() || "|[]<>`\\*_".contains(letter) { ' ' } else { letter }
            },
        )
        .collect()
}
