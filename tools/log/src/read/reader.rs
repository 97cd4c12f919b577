//! The frames of a ring, read while a program writes it or afterwards.

use super::{Header, Refused};
use crate::layout::{FIRST, FRAME_BYTES, HEADER_BYTES, check};
use core::sync::atomic::{Ordering, fence};
use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::thread;
use std::time::Duration;

/// A part of a log, in the order of writing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// One event, for [`Decoder::entry`](crate::Decoder::entry).
    Frame(Vec<u8>),
    /// Newer events overwrote these bytes before they were read.
    Overwritten {
        /// The number of bytes.
        len_bytes: u64,
    },
    /// These bytes are no event: the file is damaged.
    Damaged {
        /// The number of bytes.
        len_bytes: u64,
    },
}

/// Reads a log, repeatedly while its program runs.
#[derive(Debug)]
pub struct Reader {
    file: File,
    /// All bytes before this count were returned.
    seen: u64,
    /// `seen` is inside an event whose beginning was overwritten.
    within: bool,
}

impl Reader {
    /// Opens a log. This needs read permission, and blocks no writer.
    ///
    /// # Errors
    /// [`Refused::File`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Refused> {
        // Opening a pipe or a watchdog can have an effect. So `O_PATH` finds the file without
        // opening it, and after a check that same file is opened.
        let found = OpenOptions::new().read(true).custom_flags(O_PATH).open(path)?;
        if !found.metadata()?.is_file() {
            return Err(Refused::NoRing);
        }
        let file =
            OpenOptions::new().read(true).open(format!("/proc/self/fd/{}", found.as_raw_fd()))?;
        Ok(Self { file, seen: 0, within: false })
    }

    /// Whether `path` still names this file. A program that restarts makes a new file.
    #[must_use]
    pub fn is_still(&self, path: impl AsRef<Path>) -> bool {
        let (Ok(own), Ok(named)) = (self.file.metadata(), std::fs::metadata(path)) else {
            return false;
        };
        (own.dev(), own.ino()) == (named.dev(), named.ino())
    }

    /// The file's owner (man 2 stat, `st_uid`).
    ///
    /// # Errors
    /// [`Refused::File`].
    pub fn owner(&self) -> Result<u32, Refused> {
        Ok(self.file.metadata()?.uid())
    }

    /// The log's current header. Counts that contradict each other are read again, for up to a
    /// tenth of a second, because the program may change them between two reads.
    ///
    /// # Errors
    /// [`Refused`]: the file is no log, or is damaged.
    pub fn header(&self) -> Result<Header, Refused> {
        /// Changing counts contradict each other for some nanoseconds only.
        const MOST_LOOKS: u32 = 100;
        let mut bytes = vec![0; HEADER_BYTES];
        for _ in 1..MOST_LOOKS {
            let has = self.fill(&mut bytes, 0)?;
            match Header::parse(bytes.get(..has).unwrap_or_default()) {
                Err(Refused::Counts { .. }) => thread::sleep(Duration::from_millis(1)),
                header => return header,
            }
        }
        let has = self.fill(&mut bytes, 0)?;
        Header::parse(bytes.get(..has).unwrap_or_default())
    }

    /// Returns everything that was written since the last call.
    ///
    /// # Errors
    /// As [`header`](Self::header).
    pub fn pieces(&mut self) -> Result<Vec<Piece>, Refused> {
        let before = self.header()?;
        // The kernel copies by plain loads, which an Arm may reorder: read counts, bytes, counts.
        fence(Ordering::Acquire);
        let mut ring = vec![0; before.ring_bytes as usize];
        let has = self.fill(&mut ring, HEADER_BYTES as u64)?;
        if has < ring.len() {
            return Err(Refused::Cut {
                has: (HEADER_BYTES + has) as u64,
                needs: (HEADER_BYTES + ring.len()) as u64,
            });
        }
        fence(Ordering::Acquire);
        // Read the header again: the writer may have gone on while the ring was copied.
        let after = self.header()?;
        Ok(self.new_ones(&before, &ring, &after))
    }

    /// The pieces in `ring`, which was copied between the two headers.
    fn new_ones(&mut self, before: &Header, ring: &[u8], after: &Header) -> Vec<Piece> {
        // The ring had the bytes from here on during the whole copy. If a program rewrites the file
        // meanwhile, they must not be more than the ring's size.
        let oldest =
            after.reserved.max(before.reserved).saturating_sub(u64::from(before.ring_bytes));
        let mut pieces = Vec::new();
        let mut at = self.seen;
        if oldest > at {
            pieces.push(Piece::Overwritten { len_bytes: oldest - at });
            at = oldest;
            self.within = true;
        }
        let mut bytes: Vec<u8> = Vec::new();
        while at < before.written {
            let place = usize::try_from(at & u64::from(before.ring_bytes - 1)).unwrap_or(0);
            let most = usize::try_from(before.written - at).unwrap_or(usize::MAX);
            let part = ring.get(place..).unwrap_or_default();
            let part = part.get(..part.len().min(most)).unwrap_or_default();
            bytes.extend_from_slice(part);
            #[cfg(test)]
            visits::add(part.len());
            at += part.len() as u64;
        }
        self.seen = at.max(self.seen);
        // The first bytes after a gap are the end of an event, unless an event begins right there.
        // If the writer overtook the whole copy, the next call finds that end.
        let zero = bytes.iter().position(|byte| *byte == 0);
        let first = if self.within { zero.map_or(bytes.len(), |zero| zero + 1) } else { 0 };
        self.within &= zero.is_none();
        match pieces.first_mut() {
            Some(Piece::Overwritten { len_bytes }) => *len_bytes += first as u64,
            _ if first > 0 => pieces.push(Piece::Overwritten { len_bytes: first as u64 }),
            _ => {}
        }
        frames(bytes.get(first..).unwrap_or_default(), &mut pieces);
        pieces
    }

    /// Reads until `bytes` is full or the file ends. Returns the number of bytes.
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

