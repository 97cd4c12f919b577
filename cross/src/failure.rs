//! The errors that end a command: one line that says what to do, then, where there is one, the end
//! of a log.

use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use thiserror::Error;

/// The result of everything that may fail here. [`Failure`] is inside where a caller may want to
/// tell cases apart.
pub type Result<T> = anyhow::Result<T>;

/// The failures that both tools have.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "each message describes its variant")]
pub enum Failure {
    #[error("{program} is not installed: {remedy}")]
    MissingTool { program: String, remedy: String },
    #[error("{what} failed ({status}); the log is {}{}", .log.display(), Tail(.last))]
    Failed { what: String, status: String, log: PathBuf, last: Vec<String> },
    #[error("{what} was ended: it took longer than {seconds} s; the log is \
             {}{}", .log.display(), Tail(.last))]
    TimedOut { what: String, seconds: u64, log: PathBuf, last: Vec<String> },
    #[error("{what} failed: the disk that holds {} is full; make room, or set CONTIGO_CACHE to a \
             folder on another disk", .place.display())]
    DiskFull { what: String, place: PathBuf },
    #[error("interrupted")]
    Interrupted,
    #[error("{package} ({architecture}) cannot be had here: {reason}")]
    NoPackage { package: String, architecture: String, reason: String },
}

/// The end of a log, each line on a line of its own.
struct Tail<'a>(&'a [String]);

impl std::fmt::Display for Tail<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.is_empty() {
            return write!(f, ", and is empty");
        }
        write!(f, ", and ends with:")?;
        self.0.iter().try_for_each(|line| write!(f, "\n    {line}"))
    }
}

impl Failure {
    /// An I/O error at `place` as a failure: a full disk is told apart, every other error keeps its
    /// own words.
    pub fn of_io(what: &str, place: &std::path::Path, error: &io::Error) -> anyhow::Error {
        match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                Self::DiskFull { what: what.into(), place: place.into() }.into()
            }
            _ => anyhow::anyhow!("{what} failed: {}: {error}", place.display()),
        }
    }
}

/// Ends a program: nothing more to say, or `tool: what stopped it` on standard error. 130 is the
/// shell's number for Ctrl-C.
pub fn exit(tool: &str, done: Result<ExitCode>) -> ExitCode {
    match done {
        Ok(code) => code,
        Err(error) => {
            // Where even standard error is closed, the exit status has to do.
            let _ = writeln!(io::stderr(), "{tool}: {error:#}");
            match error.downcast_ref() {
                Some(Failure::Interrupted) => ExitCode::from(130),
                _ => ExitCode::FAILURE,
            }
        }
    }
}
