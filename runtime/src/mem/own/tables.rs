#![allow(unsafe_code, reason = "the allocators' tables lie in the control block's memory, behind its lock")]
//! The two allocators of a region, behind one lock: of bytes, and of the pools' bitmaps.

use super::{
    cell::Cell,
    control::{BITS, Control},
    limits::{GROUP_WORDS, Limits, groups_for},
};
use crate::{
    mem::{
        SyncScope,
        arena::tlsf::{Full, Node, Tlsf},
        span::Span,
    },
    types::{Align, Error, Result, atomic::Ordering, lock},
};
use core::{ptr, ptr::NonNull};

/// The two allocators, reached under the lock only.
pub(super) struct Tables {
    /// Lines of the mapping. A block's number is its token.
    blocks: NonNull<Tlsf<[Node]>>,
    /// Lines of the bitmaps. A pool's number is its cell's.
    bitmaps: NonNull<Tlsf<[Node]>>,
}

impl Tables {
    /// Each at its place, with so many nodes, over so many granules.
    ///
    /// # Safety
    /// Each place is aligned and zeroed, has room for its table, and is nobody else's for as long
    /// as this lives.
    pub(super) unsafe fn new(blocks: (NonNull<u8>, usize, u32), bitmaps: (NonNull<u8>, usize, u32)) -> Self {
        // SAFETY: the caller's promise.
        unsafe { Self { blocks: table(blocks), bitmaps: table(bitmaps) } }
    }

    fn blocks(&mut self) -> &mut Tlsf<[Node]> {
        // SAFETY: `Control`'s invariant; nothing else leads to it, and `&mut self` is exclusive.
        unsafe { self.blocks.as_mut() }
    }
    fn bitmaps(&mut self) -> &mut Tlsf<[Node]> {
        // SAFETY: as in `blocks`.
        unsafe { self.bitmaps.as_mut() }
    }
}

// SAFETY: the pointers lead to the control block's own memory, to numbers.
unsafe impl Send for Tables {}

impl Control {
    /// Takes `len_bytes`, in whole lines, at a multiple of `align`, and a unit of the count.
    pub(super) fn take(&self, len_bytes: usize, align: Align) -> Result<(u16, Span)> {
        self.add()?;
        let taken = lock::acquire(&self.tables).and_then(|mut tables| {
            self.settle(&mut tables);
            self.allocate(&mut tables, len_bytes, align)
        });
        self.or_drop(taken)
    }

    fn allocate(&self, tables: &mut Tables, len_bytes: usize, align: Align) -> Result<(u16, Span)> {
        let (line, capacity_bytes) = (self.state.line, self.state.mapping.len_bytes);
        let align = align.max(line);
        if len_bytes == 0 {
            return Err(Error::Argument { name: "the length of a buffer", value: 0, min: 1, max: capacity_bytes as u64, multiple_of: 1 });
        }
        let shared_bytes = self.state.carved_bytes.load(Ordering::Relaxed);
        if self.state.mapping.scope == SyncScope::Whole && shared_bytes > 0 {
            return Err(Error::WholeBlock { shared_bytes });
        }
        let exhausted = Error::Exhausted { need_bytes: len_bytes, capacity_bytes };
        let most = self.limits.allocations as u64;
        let lines = |bytes: usize| u32::try_from(bytes / line.bytes()).map_err(|_| exhausted);
        let phase = lines(self.state.phase(align)?)?;
        let (want, align) = (lines(line.round_up(len_bytes).ok_or(exhausted)?)?, lines(align.bytes())?);
        let block = tables.blocks().allocate(want, align, phase).map_err(|full| match full {
            Full::Blocks => Error::TooMany { what: "allocations of this region (Limits::allocations)", most },
            Full::Memory => exhausted,
        })?;
        let span = Span::new(block.start as usize * line.bytes(), block.len as usize * line.bytes());
        self.state.carved_bytes.fetch_add(span.len, Ordering::Relaxed);
        Ok((block.id, span))
    }

    /// Frees a pool: its bitmap, its cell, and the block that its slots lie in.
    pub(super) fn free_pool(&self, pool: u16) {
        self.free(self.limits.allocations + usize::from(pool));
    }

    /// Frees a block, or a pool by its number behind the blocks', now or by the next one to
    /// allocate.
    pub(super) fn free(&self, number: usize) {
        if let Some(mut tables) = self.tables.try_lock() {
            return self.free_locked(&mut tables, number);
        }
        // SAFETY: `Control`'s invariant.
        if let Some(word) = unsafe { self.returned.as_ref() }.get(number / BITS) {
            // Release: what its owner did to the bytes is done before the next owner has them.
            word.fetch_or(1 << (number % BITS), Ordering::Release);
            self.any_returned.store(1, Ordering::Release);
        }
    }

    fn free_locked(&self, tables: &mut Tables, number: usize) {
        let Some(pool) = number.checked_sub(self.limits.allocations) else {
            return self.free_block(tables, u16::try_from(number).ok());
        };
        let pool = u16::try_from(pool).ok();
        // SAFETY: the number is a live pool's, whose cell was written under this lock.
        let block = pool.and_then(|pool| self.cell(pool)).map(|cell| unsafe { cell.as_ref() }.block);
        self.free_block(tables, block);
        if let Some(pool) = pool {
            tables.bitmaps().free(pool);
        }
    }

