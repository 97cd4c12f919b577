//! Memory of the next owner of a device, which that owner gives to nothing: is it written?

use super::{super::Wrong, gone::LEFT_BYTES, own, subject::sys};
use crate::raw::{Pages, RawGuard, SYNC_FOR_CPU, SYNC_FOR_DEVICE};

/// As long as what the owner before had, and so many that one is likely to be where that was.
const COUNT: usize = 32;
const MARK: u8 = 0x11;

/// All of it is the same byte.
#[derive(Debug)]
pub(super) struct Fresh {
    guard: RawGuard,
    memory: Vec<(u32, u64, Pages)>,
}

impl Fresh {
    pub(super) fn of(guard: RawGuard) -> Result<Self, Wrong> {
        let mut memory = Vec::with_capacity(COUNT);
        for _ in 0..COUNT {
            let block = sys("ALLOC", guard.alloc(LEFT_BYTES as u64, 0))?;
            let pages = own::map(&guard, block.mmap_offset, LEFT_BYTES)?;
            (0..LEFT_BYTES).for_each(|at| pages.write(at, MARK));
            sys("SYNC", guard.sync(block.handle, SYNC_FOR_DEVICE, 0, LEFT_BYTES as u64))?;
            memory.push((block.handle, block.addr, pages));
        }
        Ok(Self { guard, memory })
    }

    /// The bus address of the first one that has another byte.
    pub(super) fn written(&self) -> Result<Option<u64>, Wrong> {
        for (handle, addr, pages) in &self.memory {
            sys("SYNC", self.guard.sync(*handle, SYNC_FOR_CPU, 0, LEFT_BYTES as u64))?;
            if (0..LEFT_BYTES).any(|at| pages.read(at) != MARK) {
                return Ok(Some(*addr));
            }
        }
        Ok(None)
    }
}
