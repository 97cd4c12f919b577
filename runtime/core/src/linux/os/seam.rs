//! The kernel's place, where a test puts its own. It is built for tests alone, with the feature
//! `testkit`: it takes the heap.

extern crate std;

use core::{any::Any, fmt, ops::Deref};
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

/// Who closes a fake's file when it is dropped.
#[derive(Debug)]
pub(super) struct Owner(Box<dyn Any + Send + Sync>);

impl Owner {
    pub(super) fn new(owner: impl Any + Send + Sync) -> Self {
        Self(Box::new(owner))
    }

    pub(super) fn get<T: Any>(&self) -> Option<&T> {
        self.0.downcast_ref()
    }
}
