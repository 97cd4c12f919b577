//! The rules of a kernel's map, and the errors of breaking them.

use super::name::Name;
use contigo_core::types::Error;
use contigo_core::types::near::Near;
use core::fmt;

/// Why a kernel's map is refused, and where the fault is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct MapError {
    /// The rule that it breaks.
    pub rule: MapRule,
    /// The argument concerned; empty if there is none.
    pub name: Name,
    /// The number that was found, if any.
    pub found: u64,
    /// The line of the file, from 1; 0 for a table in Rust.
    pub line: u32,
    /// The byte of the file, from 0.
    pub byte: u32,
}

/// The rules for a kernel's map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum MapRule {
    /// The file's form: this was expected.
    Expected(&'static str),
    /// The file lacks this.
    Missing(&'static str),
    /// The file is longer than 32 MiB.
    TooLong,
    /// There are too many of these.
    TooMany {
        /// What there are too many of.
        what: &'static str,
        /// The limit.
        most: u64,
    },
    /// A name is letters, digits and `_`, at most 47 of them.
    Name,
    /// Two arguments have one name.
    SameName,
    /// There is no argument of this name, or it is a pointer instead of a number, or the reverse.
    NoSuchArgument {
        /// Arguments with similar names.
        near: Near,
    },
    /// A register lies at a multiple of 4.
    Offset,
    /// Arguments begin at 0x10: the control registers are before it.
    Reserved,
    /// A register lies inside the window.
    OutsideWindow {
        /// The window.
        window_bytes: u32,
    },
    /// Two arguments share a register.
    Overlaps(Name),
    /// A number has 1 to 64 bits, a pointer 32 or 64.
    Width,
    /// The file has two different widths.
    Disagrees,
    /// An alignment is a power of two; a least length is no more than the most.
    Limits,
    /// A length is a number times at most three scalars, and perhaps a number more: `4*n`, `m*k`,
    /// `4096`, `4*n+120`.
    Length,
    /// A length names no scalar of this kernel.
    NoSuchScalar(Name),
    /// No register starts it or shows that it is done: its block has `ap_ctrl_none`, or is
    /// controlled by wires. A file only shows that the register is missing.
    NoControl,
    /// An array that lies in the window itself: the CPU would have to copy it there.
    MemoryInWindow,
    /// Arguments in a second window: bundle all of them as one `s_axilite` interface.
    SecondWindow,
}

impl MapError {
    /// An error in a table in Rust.
    pub(super) const fn of(rule: MapRule, name: Name, found: u64) -> Self {
        Self { rule, name, found, line: 0, byte: 0 }
    }
}

impl MapRule {
    /// The rule in words, without its numbers.
    const fn text(&self) -> &'static str {
        match self {
            Self::Expected(what) | Self::Missing(what) => what,
            Self::TooLong => "a map's file has 32 MiB at most",
            Self::TooMany { what, .. } => what,
            Self::Name => "a name is letters, digits and `_`, at most 47 of them",
            Self::SameName => "two arguments have one name",
            Self::NoSuchArgument { .. } => "the kernel has no argument of this name and kind",
            Self::Offset => "an offset is a multiple of 4",
            Self::Reserved => "arguments begin at 0x10, behind the control registers",
            Self::OutsideWindow { .. } => "a register lies outside the window",
            Self::Overlaps(_) => "two arguments share a register",
            Self::Width => "a number has 1 to 64 bits, a pointer 32 or 64",
            Self::Disagrees => "the width is said twice, and not the same",
            Self::Limits => {
                "an alignment is a power of two, and a length's limits are in their order"
            }
            Self::Length => {
                "a length is a number times at most three scalars, and perhaps a number more, as \
                 `4*n` or `4*n+120`"
            }
            Self::NoSuchScalar(_) => "a length names no scalar of this kernel",
            Self::NoControl => {
                "no register starts the kernel or says that it is done: s_axilite port=return \
                 gives it one, unless it is ap_ctrl_none"
            }
            Self::MemoryInWindow => "an array inside the register window is no operand of a job",
            Self::SecondWindow => {
                "arguments lie in a second window: bundle them as one s_axilite interface"
            }
        }
    }
}

/// The line and the rule, without names and numbers, for a program that has one type of error.
///
/// ```
/// use contigo::{Error, design::kernel::json};
/// let error = json::map(b"no map").unwrap_err();
/// assert!(matches!(error.into(), Error::BadMap { line: 1, .. }));
/// ```
impl From<MapError> for Error {
    fn from(error: MapError) -> Self {
        Self::BadMap { line: error.line, rule: error.rule.text() }
    }
}

impl fmt::Display for MapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, name, found, line, byte } = self;
        if *line > 0 {
            write!(f, "line {line}, byte {byte}: ")?;
        }
        if !name.as_str().is_empty() {
            write!(f, "`{name}`: ")?;
        }
        match rule {
            MapRule::Expected(what) => write!(f, "{what} was expected"),
            MapRule::Missing(what) => write!(f, "there is no {what}"),
            MapRule::TooLong => {
                write!(f, "{found} bytes are more than a map's file may have, 32 MiB")
            }
            MapRule::TooMany { what, most } => write!(f, "there are more than {most} {what}"),
            MapRule::Offset => write!(f, "offset {found:#x} is no multiple of 4"),
            MapRule::Reserved => {
                write!(f, "offset {found:#x} is a control register's: arguments begin at 0x10")
            }
            MapRule::OutsideWindow { window_bytes } => {
                write!(f, "its registers end at {found:#x}, and the window at {window_bytes:#x}")
            }
            MapRule::Overlaps(other) => write!(f, "at {found:#x} it has a register of `{other}`"),
            MapRule::Width => write!(f, "{found} bits: {}", rule.text()),
            MapRule::Disagrees => write!(f, "{found} bits here, and another number above"),
            MapRule::NoSuchArgument { near } if near.names().next().is_some() => {
                write!(f, "{}; its other arguments that are most like it: {near}", rule.text())
            }
            MapRule::Limits => write!(f, "{found}: {}", rule.text()),
            MapRule::NoSuchScalar(scalar) => {
                write!(f, "its length names `{scalar}`, which is no scalar of this kernel")
            }
            _ => f.write_str(rule.text()),
        }
    }
}

impl core::error::Error for MapError {}

/// With its whole text.
///
/// ```
/// use contigo::design::kernel::json;
/// let error = json::map(b"no map").unwrap_err();
/// assert_eq!(std::io::Error::from(error).to_string(), error.to_string());
/// ```
#[cfg(all(feature = "std", not(target_os = "none")))]
impl From<MapError> for contigo_core::types::IoError {
    fn from(error: MapError) -> Self {
        contigo_core::types::with_text(error.into(), error)
    }
}
