//! The names that are most like one that is not there.

use crate::types::name::Name;
use core::fmt;
use heapless::Vec;

/// How many names a [`Near`] has at most: as many as a line shows.
pub const MAX_NEAR: usize = 4;

/// The names of cores that are most like one that the design lacks, the nearest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Near {
    // INVARIANT: behind the last one they are `Name::NONE`, which no core is called.
    names: [Name; MAX_NEAR],
}

impl Near {
    /// Those of `all` that are most like `name`. Of two that are as near the first comes first.
    pub(super) fn of<'a>(name: &str, all: impl Iterator<Item = &'a str>) -> Self {
        let mut found = Vec::<(usize, &str), MAX_NEAR>::new();
        for other in all {
            // In a hierarchy the last part alone is near, too.
            let last = other.rsplit('/').next().unwrap_or(other);
            let far = distance(name.as_bytes(), other.as_bytes()).min(distance(name.as_bytes(), last.as_bytes()));
            let place = found.iter().position(|(known, _)| *known > far).unwrap_or(found.len());
            if found.is_full() && place < MAX_NEAR {
                found.pop();
            }
            // Full: all of them are nearer.
            let _ = found.insert(place, (far, other));
        }
        let mut names = [Name::NONE; MAX_NEAR];
        for (room, (_, other)) in names.iter_mut().zip(&found) {
            *room = Name::clipped(other);
        }
        Self { names }
    }

    /// The names, the nearest first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(Name::as_str).filter(|name| !name.is_empty())
    }
}

impl fmt::Display for Near {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.names().enumerate().try_for_each(|(at, name)| write!(f, "{}`{name}`", if at > 0 { ", " } else { "" }))
    }
}

/// How many letters are added, left out or others in `right`: Levenshtein's distance, of as much as
/// an error shows. Upper and lower case are alike here.
fn distance(left: &[u8], right: &[u8]) -> usize {
    let mut row = Vec::<usize, { Name::MAX_BYTES }>::new();
    let right = || right.iter().take(Name::MAX_BYTES);
    let _ = right().enumerate().try_for_each(|(at, _)| row.push(at + 1));
    let mut last = row.len();
    for (at, letter) in left.iter().take(Name::MAX_BYTES).enumerate() {
        // The left neighbour of a place in the row before, and in this one.
        let (mut corner, mut before) = (at, at + 1);
        for (place, other) in row.iter_mut().zip(right()) {
            let changed = corner + usize::from(!letter.eq_ignore_ascii_case(other));
            corner = *place;
            before = changed.min(before + 1).min(corner + 1);
            *place = before;
        }
        last = before;
    }
    last
}
