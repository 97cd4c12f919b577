//! Errors in a design's file.

use super::text::Text;
use contigo_core::types::Error;
use contigo_core::types::name::Name;
use contigo_core::types::near::Near;
use core::fmt;

/// Why a file is not a design, or which of its values is impossible, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct DesignError {
    /// The rule that it breaks.
    pub rule: DesignRule,
    /// The core, port or bus concerned; empty if there is none.
    pub name: Name,
    /// The number that was found, if any.
    pub found: u64,
    /// The line of the file, from 1.
    pub line: u32,
    /// The byte of the file, from 0.
    pub byte: u32,
}

/// The rules for a design.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum DesignRule {
    /// The file's form: this was expected.
    Expected(&'static str),
    /// The file is longer than 32 MiB.
    TooLong,
    /// It is not a hardware hand-off of Vivado: another tool wrote it.
    NotAHandOff,
    /// The file ends in the middle.
    Truncated,
    /// The file has too many of these.
    TooMany {
        /// What there are too many of.
        what: &'static str,
        /// The limit.
        most: u64,
    },
    /// Wires and buses lead through more of the file than one query may read: each byte 16 times.
    Tangled,
    /// Two instances have one name.
    SameName,
    /// There are two processing systems.
    SecondProcessor,
    /// No instance has this name.
    NoSuchCore {
        /// Cores with similar names.
        near: Near,
    },
    /// A window of registers ends before it begins, or does not consist of whole words.
    Window {
        /// Its last address.
        last: u64,
    },
    /// A width of a bus is a power of two from 32 to 1024.
    Width,
    /// The file has two different values for this width.
    Disagrees {
        /// The other width.
        elsewhere: u64,
    },
    /// A value is not a number.
    NotANumber(&'static str),
    /// A core's parameter is out of range.
    OutOfRange {
        /// Its name.
        parameter: &'static str,
        /// The minimum.
        least: u64,
        /// The maximum.
        most: u64,
    },
    /// The design has a Zynq's processor, but is for a chip without one.
    OtherChip,
    /// A core's masters reach memory through ports of which some snoop and others do not.
    MixedPorts,
    /// The processor sees no registers of this core.
    NoRegisters,
    /// No master of this core reaches the processor's memory.
    NoPort,
    /// The file does not show whether the port snoops for this core.
    Unsure,
}

impl DesignRule {
    /// The rule in words, without its numbers.
    const fn text(&self) -> &'static str {
        match self {
            Self::Expected(what) | Self::NotANumber(what) => what,
            Self::TooMany { what, .. } => what,
            Self::TooLong => "a hand-off has 32 MiB at most",
            Self::NotAHandOff => "this is no hardware hand-off of Vivado's (.hwh)",
            Self::Truncated => "the file ends before </EDKSYSTEM>: copy it once more",
            Self::Tangled => {
                "its buses or wires lead through more of the file than one question reads"
            }
            Self::SameName => "two instances have this name",
            Self::SecondProcessor => "a second processing system",
            Self::NoSuchCore { .. } => "the design has no instance of this name",
            Self::Window { .. } => "a window of registers ends before it begins",
            Self::Width => "a bus has 32 to 1024 bits, a power of two",
            Self::Disagrees { .. } => "the width is said twice, and not the same",
            Self::OutOfRange { parameter, .. } => parameter,
            Self::OtherChip => "this chip has no such processor: the file is of two designs",
            Self::MixedPorts => {
                "one of its masters is on a port that snoops, and another is not: wire both to \
                 ports that are alike"
            }
            Self::NoRegisters => "the processor sees no registers of it",
            Self::NoPort => "none of its masters reaches the processor's memory",
            Self::Unsure => {
                "the file does not tell whether the port snoops for this core: say which port it \
                 is, and whether it does"
            }
        }
    }
}

impl DesignError {
    /// An error at a place in a file that concerns no core, port or number.
    pub(super) fn here(place: &Text<'_>, rule: DesignRule) -> Self {
        Self::at(place, rule, "", 0)
    }

    /// An error at a place in a file.
    pub(super) fn at(place: &Text<'_>, rule: DesignRule, name: &str, found: u64) -> Self {
        Self { rule, name: Name::clipped(name), found, line: place.line(), byte: place.at() }
    }
}

/// The line and the rule, without names and numbers, for a program that has one type of error.
///
/// ```
/// use contigo::{Error, design::Design};
/// let error = Design::read(b"no design").unwrap_err();
/// assert!(matches!(error.into(), Error::BadMap { line: 1, .. }));
/// ```
impl From<DesignError> for Error {
    fn from(error: DesignError) -> Self {
        Self::BadMap { line: error.line, rule: error.rule.text() }
    }
}

impl fmt::Display for DesignError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, name, found, line, byte } = self;
        // A missing core has no line.
        if !matches!(rule, DesignRule::NoSuchCore { .. }) {
            write!(f, "line {line}, byte {byte}: ")?;
        }
        if !name.as_str().is_empty() {
            write!(f, "`{name}`: ")?;
        }
        match rule {
            DesignRule::Expected(what) => write!(f, "{what} was expected"),
            DesignRule::TooLong => {
                write!(f, "{found} bytes are more than a hand-off may have, 32 MiB")
            }
            DesignRule::TooMany { what, most } => write!(f, "there are more than {most} {what}"),
            DesignRule::Tangled => {
                write!(f, "{}: {found} bytes; take what loops or branches there apart", rule.text())
            }
            DesignRule::Window { last } => {
                write!(f, "its registers begin at {found:#x} and end at {last:#x}")
            }
            DesignRule::NoSuchCore { .. } if *found == 0 => {
                write!(f, "{}, and no core", rule.text())
            }
            DesignRule::NoSuchCore { near } => {
                write!(f, "{}; the nearest of its cores ({found}): {near}", rule.text())
            }
            DesignRule::Width => write!(f, "{found} bits: {}", rule.text()),
            DesignRule::Disagrees { elsewhere } => {
                write!(f, "{found} bits here, and {elsewhere} elsewhere in the file")
            }
            DesignRule::OutOfRange { parameter, least, most } => {
                write!(f, "{parameter} is {found}, and can be {least} to {most}")
            }
            DesignRule::NotANumber(what) => write!(f, "{what} is no number"),
            _ => f.write_str(rule.text()),
        }
    }
}

impl core::error::Error for DesignError {}

/// With its whole text.
///
/// ```
/// use contigo::design::Design;
/// let error = Design::read(b"no design").unwrap_err();
/// assert_eq!(std::io::Error::from(error).to_string(), error.to_string());
/// ```
#[cfg(all(feature = "std", not(target_os = "none")))]
impl From<DesignError> for contigo_core::types::IoError {
    fn from(error: DesignError) -> Self {
        contigo_core::types::with_text(error.into(), error)
    }
}
