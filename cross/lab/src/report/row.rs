//! One result, as the board tests print it: a line `@row ` with a JSON object.

use serde::{Deserialize, Serialize};

/// The kind of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// Many jobs on one (board, memory, engine), with counts: a line of the table.
    Jobs,
    /// One thing that holds or does not.
    Check,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Status {
    Passed,
    Failed,
    Skipped,
}

/// A result. The lab ignores keys that it does not know, so that the tests may say more.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Row {
    pub(crate) kind: Kind,
    #[serde(default)]
    pub(crate) board: String,
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) memory: String,
    #[serde(default)]
    pub(crate) engine: String,
    /// Polled or by interrupt.
    #[serde(default)]
    pub(crate) mode: String,
    #[serde(default)]
    pub(crate) user: String,
    pub(crate) jobs: Option<u64>,
    pub(crate) bytes: Option<u64>,
    pub(crate) mismatches: Option<u64>,
    pub(crate) canary_hits: Option<u64>,
    pub(crate) allocations: Option<u64>,
    pub(crate) syscalls: Option<u64>,
    pub(crate) status: Status,
    /// Why it failed or was skipped.
    pub(crate) reason: Option<String>,
    /// Made by the lab itself, not printed by the board tests.
    #[serde(skip)]
    pub(crate) from_lab: bool,
}

impl Row {
    /// A check of the lab's own that held.
    pub(crate) fn passed(board: &str, name: &str) -> Self {
        Self {
            kind: Kind::Check,
            board: board.into(),
            name: name.into(),
            memory: String::new(),
            engine: String::new(),
            mode: String::new(),
            user: String::new(),
            jobs: None,
            bytes: None,
            mismatches: None,
            canary_hits: None,
            allocations: None,
            syscalls: None,
            status: Status::Passed,
            reason: None,
            from_lab: true,
        }
    }

    /// A check of the lab's own that did not hold.
    pub(crate) fn failed(board: &str, name: &str, reason: &str) -> Self {
        Self { status: Status::Failed, reason: Some(reason.into()), ..Self::passed(board, name) }
    }

    /// Something that the lab cannot do here.
    pub(crate) fn skipped(board: &str, name: &str, reason: &str) -> Self {
        Self { status: Status::Skipped, ..Self::failed(board, name, reason) }
    }

    /// The name in a list. A name that has the memory and the engine in it does not get them twice.
    pub(crate) fn title(&self) -> String {
        let more = [&self.memory, &self.engine, &self.mode]
            .into_iter()
            .filter(|part| !self.name.contains(part.as_str()));
        let user = if self.user.is_empty() || self.user == "0" {
            String::new()
        } else {
            format!("user {}", self.user)
        };
        let parts = [&self.board, &self.name].into_iter().chain(more).chain([&user]);
        parts.filter(|part| !part.is_empty()).map(String::as_str).collect::<Vec<_>>().join(" · ")
    }

    /// Why it failed or was skipped, for people.
    pub(crate) fn reason(&self) -> &str {
        self.reason.as_deref().filter(|reason| !reason.is_empty()).unwrap_or("no reason given")
    }

    /// A row that says "passed" and counts what must not be counts as failed.
    pub(crate) fn distrust(&mut self) {
        let wrong =
            [self.mismatches, self.canary_hits].into_iter().flatten().any(|count| count != 0);
        if self.status == Status::Passed && wrong {
            self.status = Status::Failed;
            self.reason = Some("it says passed, but counts mismatches or canary hits".into());
        }
    }
}
