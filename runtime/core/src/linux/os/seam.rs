//! Where a test puts its own kernel. Built for tests alone, with the feature `testkit`, because it
//! uses the heap.

extern crate std;

use core::any::Any;
use core::fmt;
use core::ops::Deref;
use std::boxed::Box;
use std::sync::Arc;

pub use super::fd::Fd;
pub use super::kernel::{Running, SystemCalls};
pub use memmap2::MmapRaw;

/// A test's kernel.
pub type Test = Arc<dyn SystemCalls>;

/// The kernel to call: the running one, or a test's. Without the feature `testkit` there is no such
/// choice.
pub(crate) enum Asked {
    Running(&'static dyn SystemCalls),
    Test(Test),
}

impl Deref for Asked {
    type Target = dyn SystemCalls;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Running(kernel) => *kernel,
            Self::Test(kernel) => &**kernel,
        }
    }
}

impl fmt::Debug for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Running(_) => "Running",
            Self::Test(_) => "Test",
        })
    }
}

/// The owner of a fake's file, which closes it when it is dropped.
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
