#![allow(unsafe_code, reason = "the allocator's table lies in the control block's memory, behind its lock")]
//! The allocator of a region, behind its lock.

use super::control::Control;
use crate::{
    mem::{
        SyncScope,
        region::bitmap::WORD_BITS,
        region::tlsf::{Full, Node, Tlsf},
        span::Span,
    },
    types::{Align, Error, Result, atomic::Ordering, lock},
};
use core::ptr::NonNull;

/// The table behind the lock: the pointer cannot be had without the lock's guard.
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
            // Never the last: the caller has one beside it.
            let _ = self.hot.count.drop_one();
        }
        taken
    }

    fn allocate(&self, table: &mut Tlsf<[Node]>, len_bytes: usize, align: Align) -> Result<(u16, Span)> {
        let (line, capacity_bytes) = (self.state.line, self.state.mapping.len_bytes);
        let align = align.max(line);
        if len_bytes == 0 {
            return Err(Error::Argument { name: "the length of a buffer", value: 0, min: 1, max: capacity_bytes as u64, multiple_of: 1 });
        }
        let shared_bytes = self.state.taken_bytes.load(Ordering::Relaxed);
        if self.state.mapping.scope == SyncScope::Whole && shared_bytes > 0 {
            return Err(Error::WholeBlock { shared_bytes });
        }
        let exhausted = Error::Exhausted { need_bytes: len_bytes, capacity_bytes };
        let most = self.limits.allocations as u64;
        let lines = |bytes: usize| u32::try_from(bytes / line.bytes()).map_err(|_| exhausted);
        let phase = lines(self.state.phase(align)?)?;
        let (want, align) = (lines(line.round_up(len_bytes).ok_or(exhausted)?)?, lines(align.bytes())?);
        let block = table.allocate(want, align, phase).map_err(|full| match full {
            Full::Blocks => Error::TooMany { what: "allocations of a region, by its limit `allocations`", most },
            Full::Memory => exhausted,
        })?;
        let span = Span::new(block.start as usize * line.bytes(), block.len as usize * line.bytes());
        self.state.taken_bytes.fetch_add(span.len, Ordering::Relaxed);
        self.state.counters.carves.add(1);
        Ok((block.id, span))
    }

    /// Frees a block, now or by the next one to allocate. The caller has its unit of the count.
    pub(super) fn free(&self, id: u16) {
        if let Some(mut guard) = self.hot.table.try_lock() {
            return self.free_locked(locked(&mut guard), id);
        }
        let (index, bit) = (usize::from(id) / WORD_BITS, usize::from(id) % WORD_BITS);
        // SAFETY: `Control`'s invariant.
        if let Some(word) = unsafe { self.returned.as_ref() }.get(index) {
            // Release: what its owner did to the bytes is done before the next owner has them.
            word.fetch_or(1 << bit, Ordering::Release);
        }
    }

    fn free_locked(&self, table: &mut Tlsf<[Node]>, id: u16) {
        if let Some((_, lines)) = table.start_len(id) {
            table.free(id);
            self.state.taken_bytes.fetch_sub(lines as usize * self.state.line.bytes(), Ordering::Relaxed);
        }
    }

    /// Frees what was dropped meanwhile: at most as many blocks as there are.
    fn settle(&self, table: &mut Tlsf<[Node]>) {
        // SAFETY: `Control`'s invariant.
        for (index, word) in unsafe { self.returned.as_ref() }.iter().enumerate() {
            // A load first: it leaves the line with every core that has it.
            if word.load(Ordering::Relaxed) == 0 {
                continue;
            }
            // Acquire: as in `free`.
            let mut bits = word.swap(0, Ordering::Acquire);
            while bits != 0 {
                #[allow(clippy::cast_possible_truncation, reason = "a bit's number is its block's, which `free` had in 16 bits")]
                self.free_locked(table, (index * WORD_BITS + bits.trailing_zeros() as usize) as u16);
                bits &= bits - 1;
            }
        }
    }

    /// How many bytes are not allocated, after what was dropped meanwhile was freed; or before,
    /// where another thread has the lock.
    pub(super) fn free_bytes(&self) -> usize {
        if let Some(mut guard) = self.hot.table.try_lock() {
            self.settle(locked(&mut guard));
        }
        self.state.mapping.len_bytes - self.state.taken_bytes.load(Ordering::Relaxed)
    }
}
