#![allow(
    unsafe_code,
    reason = "the parts of a control block are reached by pointers into its memory"
)]
//! The memory that a control block or a queue's jobs lie in: pages from the kernel, or what the
//! program gave.

use crate::types::platform::{Anonymous, HAS_MEMORY};
use crate::types::{Error, Result};
use core::alloc::Layout;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

/// Memory that a program gives for ever, if no kernel gives any.
pub(crate) type Given = &'static mut [MaybeUninit<u8>];

/// Zeroed memory for one control block or one queue's jobs, which only its owner reaches.
pub(crate) struct Memory {
    start: NonNull<u8>,
    /// Anonymous pages of this process, which a child of fork(2) does not get; they are unmapped on
    /// drop. `None` if the program gave the memory, for ever.
    _pages: Option<Anonymous>,
}

impl Memory {
    /// Pages for `layout`, which is aligned to a page at most.
    pub(crate) fn from_kernel(layout: Layout) -> Result<Self> {
        if !HAS_MEMORY {
            let fix = "build with the feature linux, or give memory of your own: with_memory, \
             pool_with_memory";
            return Err(Error::Unsupported {
                what: "there is no kernel here that gives memory",
                fix,
            });
        }
        let mut pages = Anonymous::zeroed(layout.size())?.unforked()?;
        let start = pages.start();
        debug_assert!(
            start.addr().get().is_multiple_of(layout.align()),
            "mmap(2) gives whole pages"
        );
        Ok(Self { start, _pages: Some(pages) })
    }

    /// The aligned part of `memory`, zeroed, if `layout` fits into it.
    ///
    /// # Safety
    /// `memory` is the caller's alone. If anything is made of the result, it is given for ever.
    pub(crate) unsafe fn given(
        layout: Layout,
        mut memory: NonNull<[MaybeUninit<u8>]>,
    ) -> Result<Self> {
        // SAFETY: the caller's promise.
        let memory = unsafe { memory.as_mut() };
        let refusal =
            Error::Exhausted { need_bytes: wherever(layout), capacity_bytes: memory.len() };
        let skip = memory.as_mut_ptr().align_offset(layout.align());
        let part =
            memory.get_mut(skip..).and_then(|rest| rest.get_mut(..layout.size())).ok_or(refusal)?;
        part.fill(MaybeUninit::new(0));
        Ok(Self { start: NonNull::from(part).cast(), _pages: None })
    }

    /// Unmaps the pages. What was given for ever is left as it is.
    pub(crate) fn free(self) {}

    /// The byte at `offset`, as a place for a `T`.
    ///
    /// # Safety
    /// The offset is at most the size of the layout that this was made for.
    pub(crate) unsafe fn at<T>(&self, offset: usize) -> NonNull<T> {
        // SAFETY: the caller's promise: the memory has as many bytes.
        unsafe { self.start.add(offset) }.cast()
    }
}

/// How many bytes always have room for `layout`, wherever they begin.
pub(crate) const fn wherever(layout: Layout) -> usize {
    layout.size() + layout.align() - 1
}
