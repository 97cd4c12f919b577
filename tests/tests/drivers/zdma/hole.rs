//! Memory that is not there, so that a real bus error can be seen.

use super::*;
use contigo::mem::{Mapping, SyncScope};
use contigo::{Backend, Bus, Direction};
use std::ops::Range;
use std::ptr::NonNull;

/// Memory that the CPU sees, at an address of the board's bus where nothing answers.
struct Hole {
    cpu: NonNull<u8>,
    bus: Bus,
}

const PAGES: usize = 16;

/// Buffers in a hole.
pub(super) fn hole(board: &SimBoard) -> (Region, Pool) {
    #[repr(align(4096))]
    #[derive(Clone, Copy)]
    struct Page(#[allow(dead_code, reason = "its size and alignment are used")] [u8; 4096]);
    let pages = Box::leak(vec![Page([0; 4096]); PAGES].into_boxed_slice());
    let hole = Hole { cpu: NonNull::from(pages).cast(), bus: board.bus() };
    let region = Region::new(hole).unwrap();
    let pool = region.pool(4, LEN).unwrap();
    (region, pool)
}

// SAFETY: the memory is leaked, so no other code has it.
unsafe impl Send for Hole {}
// SAFETY: as for `Send`.
unsafe impl Sync for Hole {}

// SAFETY: the mapping is 64 KiB of leaked memory, used by no other code. Nothing answers at its bus
// addresses, so no device touches it or anything else there, and no cache needs maintenance.
unsafe impl Backend for Hole {
    fn name(&self) -> &'static str {
        "hole"
    }
    fn mapping(&self) -> Mapping {
        Mapping {
            cpu: self.cpu,
            len_bytes: PAGES * 4096,
            base: BaseAddr::Phys(PhysAddr(0xF000_0000)),
            bus: self.bus,
            scope: SyncScope::Range { granule_bytes: 64 },
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
