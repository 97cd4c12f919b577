//! Transfers of the hand-over that had not ended when their time was over.

use super::event::Event;
use super::object::Buffer;
use crate::common::acquire;
use contigo::{Error, Result};
use core::mem;
use core::ops::Range;
use core::sync::atomic::{AtomicI32, Ordering};
use core::time::Duration;
use spin::{Mutex, MutexGuard};

/// How long one hand-over may take. A device that is the CPU does it in the threads in which its
/// kernels run: so as long as a kernel is waited for.
pub(super) const HAND_OVER_LIMIT: Duration = Duration::from_secs(10);
/// How many are late at once. Each has been waited for as long as a hand-over may take, so that one
/// is many already.
pub(super) const MOST: usize = 64;

/// The transfers of a GPU that are late, with the bytes that each may still use.
pub(super) struct Late {
    table: Mutex<Table>,
    /// The end of one cannot be known: it may use any bytes.
    unknown: Wrong,
}

/// The first thing that went wrong: 0, nothing; a code of OpenCL, which is negative; or `LATE`.
#[derive(Default)]
pub(super) struct Wrong(AtomicI32);

/// Something took too long: there is no code.
const LATE: i32 = 1;

impl Wrong {
    /// Remembers the first error, for ever.
    pub(super) fn note(&self, error: &Error) {
        let code = if let Error::Gpu { code: code @ ..0, .. } = *error { code } else { LATE };
        let _ = self.0.compare_exchange(0, code, Ordering::AcqRel, Ordering::Acquire);
    }

    /// `Ok` where nothing went wrong.
    pub(super) fn check(&self) -> Result<()> {
        let (status, waited_us) = match self.0.load(Ordering::Acquire) {
            0 => return Ok(()),
            LATE => (0, u32::try_from(HAND_OVER_LIMIT.as_micros()).unwrap_or(u32::MAX)),
            code => (code.cast_unsigned(), 0),
        };
        Err(Error::WillNotStop { device: "a hand-over of this device", status, waited_us })
    }
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
        Self { table: Mutex::new([const { None }; MOST]), unknown: Wrong::default() }
    }
}

impl Late {
    /// Keeps the event of a transfer that is late. After an error its end cannot be known
    /// ([`lose_track`](Self::lose_track)).
    pub(super) fn add(&self, bytes: Bytes, event: Event) -> Result<()> {
        self.keep(bytes, event).inspect_err(|error| self.lose_track(error))
    }

    /// The end of a transfer cannot be known. From here on all bytes of the device may be in use.
    pub(super) fn lose_track(&self, why: &Error) {
        self.unknown.note(why);
    }

    fn keep(&self, bytes: Bytes, event: Event) -> Result<()> {
        let mut table = self.look()?;
        let slot = table.iter_mut().find(|slot| slot.is_none());
        *slot.ok_or(Error::TooMany { what: "transfers that are late", most: MOST as u64 })? =
            Some(Transfer { bytes, event });
        Ok(())
    }

    /// No transfer is late any more.
    pub(super) fn is_empty(&self) -> Result<bool> {
        Ok(self.look()?.iter().all(Option::is_none))
    }

    /// Calls `show` once with the event of each transfer that may still use some of `bytes`.
    pub(super) fn of(
        &self,
        bytes: &[Option<Bytes>],
        mut show: impl FnMut(&Event) -> Result<()>,
    ) -> Result<()> {
        let uses = |late: &Transfer| {
            let (block, used) = &late.bytes;
            bytes.iter().flatten().any(|(its, range)| {
                its == block && used.start < range.end && range.start < used.end
            })
        };
        self.look()?
            .iter()
            .flatten()
            .filter(|late| uses(late))
            .try_for_each(|late| show(&late.event))
    }

    /// Is one late that may still use some of these bytes?
    pub(super) fn uses(&self, block: Buffer, range: Range<usize>) -> Result<bool> {
        let mut found = false;
        self.of(&[Some((block, range))], |_| {
            found = true;
            Ok(())
        })?;
        Ok(found)
    }

    /// Locks the table and removes the transfers that have ended well. One that failed stays.
    fn look(&self) -> Result<MutexGuard<'_, Table>> {
        self.unknown.check()?;
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