    fn free_block(&self, tables: &mut Tables, block: Option<u16>) {
        let Some(id) = block else { return };
        if let Some((_, lines)) = tables.blocks().start_len(id) {
            tables.blocks().free(id);
            self.state.carved_bytes.fetch_sub(lines as usize * self.state.line.bytes(), Ordering::Relaxed);
        }
    }

    /// Frees what was dropped meanwhile. At most as many blocks as there are.
    fn settle(&self, tables: &mut Tables) {
        // Acquire: the bits that were set before it are seen.
        if self.any_returned.load(Ordering::Acquire) == 0 || self.any_returned.swap(0, Ordering::Acquire) == 0 {
            return;
        }
        // SAFETY: `Control`'s invariant.
        for (index, word) in unsafe { self.returned.as_ref() }.iter().enumerate() {
            // Acquire: as in `free`.
            let mut bits = word.swap(0, Ordering::Acquire);
            while bits != 0 {
                self.free_locked(tables, index * BITS + bits.trailing_zeros() as usize);
                bits &= bits - 1;
            }
        }
    }

    /// How many bytes are not allocated.
    pub(super) fn free_bytes(&self) -> usize {
        if let Some(mut tables) = self.tables.try_lock() {
            self.settle(&mut tables);
        }
        self.state.mapping.len_bytes - self.state.carved_bytes.load(Ordering::Relaxed)
    }

    /// The place of a pool's cell.
    fn cell(&self, pool: u16) -> Option<NonNull<Cell>> {
        let index = usize::from(pool);
        // SAFETY: the index is inside the array, whose place the invariant states.
        (index < self.cells.len()).then(|| unsafe { self.cells.cast::<Cell>().add(index) })
    }

    /// Takes memory and a cell for a pool, and a unit of the count.
    ///
    /// # Safety
    /// `this` is valid, and the caller has a unit of its count.
    pub(super) unsafe fn take_pool(this: NonNull<Self>, slots: usize, slot_bytes: usize) -> Result<NonNull<Cell>> {
        // SAFETY: the caller's promise.
        let control = unsafe { this.as_ref() };
        let Limits { pools, slots: most_slots, .. } = control.limits;
        if slots == 0 || slots > most_slots {
            return Err(Error::Argument { name: "slots", value: slots as u64, min: 1, max: most_slots as u64, multiple_of: 1 });
        }
        let capacity_bytes = control.state.mapping.len_bytes;
        let slot_bytes = control.state.line.round_up(slot_bytes.max(1)).unwrap_or(usize::MAX);
        let need_bytes = slot_bytes.checked_mul(slots).ok_or(Error::Exhausted { need_bytes: usize::MAX, capacity_bytes })?;
        let groups = groups_for(slots);
        control.add()?;
        let taken = lock::acquire(&control.tables).and_then(|mut tables| {
            control.settle(&mut tables);
            let bitmap = tables.bitmaps().allocate(u32::try_from(groups).unwrap_or(0), 1, 0).map_err(|full| match full {
                Full::Blocks => Error::TooMany { what: "pools of this region (Limits::pools)", most: pools as u64 },
                Full::Memory => Error::TooMany { what: "slots of this region's pools (Limits::slots)", most: most_slots as u64 },
            })?;
            // DLPack's alignment where the CPU's addresses allow it; a line in any case.
            let align = if control.state.phase(Align::DLPACK).is_ok() { Align::DLPACK } else { Align::LINE };
            let block = control.allocate(&mut tables, need_bytes, align);
            let (Ok((id, span)), Some(cell)) = (block, control.cell(bitmap.id)) else {
                tables.bitmaps().free(bitmap.id);
                return Err(block.err().unwrap_or(Error::Busy));
            };
            let first = bitmap.start as usize * GROUP_WORDS;
            // SAFETY: the allocator keeps both inside their arrays, and gives them to nobody else.
            let (words, parts) = unsafe { (control.words.cast().add(first), control.slot_parts.cast().add(first * BITS)) };
            // SAFETY: the cell is nobody's while its number is free, and the lock is held. Words
            // and parts are this pool's: all of their line.
            unsafe { Cell::write(cell, this, (bitmap.id, id), (slots, slot_bytes, span), words, parts) };
            Ok(cell)
        });
        control.or_drop(taken)
    }
}

/// One of them.
///
/// # Safety
/// As [`Tables::new`].
unsafe fn table((place, nodes, granules): (NonNull<u8>, usize, u32)) -> NonNull<Tlsf<[Node]>> {
    let nodes = ptr::slice_from_raw_parts_mut(place.as_ptr().cast::<Node>(), nodes);
    // SAFETY: the pointer is the place's. The table is numbers, for which zeroes are values, and a
    // slice of nodes at its end lies where an array of as many does (`repr(C)`).
    unsafe {
        let table = &mut *(nodes as *mut Tlsf<[Node]>);
        table.init(granules);
        NonNull::from(table)
    }
}
