#![allow(unsafe_code, reason = "`unsafe impl Backend`, which is another backend's in every method")]
//! Memory of every kind as one type.

use super::rows::Block;
use contigo_core::{
    forward,
    mem::Backend,
    types::{Error, platform::OwnedFd},
};
use core::fmt;

/// Memory of whatever kind: a [`Backend`] for a program that has its memory's name from its user.
/// It owns the block, with no heap, and keeps the device open that it belongs to.
///
/// [`MemoryName::open`](super::MemoryName::open) and
/// [`OpenDevice::memory`](super::OpenDevice::memory) make one of a name, and `From` of every type
/// that holds memory.
pub struct AnyMemory(Block);

impl AnyMemory {
    pub(super) const fn of(block: Block) -> Self {
        Self(block)
    }
}

// SAFETY: every method belongs to one backend, the same one at every call, because the value inside
// is never exchanged. Moving this value moves no block, as that backend promises.
unsafe impl Backend for AnyMemory {
    forward!(|this| this.0.backend() => name, mapping, segment, sync_for_device, sync_for_cpu, settled, handle, held_by, wrong_accesses);

    unsafe fn export(&self) -> Result<OwnedFd, Error> {
        // SAFETY: the caller's promise.
        unsafe { self.0.backend().export() }
    }
}

impl fmt::Debug for AnyMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyMemory").field("name", &self.name()).field("mapping", &self.mapping()).finish()
    }
}
