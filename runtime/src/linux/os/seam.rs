//! What a test puts in the kernel's place. It is built for tests alone, with the feature `testkit`: it takes the heap.

extern crate std;

use core::{fmt, ops::Deref};
use std::sync::Arc;

/// Who is asked in the kernel's place.
pub(crate) type Test<K> = Arc<K>;

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
