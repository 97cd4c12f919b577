//! The header of a ring, checked, and the reasons why a file cannot be read as a log.

use crate::build_id::number;
use crate::layout::{
    BOOT_ID_BYTES, BUILD_ID_BYTES, FRAME_BYTES, HEADER_BYTES, MAGIC, PATH_BYTES, at,
};
use crate::{BuildId, RING_BYTES};
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// The reason why a file is no log, or no log of this program.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each message describes its variant")]
pub enum Refused {
    #[error("{0}")]
    File(#[from] io::Error),
    #[error(
        "the file is no log of Contigo's; name the one that the program gave to contigo_log::start"
    )]
    NoRing,
    /// The file has a ring's size but no magic yet: its program is starting, or was killed while it
    #[error(
        "the file is no log of Contigo's yet: nothing is in it; name the one that the program gave \
         to contigo_log::start, or look with --follow"
    )]
    NotYet,
    #[error(
        "the log has version {found}, and this program reads version 1; read it with the tool of \
         the program's own release"
    )]
    Version { found: u8 },
    #[error(
        "the log's header is damaged: no ring has {found} bytes; the run before may be in \
         FILE.before"
    )]
    RingBytes { found: u32 },
    #[error("the log is cut: it has {has} of its {needs} bytes; copy the whole file once more")]
    Cut { has: u64, needs: u64 },
    #[error(
        "the log's header is damaged: {written} bytes are written, and {reserved} were begun; the \
         run before may be in FILE.before"
    )]
    Counts { written: u64, reserved: u64 },
    #[error("the program is another build than the one that logged: its build ID is {}, and the \
             log's is {}", id(*.elf), id(*.ring))]
    OtherBuild { ring: Option<BuildId>, elf: Option<BuildId> },
    #[error("the program's file has no texts of events: {0}; give the file that was not stripped")]
    NoTexts(String),
}

/// A build ID, or the word for none.
fn id(id: Option<BuildId>) -> String {
    id.map_or_else(|| "none".to_owned(), |id| id.to_string())
}

/// The header of a ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The ring's size.
    pub ring_bytes: u32,
    /// The process that logged.
    pub pid: u32,
    /// When it began: nanoseconds of `CLOCK_MONOTONIC`.
    pub start_monotonic_ns: u64,
    /// The same by `CLOCK_REALTIME`: nanoseconds since 1970.
    pub start_real_ns: u64,
    /// The kernel's boot ID; empty if it had none.
    pub boot_id: String,
    /// The bytes of whole frames, counted from the start.
    pub written: u64,
    /// The bytes that a writer has begun.
    pub reserved: u64,
    /// The number of dropped events.
    pub dropped: u64,
    /// The program's build.
    pub build_id: Option<BuildId>,
    /// The path of the program's file.
    pub program: PathBuf,
}

impl Header {
    /// Parses the header at the beginning of `bytes`.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, Refused> {
        if bytes.iter().all(|byte| *byte == 0) {
            return Err(Refused::NotYet);
        }
        let magic = bytes.get(..MAGIC.len()).ok_or(Refused::NoRing)?;
        if magic.get(..7) != MAGIC.get(..7) {
            return Err(Refused::NoRing);
        }
        if magic != MAGIC {
            return Err(Refused::Version { found: magic.last().copied().unwrap_or(0) });
        }
        if bytes.len() < HEADER_BYTES {
            return Err(Refused::Cut { has: bytes.len() as u64, needs: HEADER_BYTES as u64 });
        }
        let wide = |at| number(bytes, at, 8).unwrap_or(0);
        let narrow =
            |at| number(bytes, at, 4).and_then(|number| u32::try_from(number).ok()).unwrap_or(0);
        let text = |at: usize, len: u32, most: usize| {
            let len = usize::try_from(len).unwrap_or(most).min(most);
            bytes.get(at..at + len).unwrap_or_default().to_vec()
        };
        let (ring_bytes, written, reserved) =
            (narrow(at::RING_BYTES), wide(at::WRITTEN), wide(at::RESERVED));
        if !RING_BYTES.contains(&ring_bytes) || !ring_bytes.is_power_of_two() {
            return Err(Refused::RingBytes { found: ring_bytes });
        }
        if reserved.checked_sub(written).is_none_or(|begun| begun > FRAME_BYTES as u64) {
            return Err(Refused::Counts { written, reserved });
        }
        Ok(Self {
            ring_bytes,
            pid: narrow(at::PID),
            start_monotonic_ns: wide(at::START_MONOTONIC_NS),
            start_real_ns: wide(at::START_REAL_NS),
            boot_id: String::from_utf8_lossy(&text(at::BOOT_ID, 36, BOOT_ID_BYTES))
                .trim_matches('\0')
                .to_owned(),
            written,
            reserved,
            dropped: wide(at::DROPPED),
            build_id: BuildId::stored(&text(
                at::BUILD_ID,
                narrow(at::BUILD_ID_LEN),
                BUILD_ID_BYTES,
            )),
            program: PathBuf::from(OsString::from_vec(text(
                at::PATH,
                narrow(at::PATH_LEN),
                PATH_BYTES,
            ))),
        })
    }
}
