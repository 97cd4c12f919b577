//! Why a file cannot be read as a log.

use crate::BuildId;
use std::{fmt, io};

/// Why a file is no log, or no log of this program.
#[derive(Debug)]
#[non_exhaustive]
pub enum Refused {
    /// The file cannot be read.
    File(io::Error),
    /// The file does not begin as a ring does.
    NoRing,
    /// The file has the room of a ring and no first byte yet: its program is starting, or was
    /// killed as it did.
    NotYet,
    /// Another version of this crate made it.
    Version {
        /// The version, where this crate reads 1.
        found: u8,
    },
    /// The header says a size that no ring has.
    RingBytes {
        /// The size.
        found: u32,
    },
    /// The file is shorter than its header says.
    Cut {
        /// Its bytes.
        has: u64,
        /// The bytes of the whole.
        needs: u64,
    },
    /// The header's counts contradict each other: it was not written as a whole.
    Counts {
        /// The bytes that are whole.
        written: u64,
        /// The bytes that have been begun.
        reserved: u64,
    },
    /// The ELF file is another build than the program that logged.
    OtherBuild {
        /// The program's build ID.
        ring: Option<BuildId>,
        /// The file's.
        elf: Option<BuildId>,
    },
    /// The ELF file has no texts: it is stripped, or was linked without the script.
    NoTexts(String),
}

/// A build ID, or the word that there is none.
struct Id<'a>(&'a Option<BuildId>);

impl fmt::Display for Id<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(id) => id.fmt(f),
            None => f.write_str("none"),
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(error) => error.fmt(f),
            Self::NoRing => f.write_str("the file is no log of Contigo's; name the one that the program gave to contigo_log::start"),
            Self::NotYet => f.write_str(
                "the file is no log of Contigo's yet: nothing is in it; name the one that the program gave to contigo_log::start, or look with --follow",
            ),
            Self::Version { found } => write!(
                f,
                "the log has version {found}, and this program reads version 1; read it with the tool of the program's own release"
            ),
            Self::RingBytes { found } => {
                write!(f, "the log's header is damaged: no ring has {found} bytes; the run before may be in FILE.before")
            }
            Self::Cut { has, needs } => write!(f, "the log is cut: it has {has} of its {needs} bytes; copy the whole file once more"),
            Self::Counts { written, reserved } => {
                write!(
                    f,
                    "the log's header is damaged: {written} bytes are written, and {reserved} were begun; the run before may be in FILE.before"
                )
            }
            Self::OtherBuild { ring, elf } => {
                write!(
                    f,
                    "the program is another build than the one that logged: its build ID is {}, and the log's is {}",
                    Id(elf),
                    Id(ring)
                )
            }
            Self::NoTexts(why) => write!(f, "the program's file has no texts of events: {why}; give the file that was not stripped"),
        }
    }
}

impl std::error::Error for Refused {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::File(error) => Some(error),
            _ => None,
        }
    }
}

/// The file, or its kernel, refused.
///
/// ```
/// let error: contigo_log::Refused = std::fs::read("no/such/file").unwrap_err().into();
/// assert!(matches!(error, contigo_log::Refused::File(_)));
/// ```
impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Self {
        Self::File(error)
    }
}
