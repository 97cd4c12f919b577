//! Transfers of the hand-over that had not ended when their time was over.

use super::{Event, object::Buffer};
use crate::objects::acquire;
use contigo::{Error, Result};
use core::{
    mem,
    ops::Range,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};
use spin::{Mutex, MutexGuard};

/// How many are late at once. Each has been waited for as long as a hand-over may take, so that one
/// is many already.
pub(super) const MOST: usize = 64;

/// The transfers of a GPU that are late, with the bytes that each may still use.
pub(super) struct Late {
    table: Mutex<Table>,
    /// One could not be kept: it may use any bytes.
    unknown: AtomicBool,
}

type Table = [Option<Transfer>; MOST];

struct Transfer {
    bytes: Bytes,
    event: Event,
}

/// Some bytes of a block.
pub(super) type Bytes = (Buffer, Range<usize>);

impl Default for Late {
    fn default() -> Self {
        Self { table: Mutex::new([const { None }; MOST]), unknown: AtomicBool::new(false) }
    }
}

impl Late {
    /// Keeps the event of a transfer that is late.
    ///
    /// # Errors
    /// Nobody knows its end then, and from now on all may be late. [`Error::TooMany`],
    /// [`Error::Contended`], [`Error::Gpu`].
    pub(super) fn add(&self, bytes: Bytes, event: Event) -> Result<()> {
        self.keep(bytes, event).inspect_err(|_| self.unknown.store(true, Ordering::Release))
    }

    fn keep(&self, bytes: Bytes, event: Event) -> Result<()> {
        let mut table = self.look()?;
        let slot = table.iter_mut().find(|slot| slot.is_none());
        *slot.ok_or(Error::TooMany { what: "transfers that are late", most: MOST as u64 })? = Some(Transfer { bytes, event });
        Ok(())
    }

    /// Is none late any more?
    ///
    /// # Errors
    /// [`Error::Contended`]. [`Error::Gpu`]: one has failed. [`Error::WillNotStop`]: nobody knows
    /// it.
    pub(super) fn is_empty(&self) -> Result<bool> {
        Ok(self.look()?.iter().all(Option::is_none))
    }

    /// Shows the event of each that may still use some of `bytes`. Each is shown once.
    ///
    /// # Errors
    /// As [`is_empty`](Self::is_empty), and those of `show`.
    pub(super) fn of(&self, bytes: &[Option<Bytes>], mut show: impl FnMut(&Event) -> Result<()>) -> Result<()> {
        let uses = |late: &Transfer| {
            let (block, used) = &late.bytes;
            bytes.iter().flatten().any(|(its, range)| its == block && used.start < range.end && range.start < used.end)
        };
        self.look()?.iter().flatten().filter(|late| uses(late)).try_for_each(|late| show(&late.event))
    }

    /// Is one late that may still use some of these bytes?
    ///
    /// # Errors
    /// As [`is_empty`](Self::is_empty).
    pub(super) fn uses(&self, block: Buffer, range: Range<usize>) -> Result<bool> {
        let mut found = false;
        self.of(&[Some((block, range))], |_| {
            found = true;
            Ok(())
        })?;
        Ok(found)
    }

    /// The table, without those that have ended well by now. One that failed stays.
    fn look(&self) -> Result<MutexGuard<'_, Table>> {
        if self.unknown.load(Ordering::Acquire) {
            return Err(Error::WillNotStop { device: "a hand-over of this device", status: 0, waited_us: 0 });
        }
        let mut table = acquire(&self.table)?;
        for slot in table.iter_mut() {
            let ended = slot.as_ref().map_or(Ok(false), |late| late.event.ended(Duration::ZERO))?;
            if ended {
                drop(mem::take(slot));
            }
        }
        Ok(table)
    }
}
