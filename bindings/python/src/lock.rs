#![allow(
    unsafe_code,
    clippy::disallowed_types,
    reason = "the one place of locks; a kept object is taken out when it is dropped"
)]
//! The locks of this crate, all of them.
//!
//! A thread that holds one never waits for Python: building an exception, or dropping an object
//! whose destructor looks at a buffer, could wait for a thread that waits for this lock, or for
//! itself. So no guard leaves this file, and what is done under a lock is a closure with three
//! bounds:
//!
//! - it is `Send`, so that it has no `Python<'_>` to call anything with. Clippy refuses what
//!   attaches a thread (`bindings/python/clippy.toml`) outside of error.rs, where [`held`] does;
//! - what it returns is [`Plain`], which no exception is: the exception is made of a refusal when
//!   the lock is free;
//! - Python objects that it may drop are [`Kept`], and are dropped when the lock is free.

use contigo::job::{Descriptors, QueueCounts};
use contigo::names::{AnyModule, OpenDevice};
use contigo::{CpuBuf, Error, Operand};
use pyo3::prelude::*;
use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError, TryLockError};

/// What may be made under a lock: nothing of Python's.
pub(crate) trait Plain {}

impl Plain for () {}
impl Plain for bool {}
impl Plain for i32 {}
impl Plain for u32 {}
impl Plain for u64 {}
impl Plain for usize {}
impl Plain for str {}
impl Plain for [u8] {}
impl Plain for contigo_objects::Refusal {}
impl Plain for Error {}
impl Plain for CpuBuf {}
impl Plain for Operand {}
impl Plain for Descriptors {}
impl Plain for QueueCounts {}
impl Plain for OpenDevice {}
impl Plain for AnyModule {}
impl<T: Plain + ?Sized> Plain for &'static T {}
impl<T: Plain> Plain for Option<T> {}
impl<T: Plain> Plain for Vec<T> {}
impl<T: Plain> Plain for Arc<T> {}
impl<T: Plain, E: Plain> Plain for Result<T, E> {}

/// A value behind a lock.
pub(crate) struct Lock<T>(Mutex<T>);

impl<T> Lock<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// Lets `act` use it, for something short, also in a destructor. The thread that it waits for
    /// never waits for Python.
    pub(crate) fn with<R: Plain>(&self, act: impl FnOnce(&mut T) -> R + Send) -> R {
        let section = Section::begin();
        let result = act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
        drop(section);
        result
    }

    /// The same. A thread that has to wait lets other threads of Python go on meanwhile.
    pub(crate) fn with_py<R: Plain + Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&mut T) -> R + Send,
    ) -> R
    where
        T: Send,
    {
        match self.try_with(act) {
            Ok(result) => result,
            Err(act) => py.detach(|| self.with(act)),
        }
    }

    /// The same where no other thread uses it; otherwise `act` comes back.
    pub(crate) fn try_with<R: Plain, F: FnOnce(&mut T) -> R + Send>(&self, act: F) -> Result<R, F> {
        let section = Section::begin();
        let result = match self.0.try_lock() {
            Ok(mut value) => Ok(act(&mut value)),
            Err(TryLockError::Poisoned(poisoned)) => Ok(act(&mut poisoned.into_inner())),
            Err(TryLockError::WouldBlock) => Err(act),
        };
        drop(section);
        result
    }
}

thread_local! {
    /// How many locks this thread has, or waits for.
    static HELD: Cell<usize> = const { Cell::new(0) };
    /// Objects that were dropped under them.
    static DROPPED: RefCell<Vec<Py<PyAny>>> = const { RefCell::new(Vec::new()) };
}

/// Whether this thread holds one of these locks. (A thread that ends holds none.)
pub(crate) fn held() -> bool {
    HELD.try_with(|held| held.get() > 0).unwrap_or(false)
}

/// While a thread has a lock. It ends behind the lock's end.
struct Section;

impl Section {
    fn begin() -> Self {
        let _ = HELD.try_with(|held| held.set(held.get() + 1));
        Self
    }
}

impl Drop for Section {
    fn drop(&mut self) {
        let _ = HELD.try_with(|held| held.set(held.get() - 1));
        if !held() {
            let dropped = DROPPED.try_with(RefCell::take);
            // Their destructors run here, and may use any lock.
            drop(dropped);
        }
    }
}

/// An object of Python's that may be dropped under a lock. It goes when this thread has none.
pub(crate) struct Kept<T>(ManuallyDrop<Py<T>>);

impl<T> Kept<T> {
    pub(crate) const fn new(object: Py<T>) -> Self {
        Self(ManuallyDrop::new(object))
    }
}

impl<T> Deref for Kept<T> {
    type Target = Py<T>;

    fn deref(&self) -> &Py<T> {
        &self.0
    }
}

impl<T> Drop for Kept<T> {
    fn drop(&mut self) {
        // SAFETY: `drop` runs once, and nothing uses the value after it.
        let object = unsafe { ManuallyDrop::take(&mut self.0) };
        if held() {
            let object = object.into_any();
            let _ = DROPPED.try_with(|dropped| dropped.borrow_mut().push(object));
        }
    }
}
