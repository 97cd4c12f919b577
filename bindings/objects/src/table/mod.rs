//! Fixed tables in statics: every object that a C program has a handle to lives in one, from the
//! beginning at a fixed place.

mod hold;
mod lease;
mod locked;
mod slot;
mod word;

pub use hold::JobHold;
pub use lease::Lease;
pub use locked::Locked;
pub use slot::Slot;
pub(crate) use word::GENERATION_BITS;
pub use word::GENERATION_MAX;

use crate::{Handle, Kind, Refusal};

/// `N` entries for objects of one kind, whose number is `KIND`. All of it is zeroes at first, so
/// that it has no place in the program's file.
#[derive(Debug)]
pub struct Table<T, const KIND: u8, const N: usize> {
    slots: [Slot<T>; N],
}

impl<T: 'static, const KIND: u8, const N: usize> Table<T, KIND, N> {
    const KIND: Kind = Kind::of(KIND);

    /// All entries are free.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "it is a static's")]
    pub const fn new() -> Self {
        const { assert!(N <= 1 << crate::INDEX_BITS, "an index has 12 bits") };
        Self { slots: [const { Slot::new() }; N] }
    }

    /// A free entry, without a value yet. Looks at every entry once at most.
    ///
    /// # Errors
    /// [`Refusal::TableFull`].
    pub fn claim(&'static self) -> Result<Claimed<T>, Refusal> {
        self.claim_from(0)
    }

    /// As [`claim`](Self::claim), from entry `first` on: for a caller that claims many.
    ///
    /// # Errors
    /// [`Refusal::TableFull`].
    pub fn claim_from(&'static self, first: usize) -> Result<Claimed<T>, Refusal> {
        let free = self.slots.iter().enumerate().skip(first).find_map(|(index, slot)| {
            slot.claim().map(|locked| Claimed { kind: Self::KIND, index, locked })
        });
        free.ok_or(Refusal::TableFull { kind: Self::KIND, entries: N })
    }

    /// Puts `value` into a free entry, and answers its handle.
    ///
    /// # Errors
    /// [`Refusal::TableFull`].
    pub fn insert(&'static self, value: T) -> Result<u64, Refusal> {
        let mut claimed = self.claim()?;
        claimed.locked.put(value);
        Ok(claimed.raw())
    }

    /// The object of a handle, for one call alone.
    ///
    /// # Errors
    /// It is no handle of this kind; its object is gone, in a job, in another call, or used.
    pub fn lock(&'static self, raw: u64) -> Result<Locked<T>, Refusal> {
        let (handle, slot) = self.find(raw)?;
        slot.lock(Self::KIND, handle.generation)
    }

    /// The object of a handle, for a job.
    ///
    /// # Errors
    /// As [`lock`](Self::lock).
    #[inline]
    pub fn hold(&'static self, raw: u64) -> Result<JobHold<T>, Refusal> {
        let (handle, slot) = self.find(raw)?;
        slot.hold(Self::KIND, handle.generation)
    }

    /// Entry number `index`, for a caller that knows it otherwise than by a handle.
    pub fn slot(&'static self, index: usize) -> Option<&'static Slot<T>> {
        self.slots.get(index)
    }

    /// The entry that a handle names, whatever its generation is now.
    ///
    /// # Errors
    /// It is no handle of this kind.
    #[inline]
    pub fn find(&'static self, raw: u64) -> Result<(Handle, &'static Slot<T>), Refusal> {
        let handle = Handle::of(raw, Self::KIND)?;
        let slot =
            self.slots.get(handle.index).ok_or(Refusal::NoHandle { raw, expected: Self::KIND })?;
        Ok((handle, slot))
    }
}

impl<T: Sync + 'static, const KIND: u8, const N: usize> Table<T, KIND, N> {
    /// The object of a handle, shared.
    ///
    /// # Errors
    /// It is no handle of this kind; its object is gone, in a job, or in another call.
    pub fn lease(&'static self, raw: u64) -> Result<Lease<T>, Refusal> {
        let (handle, slot) = self.find(raw)?;
        slot.lease(Self::KIND, handle.generation)
    }
}

/// A free entry that was just taken.
#[derive(Debug)]
pub struct Claimed<T: 'static> {
    kind: Kind,
    /// Its number.
    pub index: usize,
    /// The entry, for this call alone.
    pub locked: Locked<T>,
}

impl<T> Claimed<T> {
    /// The handle of its new life.
    #[must_use]
    pub const fn raw(&self) -> u64 {
        Handle { index: self.index, generation: self.locked.generation() }.raw(self.kind)
    }
}
