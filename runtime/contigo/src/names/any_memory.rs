#![allow(unsafe_code, reason = "`unsafe impl Backend`, which is another backend's in every method")]
//! Memory of any kind as one type.

use contigo_core::forward;
use contigo_core::mem::Backend;
use contigo_core::types::Error;
use contigo_core::types::boxed::Boxed;
use contigo_core::types::platform::OwnedFd;
use core::fmt;

/// Memory of any kind: a [`Backend`] for a program whose user names the memory. It owns the block,
/// with no heap, and keeps the device open that the block belongs to.
///
/// `MemoryName::open` and [`OpenDevice::memory`](super::OpenDevice::memory) make one from a name.
///
/// ```
/// # #[cfg(feature = "sim")] {
/// use contigo::{Region, names::AnyMemory, sim::SimBoard};
/// let board = SimBoard::new(1);
/// let memory = AnyMemory::new(board.memory(4096)?)?;
/// assert_eq!(Region::new(memory)?.len_bytes(), 4096);
/// # }
/// # Ok::<(), contigo::Error>(())
/// ```
pub struct AnyMemory(Boxed<dyn Backend>);

impl AnyMemory {
    /// `block`, in pages from the kernel.
    ///
    /// # Errors
    /// [`Error::Os`]: the kernel has no memory. The block is dropped.
    pub fn new<B: Backend + 'static>(block: B) -> Result<Self, Error> {
        // SAFETY: the pointer is unsized, and returned.
        unsafe { Boxed::<dyn Backend>::unsized_by(block, |inner| inner) }.map(Self)
    }
}

// SAFETY: every method is one backend's, which is never replaced and may be moved (`Backend`, 1).
unsafe impl Backend for AnyMemory {
    forward!(|this| *this.0 =>
        name, mapping, segment, sync_for_device, sync_for_cpu, sync_all_for_device,
        sync_all_for_cpu, settled, handle, held_by, wrong_accesses
    );

    unsafe fn export(&self) -> Result<OwnedFd, Error> {
        // SAFETY: the caller's promise.
        unsafe { self.0.export() }
    }
}

impl fmt::Debug for AnyMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyMemory")
            .field("name", &self.name())
            .field("mapping", &self.mapping())
            .finish()
    }
}
