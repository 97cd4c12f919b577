//! A list with room for a fixed number, which a constant can hold.

use core::fmt;

/// Up to `N` values, in place. `heapless::Vec` would do, except that a constant cannot push to it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct List<T, const N: usize> {
    /// Behind the first `len` they are all the same filler.
    all: [T; N],
    // INVARIANT: at most `N`.
    len: usize,
}

impl<T: Copy, const N: usize> List<T, N> {
    /// No values; `filler` stands where none is.
    pub(super) const fn new(filler: T) -> Self {
        Self { all: [filler; N], len: 0 }
    }

    /// Is there room for one more? Then it is the last.
    pub(super) const fn push(&mut self, one: T) -> bool {
        match self.all.split_at_mut_checked(self.len) {
            Some((_, [place, ..])) => {
                *place = one;
                self.len += 1;
                true
            }
            _ => false,
        }
    }

    /// They, in their order.
    pub(super) const fn as_slice(&self) -> &[T] {
        match self.all.split_at_checked(self.len) {
            Some((these, _)) => these,
            None => &[],
        }
    }

    /// They, to be changed.
    pub(super) const fn as_mut_slice(&mut self) -> &mut [T] {
        match self.all.split_at_mut_checked(self.len) {
            Some((these, _)) => these,
            None => &mut [],
        }
    }
}

impl<T: Copy + fmt::Debug, const N: usize> fmt::Debug for List<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.as_slice()).finish()
    }
}
