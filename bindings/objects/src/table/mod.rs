//! Handles, and the fixed tables of their objects. A handle is a number, which every call checks. A
//! table is a static, so that an object never moves.

mod slot;
mod word;

pub use slot::{JobHold, Lease, Locked, Slot};
pub use word::GENERATION_MAX;

use crate::{Kind, Refusal};
use word::GENERATION_BITS;

/// Bits of the index. The largest table, that of the buffers, has 4,096 entries.
pub const INDEX_BITS: u32 = 12;
const KIND_SHIFT: u32 = INDEX_BITS + GENERATION_BITS;

/// Names an entry of a table, and one of its lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handle {
    /// The entry.
    pub index: usize,
    /// The life.
    pub generation: u64,
}

impl Handle {
    /// The handle for a C program: kind, generation, index, from the highest bit.
    #[must_use]
    pub const fn raw(self, kind: Kind) -> u64 {
        (kind as u64) << KIND_SHIFT
            | (self.generation & GENERATION_MAX) << INDEX_BITS
            | (self.index as u64 & ((1 << INDEX_BITS) - 1))
    }

    /// Reads a handle from a C program, which may pass any number.
    ///
    /// # Errors
    /// [`Refusal::NoHandle`], [`Refusal::WrongKind`].
    #[inline]
    pub fn of(raw: u64, expected: Kind) -> Result<Self, Refusal> {
        if raw >> KIND_SHIFT == expected as u64 {
            #[allow(clippy::cast_possible_truncation, reason = "12 bits")]
            let index = (raw & ((1 << INDEX_BITS) - 1)) as usize;
            return Ok(Self { index, generation: raw >> INDEX_BITS & GENERATION_MAX });
        }
        Err(Self::not(raw, expected))
    }

    /// The reason why the number is not such a handle.
    #[cold]
    fn not(raw: u64, expected: Kind) -> Refusal {
        match Kind::ALL.iter().find(|(kind, _)| *kind as u64 == raw >> KIND_SHIFT) {
            Some(&(found, _)) => Refusal::WrongKind { expected, found },
            None => Refusal::NoHandle { raw, expected },
        }
    }
}

/// `N` entries for objects of one kind, whose number is `KIND`. The table is zeroed at first, so
/// that it takes no room in the program's file.
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
        const { assert!(N <= 1 << INDEX_BITS, "an index has 12 bits") };
        Self { slots: [const { Slot::new() }; N] }
    }

    /// Takes a free entry, without a value yet. Checks each entry at most once.
    ///
    /// # Errors
    /// [`Refusal::TableFull`].
    pub fn claim(&'static self) -> Result<Claimed<T>, Refusal> {
        self.claim_from(0)
    }

    /// As [`claim`](Self::claim), starting at entry `first`: for a caller that claims many.
    ///
    /// # Errors
    /// [`Refusal::TableFull`].
    pub fn claim_from(&'static self, first: usize) -> Result<Claimed<T>, Refusal> {
        let free = self.slots.iter().enumerate().skip(first).find_map(|(index, slot)| {
            slot.claim().map(|locked| Claimed { kind: Self::KIND, index, locked })
        });
        free.ok_or(Refusal::TableFull { kind: Self::KIND, entries: N })
    }

    /// Puts `value` into a free entry, and returns its handle.
    ///
    /// # Errors
    /// [`Refusal::TableFull`].
    pub fn insert(&'static self, value: T) -> Result<u64, Refusal> {
        Ok(self.claim()?.put(value))
    }

    /// Calls `act` with exclusive access to the object of a handle.
    ///
    /// # Errors
    /// Those of [`lock`](Self::lock) and of `act`.
    #[inline]
    pub fn with<R, E: From<Refusal>>(
        &'static self,
        raw: u64,
        act: impl FnOnce(&mut T) -> Result<R, E>,
    ) -> Result<R, E> {
        let mut locked = self.lock(raw)?;
        act(locked.value().ok_or(Refusal::Stale { kind: Self::KIND })?)
    }

    /// Drops the object of a handle, and frees its entry.
    ///
    /// # Errors
    /// As [`lock`](Self::lock).
    pub fn close(&'static self, raw: u64) -> Result<(), Refusal> {
        self.lock(raw)?.clear();
        Ok(())
    }

    /// Locks the object of a handle for one call.
    ///
    /// # Errors
    /// The handle is not of this kind; or its object is gone, in a job, in another call, or in use.
    pub fn lock(&'static self, raw: u64) -> Result<Locked<T>, Refusal> {
        let (Handle { generation, .. }, slot) = self.find(raw)?;
        slot.lock(Self::KIND, generation)
    }

    /// Locks the object of a handle for a job.
    ///
    /// # Errors
    /// As [`lock`](Self::lock).
    #[inline]
    pub fn hold(&'static self, raw: u64) -> Result<JobHold<T>, Refusal> {
        let (handle, slot) = self.find(raw)?;
        slot.hold(Self::KIND, handle.generation)
    }

    /// Entry number `index`, for a caller that knows it by another way than a handle.
    pub fn slot(&'static self, index: usize) -> Option<&'static Slot<T>> {
        self.slots.get(index)
    }

    /// The entry of a handle, whatever its generation is now.
    ///
    /// # Errors
    /// The handle is not of this kind.
    #[inline]
    pub fn find(&'static self, raw: u64) -> Result<(Handle, &'static Slot<T>), Refusal> {
        let handle = Handle::of(raw, Self::KIND)?;
        let slot =
            self.slots.get(handle.index).ok_or(Refusal::NoHandle { raw, expected: Self::KIND })?;
        Ok((handle, slot))
    }
}

impl<T: Sync + 'static, const KIND: u8, const N: usize> Table<T, KIND, N> {
    /// Shares the object of a handle.
    ///
    /// # Errors
    /// The handle is not of this kind; or its object is gone, in a job, or in another call.
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
    /// The entry, locked for this call.
    pub locked: Locked<T>,
}

impl<T> Claimed<T> {
    /// Puts the value into the entry, and returns its handle.
    pub fn put(mut self, value: T) -> u64 {
        self.locked.put(value);
        self.raw()
    }

    /// The handle of its new life.
    #[must_use]
    pub const fn raw(&self) -> u64 {
        Handle { index: self.index, generation: self.locked.generation() }.raw(self.kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_comes_back_as_it_was() {
        for (kind, index, generation) in
            [(Kind::Sim, 0, 1), (Kind::Buf, 4095, GENERATION_MAX), (Kind::Job, 7, 1 << 33)]
        {
            let handle = Handle { index, generation };
            assert_eq!(Handle::of(handle.raw(kind), kind), Ok(handle));
        }
    }

    #[test]
    fn numbers_that_are_no_handles_are_refused() {
        for raw in [0, 1, 4096, 1 << 59, u64::MAX] {
            assert_eq!(
                Handle::of(raw, Kind::Buf),
                Err(Refusal::NoHandle { raw, expected: Kind::Buf })
            );
        }
        let region = Handle { index: 1, generation: 1 }.raw(Kind::Region);
        assert_eq!(
            Handle::of(region, Kind::Buf),
            Err(Refusal::WrongKind { expected: Kind::Buf, found: Kind::Region })
        );
    }
}
