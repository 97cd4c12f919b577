//! Why an object refuses a call.

use crate::{ArgumentError, Kind};
use contigo::{Error, types::Refused};
use core::fmt;

/// Why an object refuses a call: a mistake that Rust's types would not let through, or an error of
/// the runtime. Nothing has changed.
///
/// Its text is for a program in any language. A binding has its own words where the cure is one of
/// its functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A number that was never a handle.
    NoHandle {
        /// The number.
        raw: u64,
        /// The kind of handle that the call takes.
        expected: Kind,
    },
    /// A handle whose object is gone: released, closed, ended, or a pool's slot that another buffer
    /// has now.
    Stale {
        /// The object's kind.
        kind: Kind,
    },
    /// A handle of another kind.
    WrongKind {
        /// The kind that the call takes.
        expected: Kind,
        /// The kind that the handle is of.
        found: Kind,
    },
    /// Another call has the object at this moment.
    InCall {
        /// The object's kind.
        kind: Kind,
    },
    /// Other objects use it.
    StillUsed {
        /// The object's kind.
        kind: Kind,
        /// How many.
        users: u64,
    },
    /// A fixed table is full.
    TableFull {
        /// The kind of its objects.
        kind: Kind,
        /// How many it holds.
        entries: usize,
    },
    /// The buffer has views.
    Viewed {
        /// How many.
        views: u32,
    },
    /// The buffer has no view to close.
    NotViewed,
    /// A device has the buffer.
    OnDevice,
    /// A job has the buffer.
    InJob,
    /// The CPU has the buffer.
    OnCpu,
    /// The buffer was freed.
    Freed,
    /// This hand-over of the buffer has ended.
    HandOverEnded,
    /// The jobs of an engine whose ends were not taken.
    HasJobs {
        /// How many.
        jobs: u32,
    },
    /// As many different names are kept as there is room for.
    NamesFull {
        /// How many.
        names: usize,
    },
    /// A value from C.
    Argument(ArgumentError),
    /// The runtime's.
    Runtime(Error),
}

impl From<ArgumentError> for Refusal {
    fn from(error: ArgumentError) -> Self {
        Self::Argument(error)
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Runtime(error)
    }
}

impl<T> From<Refused<T>> for Refusal {
    fn from(refused: Refused<T>) -> Self {
        Self::Runtime(refused.error)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NoHandle { raw, expected } => {
                write!(f, "{raw:#x} is no handle; that of {} was expected", expected.with_article())
            }
            Self::Stale { kind } => {
                write!(f, "this {kind} is gone: its handle was released, closed or given away")
            }
            Self::WrongKind { expected, found } => {
                write!(
                    f,
                    "this is the handle of {}; that of {} was expected",
                    found.with_article(),
                    expected.with_article()
                )
            }
            Self::InCall { kind } => write!(
                f,
                "another thread is in a call with this {kind}: use it from one thread at a time"
            ),
            Self::StillUsed { kind, users } => {
                write!(f, "{users} still use this {kind}: release or close them first")
            }
            Self::TableFull { kind, entries } => {
                write!(f, "there are {entries} of the kind {kind} already, which is the limit")
            }
            Self::Viewed { views } => {
                write!(f, "the buffer is mapped (views: {views}): unmap it first")
            }
            Self::NotViewed => write!(f, "the buffer is not mapped"),
            Self::OnDevice => {
                write!(f, "a device has this buffer: take it back when the device has stopped")
            }
            Self::InJob => {
                write!(f, "this buffer is in a job: wait for the job, or stop its engine")
            }
            Self::OnCpu => write!(f, "the buffer is the CPU's, and no device has it"),
            Self::Freed => write!(f, "this buffer was freed"),
            Self::HandOverEnded => write!(f, "this hand-over has ended"),
            Self::HasJobs { jobs } => {
                write!(f, "the engine has {jobs} jobs whose ends were not taken")
            }
            Self::NamesFull { names } => {
                write!(f, "a program has {names} different names of ports and kernels at most")
            }
            Self::Argument(error) => error.fmt(f),
            Self::Runtime(error) => error.fmt(f),
        }
    }
}
