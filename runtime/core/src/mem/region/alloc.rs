#![allow(
    unsafe_code,
    reason = "the allocator's table lies in the control block's memory, behind its lock"
)]
//! The allocator of a region, behind its lock.

use super::control::Control;
use super::returned;
use crate::mem::SyncScope;
use crate::mem::region::tlsf::{Full, Node, Tlsf};
use crate::mem::span::Span;
use crate::types::atomic::Ordering;
use crate::types::{Align, Error, Result, lock};
use core::ptr::NonNull;

/// The table behind the lock: only the lock's guard gives the pointer.
fn locked(table: &mut NonNull<Tlsf<[Node]>>) -> &mut Tlsf<[Node]> {
    // SAFETY: `Control`'s invariant; nothing else leads to the table, and `&mut` is exclusive.
    unsafe { table.as_mut() }
}

impl Control {
    /// Takes `len_bytes`, in whole lines, at a multiple of `align`, and a unit of the count.
    pub(super) fn take(&self, len_bytes: usize, align: Align) -> Result<(u16, Span)> {
        self.add()?;
        let taken = lock::acquire(&self.hot.table).and_then(|mut guard| {
            let table = locked(&mut guard);
            self.settle(table);
            self.allocate(table, len_bytes, align)
        });
        if taken.is_err() {
            // Never the last unit: the caller has another.
            let _ = self.hot.count.drop_one();
        }
        taken
    }

    fn allocate(
        &self,
        table: &mut Tlsf<[Node]>,
        len_bytes: usize,
        align: Align,
    ) -> Result<(u16, Span)> {
        let (line, capacity_bytes) = (self.state.line, self.state.mapping.len_bytes);
        let align = align.max(line);
        if len_bytes == 0 {
            return Err(Error::Argument {
                name: "the length of a buffer",
                value: 0,
                min: 1,
                max: capacity_bytes as u64,
                multiple_of: 1,
            });
        }
        let shared_bytes = self.state.taken_bytes.load(Ordering::Relaxed);
        if self.state.mapping.scope == SyncScope::Whole && shared_bytes > 0 {
            return Err(Error::WholeBlock { shared_bytes });
        }
        let exhausted = Error::Exhausted { need_bytes: len_bytes, capacity_bytes };
        let most = self.limits.allocations as u64;
        let lines = |bytes: usize| u32::try_from(bytes / line.bytes()).map_err(|_| exhausted);
        let phase = lines(self.state.phase(align)?)?;
        let (want, align) =
            (lines(line.round_up(len_bytes).ok_or(exhausted)?)?, lines(align.bytes())?);
        let block = table.allocate(want, align, phase).map_err(|full| match full {
            Full::Blocks => {
                Error::TooMany { what: "allocations of a region, by its limit `allocations`", most }
            }
            Full::Memory => exhausted,
        })?;
        let span =
            Span::new(block.start as usize * line.bytes(), block.len as usize * line.bytes());
        self.set_taken(|bytes| bytes + span.len);
        self.state.counters.carves.add_alone(1);
        Ok((block.id, span))
    }

    /// Frees a block, now or at the next allocation. The caller has its unit of the count.
    pub(super) fn free(&self, id: u16) {
        if let Some(mut guard) = self.hot.table.try_lock() {
            return self.free_locked(locked(&mut guard), id);
        }
        // SAFETY: `Control`'s invariant.
        returned::put(unsafe { self.returned.as_ref() }, &self.hot.any_returned, id);
    }

    fn free_locked(&self, table: &mut Tlsf<[Node]>, id: u16) {
        if let Some((_, lines)) = table.start_len(id) {
            table.free(id);
            self.set_taken(|bytes| bytes - lines as usize * self.state.line.bytes());
        }
    }

    /// Only the lock's holder changes the sum, so it needs no atomic addition.
    fn set_taken(&self, change: impl FnOnce(usize) -> usize) {
        self.state
            .taken_bytes
            .store(change(self.state.taken_bytes.load(Ordering::Relaxed)), Ordering::Relaxed);
    }

    /// Frees the blocks that were dropped meanwhile: at most as many as there are.
    fn settle(&self, table: &mut Tlsf<[Node]>) {
        // SAFETY: `Control`'s invariant.
        returned::take_each(unsafe { self.returned.as_ref() }, &self.hot.any_returned, |id| {
            self.free_locked(table, id)
        });
    }

    /// How many bytes are not allocated. Blocks that were dropped meanwhile are freed first, unless
    /// another thread has the lock.
    pub(super) fn free_bytes(&self) -> usize {
        if let Some(mut guard) = self.hot.table.try_lock() {
            self.settle(locked(&mut guard));
        }
        self.state.mapping.len_bytes - self.state.taken_bytes.load(Ordering::Relaxed)
    }
}
