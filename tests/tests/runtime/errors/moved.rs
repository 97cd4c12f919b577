//! Memory that is no more where it was when its region was made.

use contigo::{
    Backend, Error, Region, Result, forward, mem::Segment, sim::SimBoard, types::BaseAddr,
};
use std::sync::{
    Arc,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

/// A simulated block whose pages lie where the test says.
struct Moving<B> {
    inner: B,
    /// How far the second page went.
    by: Arc<AtomicU64>,
    /// How long a run is.
    run: Arc<AtomicUsize>,
}

// SAFETY: the block is `inner`'s in every method; that its pages moved is not true.
unsafe impl<B: Backend> Backend for Moving<B> {
    forward!(|this| this.inner => name, mapping, sync_for_device, sync_for_cpu);
    fn segment(&self, offset_bytes: usize) -> Result<Segment> {
        let by = if offset_bytes < 4096 { 0 } else { self.by.load(Ordering::Relaxed) };
        let addr = self.inner.segment(offset_bytes)?.addr + by;
        Ok(Segment { addr, len_bytes: self.run.load(Ordering::Relaxed) })
    }
}

#[test]
fn memory_that_moved_is_seen_by_verify() {
    let (board, by, run) =
        (SimBoard::new(1), Arc::new(AtomicU64::new(0)), Arc::new(AtomicUsize::new(4096)));
    let moving =
        Moving { inner: board.memory(8192).unwrap(), by: Arc::clone(&by), run: Arc::clone(&run) };
    let region = Region::new(moving).unwrap();
    let BaseAddr::Phys(base) = region.base() else { panic!("physical") };
    assert_eq!(region.verify(), Ok(()));
    by.store(64, Ordering::Relaxed);
    let moved = Error::NotContiguous {
        offset_bytes: 4096,
        expected: base.0 + 4096,
        found: base.0 + 4096 + 64,
    };
    assert_eq!(region.verify(), Err(moved));
    // A backend that answers runs of no bytes is refused, and not asked for ever.
    run.store(0, Ordering::Relaxed);
    assert_eq!(
        region.verify(),
        Err(Error::NotContiguous { offset_bytes: 0, expected: base.0, found: base.0 })
    );
}
