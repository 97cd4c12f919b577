//! The names that are most like one that is not there.

use crate::types::name::Name;
use core::fmt;
use heapless::Vec;

/// How many names a [`Near`] has at most: as many as a line shows.
pub const MAX_NEAR: usize = 4;

/// The names that are most like one that is not there, the nearest first.
///
/// ```
/// use contigo::design::Near;
/// let near = Near::of("axi_dma", ["axi_gpio_0", "axi_dma_0"].into_iter());
/// assert_eq!(near.to_string(), "`axi_dma_0`, `axi_gpio_0`");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Near {
    // INVARIANT: behind the last one they are `Name::NONE`, which nothing is called.
    names: [Name; MAX_NEAR],
}

impl Near {
    /// Those of `all` that are most like `name`, in hierarchies by their last part too. Of two that
    /// are as near the first comes first.
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
        self.names()
            .enumerate()
            .try_for_each(|(at, name)| write!(f, "{}`{name}`", if at > 0 { ", " } else { "" }))
    }
}

/// How many letters are added, left out or others in `right`: Levenshtein's distance, of as much as
/// an error shows. Upper and lower case are alike here.
pub fn distance(left: &str, right: &str) -> usize {
    let (left, right) = (left.as_bytes(), right.as_bytes());
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

/// Shows every name to a function.
type Every = fn(&mut dyn FnMut(&str));

/// The most names that an error lists: as many as two lines show.
const MAX_KNOWN: usize = 8;

/// The others, where one is not there: how many there are. Where they are the program's own, as
/// drivers are, it has the names that are most like the missing one.
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
    /// Shows every name, each time in the same order; `None`: they have none here.
    every: Option<Every>,
    /// The places of the nearest in that order, the nearest first; `NONE` behind the last.
    nearest: [u8; MAX_KNOWN],
    all: u32,
}

impl Among {
    /// No place: there are 25 drivers, and a program registers 32 at most.
    const NONE: u8 = u8::MAX;

    /// So many, whose names the error does not have.
    #[must_use]
    pub const fn of(all: u32) -> Self {
        Self { every: None, nearest: [Self::NONE; MAX_KNOWN], all }
    }

    /// Those that are most like `name`. Of two that are as near the first comes first.
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
            // Full: all of them are nearer.
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

    /// Has the error names to show?
    #[must_use]
    pub const fn lists(&self) -> bool {
        self.every.is_some()
    }

    /// Shows the names that are most like the one that is not there, the nearest first: eight at
    /// most, and none where the error does not have them.
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

/// So many, whose names the error does not have.
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

/// Two are equal that list the same places of as many names.
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
