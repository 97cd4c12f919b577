//! What an object of Python's has until it is closed.

use crate::{
    error::{Refusal, refused},
    lock::{Lock, Plain},
    mine::Mine,
};
use pyo3::prelude::*;
use std::sync::Arc;

/// A value until `close()`, or until the object is collected. What was made of it has it, too.
pub(crate) struct Open<T> {
    value: Mine<Lock<Option<Arc<T>>>>,
    /// "device", "region"
    what: &'static str,
}

impl<T: Plain + Send + Sync> Open<T> {
    pub(crate) const fn new(value: Arc<T>, what: &'static str) -> Self {
        Self { value: Mine::new(Lock::new(Some(value))), what }
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