/// `O_PATH` of the processors here, without `nix`, which the reader needs for nothing else.
const O_PATH: i32 = 0o10_000_000;

/// Splits `bytes` into frames, each of which ends with a zero. Damage is returned as one piece.
fn frames(bytes: &[u8], pieces: &mut Vec<Piece>) {
    let mut damaged = 0;
    #[cfg(test)]
    visits::add(bytes.len());
    for encoded in bytes.split_inclusive(|byte| *byte == 0) {
        match encoded.split_last() {
            // No program writes a longer frame, and an encoded byte holds at most seven zeroes.
            Some((0, frame)) if !frame.is_empty() && encoded.len() <= FRAME_BYTES => {
                match decoded(frame) {
                    Some(frame) => {
                        tell(&mut damaged, pieces);
                        pieces.push(Piece::Frame(frame));
                    }
                    None => damaged += encoded.len() as u64,
                }
            }
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

/// Decodes the frame in `encoded`: defmt's encoding (rzCOBS) backwards. The result includes the
/// check byte and up to six zeroes behind it, which no decoder reads. `None`: it holds no frame.
///
/// A last byte below 0x80 tells which of seven bytes are zero. A higher one means that so many
/// bytes, and seven, precede a zero. 0xff means 134 bytes. Source: defmt's book, "Encoding".
fn decoded(encoded: &[u8]) -> Option<Vec<u8>> {
    let mut backwards = Vec::new();
    let mut left = encoded.iter().rev().copied();
    while let Some(sign) = left.next() {
        match sign {
            0 => return None,
            1..=0x7f => {
                for bit in (0..7).rev() {
                    backwards.push(if sign >> bit & 1 == 1 { 0 } else { left.next()? });
                }
            }
            0x80..=0xff => {
                if sign < 0xff {
                    backwards.push(0);
                }
                let run = if sign < 0xff { usize::from(sign & 0x7f) + 7 } else { 134 };
                for _ in 0..run {
                    backwards.push(left.next()?);
                }
            }
        }
    }
    #[cfg(test)]
    visits::add(encoded.len() + backwards.len());
    backwards.reverse();
    // Over a frame and its own check byte the check is 0, and the zeroes that fill the last symbol
    // leave it 0.
    (check(FIRST, &backwards) == 0).then_some(backwards)
}

/// The bytes that this thread's reader has visited, for the test that counts instead of timing.
#[cfg(test)]
mod visits {
    use std::cell::Cell;

    thread_local!(static BYTES: Cell<usize> = const { Cell::new(0) });

    pub(super) fn add(bytes: usize) {
        BYTES.set(BYTES.get() + bytes);
    }

    /// The bytes since the last call.
    pub(super) fn taken() -> usize {
        BYTES.replace(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    /// Copying, splitting and decoding visit each byte of a ring a few times, whatever the ring's
    /// size is. A byte stands for seven at most.
    #[test]
    fn a_large_ring_is_read_a_few_times() -> std::io::Result<()> {
        const FEW: usize = 12;
        for ring_bytes in [1 << 12, 1 << 20] {
            let frame = [0x7f; FRAME_BYTES - 1].into_iter().chain([0]);
            let fills = [
                vec![0; ring_bytes],
                vec![1; ring_bytes],
                [1, 0].repeat(ring_bytes / 2),
                frame.cycle().take(ring_bytes).collect(),
            ];
            for ring in fills {
                let mut reader = Reader { file: File::open("/dev/null")?, seen: 0, within: false };
                let full = Header {
                    ring_bytes: u32::try_from(ring_bytes).unwrap_or(0),
                    ..header(ring_bytes as u64, ring_bytes as u64)
                };
                visits::taken();
                let pieces = reader.new_ones(&full, &ring, &full);
                let looked = visits::taken();
                assert!(
                    !pieces.is_empty() && looked >= ring_bytes && looked <= FEW * ring_bytes,
                    "{looked} of {ring_bytes}"
                );
            }
        }
        Ok(())
    }

    fn header(written: u64, reserved: u64) -> Header {
        Header {
            ring_bytes: 4096,
            pid: 1,
            start_monotonic_ns: 0,
            start_real_ns: 0,
            boot_id: String::new(),
            written,
            reserved,
            dropped: 0,
            build_id: None,
            program: PathBuf::new(),
        }
    }

    /// The program overtook the whole ring during the copy, and died inside an event. The next call
    /// also begins inside an event, and the rest of that event is no damage.
    #[test]
    fn event_cut_by_a_look_is_no_damage() -> std::io::Result<()> {
        let mut reader = Reader { file: File::open("/dev/null")?, seen: 0, within: false };
        let mut ring = vec![7; 4096];
        let looks = [
            (header(1_000, 1_000), header(6_000, 6_100)),
            (header(6_000, 6_100), header(6_000, 6_100)),
        ];
        // The rest of an event ends at byte 2,104; the bytes after it are damaged.
        for end in [2_103, 2_999, (6_000 - 1) % 4096] {
            if let Some(byte) = ring.get_mut(end) {
                *byte = 0;
            }
        }
        let [first, second] = looks.map(|(before, after)| reader.new_ones(&before, &ring, &after));
        assert_eq!(first, [Piece::Overwritten { len_bytes: 2_004 }]);
        assert_eq!(
            second,
            [Piece::Overwritten { len_bytes: 100 }, Piece::Damaged { len_bytes: 3_896 }]
        );
        Ok(())
    }

    /// 600 bytes, of which all but two stand for seven zeroes each: 4,000 bytes for the decoder.
    #[test]
    fn a_frame_that_no_program_writes_is_damage() {
        let long = |first: u8, len: usize| {
            let mut encoded = vec![0x7f; len];
            encoded.splice(..2, [first, 0x3f]);
            encoded
        };
        let right = |len| {
            (1..=255).map(|first| long(first, len)).find(|encoded| decoded(encoded).is_some())
        };
        let said = |mut encoded: Vec<u8>| {
            encoded.push(0);
            let mut pieces = Vec::new();
            frames(&encoded, &mut pieces);
            pieces
        };
        assert!(
            matches!(right(FRAME_BYTES - 1).map(said).as_deref(), Some([Piece::Frame(_)])),
            "the longest that is one"
        );
        assert_eq!(right(599).map(said), Some(vec![Piece::Damaged { len_bytes: 600 }]));
        assert_eq!(
            right(FRAME_BYTES).map(said),
            Some(vec![Piece::Damaged { len_bytes: FRAME_BYTES as u64 + 1 }])
        );
    }
}
