//! Places in the order in which they were put into a list: free places, places of jobs that wait,
//! and places of jobs that the device has.
//!
//! A place is in one list at a time, and stores the next place of that list. So a list has no
//! memory of its own, and no limit but the number of places.

/// The index of a place. A queue has fewer than [`NONE`] of them.
pub(super) type Place = u16;

/// No place: the end of a list.
pub(super) const NONE: Place = Place::MAX;

/// The first and the last place of a list, and how many there are.
#[derive(Clone, Copy, Debug)]
pub(super) struct List {
    first: Place,
    last: Place,
    len: u16,
}

/// Stores the next place of each place.
pub(super) trait Links {
    fn next(&self, of: Place) -> Place;
    fn set_next(&mut self, of: Place, next: Place);
}

impl List {
    pub(super) const EMPTY: Self = Self { first: NONE, last: NONE, len: 0 };

    pub(super) const fn len(&self) -> usize {
        self.len as usize
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The place that has been in the list longest.
    pub(super) const fn first(&self) -> Option<Place> {
        if self.len == 0 { None } else { Some(self.first) }
    }

    /// Puts `place`, which is in no list, behind the last one.
    #[inline]
    pub(super) fn push(&mut self, links: &mut impl Links, place: Place) {
        links.set_next(place, NONE);
        if self.is_empty() {
            self.first = place;
        } else {
            links.set_next(self.last, place);
        }
        self.last = place;
        self.len += 1;
    }

    /// Takes the first place out.
    #[inline]
    pub(super) fn pop(&mut self, links: &impl Links) -> Option<Place> {
        let place = self.first()?;
        self.first = links.next(place);
        self.len -= 1;
        Some(place)
    }

    /// Takes `place` out; false if it is not in this list.
    #[inline]
    pub(super) fn remove(&mut self, links: &mut impl Links, place: Place) -> bool {
        if self.first() == Some(place) {
            return self.pop(links).is_some();
        }
        let Some(before) = self.iter(links).find(|at| links.next(*at) == place) else {
            return false;
        };
        let next = links.next(place);
        links.set_next(before, next);
        if self.last == place {
            self.last = before;
        }
        self.len -= 1;
        true
    }

    /// Iterates over the places, the first one first.
    pub(super) fn iter(&self, links: &impl Links) -> impl Iterator<Item = Place> {
        let mut at = self.first;
        (0..self.len).map(move |_| {
            let place = at;
            at = links.next(place);
            place
        })
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::{Links, List, NONE, Place};
    use std::vec;
    use std::vec::Vec;

    struct Table(Vec<Place>);

    impl Links for Table {
        fn next(&self, of: Place) -> Place {
            self.0.get(usize::from(of)).copied().unwrap_or(NONE)
        }
        fn set_next(&mut self, of: Place, next: Place) {
            if let Some(link) = self.0.get_mut(usize::from(of)) {
                *link = next;
            }
        }
    }

    #[test]
    fn list_keeps_order_when_a_place_leaves() {
        for out in 0..5 {
            let (mut table, mut list) = (Table(vec![7; 5]), List::EMPTY);
            (0..5).for_each(|place| list.push(&mut table, place));
            assert!(list.remove(&mut table, out), "{out}");
            assert!(!list.remove(&mut table, out), "{out} twice");
            list.push(&mut table, out);
            let order: Vec<Place> = list.iter(&table).collect();
            let expected: Vec<Place> = (0..5).filter(|place| *place != out).chain([out]).collect();
            assert_eq!(order, expected, "{out}");
            assert_eq!(
                core::iter::from_fn(|| list.pop(&table)).collect::<Vec<_>>(),
                expected,
                "{out}"
            );
            assert!(list.is_empty() && list.first().is_none());
        }
    }
}
