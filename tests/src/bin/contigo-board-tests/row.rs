//! One result, as a line for a program or for a person.

use std::fmt::Write;

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Passed,
    Failed,
    /// It cannot run here; the reason says what is missing.
    Skipped,
}

/// The name of a run: the first half of a row, known before it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    /// `jobs`, or `check`.
    pub(crate) kind: &'static str,
    pub(crate) memory: String,
    pub(crate) engine: String,
    /// `polled` or `interrupt`; empty for a check.
    pub(crate) mode: &'static str,
    /// A check's name; for jobs, all of the above in one word.
    pub(crate) name: String,
}

/// One result.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) name: Name,
    /// As whom: a number.
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
    pub(crate) seconds: f64,
    pub(crate) status: Status,
    pub(crate) reason: String,
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
        let name = format!("{memory}/{engine}/{mode}");
        Self { kind: "jobs", memory: memory.into(), engine: engine.into(), mode, name }
    }

    pub(crate) fn check(name: &str, memory: &str, engine: &str) -> Self {
        Self { kind: "check", memory: memory.into(), engine: engine.into(), mode: "", name: name.into() }
    }
}

impl Name {
    /// With what tells it from others of the same name.
    pub(crate) fn title(&self) -> String {
        let places = [self.memory.as_str(), self.engine.as_str()];
        let places: Vec<_> = places.into_iter().filter(|place| self.kind == "check" && !place.is_empty()).collect();
        if places.is_empty() { self.name.clone() } else { format!("{} ({})", self.name, places.join(", ")) }
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
        }
    }

    /// For a program: `@row ` and one JSON object.
    pub(crate) fn json(&self) -> String {
        let Name { kind, memory, engine, mode, name } = &self.name;
        let mut line = String::from("@row {");
        for (key, value) in [("kind", *kind), ("name", name), ("memory", memory), ("engine", engine), ("mode", mode)] {
            let _ = write!(line, "{}:{},", quoted(key), quoted(value));
        }
        let _ = write!(line, "\"user\":\"{}\",", self.user);
        for (key, value) in [
            ("jobs", Some(self.jobs)),
            ("bytes", Some(self.bytes)),
            ("mismatches", Some(self.mismatches)),
            ("canary_hits", Some(self.canary_hits)),
            ("interrupts", self.interrupts),
            ("allocations", Some(self.allocations)),
            ("syscalls", self.syscalls),
        ] {
            let _ = write!(line, "{}:{},", quoted(key), number(value, "null"));
        }
        let _ = write!(line, "\"seconds\":{:.3},\"status\":\"{}\",\"reason\":{}}}", self.seconds, self.status.word(), quoted(&self.reason));
        line
    }

    /// For a person.
    pub(crate) fn text(&self) -> String {
        let mut line = format!("{:<7} {:<58}", self.status.word(), self.name.title());
        if self.jobs > 0 {
            let _ =
                write!(line, " {} jobs, {} bytes, {} mismatches, {} canary hits", self.jobs, self.bytes, self.mismatches, self.canary_hits);
            let _ = write!(line, ", {} interrupts, {} allocations", number(self.interrupts, "-"), self.allocations);
            let _ = write!(line, ", {} system calls", number(self.syscalls, "?"));
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

/// A JSON string.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            control if control.is_ascii_control() => drop(write!(quoted, "\\u{:04x}", u32::from(control))),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_one_line_of_json() {
        let mut row = Row::new(&Name::jobs("dma-heap:linux,cma", "pl330", "polled"), Status::Failed, "a \"quote\"\nand a \\ and \u{7f}");
        (row.user, row.jobs, row.syscalls, row.seconds) = (0, 3, Some(0), 1.5);
        let expected = concat!(
            r#"@row {"kind":"jobs","name":"dma-heap:linux,cma/pl330/polled","memory":"dma-heap:linux,cma","engine":"pl330","mode":"polled","#,
            r#""user":"0","jobs":3,"bytes":0,"mismatches":0,"canary_hits":0,"interrupts":null,"allocations":0,"syscalls":0,"#,
            r#""seconds":1.500,"status":"failed","reason":"a \"quote\"\u000aand a \\ and \u007f"}"#
        );
        assert_eq!(row.json(), expected);
        assert_eq!(row.text().lines().count(), 2, "only the reason's own line break");
    }
}
