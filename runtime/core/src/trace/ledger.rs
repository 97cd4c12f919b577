#![allow(
    unsafe_code,
    reason = "a site is a reference that any thread may enter, kept as a pointer"
)]
//! Events counted by site, in a table of fixed size.

use super::{Event, Kind, Listener};
use crate::trace::stats::Counter;
use core::panic::Location;
use core::sync::atomic::{AtomicPtr, Ordering};
use core::{fmt, ptr};

const KINDS: usize = Kind::ALL.len();
// A kind's number is the index of its count, and its place in the list is its name's index.
#[allow(clippy::indexing_slicing, reason = "it is run by the compiler")]
const _: () = {
    let mut at = 0;
    while at < KINDS {
        assert!(Kind::ALL[at] as usize == at);
        at += 1;
    }
};

/// Counts events by site and kind, for any number of threads: two or three atomic additions an
/// event, no heap, no lock. Up to `SITES` lines of a program have rows of their own, 256 bytes
/// each. The events of more lines are counted under no site.
///
/// It is a [`Listener`]; put it into a `static` and give it to
/// [`set_listener`](super::set_listener). It only counts up: a run's counts are the difference of
/// two readings. [`audit`](super) has an example.
pub struct Ledger<const SITES: usize> {
    sites: [Counts; SITES],
    /// The events that have no site, or no row.
    elsewhere: Counts,
}

/// One line's counts.
struct Counts {
    /// Null, or made of a `&'static Location<'static>`; set once.
    site: AtomicPtr<Location<'static>>,
    calls: [Counter; KINDS],
    bytes: [Counter; KINDS],
}

/// The events of one kind that one line of the program caused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The line; `None` for events without one: something was dropped, or more lines than `SITES`
    /// called.
    pub site: Option<&'static Location<'static>>,
    /// What was done.
    pub kind: Kind,
    /// How often, and with how many bytes.
    pub count: Count,
}

/// How often, and with how many bytes. Wraps at 2³² on processors without 64-bit atomics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// How often.
    pub calls: u64,
    /// How many bytes in all.
    pub bytes: u64,
}

impl<const SITES: usize> Ledger<SITES> {
    /// An empty ledger.
    #[must_use]
    #[allow(
        clippy::new_without_default,
        reason = "a ledger is a static, and `default` is not const"
    )]
    pub const fn new() -> Self {
        const {
            assert!(
                1 <= SITES && SITES <= 1024,
                "a ledger has 1 to 1024 sites: finding one may look at each"
            )
        };
        Self { sites: [const { Counts::new() }; SITES], elsewhere: Counts::new() }
    }

    /// The counts, site by site, of the events that happened. Other threads may go on counting
    /// meanwhile.
    pub fn rows(&self) -> impl Iterator<Item = Row> {
        self.sites.iter().chain([&self.elsewhere]).flat_map(Counts::rows)
    }

    /// The count of one kind, at all sites.
    #[must_use]
    pub fn total(&self, kind: Kind) -> Count {
        let of_kind = self.rows().filter(|row| row.kind == kind);
        of_kind.fold(Count::default(), |sum, Row { count, .. }| Count {
            calls: sum.calls.saturating_add(count.calls),
            bytes: sum.bytes.saturating_add(count.bytes),
        })
    }

    /// The row of `site`: its own, or a free one that becomes its own. Reads every row at most
    /// once.
    fn row_of(&self, site: &'static Location<'static>) -> &Counts {
        // One line may have several `Location`s in a program, so it is found by its text.
        let start =
            (site.line() as usize).wrapping_mul(31).wrapping_add(site.column() as usize) % SITES;
        let (before, after) = self.sites.split_at_checked(start).unwrap_or((&[], &self.sites));
        after.iter().chain(before).find(|row| row.is_of(site)).unwrap_or(&self.elsewhere)
    }
}

impl<const SITES: usize> Listener for Ledger<SITES> {
    fn happened(&self, event: &Event, site: Option<&'static Location<'static>>) {
        let row = site.map_or(&self.elsewhere, |site| self.row_of(site));
        let kind = event.kind() as usize;
        if let (Some(calls), Some(bytes)) = (row.calls.get(kind), row.bytes.get(kind)) {
            calls.add(1);
            bytes.add(event.len_bytes());
        }
    }
}

impl Counts {
    const fn new() -> Self {
        let site = AtomicPtr::new(ptr::null_mut());
        Self {
            site,
            calls: [const { Counter::new() }; KINDS],
            bytes: [const { Counter::new() }; KINDS],
        }
    }

    fn site(&self) -> Option<&'static Location<'static>> {
        // SAFETY: null, or what `is_of` stored, which was made of a reference to a `Location` that
        // lives as long as the program and is never written.
        unsafe { self.site.load(Ordering::Relaxed).as_ref() }
    }

    /// Is this the row of `site`? A free row becomes it.
    fn is_of(&self, site: &'static Location<'static>) -> bool {
        let own = self.site().or_else(|| {
            let pointer = ptr::from_ref(site).cast_mut();
            match self.site.compare_exchange(
                ptr::null_mut(),
                pointer,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => Some(site),
                Err(_) => self.site(), // another thread's, from just now
            }
        });
        own.is_some_and(|own| ptr::eq(own, site) || own == site)
    }

    fn rows(&self) -> impl Iterator<Item = Row> {
        let site = self.site();
        let counts = Kind::ALL.into_iter().zip(self.calls.iter().zip(&self.bytes));
        counts
            .map(move |(kind, (calls, bytes))| Row {
                site,
                kind,
                count: Count { calls: calls.get(), bytes: bytes.get() },
            })
            .filter(|row| row.count.calls != 0)
    }
}

impl<const SITES: usize> fmt::Debug for Ledger<SITES> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.rows()).finish()
    }
}
