//! Fixed tables in statics: every object that a C program has a handle to lives in one, from the
//! beginning at a fixed place.

mod hold;
mod lease;
mod locked;
mod slot;

pub(crate) use hold::JobHold;
pub(crate) use lease::Lease;
pub(crate) use locked::Locked;
pub(crate) use slot::Slot;

use crate::{
    fault::Misuse,
    handle::{Handle, Kind},
};

/// An object of a table.
pub(crate) trait Object: Sized + 'static {
    /// The kind of its handles.
    const KIND: Kind;
}

/// `N` entries for objects of one kind. All of it is zeroes at first, so that it has no place in
/// the program's file.
pub(crate) struct Table<T, const N: usize> {
    slots: [Slot<T>; N],
}

impl<T: Object, const N: usize> Table<T, N> {
    pub(crate) const fn new() -> Self {
        const { assert!(N <= 1 << crate::handle::INDEX_BITS, "an index has 12 bits") };
        Self { slots: [const { Slot::new() }; N] }
    }

    /// A free entry, without a value yet. Looks at every entry once at most.
    pub(crate) fn claim(&'static self) -> Result<Claimed<T>, Misuse> {
        self.claim_from(0)
    }

    /// As `claim`, from entry `first` on: for whoever claims many.
    pub(crate) fn claim_from(&'static self, first: usize) -> Result<Claimed<T>, Misuse> {
        let free = self.slots.iter().enumerate().skip(first).find_map(|(index, slot)| slot.claim().map(|locked| Claimed { index, locked }));
        free.ok_or(Misuse::TableFull { kind: T::KIND, entries: N })
    }

    /// Puts `value` into a free entry.
    pub(crate) fn insert(&'static self, value: T) -> Result<u64, Misuse> {
        let mut claimed = self.claim()?;
        claimed.locked.put(value);
        Ok(claimed.raw())
    }

    /// The object of a handle, for one call alone.
    pub(crate) fn lock(&'static self, raw: u64) -> Result<Locked<T>, Misuse> {
        let (handle, slot) = self.find(raw)?;
        slot.lock(T::KIND, handle.generation)
    }

    /// The object of a handle, for a job.
    #[inline]
    pub(crate) fn hold(&'static self, raw: u64) -> Result<JobHold<T>, Misuse> {
        let (handle, slot) = self.find(raw)?;
        slot.hold(T::KIND, handle.generation)
    }

    /// Entry number `index`, for those who know it otherwise than by a handle.
    pub(crate) fn slot(&'static self, index: usize) -> Option<&'static Slot<T>> {
        self.slots.get(index)
    }

    /// The entry that a handle names, in whichever life.
    #[inline]
    pub(crate) fn find(&'static self, raw: u64) -> Result<(Handle, &'static Slot<T>), Misuse> {
        let handle = Handle::of(raw, T::KIND)?;
        let slot = self.slots.get(handle.index).ok_or(Misuse::NoHandle { raw, expected: T::KIND })?;
        Ok((handle, slot))
    }
}

impl<T: Object + Sync, const N: usize> Table<T, N> {
    /// The object of a handle, shared.
    pub(crate) fn lease(&'static self, raw: u64) -> Result<Lease<T>, Misuse> {
        let (handle, slot) = self.find(raw)?;
        slot.lease(T::KIND, handle.generation)
    }
}

/// A free entry that was just taken.
pub(crate) struct Claimed<T: 'static> {
    pub(crate) index: usize,
    pub(crate) locked: Locked<T>,
}

impl<T: Object> Claimed<T> {
    pub(crate) fn parts(self) -> (usize, Locked<T>) {
        (self.index, self.locked)
    }

    /// The handle of its new life.
    pub(crate) const fn raw(&self) -> u64 {
        Handle { index: self.index, generation: self.locked.generation() }.raw(T::KIND)
    }
}
