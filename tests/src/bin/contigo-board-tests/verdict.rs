//! The outcome of a check: what was seen, or why it did not pass.

use contigo::Error;
use std::fmt::{Debug, Display};

/// What a check saw, with the jobs that it counted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// Jobs that ended as they should.
    pub(crate) jobs: u64,
    /// Bytes that were copied and compared.
    pub(crate) bytes: u64,
    /// Bytes of destinations that are not what they should be.
    pub(crate) mismatches: u64,
    /// Bytes beside destinations that changed.
    pub(crate) canary_hits: u64,
    /// The expectation does not hold, whatever the counts are.
    pub(crate) failed: bool,
    pub(crate) detail: String,
}

/// The outcome of a check that counts jobs.
pub(crate) type Tried = Result<Seen, Wrong>;

pub(crate) type Verdict = Result<String, Wrong>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    Skipped(String),
    Failed(String),
}

impl From<String> for Seen {
    fn from(detail: String) -> Self {
        Self { detail, ..Self::default() }
    }
}

impl<E: Into<Error>> From<E> for Wrong {
    fn from(error: E) -> Self {
        Self::Failed(error.into().to_string())
    }
}

impl Wrong {
    /// Memory or an engine that cannot be opened. A file that this user may not open is skipped;
    /// everything else is a failure.
    pub(crate) fn opening(error: Error) -> Self {
        let not_ours = !nix::unistd::geteuid().is_root()
            && matches!(
                error,
                Error::PagemapHidden { .. }
                    | Error::Denied { errno: libc::EACCES | libc::EPERM, .. }
                    | Error::Os { errno: libc::EACCES | libc::EPERM, .. }
                    | Error::AttributeUnreadable { .. }
            );
        if not_ours { Self::Skipped(error.to_string()) } else { error.into() }
    }

    /// The same failure with the occasion before it.
    pub(crate) fn when(self, what: &str) -> Self {
        match self {
            Self::Failed(why) => Self::Failed(format!("{what}: {why}")),
            skipped @ Self::Skipped(_) => skipped,
        }
    }
}

/// Ends a check as failed.
pub(crate) fn fail<T>(why: impl Into<String>) -> Result<T, Wrong> {
    Err(Wrong::Failed(why.into()))
}

/// Ends a check as not possible here.
pub(crate) fn skip<T>(why: impl Into<String>) -> Result<T, Wrong> {
    Err(Wrong::Skipped(why.into()))
}

/// Ends a check as failed unless `holds`.
pub(crate) fn ensure(holds: bool, otherwise: impl Into<String>) -> Result<(), Wrong> {
    if holds { Ok(()) } else { fail(otherwise) }
}

/// Ends a check as failed unless `found` is what was expected.
pub(crate) fn same<T: Debug + PartialEq>(what: &str, found: T, expected: T) -> Result<(), Wrong> {
    ensure(found == expected, format!("{what}: {found:?}, not {expected:?}"))
}

/// How many bytes are not `value`.
pub(crate) fn others(bytes: &[u8], value: u8) -> u64 {
    bytes.iter().filter(|&&byte| byte != value).count() as u64
}

/// The value of a system call or a file, which must succeed.
pub(crate) fn must<T, E: Display>(what: &str, answer: Result<T, E>) -> Result<T, Wrong> {
    answer.map_err(|error| Wrong::Failed(format!("{what}: {error}")))
}

/// A call that must fail with `error`.
pub(crate) fn refused<T: Debug, E: Debug + PartialEq>(
    call: &str,
    answer: Result<T, E>,
    error: E,
) -> Result<(), Wrong> {
    let is_refused = answer.as_ref().err() == Some(&error);
    ensure(is_refused, format!("{call}: {answer:?}, not {error:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_root_must_be_able_to_open_everything() {
        let hidden = matches!(Wrong::opening(Error::PagemapHidden { page: 1 }), Wrong::Failed(_));
        assert_eq!(hidden, nix::unistd::geteuid().is_root());
        assert!(matches!(Wrong::opening(Error::Busy), Wrong::Failed(_)));
    }
}
