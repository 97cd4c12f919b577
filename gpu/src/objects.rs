//! The addresses of a bus of objects: an object's number and an offset in it.

use crate::common::acquire;
use contigo::mem::DevSlice;
use contigo::{Bus, DevAddr, Error, Port, Result};
use spin::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

/// The objects of one GPU's context, each with addresses of its own.
#[derive(Debug)]
pub(crate) struct Objects<T> {
    bus: u32,
    table: Mutex<Table<T>>,
}

/// An object's number is the upper part of its addresses, and its slot the number's remainder. So
/// an address of memory that is gone belongs to no object, until the numbers begin anew.
#[derive(Debug)]
struct Table<T> {
    next: u64,
    /// The number, the object, and its length.
    slots: [Option<(u64, T, usize)>; MOST],
}

/// How many blocks of memory a context has at most: a region each, of which a program has a few.
const MOST: usize = 256;
/// The last number. No object has number 0.
const LAST: u64 = (1 << (64 - OFFSET_BITS)) - 1;
/// How many low bits of an address are the offset: 1 TiB.
const OFFSET_BITS: u32 = 40;

impl<T: Copy> Objects<T> {
    /// Those of a new context.
    pub(crate) fn new() -> Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let next =
            NEXT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| last.checked_add(1));
        let bus = next.map_err(|_| Error::TooMany {
            what: "GPUs opened in the life of a program",
            most: u32::MAX.into(),
        })?;
        Ok(Self { bus, table: Mutex::new(Table { next: 1, slots: [None; MOST] }) })
    }

    /// The bus that the addresses are on.
    pub(crate) const fn bus(&self) -> Bus {
        Bus::Objects(self.bus)
    }

    /// The GPU's way to them.
    pub(crate) const fn port(&self, name: &'static str) -> Port {
        Port {
            name,
            bus: self.bus(),
            offset: 0,
            addr_bits: 64,
            window: (0, u64::MAX),
            coherent: true,
        }
    }

    /// Gives an object of `len_bytes` its addresses.
    pub(crate) fn add(&self, object: T, len_bytes: usize) -> Result<DevAddr> {
        let (value, max) = (len_bytes as u64, 1 << OFFSET_BITS);
        if value > max {
            return Err(Error::Argument { name: "len_bytes", value, min: 1, max, multiple_of: 1 });
        }
        let mut table = acquire(&self.table)?;
        let first = table.next;
        // As many numbers as there are slots: each slot is one's.
        for number in (first..).take(MOST).map(|number| (number - 1) % LAST + 1) {
            if let Some(slot) = table.slots.get_mut(slot(number)).filter(|slot| slot.is_none()) {
                *slot = Some((number, object, len_bytes));
                table.next = number + 1;
                return Ok(DevAddr(number << OFFSET_BITS));
            }
        }
        Err(Error::TooMany { what: "blocks of a GPU's memory", most: MOST as u64 })
    }

    /// Takes the addresses from `base` on away, once no operand has one.
    pub(crate) fn remove(&self, base: DevAddr) -> Result<()> {
        let mut table = acquire(&self.table)?;
        let number = base.0 >> OFFSET_BITS;
        if let Some(slot) = table
            .slots
            .get_mut(slot(number))
            .filter(|slot| slot.is_some_and(|(its, ..)| its == number))
        {
            *slot = None;
        }
        Ok(())
    }

    /// The object that `slice` is in, and where it begins there.
    pub(crate) fn find(&self, slice: &DevSlice) -> Result<(T, usize)> {
        let offset = usize::try_from(slice.addr.0 & ((1 << OFFSET_BITS) - 1)).unwrap_or(usize::MAX);
        let end = offset.saturating_add(slice.len_bytes);
        let number = slice.addr.0 >> OFFSET_BITS;
        let known = acquire(&self.table)?
            .slots
            .get(slot(number))
            .copied()
            .flatten()
            .filter(|(its, ..)| *its == number);
        let (_, object, len_bytes) =
            known.ok_or(Error::OutOfRange { start: offset, end, len_bytes: 0 })?;
        if end > len_bytes {
            return Err(Error::OutOfRange { start: offset, end, len_bytes });
        }
        Ok((object, offset))
    }
}

fn slot(number: u64) -> usize {
    // Less than `MOST`.
    usize::try_from(number % MOST as u64).unwrap_or(0)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics has failed, which is its purpose")]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_an_object_and_an_offset() {
        let objects = Objects::new().unwrap();
        let [one, two] =
            [('a', 4096), ('b', 8192)].map(|(object, len)| objects.add(object, len).unwrap());
        let at = |base: DevAddr, offset: u64, len_bytes| DevSlice {
            addr: DevAddr(base.0 + offset),
            offset_bytes: 0,
            len_bytes,
        };
        assert_eq!(
            (objects.find(&at(one, 0, 4096)), objects.find(&at(two, 4096, 4096))),
            (Ok(('a', 0)), Ok(('b', 4096)))
        );
        assert_eq!(
            objects.find(&at(one, 1, 4096)),
            Err(Error::OutOfRange { start: 1, end: 4097, len_bytes: 4096 })
        );
        assert_eq!(
            objects.find(&at(DevAddr(0), 5, 1)),
            Err(Error::OutOfRange { start: 5, end: 6, len_bytes: 0 })
        );
        objects.remove(one).unwrap();
        assert!(objects.find(&at(one, 0, 1)).is_err() && objects.find(&at(two, 0, 1)).is_ok());
        assert_ne!(objects.bus(), Objects::<()>::new().unwrap().bus());
    }

    /// Another block in the same slot has another number, until all of them were used.
    #[test]
    fn an_address_of_memory_that_is_gone_is_refused() {
        let objects = Objects::new().unwrap();
        let kept = objects.add('k', 1).unwrap();
        let at = |addr| DevSlice { addr, offset_bytes: 0, len_bytes: 1 };
        let mut gone = Vec::new();
        for _ in 0..3 * MOST {
            let base = objects.add('x', 1).unwrap();
            assert_eq!(objects.find(&at(base)), Ok(('x', 0)));
            objects.remove(base).unwrap();
            objects.remove(base).unwrap();
            gone.push(base);
        }
        assert!(gone.iter().all(|base| objects.find(&at(*base)).is_err()));
        acquire(&objects.table).unwrap().next = LAST;
        assert_eq!(objects.add('l', 1).unwrap(), DevAddr(LAST << OFFSET_BITS));
        // Number 1 is kept, and no object has 0.
        assert_eq!(objects.add('m', 1).unwrap(), DevAddr(2 << OFFSET_BITS));
        assert_eq!(
            (objects.find(&at(kept)), objects.find(&at(DevAddr(0)))),
            (Ok(('k', 0)), Err(Error::OutOfRange { start: 0, end: 1, len_bytes: 0 }))
        );
    }

    #[test]
    fn a_full_table_says_how_many_there_are() {
        let objects = Objects::new().unwrap();
        assert!((0..MOST).all(|object| objects.add(object, 1).is_ok()));
        assert!(matches!(objects.add(0, 1), Err(Error::TooMany { most: 256, .. })));
        assert!(matches!(objects.add(0, (1 << 40) + 1), Err(Error::Argument { .. })));
    }
}
