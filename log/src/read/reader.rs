//! The frames of a ring, while it is written or after.

use super::{Header, Refused, rzcobs};
use crate::layout::HEADER_BYTES;
use std::{
    fs::{File, OpenOptions},
    io::ErrorKind,
    os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt},
    path::Path,
};

/// A piece of a log, in the order of writing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// One event, for [`Decoder::entry`](crate::Decoder::entry).
    Frame(Vec<u8>),
    /// So many bytes were overwritten by newer events before they were read.
    Overwritten {
        /// How many bytes.
        len_bytes: u64,
    },
    /// So many bytes are no event: the file was damaged.
    Damaged {
        /// How many bytes.
        len_bytes: u64,
    },
}

/// Reads a log, again and again while its program runs.
#[derive(Debug)]
pub struct Reader {
    file: File,
    /// Everything before was told.
    seen: u64,
}

impl Reader {
    /// Opens a log. It needs the right to read, and stops nobody.
    ///
    /// # Errors
    /// [`Refused::File`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Refused> {
        // A pipe at this path must not hold the reader.
        let file = OpenOptions::new().read(true).custom_flags(O_NONBLOCK).open(path)?;
        if !file.metadata()?.is_file() {
            return Err(Refused::NoRing);
        }
        Ok(Self { file, seen: 0 })
    }

    /// Is this the file that `path` names still? A program that starts again makes a new one.
    #[must_use]
    pub fn is_still(&self, path: impl AsRef<Path>) -> bool {
        let (Ok(own), Ok(named)) = (self.file.metadata(), std::fs::metadata(path)) else { return false };
        (own.dev(), own.ino()) == (named.dev(), named.ino())
    }

    /// The log's header, as it is now.
    ///
    /// # Errors
    /// [`Refused`]: the file is no log, or is damaged.
    pub fn header(&self) -> Result<Header, Refused> {
        let mut bytes = vec![0; HEADER_BYTES];
        let has = self.fill(&mut bytes, 0)?;
        Header::parse(bytes.get(..has).unwrap_or_default())
    }

    /// Everything that was written since the last call.
    ///
    /// # Errors
    /// As [`header`](Self::header).
    pub fn pieces(&mut self) -> Result<Vec<Piece>, Refused> {
        let before = self.header()?;
        let mut ring = vec![0; before.ring_bytes as usize];
        let has = self.fill(&mut ring, HEADER_BYTES as u64)?;
        if has < ring.len() {
            return Err(Refused::Cut { has: (HEADER_BYTES + has) as u64, needs: (HEADER_BYTES + ring.len()) as u64 });
        }
        // The header once more: the writer may have gone on while the ring was copied.
        let after = self.header()?;
        // Bytes from here on were in the ring during the whole copy. A file that somebody rewrites
        // meanwhile must not have more of them than the ring.
        let oldest = after.reserved.max(before.reserved).saturating_sub(u64::from(before.ring_bytes));
        let mut pieces = Vec::new();
        let mut at = self.seen;
        let cut = oldest > at;
        if cut {
            pieces.push(Piece::Overwritten { len_bytes: oldest - at });
            at = oldest;
        }
        let mut bytes: Vec<u8> = Vec::new();
        while at < before.written {
            let place = usize::try_from(at & u64::from(before.ring_bytes - 1)).unwrap_or(0);
            let most = usize::try_from(before.written - at).unwrap_or(usize::MAX);
            let part = ring.get(place..).unwrap_or_default();
            let part = part.get(..part.len().min(most)).unwrap_or_default();
            bytes.extend_from_slice(part);
            at += part.len() as u64;
        }
        self.seen = at.max(self.seen);
        // The first bytes after a cut are the end of an event, but for one that begins just there.
        let first = if cut { bytes.iter().position(|byte| *byte == 0).map_or(bytes.len(), |zero| zero + 1) } else { 0 };
        if let (Some(Piece::Overwritten { len_bytes }), true) = (pieces.first_mut(), first > 0) {
            *len_bytes += first as u64;
        }
        frames(bytes.get(first..).unwrap_or_default(), &mut pieces);
        Ok(pieces)
    }

    /// Reads until `bytes` is full or the file ends; how many there were.
    fn fill(&self, bytes: &mut [u8], at: u64) -> Result<usize, Refused> {
        let mut has = 0;
        while let Some(rest) = bytes.get_mut(has..).filter(|rest| !rest.is_empty()) {
            match self.file.read_at(rest, at + has as u64) {
                Ok(0) => break,
                Ok(more) => has += more,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(has)
    }
}

/// `O_NONBLOCK` of the processors here: without `nix`, which the reader needs for nothing else.
const O_NONBLOCK: i32 = 0o4000;

/// The frames in `bytes`, each of which ends with a zero. Damage is told as one piece.
fn frames(bytes: &[u8], pieces: &mut Vec<Piece>) {
    let mut damaged = 0;
    for encoded in bytes.split_inclusive(|byte| *byte == 0) {
        match encoded.split_last() {
            Some((0, frame)) if !frame.is_empty() => match rzcobs::frame(frame) {
                Some(frame) => {
                    tell(&mut damaged, pieces);
                    pieces.push(Piece::Frame(frame));
                }
                None => damaged += encoded.len() as u64,
            },
            _ => damaged += encoded.len() as u64,
        }
    }
    tell(&mut damaged, pieces);
}

fn tell(damaged: &mut u64, pieces: &mut Vec<Piece>) {
    if *damaged > 0 {
        pieces.push(Piece::Damaged { len_bytes: core::mem::take(damaged) });
    }
}
