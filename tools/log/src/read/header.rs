//! The header of a ring, checked.

use super::Refused;
use crate::{
    BuildId, RING_BYTES,
    build_id::number,
    layout::{BOOT_ID_BYTES, BUILD_ID_BYTES, FRAME_BYTES, HEADER_BYTES, MAGIC, PATH_BYTES, at},
};
use std::{ffi::OsString, os::unix::ffi::OsStringExt, path::PathBuf};

/// A ring's words about itself.
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
    /// The kernel's number of that boot; empty where it had none.
    pub boot_id: String,
    /// The bytes of whole frames, counted from the start.
    pub written: u64,
    /// The bytes that have been begun.
    pub reserved: u64,
    /// How many events were dropped.
    pub dropped: u64,
    /// The program's build.
    pub build_id: Option<BuildId>,
    /// The path of the program's file.
    pub program: PathBuf,
}

impl Header {
    /// The header that `bytes` begin with.
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
