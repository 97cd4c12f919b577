//! One result, as a line for a program or for a person.

use crate::report::{Energy, Latency};
use crate::verdict::{Seen, Tried, Wrong};
use contigo::Error;
use serde::{Deserialize, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt::Write;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Status {
    Passed,
    Failed,
    /// It cannot run here; the reason says what is missing.
    Skipped,
}

/// The name of a run: the first half of a row, known before it begins.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Name {
    /// `jobs`, `check`, `latency` or `energy`.
    pub(crate) kind: Cow<'static, str>,
    /// A check's name; for others, all of the below in one word.
    pub(crate) name: String,
    pub(crate) memory: String,
    pub(crate) engine: String,
    /// `polled` or `interrupt`; empty for a check.
    pub(crate) mode: Cow<'static, str>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Row {
    #[serde(flatten)]
    pub(crate) name: Name,
    /// The user's number, which is a text in JSON.
    #[serde(with = "text")]
    pub(crate) user: u32,
    pub(crate) jobs: u64,
    pub(crate) bytes: u64,
    pub(crate) mismatches: u64,
    pub(crate) canary_hits: u64,
    /// `None`: not asked for, or not known.
    pub(crate) interrupts: Option<u64>,
    pub(crate) allocations: u64,
    /// `None`: they could not be counted.
    pub(crate) syscalls: Option<u64>,
    #[serde(serialize_with = "milliseconds")]
    pub(crate) seconds: f64,
    pub(crate) status: Status,
    pub(crate) reason: String,
    /// The figures of a row of this kind alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) latency: Option<Latency>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) energy: Option<Vec<Energy>>,
}

mod text {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(number: &u32, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(number)
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(deserializer: D) -> Result<u32, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

fn milliseconds<S: Serializer>(seconds: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((seconds * 1e3).round() / 1e3)
}

impl Status {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }
}

impl Name {
    pub(crate) fn jobs(memory: &str, engine: &str, mode: &'static str) -> Self {
        Self::figures("jobs", memory, engine, mode)
    }

    pub(crate) fn figures(
        kind: &'static str,
        memory: &str,
        engine: &str,
        mode: &'static str,
    ) -> Self {
        let also = if kind == "jobs" { String::new() } else { format!("/{kind}") };
        Self {
            kind: kind.into(),
            mode: mode.into(),
            ..Self::check(&format!("{memory}/{engine}/{mode}{also}"), memory, engine)
        }
    }

    pub(crate) fn check(name: &str, memory: &str, engine: &str) -> Self {
        let [name, memory, engine] = [name, memory, engine].map(str::to_owned);
        Self { kind: "check".into(), name, memory, engine, mode: "".into() }
    }

    /// With what tells it from others of the same name.
    pub(crate) fn title(&self) -> String {
        let places = [self.memory.as_str(), self.engine.as_str()];
        let places: Vec<_> =
            places.into_iter().filter(|place| self.kind == "check" && !place.is_empty()).collect();
        if places.is_empty() {
            self.name.clone()
        } else {
            format!("{} ({})", self.name, places.join(", "))
        }
    }
}

impl Row {
    /// A row that only says how it ended.
    pub(crate) fn new(name: &Name, status: Status, reason: impl Into<String>) -> Self {
        Self {
            name: name.clone(),
            user: nix::unistd::geteuid().as_raw(),
            jobs: 0,
            bytes: 0,
            mismatches: 0,
            canary_hits: 0,
            interrupts: None,
            allocations: 0,
            syscalls: None,
            seconds: 0.0,
            status,
            reason: reason.into(),
            latency: None,
            energy: None,
        }
    }

    pub(crate) fn of(name: &Name, tried: Tried) -> Self {
        let seen = match tried {
            Ok(seen) => seen,
            Err(Wrong::Skipped(why)) => return Self::new(name, Status::Skipped, why),
            Err(Wrong::Failed(why)) => return Self::new(name, Status::Failed, why),
        };
        let Seen { jobs, bytes, mismatches, canary_hits, failed, detail } = seen;
        let wrong = failed || mismatches + canary_hits > 0;
        let status = if wrong { Status::Failed } else { Status::Passed };
        Self { jobs, bytes, mismatches, canary_hits, ..Self::new(name, status, detail) }
    }

    /// A row that did not begin, because its memory or its engine cannot be opened.
    pub(crate) fn unopened(name: &Name, error: Error) -> Self {
        Self::of(name, Err(Wrong::opening(error)))
    }

    /// For a program: `@row ` and one JSON object.
    pub(crate) fn json(&self) -> String {
        let json = serde_json::to_string(self);
        // No map here has a key that is no text, and nothing else can go wrong.
        format!("@row {}", json.unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}")))
    }

    pub(crate) fn text(&self) -> String {
        let mut line = format!("{:<7} {:<58}", self.status.word(), self.name.title());
        if self.jobs > 0 {
            let Self { jobs, bytes, mismatches, canary_hits, allocations, .. } = self;
            let interrupts = number(self.interrupts, "-");
            let syscalls = number(self.syscalls, "?");
            let _ = write!(
                line,
                " {jobs} jobs, {bytes} bytes, {mismatches} mismatches, {canary_hits} canary hits, \
                 {interrupts} interrupts, {allocations} allocations, {syscalls} system calls"
            );
        }
        if self.name.kind == "jobs" || self.seconds > 0.0 {
            let _ = write!(line, " ({:.1} s)", self.seconds);
        }
        if !self.reason.is_empty() {
            let _ = write!(line, " {}", self.reason);
        }
        line
    }
}

fn number(value: Option<u64>, absent: &str) -> String {
    value.map_or(absent.into(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_one_line_of_json() {
        let mut row = Row::new(
            &Name::jobs("dma-heap:linux,cma", "pl330", "polled"),
            Status::Failed,
            "a \"quote\"\nand a \\ and \u{7f}",
        );
        (row.user, row.jobs, row.syscalls, row.seconds) = (0, 3, Some(0), 1.5);
        let expected = concat!(
            r#"@row {"kind":"jobs","name":"dma-heap:linux,cma/pl330/polled","memory":"dma-heap:linux,cma","engine":"pl330","mode":"polled","#,
            r#""user":"0","jobs":3,"bytes":0,"mismatches":0,"canary_hits":0,"interrupts":null,"allocations":0,"syscalls":0,"#,
            r#""seconds":1.5,"status":"failed","reason":"a \"quote\"\nand a \\ and "#,
            "\u{7f}\"}"
        );
        assert_eq!(row.json(), expected);
        assert_eq!(row.text().lines().count(), 2, "only the reason's own line break");
    }
}
