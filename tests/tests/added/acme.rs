//! Acme's memory: ordinary pages, at addresses of a bus that Acme invented.
#![allow(unsafe_code, reason = "implements the unsafe trait Backend")]

use crate::{
    linux::os::map,
    mem::backend::{Backend, Mapping, SyncScope},
    types::{BaseAddr, Bus, Direction, Error, PhysAddr},
};
use core::{
    ops::Range,
    ptr::NonNull,
    sync::atomic::{AtomicU64, Ordering},
};
use memmap2::{MmapOptions, MmapRaw};

/// A block of Acme's memory.
#[derive(Debug)]
pub struct Acme {
    map: MmapRaw,
    base: PhysAddr,
}

impl Acme {
    /// Opens `len_bytes` of the memory `name`: "x" is the one that there is.
    ///
    /// # Errors
    /// [`Error::NotFound`]: another name. [`Error::Os`]: the kernel has no such memory to spare.
    pub fn open(name: &str, len_bytes: usize) -> Result<Self, Error> {
        /// Where the next block is: no two are at one place.
        static NEXT: AtomicU64 = AtomicU64::new(0x4000_0000);
        if name != "x" {
            return Err(Error::NotFound { what: "memory of Acme", among: 1.into() });
        }
        let len_bytes = len_bytes.checked_next_multiple_of(4096).unwrap_or(usize::MAX);
        let map = map::anonymous(MmapOptions::new().len(len_bytes).populate(), "mmap(acme)")?;
        Ok(Self { base: PhysAddr(NEXT.fetch_add(len_bytes as u64, Ordering::Relaxed)), map })
    }
}

// SAFETY: the mapping is this value's own, and is never remapped; the kernel zeroed it. The
// addresses belong to a bus that no device is on, and no block has those of another.
unsafe impl Backend for Acme {
    fn name(&self) -> &'static str {
        "acme"
    }
    fn mapping(&self) -> Mapping {
        Mapping {
            cpu: NonNull::new(self.map.as_mut_ptr()).unwrap_or(NonNull::dangling()),
            len_bytes: self.map.len(),
            base: BaseAddr::Phys(self.base),
            bus: Bus::Soc,
            scope: SyncScope::Coherent,
            coherent: Some(true),
        }
    }
    unsafe fn sync_for_device(&self, _: Range<usize>, _: Direction) -> Result<(), Error> {
        Ok(())
    }
    unsafe fn sync_for_cpu(&self, _: Range<usize>, _: Direction) -> Result<(), Error> {
        Ok(())
    }
}
