//! The reasons why an object refuses a call: the kind of object, and the mistake.

use contigo::Error;
use contigo::types::Refused;
use core::fmt;

/// The kind of object that a handle is for. Its number is in the handle's highest four bits, so
/// that small numbers are no handles.
#[allow(missing_docs, reason = "each is called as its objects are")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    Sim = 1,
    Port = 2,
    Region = 4,
    Pool = 5,
    Buf = 6,
    Engine = 7,
    Job = 8,
    Device = 10,
    Registers = 11,
    Kernel = 12,
    Module = 13,
}

impl Kind {
    /// Each, and its name in a text.
    pub(crate) const ALL: [(Self, &'static str); 11] = [
        (Self::Sim, "simulated board"),
        (Self::Port, "port"),
        (Self::Region, "region"),
        (Self::Pool, "pool"),
        (Self::Buf, "buffer"),
        (Self::Engine, "engine"),
        (Self::Job, "job"),
        (Self::Device, "device"),
        (Self::Registers, "registers"),
        (Self::Kernel, "kernel"),
        (Self::Module, "module"),
    ];

    /// The kind of this number. A number that is no kind's does not compile.
    #[allow(clippy::indexing_slicing, reason = "it runs in the compiler, which checks the index")]
    pub(crate) const fn of(number: u8) -> Self {
        let mut index = 0;
        loop {
            if Self::ALL[index].0 as u8 == number {
                return Self::ALL[index].0;
            }
            index += 1;
        }
    }

    /// The article before its name.
    const fn article(self) -> &'static str {
        match self {
            Self::Engine => "an ",
            Self::Registers => "",
            _ => "a ",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::ALL.iter().find(|(kind, _)| kind == self);
        f.write_str(name.map_or("", |(_, name)| name))
    }
}

/// The error of a value from C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentError {
    /// A pointer is null that must not be.
    Null {
        /// The pointer.
        what: &'static str,
    },
    /// A structure's `struct_size` is out of range.
    StructSize {
        /// The structure.
        what: &'static str,
        /// The size that it gives.
        given: usize,
        /// The smallest valid size.
        least: usize,
        /// The largest valid size.
        most: usize,
    },
    /// A structure of a newer header sets a field that this library does not know.
    NewerStruct {
        /// The structure.
        what: &'static str,
        /// How many bytes of it are known.
        known: usize,
        /// Which byte is set.
        at: usize,
    },
    /// A text is not UTF-8, or is too long.
    Text {
        /// The text.
        what: &'static str,
        /// The most bytes that it may have.
        max_bytes: usize,
    },
    /// A number is not one of those that the header lists.
    Value {
        /// The argument.
        what: &'static str,
        /// The number.
        value: u64,
    },
}

impl fmt::Display for ArgumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Null { what } => write!(f, "{what} is NULL"),
            Self::StructSize { what, given, least, most } => {
                write!(
                    f,
                    "{what}.struct_size is {given}; it is sizeof the structure, {least} to {most}"
                )
            }
            Self::NewerStruct { what, known, at } => write!(
                f,
                "{what} has byte {at} set, and this library knows {known} bytes of it: it is older \
                 than the header"
            ),
            Self::Text { what, max_bytes } => {
                write!(f, "{what} is not UTF-8, or longer than {max_bytes} bytes")
            }
            Self::Value { what, value } => write!(f, "{what} cannot be {value}"),
        }
    }
}

/// The reason why an object refuses a call: a mistake that Rust's types would prevent, or an error
/// of the runtime. Nothing has changed.
///
/// Its text is for a program in any language. A binding words it anew where the cure is one of the
/// binding's own functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A number that was never a handle.
    NoHandle {
        /// The number.
        raw: u64,
        /// The kind of handle that the call takes.
        expected: Kind,
    },
    /// A handle whose object is gone: it was released, closed or ended, or another buffer has the
    /// pool's slot now.
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
    /// The buffer is freed.
    Freed,
    /// This hand-over of the buffer has ended.
    HandOverEnded,
    /// The engine has jobs whose ends were not taken.
    HasJobs {
        /// How many.
        jobs: u32,
    },
    /// The table of kept names is full.
    NamesFull {
        /// How many.
        names: usize,
    },
    /// A value from C.
    Argument(ArgumentError),
    /// An error of the runtime.
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
            Self::NoHandle { raw, expected } => write!(
                f,
                "{raw:#x} is no handle; that of {}{expected} was expected",
                expected.article()
            ),
            Self::Stale { kind } => {
                write!(f, "this {kind} is gone: its handle was released, closed or given away")
            }
            Self::WrongKind { expected, found } => write!(
                f,
                "this is the handle of {}{found}; that of {}{expected} was expected",
                found.article(),
                expected.article()
            ),
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
