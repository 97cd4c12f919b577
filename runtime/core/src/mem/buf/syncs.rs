//! The caches of several buffers, maintained by as few calls as their memory allows.

use super::Chunk;
use crate::mem::block::State;
use crate::mem::{Backend, MAX_SYNC_RANGES, SyncRange};
use crate::trace::Site;
use crate::types::Result;
use core::ptr;
use heapless::Vec;

/// When the caches of a job's buffers are cleaned, on a port that does not snoop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cleaning {
    /// Before the driver gets the job.
    Now,
    /// Before the doorbell of its burst ([`Driver::waits_for_doorbell`]).
    ///
    /// [`Driver::waits_for_doorbell`]: crate::Driver::waits_for_doorbell
    Later,
}

/// The state's sync, for one direction of the hand-over.
type Sync = fn(&State, &dyn Backend, &[SyncRange], Site) -> Result<()>;

/// Ranges of one block, to be synced together.
pub(crate) struct Syncs<'a> {
    sync: Sync,
    site: Site,
    chunk: Option<&'a Chunk>,
    ranges: Vec<SyncRange, MAX_SYNC_RANGES>,
}

impl<'a> Syncs<'a> {
    pub(crate) const fn for_device(site: Site) -> Self {
        Self { sync: State::sync_for_device, site, chunk: None, ranges: Vec::new() }
    }

    pub(crate) const fn for_cpu(site: Site) -> Self {
        Self { sync: State::sync_for_cpu, site, chunk: None, ranges: Vec::new() }
    }

    /// Adds a range of `chunk`. Those of another block, or that are too many, are synced first.
    pub(crate) fn add(&mut self, chunk: &'a Chunk, range: SyncRange) -> Result<()> {
        let is_other = self.chunk.is_some_and(|last| !ptr::eq(last.state(), chunk.state()));
        if is_other || self.ranges.is_full() {
            self.flush()?;
        }
        self.chunk = Some(chunk);
        // There is room.
        let _ = self.ranges.push(range);
        Ok(())
    }

    /// Syncs what was added.
    pub(crate) fn flush(&mut self) -> Result<()> {
        let Some(chunk) = self.chunk.take() else { return Ok(()) };
        let done = (self.sync)(chunk.state(), chunk.backend(), &self.ranges, self.site);
        self.ranges.clear();
        done
    }
}
