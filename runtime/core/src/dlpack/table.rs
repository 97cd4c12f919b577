//! The tensors that are out: a table of fixed size, in memory that never goes away.

use super::entry::Entry;
use super::lendable::Lendable;
use super::{Lent, TensorSpec};
use crate::trace::Site;
use crate::types::atomic::{AtomicUsize, Ordering};
use crate::types::{Error, Refused};

/// Room for `SLOTS` tensors that are out at the same time. It is a `static`, because a consumer may
/// keep a tensor, and call its deleter, after everything else is gone. It is not inside a region,
/// because a device that goes wrong must not write the pointer that a consumer calls.
///
/// ```
/// use contigo::dlpack::TensorTable;
/// static TENSORS: TensorTable<16> = TensorTable::new();
/// assert_eq!((TENSORS.taken(), TENSORS.misuses()), (0, 0));
/// ```
#[derive(Debug)]
pub struct TensorTable<const SLOTS: usize> {
    entries: [Entry; SLOTS],
    /// Where a free slot is likely. Only a hint, so `Relaxed`.
    likely: AtomicUsize,
}

impl<const SLOTS: usize> TensorTable<SLOTS> {
    /// An empty one.
    #[must_use]
    #[allow(
        clippy::new_without_default,
        reason = "a table is a static, and `default` is not const"
    )]
    pub const fn new() -> Self {
        const {
            assert!(
                1 <= SLOTS && SLOTS <= 1024,
                "a table has 1 to 1024 slots: finding a free one looks at each"
            )
        };
        Self { entries: [const { Entry::new() }; SLOTS], likely: AtomicUsize::new(0) }
    }

    /// Lends `buf` as a tensor: the consumer owns it from [`Lent::tensor`] to the deleter's call,
    /// and [`Lent::take_back`] returns it. `buf` is a [`CpuBuf`](crate::CpuBuf), whose tensor the
    /// CPU reads and writes, or a [`DevBuf`](crate::DevBuf), whose tensor has a device's address:
    /// the bytes that its last hand-over named ([`DevBuf::slice`](crate::DevBuf::slice)). Lending a
    /// `DevBuf` is a hand-over too: unless the tensor is `read_only`, its bytes count as written
    /// from here on. No heap; one atomic operation if a slot is free.
    ///
    /// # Errors
    /// The buffer comes back with [`Error::NoSlots`], or with [`Error::Tensor`]:
    /// [`TensorRule::Size`](crate::dlpack::TensorRule::Size), the elements do not fit in it; or the
    /// contract does not allow it. A `DevBuf` to be written, behind a port that does not snoop,
    /// also with [`Error::SharedLine`], or with the error of the backend's sync.
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn lend<B: Lendable>(
        &'static self,
        mut buf: B,
        spec: &TensorSpec,
    ) -> Result<Lent<B>, Refused<B>> {
        let target =
            match buf.target(spec.offset).and_then(|target| spec.check(&target).map(|()| target)) {
                Ok(target) => target,
                Err(error) => return Err(Refused::new(error, buf)),
            };
        let likely = self.likely.load(Ordering::Relaxed);
        let (before, after) = self.entries.split_at_checked(likely).unwrap_or((&[], &self.entries));
        let found = after.iter().chain(before).position(|entry| entry.slot.claim());
        let at = found.map(|found| (likely + found) % SLOTS);
        let Some((at, entry)) = at.and_then(|at| Some((at, self.entries.get(at)?))) else {
            return Err(Refused::new(Error::NoSlots { slots: SLOTS }, buf));
        };
        self.likely.store((at + 1) % SLOTS, Ordering::Relaxed);
        if let Err(error) = spec
            .len_bytes()
            .and_then(|len_bytes| buf.hand_over(len_bytes, spec.read_only, Site::here()))
        {
            entry.slot.free();
            return Err(Refused::new(error, buf));
        }
        entry.describe(spec, &target);
        Ok(Lent::new(entry, buf))
    }

    /// How many tensors are lent now. Other threads may change that at once.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.entries.iter().filter(|entry| !entry.slot.is_free()).count()
    }

    /// How often a deleter was called for a tensor that was not out: a consumer's mistake, which
    /// changed nothing.
    ///
    /// A second call is recognised by its tensor's address, and a slot uses four tensors in turn.
    /// So it is found as long as the slot has given out at most three tensors since. After that,
    /// the address may be another consumer's tensor. The second call then ends that loan early, and
    /// the other consumer's own call is counted instead. DLPack gives the deleter only an address:
    /// more cannot be known.
    #[must_use]
    pub fn misuses(&self) -> usize {
        self.entries.iter().map(|entry| entry.misuses.load(Ordering::Relaxed)).sum()
    }
}
