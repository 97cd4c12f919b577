#![allow(
    unsafe_code,
    reason = "the values that a child of fork has of its parent are not dropped there"
)]
//! A value that belongs to the process that made it. A child of fork finds it too, and neither uses
//! nor drops it.

use crate::error::{Refusal, raised};
use contigo::linux::same_process;
use std::mem::ManuallyDrop;

/// A value that a child of fork does not get.
pub(crate) struct Mine<T>(ManuallyDrop<T>);

impl<T> Mine<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(ManuallyDrop::new(value))
    }

    /// The value: `ForkedError` in a child.
    pub(crate) fn get(&self) -> Result<&T, Refusal> {
        same_process().map_err(raised)?;
        Ok(&self.0)
    }
}

impl<T> Drop for Mine<T> {
    /// A child collects its garbage as everybody does. Nothing is given back there: a lock may be
    /// held by a thread that the child does not have, and a device is the parent's.
    fn drop(&mut self) {
        if same_process().is_ok() {
            // SAFETY: `drop` runs once, and nothing uses the value after it.
            unsafe { ManuallyDrop::drop(&mut self.0) }
        }
    }
}
