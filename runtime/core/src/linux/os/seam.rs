#![allow(unsafe_code, reason = "a descriptor that another value owns, by its number")]
//! The kernel's place, where a test puts its own. It is built for tests alone, with the feature
//! `testkit`: it takes the heap.

extern crate std;

use super::fd::Fd;
use core::{any::Any, ffi::c_int, fmt, ops::Deref};
use std::{boxed::Box, sync::Arc};

/// Who is asked in the kernel's place.
pub type Test<K> = Arc<K>;

/// Who is asked: the running kernel, or what a test put in its place. Without the feature `testkit`
/// there is no such choice.
pub(crate) enum Asked<K: ?Sized + 'static> {
    Running(&'static K),
    Test(Test<K>),
}

impl<K: ?Sized> Deref for Asked<K> {
    type Target = K;

    fn deref(&self) -> &K {
        match self {
            Self::Running(kernel) => kernel,
            Self::Test(kernel) => kernel,
        }
    }
}

impl<K: ?Sized> fmt::Debug for Asked<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Running(_) => "Running",
            Self::Test(_) => "Test",
        })
    }
}

impl Fd {
    /// A fake's file. `owner` is dropped where a descriptor of the kernel's is closed, and closes
    /// `raw` itself.
    ///
    /// # Safety
    /// `raw` is open as long as `owner` lives.
    #[must_use]
    pub unsafe fn owned_by(raw: c_int, owner: impl Any + Send + Sync) -> Self {
        // SAFETY: it is open, by the caller's promise; with an owner this value does not close it.
        let mut file = unsafe { Self::from_raw(raw) };
        file.owner = Some(Box::new(owner));
        file
    }

    /// The owner that was given to [`owned_by`](Self::owned_by), where it is a `T`.
    #[must_use]
    pub fn owner<T: Any>(&self) -> Option<&T> {
        self.owner.as_ref()?.downcast_ref()
    }
}
