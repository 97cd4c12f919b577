#![allow(
    unsafe_code,
    reason = "the values that a child of fork has of its parent are not dropped there"
)]
//! Values that belong to the process that made them. A child of fork finds them too, and neither
//! uses nor drops them.

use crate::error::{Refusal, raised, refused};
use crate::lock::{Lock, Plain};
use contigo::linux::same_process;
use pyo3::prelude::*;
use std::mem::ManuallyDrop;
use std::sync::Arc;

/// A value that a child of fork does not get.
pub(crate) struct ProcessLocal<T>(ManuallyDrop<T>);

impl<T> ProcessLocal<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(ManuallyDrop::new(value))
    }

    /// The value: `ForkedError` in a child.
    pub(crate) fn get(&self) -> Result<&T, Refusal> {
        same_process().map_err(raised)?;
        Ok(&self.0)
    }
}

impl<T> Drop for ProcessLocal<T> {
    /// Gives nothing back in a child, which collects its garbage too: a lock may be held by a
    /// thread that the child does not have, and the device is the parent's.
    fn drop(&mut self) {
        if same_process().is_ok() {
            // SAFETY: `drop` runs once, and nothing uses the value after it.
            unsafe { ManuallyDrop::drop(&mut self.0) }
        }
    }
}

/// A value until `close()`, or until the Python object that owns it is collected. What was made of
/// it shares it.
pub(crate) struct Closable<T> {
    value: ProcessLocal<Lock<Option<Arc<T>>>>,
    /// "device", "region"
    what: &'static str,
}

impl<T: Plain + Send + Sync> Closable<T> {
    pub(crate) const fn new(value: Arc<T>, what: &'static str) -> Self {
        Self { value: ProcessLocal::new(Lock::new(Some(value))), what }
    }

    /// The value.
    pub(crate) fn get(&self) -> Result<Arc<T>, Refusal> {
        self.value
            .get()?
            .with(|value| value.clone())
            .ok_or_else(|| refused(format!("this {} was closed", self.what)))
    }

    /// Lets go of it; a second call does nothing.
    pub(crate) fn close(&self, py: Python<'_>) -> Result<(), Refusal> {
        let value = self.value.get()?.with(Option::take);
        // It may be the last handle: system calls, and waits for a device.
        py.detach(|| drop(value));
        Ok(())
    }

    /// ", closed" where it is.
    pub(crate) fn state(&self) -> &'static str {
        match self.value.get().map(|value| value.with(|value| value.is_some())) {
            Ok(true) => "",
            Ok(false) => ", closed",
            Err(_) => ", another process's",
        }
    }
}
