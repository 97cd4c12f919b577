//! The views of a buffer: pointers and arrays of another language, which would be borrows in Rust.
//!
//! `Views` does not know its buffer, so that the model checker can run every interleaving of it.

use crate::Refusal;
use crate::atomic::{AtomicU32, Ordering};

/// The use of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads: there may be several of these views at once.
    Read,
    /// Reads and writes: no other view may exist.
    Write,
}

/// Set once the owner has dropped the buffer: the last view frees it.
const DROPPED: u32 = 1 << 31;
/// The one view may write. It is not counted.
const WRITER: u32 = 1 << 30;
const READERS: u32 = WRITER - 1;

/// How many views a buffer has, and whether the last one frees it: one word, so that closing the
/// last view and dropping the buffer cannot miss each other.
///
/// [`Buffer`](crate::Buffer) opens a view while its user holds the buffer's lock. A view is closed
/// without that lock, because a destructor closes it, on any thread.
#[derive(Debug, Default)]
pub struct Views(pub(crate) AtomicU32);

impl Views {
    /// The number of views.
    #[must_use]
    #[inline]
    pub fn count(&self) -> u32 {
        count(self.0.load(Ordering::Relaxed))
    }

    /// Opens a view. The caller holds the buffer's lock, and nothing else opens a view meanwhile.
    #[inline]
    pub(crate) fn open(&self, access: Access) -> Result<(), Refusal> {
        let now = self.0.load(Ordering::Relaxed);
        let views = count(now);
        let added = match access {
            Access::Read if now & WRITER == 0 && views < READERS => 1,
            Access::Write if views == 0 => WRITER,
            _ => return Err(Refusal::Viewed { views }),
        };
        self.0.fetch_add(added, Ordering::Relaxed);
        Ok(())
    }

    /// Closes a view. `true`: it was the last view of a dropped buffer, and the caller frees the
    /// buffer.
    ///
    /// # Errors
    /// [`Refusal::NotViewed`].
    #[inline]
    pub fn close(&self) -> Result<bool, Refusal> {
        let less = |now: u32| match now & WRITER {
            0 => (now & READERS != 0).then(|| now - 1),
            _ => Some(now - WRITER),
        };
        // Release: the view's accesses are complete before the bytes are given away.
        let before = self
            .0
            .fetch_update(Ordering::Release, Ordering::Relaxed, less)
            .map_err(|_| Refusal::NotViewed)?;
        Ok(before & DROPPED != 0 && count(before) == 1)
    }

    /// Marks the buffer as dropped. `true`: it has no view, and the caller frees it; otherwise the
    /// last view frees it.
    #[must_use]
    pub fn drop_buffer(&self) -> bool {
        count(self.0.fetch_or(DROPPED, Ordering::Relaxed)) == 0
    }

    /// Refuses while there is a view.
    #[inline]
    pub(crate) fn none(&self) -> Result<(), Refusal> {
        // Acquire: see `close`.
        match count(self.0.load(Ordering::Acquire)) {
            0 => Ok(()),
            views => Err(Refusal::Viewed { views }),
        }
    }
}

const fn count(word: u32) -> u32 {
    if word & WRITER == 0 { word & READERS } else { 1 }
}
