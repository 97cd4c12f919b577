//! A run of bytes in a block, and what has to be done to the caches when it changes hands.
//! Arithmetic only: no memory is touched here, so that tests can drive it without any.

use crate::mem::{SyncRange, SyncScope};
use crate::types::{Align, Direction, Error};
use core::ops::{Bound, Range, RangeBounds};

/// `start .. start + len`, in bytes from the beginning of the block. `start + len` never overflows:
/// `Span`s are only made inside a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) len: usize,
}

impl Span {
    pub(crate) const fn new(start: usize, len: usize) -> Self {
        Self { start, len }
    }

    pub(crate) const fn end(self) -> usize {
        self.start + self.len
    }

    pub(crate) const fn range(self) -> Range<usize> {
        self.start..self.end()
    }

    pub(crate) const fn contains(self, other: Self) -> bool {
        self.start <= other.start && other.end() <= self.end()
    }

    /// The smallest span that holds both.
    pub(crate) fn hull(self, other: Self) -> Self {
        let start = self.start.min(other.start);
        Self::new(start, self.end().max(other.end()) - start)
    }

    /// The part of this span that `part` names, counted from this span's beginning.
    pub(crate) fn part(self, part: Part) -> Result<Self, Error> {
        let end = part.end.unwrap_or(self.len);
        if part.start > end || end > self.len {
            return Err(Error::OutOfRange { start: part.start, end, len_bytes: self.len });
        }
        Ok(Self::new(self.start + part.start, end - part.start))
    }
}

/// A range as the user wrote it, not yet checked against anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    start: usize,
    /// `None`: to the end.
    end: Option<usize>,
}

impl Part {
    /// The bytes of `whole` that this range names, and true. If they are not all inside: the first
    /// and the last byte asked for, and false.
    #[inline]
    pub(crate) fn within(self, whole: Span) -> (Span, bool) {
        match whole.part(self) {
            Ok(span) => (span, true),
            Err(_) => (Span::new(self.start, self.end.unwrap_or(whole.len)), false),
        }
    }

    pub(crate) fn of(range: impl RangeBounds<usize>) -> Self {
        // `saturating_add`: the bound `usize::MAX` is outside every block, and stays outside.
        let start = match range.start_bound() {
            Bound::Included(&start) => start,
            Bound::Excluded(&before) => before.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(&last) => Some(last.saturating_add(1)),
            Bound::Excluded(&end) => Some(end),
            Bound::Unbounded => None,
        };
        Self { start, end }
    }
}

/// The maintenance before a device uses `span`, which belongs to a buffer that owns `extent` alone.
///
/// If the device only reads, the exact bytes are cleaned: the backend rounds them out, and cleaning
/// a neighbour's line changes nothing visible. If it writes, whole lines must belong to this
/// buffer, because every line that the device writes is invalidated later, and a neighbour's bytes
/// with it. These lines are cleaned too, never discarded: the rest of a line is the owner's own
/// data, and so is all of it if the job is refused after this.
pub(crate) fn before_device(
    span: Span,
    direction: Direction,
    extent: Span,
    line: Align,
) -> Result<SyncRange, Error> {
    if !direction.device_writes() {
        return Ok(SyncRange { range: span.range(), direction });
    }
    Ok(SyncRange {
        range: whole_lines(span, extent, line)?.range(),
        direction: Direction::Bidirectional,
    })
}

/// The maintenance before a device writes `span` of a buffer that it only read so far, except for
/// `written`. Lines that no device wrote yet may be dirty in a part that was never handed over.
/// Lines that a device wrote must not be cleaned: the caches hold old data for them. Up to one run
/// of lines before `written` and one behind it; an empty run needs nothing.
///
/// Syncs of the whole block cleaned everything at the first hand-over.
pub(crate) fn before_writing(
    span: Span,
    written: Option<Span>,
    extent: Span,
    line: Align,
    scope: SyncScope,
) -> Result<[SyncRange; 2], Error> {
    let lines = whole_lines(span, extent, line)?;
    let done = match written {
        _ if scope == SyncScope::Whole => lines,
        Some(written) => whole_lines(written, extent, line)?,
        None => Span::new(lines.end(), 0),
    };
    let run = |start: usize, end: usize| SyncRange {
        range: start..end.max(start),
        direction: Direction::Bidirectional,
    };
    Ok([
        run(lines.start, lines.end().min(done.start)),
        run(lines.start.max(done.end()), lines.end()),
    ])
}

