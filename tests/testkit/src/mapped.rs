#![allow(unsafe_code, reason = "mincore(2) takes an address")]
//! Is memory mapped in this process? `/proc/self/maps` does not say it under a user-mode emulator:
//! QEMU leaves out a region of the host that holds guest pages with different rights, and the
//! host's kernel merges neighbours.

use nix::libc;

/// Are all of these bytes in this process's address space?
pub fn is_mapped(start: usize, len_bytes: usize) -> bool {
    const PAGE_BYTES: usize = 4096;
    let first = start & !(PAGE_BYTES - 1);
    let pages = (start + len_bytes - first).div_ceil(PAGE_BYTES);
    let mut resident = vec![0_u8; pages];
    let (range, bytes) = (std::ptr::without_provenance_mut(first), pages * PAGE_BYTES);
    // SAFETY: the call touches no page of the range; it writes one byte for each page of 4 KiB or
    // more, for which there is room. ENOMEM: the range has a page that is not mapped (mincore(2)).
    pages > 0 && unsafe { libc::mincore(range, bytes, resident.as_mut_ptr().cast()) } == 0
}

#[cfg(test)]
mod tests {
    use super::is_mapped;
    use std::num::NonZeroUsize;
    use std::ptr;

    #[test]
    fn what_is_unmapped_is_not_mapped() {
        use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, munmap};
        let len_bytes = NonZeroUsize::MIN.saturating_add(3 * 4096 - 1);
        // SAFETY: new memory, of which no reference is made.
        let map =
            unsafe { mmap_anonymous(None, len_bytes, ProtFlags::PROT_READ, MapFlags::MAP_PRIVATE) }
                .unwrap_or(ptr::NonNull::dangling());
        let start = map.as_ptr().addr();
        assert!(is_mapped(start, 3 * 4096) && is_mapped(start + 1, 3 * 4096 - 1));
        // SAFETY: as above.
        assert!(unsafe { munmap(map.byte_add(4096), 4096) }.is_ok());
        assert!(is_mapped(start, 4096) && !is_mapped(start, 4097) && !is_mapped(start + 8191, 2));
        assert!(!is_mapped(0, 1));
    }
}
