#![allow(unsafe_code, reason = "memory that the program gave for ever becomes a control block")]
//! The memory that a control block lies in: pages from the kernel, or what the program gave.

use super::limits::Plan;
use crate::types::{
    Error, Result,
    platform::{Anonymous, HAS_MEMORY},
};
use core::{mem::MaybeUninit, ptr::NonNull};

/// Zeroed memory for one control block. It owns the pages; the bytes are reached by the pointer
/// that came with it.
pub(super) enum Memory {
    /// Anonymous pages of this process, which a child of fork(2) does not get. Unmapped on drop.
    Pages(#[allow(dead_code, reason = "held for its drop")] Anonymous),
    /// The program's own, given for ever. It goes back to nobody.
    Given,
}

impl Memory {
    /// Pages for `plan`, and the first byte of them.
    pub(super) fn from_kernel(plan: &Plan) -> Result<(Self, NonNull<u8>)> {
        if !HAS_MEMORY {
            let fix = "build with the feature linux, or give the region memory of your own: Region::with_memory";
            return Err(Error::Unsupported { what: "there is no kernel here that gives memory", fix });
        }
        let mut pages = Anonymous::zeroed(plan.size_bytes())?.unforked()?;
        let start = NonNull::new(pages.as_mut_ptr()).filter(|start| start.as_ptr().addr().is_multiple_of(plan.align_bytes()));
        let start = start.ok_or(Error::Os { call: "mmap", errno: 0 })?;
        Ok((Self::Pages(pages), start))
    }

    /// The aligned part of `memory`, where `plan` fits into it, zeroed.
    pub(super) fn given(plan: &Plan, memory: &'static mut [MaybeUninit<u8>]) -> Result<(Self, NonNull<u8>)> {
        let capacity_bytes = memory.len();
        let skip = memory.as_mut_ptr().align_offset(plan.align_bytes());
        let refusal = Error::Exhausted { need_bytes: plan.size_bytes() + plan.align_bytes(), capacity_bytes };
        let part = memory.get_mut(skip..).and_then(|rest| rest.get_mut(..plan.size_bytes())).ok_or(refusal)?;
        part.fill(MaybeUninit::new(0));
        Ok((Self::Given, NonNull::from(part).cast()))
    }
}
