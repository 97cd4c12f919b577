//! Where the kernel put this process's pages.

use std::{fs::File, os::unix::fs::FileExt};

const PAGE_BYTES: usize = 4096;
/// An entry of `/proc/self/pagemap`: the number of the page's frame; 0 where this user may not know
/// it (Linux `Documentation/admin-guide/mm/pagemap.rst`).
const FRAME: u64 = (1 << 55) - 1;

/// The frames of `len_bytes` bytes at `first`; `None` where they are hidden.
pub(super) fn pages(first: usize, len_bytes: usize) -> Option<Vec<u64>> {
    let map = File::open("/proc/self/pagemap").ok()?;
    let frame = |page: usize| {
        let mut entry = [0; 8];
        map.read_exact_at(&mut entry, page as u64 * 8).ok()?;
        Some(u64::from_ne_bytes(entry) & FRAME).filter(|frame| *frame != 0)
    };
    (first / PAGE_BYTES..(first + len_bytes).div_ceil(PAGE_BYTES)).map(frame).collect()
}
