//! Which bytes go where: random, with the cases that go wrong more often than chance would have
//! them.

use contigo::Align;
use core::ops::Range;
use fastrand::Rng;

/// The copies that an engine can make, where it cannot copy any number of bytes from anywhere to
/// anywhere. Its driver's `check` refuses the rest, and a run that meets such a refusal ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Every address is a multiple of this, a power of two up to 64.
    pub offset_align_bytes: usize,
    /// Every length is a multiple of this.
    pub len_align_bytes: usize,
    /// No length is more than this.
    pub len_max_bytes: usize,
}

impl Limits {
    /// Any bytes, any number of them.
    pub const NONE: Self =
        Self { offset_align_bytes: 1, len_align_bytes: 1, len_max_bytes: usize::MAX };
}

/// A drawn copy: how many bytes, from where in the source, to where in the destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Drawn {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) len: usize,
}

/// Lengths up to here count as short: some of them touch one line, some three.
const SHORT_BYTES: usize = 2 * Align::LINE.bytes();

/// Draws a copy from bytes `source` of one slot to bytes `destination` of another. `None` where the
/// limits allow none.
pub(super) fn draw(
    rng: &mut Rng,
    limits: &Limits,
    source: &Range<usize>,
    destination: &Range<usize>,
) -> Option<Drawn> {
    let unit = limits.len_align_bytes.max(1);
    let (source, destination) = (aligned(source, limits), aligned(destination, limits));
    let most = source.len().min(destination.len()).min(limits.len_max_bytes) / unit;
    if most == 0 {
        return None;
    }
    let upto = |rng: &mut Rng, bytes: usize| rng.usize(1..=most.min(bytes.div_ceil(unit)));
    let (units, edge) = match rng.u8(..16) {
        0 => (1, None),
        1 | 2 => (most, None),
        // Around the boundary of a line, of a page: short, so that both ends are near it.
        3..=5 => (upto(rng, SHORT_BYTES), Some(Align::LINE)),
        6 | 7 => (upto(rng, SHORT_BYTES), Some(Align::PAGE)),
        8..=10 => (upto(rng, SHORT_BYTES), None),
        _ => (rng.usize(1..=most), None),
    };
    let len = units * unit;
    Some(Drawn {
        from: place(rng, limits, &source, len, None),
        to: place(rng, limits, &destination, len, edge),
        len,
    })
}

/// `room` without the bytes before its first aligned one.
fn aligned(room: &Range<usize>, limits: &Limits) -> Range<usize> {
    let start = room.start.next_multiple_of(limits.offset_align_bytes.max(1));
    start..room.end.max(start)
}

/// Where in `room`, which begins at an aligned byte, `len` bytes go: across a multiple of `edge`,
/// if there is one and it can be.
fn place(
    rng: &mut Rng,
    limits: &Limits,
    room: &Range<usize>,
    len: usize,
    edge: Option<Align>,
) -> usize {
    let align = limits.offset_align_bytes.max(1);
    let last = room.start + (room.len() - len.min(room.len())) / align * align;
    let anywhere = |rng: &mut Rng, first: usize, last: usize| {
        first + rng.usize(0..=(last - first) / align) * align
    };
    // The multiples of `edge` inside the room, of which one is to be inside the copy.
    let multiples =
        edge.map(|edge| (room.start / edge.bytes() + 1)..room.end.div_ceil(edge.bytes()));
    if let (Some(edge), Some(multiples)) = (edge, multiples)
        && !multiples.is_empty()
        && len > 1
    {
        let boundary = rng.usize(multiples) * edge.bytes();
        let first = boundary.saturating_sub(len - 1).max(room.start).next_multiple_of(align);
        let upto = boundary.saturating_sub(1).min(last) / align * align;
        if first <= upto {
            return anywhere(rng, first, upto);
        }
    }
    anywhere(rng, room.start, last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    const SLOT: usize = 8192;

    #[test]
    fn every_copy_lies_inside_and_keeps_the_limits() {
        let mut rng = Rng::with_seed(1);
        for limits in [
            Limits::NONE,
            Limits { offset_align_bytes: 4, len_align_bytes: 4, len_max_bytes: 4096 },
            Limits { offset_align_bytes: 64, len_align_bytes: 1, len_max_bytes: usize::MAX },
            Limits { offset_align_bytes: 1, len_align_bytes: 16, len_max_bytes: 48 },
        ] {
            for _ in 0..20_000 {
                let mut room = || {
                    let (one, other) = (rng.usize(..=SLOT), rng.usize(..=SLOT));
                    one.min(other)..one.max(other)
                };
                let (source, destination) = (room(), room());
                let drawn = draw(&mut rng, &limits, &source, &destination);
                let Some(Drawn { from, to, len }) = drawn else {
                    let rooms = [&source, &destination].map(|room| aligned(room, &limits).len());
                    assert!(rooms.iter().any(|&room| room < limits.len_align_bytes), "{limits:?}");
                    continue;
                };
                let Limits { offset_align_bytes, len_align_bytes, len_max_bytes } = limits;
                assert!((1..=len_max_bytes).contains(&len) && len.is_multiple_of(len_align_bytes));
                for (at, room) in [(from, &source), (to, &destination)] {
                    assert!(at.is_multiple_of(offset_align_bytes), "{limits:?}: {at}");
                    assert!(room.start <= at && at + len <= room.end, "{room:?} {at} {len}");
                }
            }
        }
    }

    #[test]
    fn the_edges_are_met_often() {
        let mut rng = Rng::with_seed(2);
        let drawn: Vec<_> = (0..1_000)
            .filter_map(|_| draw(&mut rng, &Limits::NONE, &(0..SLOT), &(0..SLOT)))
            .collect();
        let count = |case: fn(&Drawn) -> bool| drawn.iter().filter(|&one| case(one)).count();
        assert_eq!(drawn.len(), 1_000);
        assert!(count(|one| one.len == 1) > 40);
        assert!(count(|one| one.len == SLOT) > 80);
        let crosses = |one: &Drawn, bytes: usize| {
            one.len <= SHORT_BYTES && one.to / bytes != (one.to + one.len - 1) / bytes
        };
        assert!(drawn.iter().filter(|one| crosses(one, 4096)).count() > 80);
        assert!(drawn.iter().filter(|one| crosses(one, 64)).count() > 200);
    }
}
