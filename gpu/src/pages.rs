#![allow(unsafe_code, reason = "a backend")]
//! Ordinary pages of this process.

use contigo::mem::{Mapping, SyncScope};
use contigo::types::BaseAddr;
use contigo::{Backend, Bus, DevAddr, Direction, Error, Result};
use core::ops::Range;
use core::ptr::NonNull;
use memmap2::{Advice, MmapMut, MmapOptions};

/// Ordinary pages of this process, zeroed: memory for a GPU that has page tables of its own. No
/// port reaches it before a GPU has taken it (`VulkanMemory::import`, `OpenClMemory::import`). A
/// child of fork gets none of it.
#[derive(Debug)]
pub struct Pages {
    /// Mapped until this value is dropped.
    _map: MmapMut,
    first: NonNull<u8>,
    len_bytes: usize,
}

/// The number of a bus on which there is no port.
const UNUSED: u32 = 0;

impl Pages {
    /// The unit of its address and its length: Arm's largest page, and the most that a Vulkan
    /// driver may ask for (Vulkan 1.3, "Limit Requirements", `minImportedHostPointerAlignment`).
    pub const GRANULE_BYTES: usize = 64 << 10;

    /// Maps `len_bytes`, rounded up to whole pages of 64 KiB.
    ///
    /// # Errors
    /// [`Error::Argument`]: `len_bytes` is 0, or not within an address space. [`Error::Os`]: what
    /// the kernel says.
    #[allow(clippy::disallowed_methods, reason = "the child of a fork is kept from it below")]
    pub fn new(len_bytes: usize) -> Result<Self> {
        let max = isize::MAX as usize - 2 * Self::GRANULE_BYTES;
        let bound = Error::Argument {
            name: "len_bytes",
            value: len_bytes as u64,
            min: 1,
            max: max as u64,
            multiple_of: 1,
        };
        let whole = len_bytes
            .checked_next_multiple_of(Self::GRANULE_BYTES)
            .filter(|whole| (1..=max).contains(whole))
            .ok_or(bound)?;
        let os = |call, error: std::io::Error| Error::Os {
            call,
            errno: error.raw_os_error().unwrap_or(0),
        };
        // The kernel gives a multiple of its own page. So there is one granule more, of which the
        // bytes that are not used are never touched, and take no memory.
        let mut map = MmapOptions::new()
            .len(whole + Self::GRANULE_BYTES)
            .map_anon()
            .map_err(|error| os("mmap", error))?;
        map.advise(Advice::DontFork).map_err(|error| os("madvise(MADV_DONTFORK)", error))?;
        let skip = map.as_ptr().align_offset(Self::GRANULE_BYTES).min(Self::GRANULE_BYTES);
        let first = map.get_mut(skip..).and_then(|bytes| NonNull::new(bytes.as_mut_ptr()));
        let first = first.ok_or(Error::Unexpected { name: "mmap", value: 0 })?;
        Ok(Self { _map: map, first, len_bytes: whole })
    }
}

// SAFETY: 1, 2. The mapping is this value's, and stays where it is until it is dropped. It has a
// granule more than the block, which begins in its first granule. 3. There is nothing to
// synchronise. 4. No port is on that bus. 6. Only the CPU reaches it.
unsafe impl Backend for Pages {
    fn name(&self) -> &'static str {
        "pages"
    }

    fn mapping(&self) -> Mapping {
        Mapping {
            cpu: self.first,
            len_bytes: self.len_bytes,
            base: BaseAddr::Dev(DevAddr(0)),
            bus: Bus::Objects(UNUSED),
            scope: SyncScope::Coherent,
            coherent: None,
        }
    }

    unsafe fn sync_for_device(&self, _: Range<usize>, _: Direction) -> Result<()> {
        Ok(())
    }

    unsafe fn sync_for_cpu(&self, _: Range<usize>, _: Direction) -> Result<()> {
        Ok(())
    }
}

// SAFETY: the pointer is the mapping's, which is `Send`.
unsafe impl Send for Pages {}
// SAFETY: no method reads or writes the bytes.
unsafe impl Sync for Pages {}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics has failed, which is its purpose")]
mod tests {
    use super::*;

    #[test]
    fn every_block_begins_and_ends_at_a_granule() {
        let blocks: Vec<_> =
            (1..20_usize).map(|at| (at, Pages::new(at * 5_000).unwrap())).collect();
        for (at, block) in &blocks {
            let Mapping { cpu, len_bytes, .. } = block.mapping();
            assert_eq!(
                (cpu.addr().get() % Pages::GRANULE_BYTES, len_bytes % Pages::GRANULE_BYTES),
                (0, 0)
            );
            assert!(len_bytes >= at * 5_000 && len_bytes < at * 5_000 + Pages::GRANULE_BYTES);
            // SAFETY: both are bytes of the block, which only this test has.
            unsafe {
                assert_eq!((cpu.read(), cpu.add(len_bytes - 1).read()), (0, 0));
                cpu.add(len_bytes - 1).write(1);
            }
        }
        assert!(matches!(Pages::new(0), Err(Error::Argument { value: 0, .. })));
        assert!(matches!(Pages::new(usize::MAX), Err(Error::Argument { .. })));
    }
}
