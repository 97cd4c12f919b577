//! Suggests similar names when a name is not found.

use crate::types::name::Name;
use core::fmt;
use heapless::Vec;

/// How many names a [`Near`] has at most: as many as a line shows.
pub const MAX_NEAR: usize = 4;

/// The names that are most similar to a missing one, the nearest first.
///
/// ```
/// use contigo::design::Near;
/// let near = Near::of("axi_dma", ["axi_gpio_0", "axi_dma_0"].into_iter());
/// assert_eq!(near.to_string(), "`axi_dma_0`, `axi_gpio_0`");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Near {
    // INVARIANT: entries after the last name are `Name::NONE`, which no name equals.
    names: [Name; MAX_NEAR],
}

impl Near {
    /// Finds the names in `all` that are most similar to `name`; for hierarchical names it compares
    /// the last part too. Of two names at the same distance, the earlier one comes first.
    #[must_use]
    pub fn of<'a>(name: &str, all: impl Iterator<Item = &'a str>) -> Self {
        let mut found = Vec::<(usize, &str), MAX_NEAR>::new();
        for other in all {
            let last = other.rsplit('/').next().unwrap_or(other);
            let far = distance(name, other).min(distance(name, last));
            let place = found.iter().position(|(known, _)| *known > far).unwrap_or(found.len());
            if found.is_full() && place < MAX_NEAR {
                found.pop();
            }
            // If it is full, all its names are nearer.
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
        self.names()
            .enumerate()
            .try_for_each(|(at, name)| write!(f, "{}`{name}`", if at > 0 { ", " } else { "" }))
    }
}

/// How many letters are added, removed or changed in `right`: Levenshtein's distance, over as much
/// as an error shows. It ignores upper and lower case.
pub fn distance(left: &str, right: &str) -> usize {
    let (left, right) = (left.as_bytes(), right.as_bytes());
    let mut row = Vec::<usize, { Name::MAX_BYTES }>::new();
    let right = || right.iter().take(Name::MAX_BYTES);
    let _ = right().enumerate().try_for_each(|(at, _)| row.push(at + 1));
    let mut last = row.len();
    for (at, letter) in left.iter().take(Name::MAX_BYTES).enumerate() {
        // The value of the left neighbour in the previous row, and in this one.
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

/// Calls a function with every name.
type Every = fn(&mut dyn FnMut(&str));

/// The most names that an error lists: as many as two lines show.
const MAX_KNOWN: usize = 8;

/// The alternatives to a name that is not found: how many names there are, and the most similar
/// ones if they are the program's own, as drivers are.
///
/// ```
/// use contigo::{Error, names::row};
/// let refused = row("axi_dam").unwrap_err();
/// assert!(refused.to_string().starts_with("there is no such driver; others that are here: axi_dma, "));
/// let Error::NotFound { among, .. } = refused else { unreachable!() };
/// assert!(among.count() > 8, "eight of them are listed");
/// ```
#[derive(Clone, Copy)]
pub struct Among {
    /// Calls a function with every name, always in the same order; `None`: the names are not here.
    every: Option<Every>,
    /// The positions of the nearest in that order, the nearest first, and `NONE` after the last.
    nearest: [u8; MAX_KNOWN],
    all: u32,
}

impl Among {
    /// No position: there are 25 drivers, and a program registers 32 at most.
    const NONE: u8 = u8::MAX;

    /// A count of names that the error does not hold.
    #[must_use]
    pub const fn of(all: u32) -> Self {
        Self { every: None, nearest: [Self::NONE; MAX_KNOWN], all }
    }

    /// Finds the most similar to `name`. Of two at the same distance, the earlier comes first.
    #[cfg_attr(
        not(all(feature = "linux", target_os = "linux")),
        allow(dead_code, reason = "names are of Linux")
    )]
    pub fn nearest(name: &str, every: Every) -> Self {
        let (mut found, mut all) = (Vec::<(usize, u8), MAX_KNOWN>::new(), 0);
        every(&mut |other| {
            let far = distance(name, other);
            let place = found.iter().position(|(known, _)| *known > far).unwrap_or(found.len());
            if found.is_full() && place < MAX_KNOWN {
                found.pop();
            }
            // If it is full, all its names are nearer.
            let _ = found.insert(place, (far, u8::try_from(all).unwrap_or(Self::NONE)));
            all += 1;
        });
        let mut nearest = [Self::NONE; MAX_KNOWN];
        for (room, (_, place)) in nearest.iter_mut().zip(&found) {
            *room = *place;
        }
        Self { every: Some(every), nearest, all }
    }

    /// How many names there are.
    #[must_use]
    pub const fn count(&self) -> u32 {
        self.all
    }

    /// Returns whether the error has names to show.
    #[must_use]
    pub const fn lists(&self) -> bool {
        self.every.is_some()
    }

    /// Calls `show` with the names that are most similar to the missing one, the nearest first:
    /// eight at most, and none if the error does not hold them.
    pub fn each(&self, mut show: impl FnMut(&str)) {
        let Some(every) = self.every else { return };
        for place in self.nearest.into_iter().filter(|place| *place != Self::NONE) {
            let mut at = 0;
            every(&mut |name| {
                if at == usize::from(place) {
                    show(name);
                }
                at += 1;
            });
        }
    }
}

/// A count of names that the error does not hold.
///
/// ```
/// use contigo::Error;
/// let error = Error::NotFound { what: "UIO device", among: 3.into() };
/// assert_eq!(error.to_string(), "there is no such UIO device; others that are here: 3");
/// ```
impl From<u32> for Among {
    fn from(all: u32) -> Self {
        Self::of(all)
    }
}

/// Two are equal if they list the same positions of the same number of names.
impl PartialEq for Among {
    fn eq(&self, other: &Self) -> bool {
        (self.nearest, self.all) == (other.nearest, other.all)
    }
}

impl Eq for Among {}

impl fmt::Debug for Among {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Among {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut outcome, mut told) = (Ok(()), 0);
        self.each(|name| {
            outcome =
                outcome.and_then(|()| write!(f, "{}{name}", if told > 0 { ", " } else { "" }));
            told += 1;
        });
        match self.all - told {
            more if told == 0 => write!(f, "{more}"),
            0 => outcome,
            more => outcome.and_then(|()| write!(f, ", and {more} more")),
        }
    }
}

#[cfg(feature = "defmt")]
impl defmt::Format for Among {
    fn format(&self, f: defmt::Formatter<'_>) {
        defmt::write!(f, "the nearest of {=u32} are at {=[u8]}", self.all, self.nearest.as_slice());
    }
}
