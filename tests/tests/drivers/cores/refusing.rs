//! Memory whose hand-overs to a device fail after a number that a test sets.
#![allow(unsafe_code, reason = "a backend over another one")]

use contigo::{Backend, Direction, Error, Result, forward};
use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

/// `left` counts the hand-overs that succeed. Those behind them fail.
pub(crate) struct Refusing<B> {
    pub(crate) inner: B,
    pub(crate) left: Arc<AtomicUsize>,
}

// SAFETY: `inner` keeps all of it, and a hand-over that fails was not done.
unsafe impl<B: Backend> Backend for Refusing<B> {
    forward!(|this| this.inner => name, mapping, segment, sync_for_cpu, held_by, wrong_accesses);
    unsafe fn sync_for_device(&self, range: Range<usize>, direction: Direction) -> Result<()> {
        let took = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        took.map_err(|_| Error::Contended { tries: 1 })?;
        // SAFETY: the caller's promise.
        unsafe { self.inner.sync_for_device(range, direction) }
    }
}
