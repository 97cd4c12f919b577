//! The maintenance of the caches of a buffer on the device's side.

use super::dev::History;
use super::{DevBuf, Syncs};
use crate::mem::SyncScope;
use crate::mem::span::{Part, after_device, before_device};
use crate::trace::Site;
use crate::types::{Bus, Direction, Error};

impl DevBuf {
    /// Adds the maintenance that its first hand-over still owes.
    pub(crate) fn add_uncleaned<'a>(&'a self, syncs: &mut Syncs<'a>) -> Result<(), Error> {
        if self.history != History::Uncleaned {
            return Ok(());
        }
        let chunk = self.chunk();
        syncs.add(chunk, before_device(self.span(), self.direction, chunk.extent, chunk.line())?)
    }

    /// Notes that this maintenance was done.
    pub(crate) fn was_cleaned(&mut self) {
        if self.history == History::Uncleaned {
            self.history = History::Fresh;
        }
    }

    /// Notes that no device saw a hand-over that was still to be cleaned: its bytes are in the
    /// caches alone, as behind a port that snoops, and are not invalidated.
    pub(crate) fn was_not_rung(&mut self) {
        if self.history == History::Uncleaned {
            (self.history, self.coherent, self.written.len) = (History::NotRung, true, 0);
        }
    }

    /// Cleans what [`was_not_rung`](Self::was_not_rung), for a consumer beside the last device.
    pub(super) fn clean_not_rung(&mut self, site: Site) -> Result<(), Error> {
        if self.history != History::NotRung {
            return Ok(());
        }
        let (chunk, state) = (self.chunk(), self.chunk().state());
        let what = before_device(self.span(), self.direction, chunk.extent, state.line)?;
        state.sync_for_device(chunk.backend(), &[what], site)?;
        (self.history, self.coherent) = (History::Fresh, false);
        Ok(())
    }

    /// Adds what [`sync_for_cpu`](Self::sync_for_cpu) invalidates.
    pub(crate) fn add_written<'a>(&'a self, syncs: &mut Syncs<'a>) -> Result<(), Error> {
        match self.written() {
            Some(written) if !self.coherent => {
                let chunk = self.chunk();
                syncs.add(chunk, after_device(written, chunk.extent, chunk.line())?)
            }
            _ => Ok(()),
        }
    }

    /// Notes that this was done: nothing is left to invalidate.
    pub(crate) const fn was_synced(&mut self) {
        if !self.coherent {
            self.written.len = 0;
        }
    }

    /// Were all bytes of the chunk cleaned by the hand-overs, so that none is dirty after
    /// `sync_for_cpu`? Only where a sync is maintenance of caches by lines: begin and end of access
    /// to a foreign dma-buf, or to a GPU's object, come in pairs.
    #[inline]
    pub(super) fn is_all_clean(&self) -> bool {
        if self.coherent {
            return false;
        }
        let (mapping, extent) = (&self.chunk().state().mapping, self.chunk().extent);
        self.span() == extent
            && matches!(mapping.scope, SyncScope::Range { .. })
            && !matches!(mapping.bus, Bus::Objects(_))
    }

    /// Invalidates what devices wrote. Does nothing if the port snoops, or nothing was written.
    #[inline]
    pub(crate) fn sync_for_cpu(&self, site: Site) -> Result<(), Error> {
        if self.coherent { Ok(()) } else { self.invalidate(site) }
    }

    #[inline(never)]
    fn invalidate(&self, site: Site) -> Result<(), Error> {
        let mut syncs = Syncs::for_cpu(site);
        self.add_written(&mut syncs)?;
        syncs.flush()?;
        self.ask()
    }

    /// Checks that everything the backend began for these bytes has ended. A hand-over to an OpenCL
    /// GPU may end late, and a consumer other than a job would not wait for it.
    ///
    /// # Errors
    /// Something has not ended: the errors of [`Backend::settled`](crate::Backend::settled).
    #[inline]
    pub fn settled(&self) -> Result<(), Error> {
        // Behind a port that snoops the backend begins nothing.
        if self.coherent { Ok(()) } else { self.ask() }
    }

    fn ask(&self) -> Result<(), Error> {
        match (self.bus(), self.chunk().extent) {
            // A simulated board may be over memory of such a GPU.
            (Bus::Objects(_) | Bus::Sim(_), extent) => {
                self.chunk().backend().settled(extent.start..extent.end())
            }
            _ => Ok(()),
        }
    }

    /// Cleans `len_bytes` bytes at `offset_bytes` of what was handed over, so that the device sees
    /// them.
    #[inline]
    pub(super) fn publish(
        &self,
        offset_bytes: usize,
        len_bytes: usize,
        site: Site,
    ) -> Result<(), Error> {
        if self.coherent { Ok(()) } else { self.clean(offset_bytes, len_bytes, site) }
    }

    fn clean(&self, offset_bytes: usize, len_bytes: usize, site: Site) -> Result<(), Error> {
        let part = self.span().part(Part::of(offset_bytes..offset_bytes + len_bytes))?;
        let what =
            before_device(part, Direction::ToDevice, self.chunk().extent, self.chunk().line())?;
        self.chunk().state().sync_for_device(self.chunk().backend(), &[what], site)
    }

    /// Invalidates the lines of `len_bytes` bytes at `offset_bytes` of what was handed over, so
    /// that the CPU sees what the device wrote there.
    #[inline]
    pub(super) fn look_again(
        &self,
        offset_bytes: usize,
        len_bytes: usize,
        site: Site,
    ) -> Result<(), Error> {
        if self.coherent || len_bytes == 0 {
            Ok(())
        } else {
            self.invalidate_at(offset_bytes, len_bytes, site)
        }
    }

    fn invalidate_at(
        &self,
        offset_bytes: usize,
        len_bytes: usize,
        site: Site,
    ) -> Result<(), Error> {
        let part = self.span().part(Part::of(offset_bytes..offset_bytes + len_bytes))?;
        let what = after_device(part, self.chunk().extent, self.chunk().line())?;
        self.chunk().state().sync_for_cpu(self.chunk().backend(), &[what], site)
    }
}
