//! The descriptors of one copy: where it is cut, and their contents in memory. Arithmetic only.

use super::regs;
use crate::checks::{high, low};
use contigo_core::types::DevAddr;

/// One source and one destination descriptor. Both lists advance together, so each piece has one
/// cache line to clean.
pub(super) const PAIR_BYTES: usize = 2 * regs::DESCRIPTOR_BYTES;
/// The words of one pair.
const PAIR_WORDS: usize = PAIR_BYTES / 4;
/// The most pairs of one copy: 4 KiB of descriptors, of which the driver's stack holds one copy.
/// With the largest step they cover more than [`TOTAL_MAX`].
pub(super) const PAIRS_MAX: usize = 64;
/// A list has at least a middle and an end.
pub(super) const PAIRS_MIN: usize = 2;
/// The shortest step: 4 KiB, a boundary that no AXI burst crosses (Arm IHI 0022, A3.4.1), so a cut
/// there adds no burst.
const STEP_MIN: u64 = 1 << 12;
/// The longest step: the largest power of two that SIZE holds.
const STEP_MAX: u64 = 1 << 29;
/// The most bytes of one copy in linked mode, as TOTAL_BYTE counts them.
const TOTAL_MAX: u64 = u32::MAX as u64;

/// The most bytes that `pairs` pairs copy, wherever the destination begins: its first piece may be
/// short.
pub(super) const fn longest(pairs: usize) -> u64 {
    let reach = (pairs as u64).saturating_sub(1).saturating_mul(STEP_MAX);
    if reach < TOTAL_MAX { reach } else { TOTAL_MAX }
}

/// One copy, cut where the destination's address is a multiple of `step`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pieces {
    from: u64,
    to: u64,
    left: u64,
    step: u64,
}

impl Pieces {
    /// `len` bytes in at most `pairs` pieces, by the shortest step that fits, so as to use the
    /// list. `None` if `len` is 0 or more than [`longest`].
    pub(super) fn new(from: DevAddr, to: DevAddr, len: u64, pairs: usize) -> Option<Self> {
        if len == 0 || len > TOTAL_MAX {
            return None;
        }
        let mut step = STEP_MIN;
        // 18 steps: 4 KiB to 512 MiB.
        while step <= STEP_MAX {
            if (to.0 % step + len).div_ceil(step) <= pairs as u64 {
                return Some(Self { from: from.0, to: to.0, left: len, step });
            }
            step *= 2;
        }
        None
    }
}

/// One piece of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) len: u32,
    pub(super) last: bool,
}

impl Iterator for Pieces {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        if self.left == 0 {
            return None;
        }
        let size = (self.step - self.to % self.step).min(self.left);
        let piece = Piece {
            from: self.from,
            to: self.to,
            // At most `STEP_MAX`, which fits.
            len: u32::try_from(size).unwrap_or(regs::SIZE_MAX),
            last: size == self.left,
        };
        self.from = self.from.wrapping_add(size);
        self.to = self.to.wrapping_add(size);
        self.left -= size;
        Some(piece)
    }
}

/// The list of one copy as it lies in memory, and how many of its words are used.
pub(super) struct List {
    words: [u32; PAIRS_MAX * PAIR_WORDS],
    used: usize,
}

impl List {
    /// The list of `pieces`, at the device address `at`. `then` is where the next job's list
    /// begins, which the channel walks too; `None` ends the list.
    ///
    /// A 256-bit descriptor (UG1085, table "Buffer Descriptor Format"): address, size, control, the
    /// next one's address, two words that are reserved. The last descriptor of each side names the
    /// first as its next. STOP ends the source's list; the destination's list has no such command.
    /// So a channel that reads ahead reads only the driver's own bytes.
    pub(super) fn new(pieces: Pieces, at: DevAddr, then: Option<DevAddr>, coherent: bool) -> Self {
        let mut list = Self { words: [0; PAIRS_MAX * PAIR_WORDS], used: 0 };
        let control = regs::WORD3_LINKED | if coherent { regs::WORD3_COHERENT } else { 0 };
        for (pair, piece) in list.words.as_chunks_mut::<PAIR_WORDS>().0.iter_mut().zip(pieces) {
            list.used += PAIR_WORDS;
            let next = if piece.last {
                then.unwrap_or(at).0
            } else {
                at.0.wrapping_add(4 * list.used as u64)
            };
            let stop = if piece.last && then.is_none() { regs::WORD3_STOP } else { 0 };
            let [from, to] = [words(piece.from), words(piece.to)];
            let [source, destination] =
                [words(next), words(next.wrapping_add(regs::DESCRIPTOR_BYTES as u64))];
            *pair = [
                from.0,
                from.1,
                piece.len,
                control | stop,
                source.0,
                source.1,
                0,
                0, //
                to.0,
                to.1,
                piece.len,
                control,
                destination.0,
                destination.1,
                0,
                0,
            ];
        }
        list
    }