/// The maintenance after a device wrote `span`, before the CPU reads it.
pub(crate) fn after_device(span: Span, extent: Span, line: Align) -> Result<SyncRange, Error> {
    let lines = whole_lines(span, extent, line)?;
    Ok(SyncRange { range: lines.range(), direction: Direction::FromDevice })
}

/// `span` rounded out to whole lines, if they all lie in `extent`.
fn whole_lines(span: Span, extent: Span, line: Align) -> Result<Span, Error> {
    let refusal =
        Error::SharedLine { start: span.start, end: span.end(), line_bytes: line.bytes() };
    let start = line.round_down(span.start);
    let end = line.round_up(span.end()).ok_or(refusal)?;
    let lines = Span::new(start, end - start);
    if extent.contains(lines) { Ok(lines) } else { Err(refusal) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXTENT: Span = Span::new(128, 256);
    const RANGED: SyncScope = SyncScope::Range { granule_bytes: 64 };

    fn maintenance(start: usize, len: usize, direction: Direction) -> Result<SyncRange, Error> {
        before_device(Span::new(start, len), direction, EXTENT, Align::LINE)
    }

    #[test]
    fn device_writes_clean_whole_lines() {
        let lines = SyncRange { range: 128..192, direction: Direction::Bidirectional };
        assert_eq!(maintenance(128, 64, Direction::FromDevice), Ok(lines.clone()));
        assert_eq!(maintenance(130, 3, Direction::FromDevice), Ok(lines.clone()));
        assert_eq!(maintenance(128, 40, Direction::Bidirectional), Ok(lines));
    }

    #[test]
    fn lines_device_wrote_are_not_recleaned() {
        let ranges = |start, len, written: Option<Span>| {
            before_writing(Span::new(start, len), written, EXTENT, Align::LINE, RANGED)
                .map(|runs| runs.map(|run| run.range))
        };
        let [before, behind] = ranges(130, 150, None).unwrap_or_default();
        assert_eq!((before, behind.is_empty()), (128..320, true));
        let [before, behind] = ranges(130, 150, Some(Span::new(200, 1))).unwrap_or_default();
        assert_eq!((before, behind), (128..192, 256..320));
        let [before, behind] = ranges(200, 10, Some(Span::new(195, 1))).unwrap_or_default();
        assert!(before.is_empty() && behind.is_empty());
    }

    #[test]
    fn bytes_that_are_only_read_are_named_exactly() {
        let asked = maintenance(130, 3, Direction::ToDevice);
        assert_eq!(asked, Ok(SyncRange { range: 130..133, direction: Direction::ToDevice }));
    }

    #[test]
    fn a_line_of_another_buffer_is_refused() {
        let extent = Span::new(128, 40);
        let refused = before_device(Span::new(128, 40), Direction::FromDevice, extent, Align::LINE);
        assert_eq!(refused, Err(Error::SharedLine { start: 128, end: 168, line_bytes: 64 }));
        // One byte of the line is enough, at either end.
        for all_but_one in [Span::new(129, 63), Span::new(128, 63)] {
            let refused =
                before_device(all_but_one, Direction::FromDevice, all_but_one, Align::LINE);
            assert_eq!(
                refused,
                Err(Error::SharedLine {
                    start: all_but_one.start,
                    end: all_but_one.end(),
                    line_bytes: 64
                })
            );
        }
    }

    #[test]
    fn parts_are_checked() {
        let whole = Span::new(64, 100);
        assert_eq!(whole.part(Part::of(..)), Ok(whole));
        assert_eq!(whole.part(Part::of(10..=19)), Ok(Span::new(74, 10)));
        assert_eq!(
            whole.part(Part::of((Bound::Excluded(9), Bound::Excluded(20)))),
            Ok(Span::new(74, 10))
        );
        assert_eq!(
            whole.part(Part::of(90..101)),
            Err(Error::OutOfRange { start: 90, end: 101, len_bytes: 100 })
        );
        #[allow(clippy::reversed_empty_ranges, reason = "that is the point")]
        let backwards = Part::of(20..10);
        assert_eq!(
            whole.part(backwards),
            Err(Error::OutOfRange { start: 20, end: 10, len_bytes: 100 })
        );
        assert!(whole.part(Part::of(0..=usize::MAX)).is_err());
    }
}