    /// The words in use.
    pub(super) fn words(&self) -> &[u32] {
        self.words.get(..self.used).unwrap_or_default()
    }
}

/// The low and the high word of an address.
const fn words(addr: u64) -> (u32, u32) {
    (low(addr), high(addr))
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test that panics has failed, which is its purpose"
    )]
    use super::*;
    use std::vec::Vec;

    fn pieces(from: u64, to: u64, len: u64, pairs: usize) -> Option<Vec<Piece>> {
        Pieces::new(DevAddr(from), DevAddr(to), len, pairs).map(Iterator::collect)
    }

    /// Pieces are contiguous, end with the last byte, and fit SIZE. Inner cuts are at multiples of
    /// 4 KiB.
    fn check(from: u64, to: u64, len: u64, pairs: usize) {
        let cut = pieces(from, to, len, pairs).unwrap();
        assert!((1..=pairs).contains(&cut.len()), "{from:#x} {to:#x} {len}: {} pieces", cut.len());
        let mut done = 0;
        for (index, piece) in cut.iter().enumerate() {
            assert_eq!((piece.from, piece.to), (from + done, to + done));
            assert!((1..=regs::SIZE_MAX).contains(&piece.len));
            assert!(index == 0 || piece.to % 4096 == 0);
            assert_eq!(piece.last, index == cut.len() - 1);
            done += u64::from(piece.len);
        }
        assert_eq!(done, len);
    }

    #[test]
    fn a_copy_is_cut_into_pieces_that_cover_it() {
        let mut rng = fastrand::Rng::with_seed(1);
        for _ in 0..10_000 {
            let pairs = rng.usize(PAIRS_MIN..=PAIRS_MAX);
            let bits = rng.u32(0..32);
            let len = rng.u64(1..=(1 << bits).min(longest(pairs)));
            check(rng.u64(..1 << 40), rng.u64(..1 << 40), len, pairs);
        }
    }

    #[test]
    fn the_list_is_used_and_its_limits_are_known() {
        assert_eq!(pieces(0, 0, 1, 2).unwrap().len(), 1);
        assert_eq!(pieces(0, 4095, 2, 2).unwrap().len(), 2);
        assert_eq!(pieces(0, 0, 64 << 10, 64).unwrap().len(), 16);
        assert_eq!(pieces(0, 0, 64 << 10, 4).unwrap().len(), 4);
        // A step of 32 KiB would make five of it.
        assert_eq!(pieces(0, 1, 128 << 10, 4).unwrap().len(), 3);
        assert_eq!((longest(2), longest(8), longest(9)), (1 << 29, 7 << 29, u64::from(u32::MAX)));
        for pairs in [2, 3, 9, PAIRS_MAX] {
            check(1, (1 << 29) - 1, longest(pairs), pairs);
            assert_eq!(pieces(0, 0, longest(pairs).saturating_mul(3), pairs), None, "{pairs}");
        }
        assert_eq!(pieces(0, 0, 0, 2), None);
        assert_eq!(pieces(0, 0, 1 << 32, PAIRS_MAX), None, "more than TOTAL_BYTE counts");
    }

    #[test]
    fn descriptors_are_as_the_manual_draws_them() {
        let (from, to, at) =
            (DevAddr(0x1_2345_6789), DevAddr(0x8_0000_0FFE), DevAddr(0x4_0000_0040));
        let list = List::new(Pieces::new(from, to, 4100, 8).unwrap(), at, None, true);
        let [stop, linked, coherent] = [1 << 4, 1 << 1, 1];
        let expected: [[u32; 8]; 6] = [
            [0x2345_6789, 1, 2, linked | coherent, 0x80, 4, 0, 0],
            [0x0000_0FFE, 8, 2, linked | coherent, 0xA0, 4, 0, 0],
            [0x2345_678B, 1, 4096, linked | coherent, 0xC0, 4, 0, 0],
            [0x0000_1000, 8, 4096, linked | coherent, 0xE0, 4, 0, 0],
            [0x2345_778B, 1, 2, stop | linked | coherent, 0x40, 4, 0, 0],
            [0x0000_2000, 8, 2, linked | coherent, 0x60, 4, 0, 0],
        ];
        assert_eq!(list.words(), expected.as_flattened());
        let plain = List::new(Pieces::new(from, to, 1, 8).unwrap(), at, None, false);
        assert_eq!(
            (plain.words()[3], plain.words()[11], plain.words().len()),
            (stop | linked, linked, 16)
        );
        // With a next job: no end, and both sides continue there.
        let then = Some(DevAddr(0x4_0000_0800));
        let chained = List::new(Pieces::new(from, to, 1, 8).unwrap(), at, then, false);
        let expected =
            [0x2345_6789, 1, 1, linked, 0x800, 4, 0, 0, 0x0000_0FFE, 8, 1, linked, 0x820, 4, 0, 0];
        assert_eq!(chained.words(), expected);
    }
}
