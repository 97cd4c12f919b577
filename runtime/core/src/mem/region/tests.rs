//! Tests of the last drop, of limits, and of refusals. `tests/tests/own.rs` has whole programs.
#![cfg(test)]
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::panic,
    unsafe_code,
    reason = "a test that panics has failed; a backend is a promise"
)]

use super::slots::{Slots, WORD_SLOTS, slot_of, words_for};
use super::{Limits, Pool, Region};
use crate::dlpack::abi::DlManagedTensorVersioned;
use crate::dlpack::{DataType, Shape, TensorSpec, TensorTable};
use crate::mem::block::Requirements;
use crate::mem::region::bitmap::WORD_BITS;
use crate::mem::{Backend, CpuBuf, Mapping, Port, SyncScope};
use crate::types::atomic::AtomicU8;
use crate::types::{Align, BaseAddr, Bus, Direction, Error, PhysAddr, Result};
use core::mem::MaybeUninit;
use core::ops::Range;
use core::ptr::NonNull;
use core::{mem, ptr};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::boxed::Box;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::vec::Vec;
use std::{thread, vec};

/// A block of the heap, which is really freed, so that Miri sees any use after that.
struct Block {
    start: NonNull<u8>,
    layout: Layout,
    scope: SyncScope,
    ends: Arc<AtomicUsize>,
    panics: bool,
    /// Where the block that it reports begins, and its length.
    offset: usize,
    len_bytes: usize,
}

impl Block {
    fn new(len_bytes: usize, scope: SyncScope) -> (Self, Arc<AtomicUsize>) {
        let layout = Layout::from_size_align(len_bytes, 4096).unwrap();
        let ends = Arc::new(AtomicUsize::new(0));
        // SAFETY: the layout is not empty.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) }).unwrap();
        (
            Self {
                start,
                layout,
                scope,
                ends: Arc::clone(&ends),
                panics: false,
                offset: 0,
                len_bytes,
            },
            ends,
        )
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        self.ends.fetch_add(1, Ordering::Relaxed);
        // SAFETY: `new` allocated it, and `drop` runs once.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
        assert!(!self.panics, "a backend's drop panics");
    }
}

// SAFETY: the memory is this value's own, zeroed, at addresses that no device knows.
unsafe impl Backend for Block {
    fn name(&self) -> &'static str {
        "heap"
    }
    fn mapping(&self) -> Mapping {
        let base = BaseAddr::Phys(PhysAddr(0x1000_0000)).plus(self.offset);
        // SAFETY: it lies inside the memory.
        let cpu = unsafe { self.start.add(self.offset) };
        Mapping {
            cpu,
            len_bytes: self.len_bytes,
            base,
            bus: Bus::Soc,
            scope: self.scope,
            coherent: None,
        }
    }
    unsafe fn sync_for_device(&self, _: Range<usize>, _: Direction) -> Result<()> {
        Ok(())
    }
    unsafe fn sync_for_cpu(&self, _: Range<usize>, _: Direction) -> Result<()> {
        Ok(())
    }
}

// SAFETY: the pointer is the value's own memory.
unsafe impl Send for Block {}
// SAFETY: as for `Send`.
unsafe impl Sync for Block {}

const RANGED: SyncScope = SyncScope::Range { granule_bytes: 64 };
pub(crate) const PORT: Port = Port {
    name: "test",
    bus: Bus::Soc,
    offset: 0,
    addr_bits: 32,
    window: (0, u32::MAX as u64),
    coherent: false,
};

pub(crate) fn region(len_bytes: usize, limits: Limits) -> (Region, Arc<AtomicUsize>) {
    let (block, ends) = Block::new(len_bytes, RANGED);
    (
        Region::with(block, Requirements::default(), limits)
            .map_err(|refused| refused.error)
            .unwrap(),
        ends,
    )
}

fn ends(ends: &AtomicUsize) -> usize {
    ends.load(Ordering::Relaxed)
}

#[test]
fn last_holder_drops_the_backend() {
    // Every order of dropping the five.
    for order in (0..120).step_by(if cfg!(miri) { 11 } else { 1 }) {
        let (region, gone) = region(64 * 1024, Limits::default());
        let pool = region.pool(2, 256).unwrap();
        let (slot, mut buffer) = (pool.take().unwrap(), region.alloc(1000, Align::LINE).unwrap());
        buffer.view_mut::<u8>().unwrap().fill(7);
        // SAFETY: no device receives the address.
        let device = unsafe { buffer.hand_over(&PORT, 32, .., Direction::Bidirectional) }.unwrap();
        let mut all: Vec<Box<dyn Send>> = vec![
            Box::new(region.clone()),
            Box::new(region),
            Box::new(pool),
            Box::new(slot),
            Box::new(device),
        ];
        let mut order = order;
        while !all.is_empty() {
            assert_eq!(ends(&gone), 0, "{} are left", all.len());
            drop(all.swap_remove(order % all.len()));
            order /= all.len() + 1;
        }
        assert_eq!(ends(&gone), 1);
    }
}

#[test]
fn what_is_forgotten_keeps_the_memory() {
    let forget: [fn(&Region, &Pool); 4] = [
        |region, _| mem::forget(region.alloc(64, Align::LINE).unwrap()),
        |_, pool| mem::forget(pool.take().unwrap()),
        |region, _| mem::forget(region.clone()),
        |_, pool| mem::forget(pool.clone()),
    ];
    for forget in forget {
        let (region, gone) = region(64 * 1024, Limits::default());
        let pool = region.pool(2, 256).unwrap();
        forget(&region, &pool);
        drop((region, pool));
        assert_eq!(ends(&gone), 0);
    }
}

#[test]
fn a_split_buffer_is_free_when_both_halves_are() {
    let (region, _) = region(4096, Limits::default());
    let free = region.free_bytes();
    let pool = region.pool(1, 128).unwrap();
    for whole in [region.alloc(128, Align::LINE).unwrap(), pool.take().unwrap()] {
        let (left, right) = whole.split_at(64).unwrap();
        drop(left);
        assert!(region.free_bytes() <= free - 256 || pool.taken() == 1);
        let (one, two) = right.split_at(10).unwrap();
        drop((two, one));
    }
    assert_eq!((region.free_bytes(), pool.taken()), (free - 128, 0));
}

#[test]
fn a_refusal_names_its_limit() {
    let limits = Limits { allocations: 4 };
    let (region, _) = region(64 * 1024, limits);
    assert_eq!(region.limits(), limits);
    let pools = [region.pool(5, 64).unwrap(), region.pool(5, 64).unwrap()];
    let Err(Error::Argument { name: "slots", value: 0, .. }) = region.pool(0, 64) else { panic!() };
    let Err(Error::Argument { name: "slots", max: 1_048_576, .. }) = region.pool((1 << 20) + 1, 64)
    else {
        panic!()
    };
    let buffers = [region.alloc(1, Align::LINE).unwrap(), region.alloc(1, Align::LINE).unwrap()];
    for refused in [region.alloc(1, Align::LINE).map(drop), region.pool(1, 64).map(drop)] {
        let Err(Error::TooMany { what, most: 4 }) = refused else { panic!() };
        assert!(what.contains("`allocations`"), "{what}");
    }
    drop((pools, buffers));
    assert_eq!((region.users(), region.free_bytes()), (1, 64 * 1024));
    let Err(Error::Exhausted { need_bytes: 65_537, .. }) = region.alloc(65_537, Align::LINE) else {
        panic!()
    };
    let Err(Error::Exhausted { .. }) = region.pool(10, usize::MAX) else { panic!() };
    let Err(Error::Exhausted { .. }) = region.pool(10, usize::MAX / 8) else { panic!() };
    let Err(Error::Exhausted { .. }) = region.pool(1025, 64) else { panic!() };
    let Err(Error::Argument { .. }) = region.alloc(0, Align::LINE) else { panic!() };
    let Err(Error::Argument { .. }) = region.pool(1, 0) else { panic!() };
    assert_eq!(region.users(), 1, "a refusal counts nothing");
    assert_eq!(region.stats().carves, 4);
}

#[test]
fn pool_fills_block_with_odd_start() {
    let (mut block, _) = Block::new(4096, RANGED);
    (block.offset, block.len_bytes) = (64, 4096 - 64);
    let region = Region::new(block).map_err(|refused| refused.error).unwrap();
    let pool = region.pool(63, 64).unwrap();
    assert_eq!((region.free_bytes(), pool.take().unwrap().offset_bytes()), (0, 0));
    drop(pool);
    let pool = region.pool(60, 64).unwrap();
    assert_eq!(pool.take().unwrap().offset_bytes(), 192, "where there is room");
}

/// A 32-bit processor maps no such block.
#[cfg(target_pointer_width = "64")]
#[test]
fn block_of_too_many_lines_is_refused() {
    let (mut block, _) = Block::new(4096, RANGED);
    block.len_bytes = usize::MAX & !63;
    let refused = Region::new(block).unwrap_err();
    assert!(matches!(refused.error, Error::OutOfRange { .. }), "{:?}", refused.error);
}

#[test]
fn pools_come_and_go() {
    let (region, _) = region(1 << 20, Limits::default());
    let step = if cfg!(miri) { 97 } else { 1 };
    for slots in (1..300).step_by(step).chain([4000, 1]) {
        let pool = region.pool(slots, 100).unwrap();
        assert_eq!((pool.slots(), pool.slot_bytes()), (slots, 128));
        let all: Vec<_> = (0..slots.min(70)).map(|_| pool.take().unwrap()).collect();
        assert_eq!(pool.clone().taken(), all.len());
        drop(pool);
        assert_eq!(region.free_bytes(), (1 << 20) - slots * 128, "its slots are out");
        drop(all);
        assert_eq!(region.free_bytes(), 1 << 20);
    }
}

#[test]
fn slots_and_buffers_share_no_byte() {
    let (region, _) = region(64 * 1024, Limits::default());
    let pools = [region.pool(70, 64).unwrap(), region.pool(100, 192).unwrap()];
    let mut all = Vec::new();
    for pool in &pools {
        all.extend((0..pool.slots()).map(|_| pool.take().unwrap()));
        assert_eq!(pool.take().unwrap_err(), Error::NoSlots { slots: pool.slots() });
    }
    while let Ok(buffer) = region.alloc(640, Align::LINE) {
        all.push(buffer);
    }
    let mut ranges: Vec<_> = all.iter().map(|buf| (buf.offset_bytes(), buf.len_bytes())).collect();
    ranges.sort_unstable();
    assert!(ranges.windows(2).all(|two| two[0].0 + two[0].1 <= two[1].0), "{ranges:?}");
    assert!(ranges.last().is_some_and(|last| last.0 + last.1 <= region.len_bytes()));
}

#[test]
fn an_address_is_aligned_for_both() {
    let (region, _) = region(64 * 1024, Limits::default());
    let _first = region.alloc(64, Align::LINE).unwrap();
    for bytes in [64, 128, 256, 1024, 4096] {
        let mut buf = region.alloc(100, Align::new(bytes).unwrap()).unwrap();
        let ptr = buf.as_mut_ptr();
        let addr = region.dev_addr_of(&PORT, ptr, 100).unwrap();
        assert_eq!((ptr.addr() % bytes, addr.0 % bytes as u64), (0, 0));
        assert_eq!(region.host_ptr_of(&PORT, addr).unwrap().as_ptr(), ptr);
    }
    region.verify().unwrap();
    // The block lies at a multiple of 4096 for the CPU, and of 256 MiB for the device.
    let far = region.alloc(64, Align::new(1 << 24).unwrap()).map(drop);
    assert!(
        far.is_ok() || matches!(far, Err(Error::Misaligned { .. } | Error::Exhausted { .. })),
        "{far:?}"
    );
}

#[test]
fn whole_synced_block_has_one_buffer() {
    let (block, gone) = Block::new(4096, SyncScope::Whole);
    let region = Region::new(block).map_err(|refused| refused.error).unwrap();
    let only = region.alloc(64, Align::LINE).unwrap();
    assert_eq!(region.alloc(64, Align::LINE).unwrap_err(), Error::WholeBlock { shared_bytes: 64 });
    assert_eq!(region.pool(1, 64).unwrap_err(), Error::WholeBlock { shared_bytes: 64 });
    // SAFETY: no device receives the address.
    drop(unsafe { only.hand_over(&PORT, 32, .., Direction::FromDevice) }.unwrap());
    let pool = region.pool(2, 64).unwrap();
    // SAFETY: as above.
    let refused = unsafe { pool.take().unwrap().hand_over(&PORT, 32, .., Direction::FromDevice) }
        .unwrap_err();
    assert_eq!(refused.error, Error::WholeBlock { shared_bytes: 64 });
    drop((refused, pool, region));
    assert_eq!(ends(&gone), 1);
}

/// A consumer's tensor is the last owner of the memory, when the buffer's holder is gone: of an
/// allocation, of a pool's slot and of a split buffer alike.
#[test]
fn tensor_keeps_memory_until_deleter() {
    static TENSORS: TensorTable<1> = TensorTable::new();
    let take: [fn(&Region) -> CpuBuf; 3] = [
        |region| region.alloc(64, Align::LINE).unwrap(),
        |region| region.pool(2, 64).unwrap().take().unwrap(),
        |region| region.alloc(128, Align::LINE).unwrap().split_at(64).unwrap().1,
    ];
    for take in take {
        let (region, gone) = region(4096, Limits::default());
        let spec = TensorSpec::new(DataType::U8, Shape::new(&[64]).unwrap());
        let mut lent = TENSORS.lend(take(&region), &spec).unwrap();
        let tensor = lent.tensor().unwrap();
        drop((region, lent));
        // SAFETY: the tensor is out, and this test is its consumer.
        unsafe { tensor.as_ref().tensor.data.cast::<u8>().write_bytes(7, 64) };
        assert_eq!((ends(&gone), TENSORS.taken()), (0, 1));
        let tensor = tensor.as_ptr().expose_provenance();
        let deleted = thread::spawn(move || {
            let tensor = ptr::with_exposed_provenance_mut::<DlManagedTensorVersioned>(tensor);
            // SAFETY: the consumer's last step, once.
            unsafe { ((*tensor).deleter.unwrap())(tensor) };
        });
        deleted.join().unwrap();
        assert_eq!((ends(&gone), TENSORS.taken(), TENSORS.misuses()), (1, 0, 0));
    }
}

#[test]
fn memory_that_is_no_dma_buf_is_not_exported() {
    let (region, _) = region(4096, Limits::default());
    // SAFETY: no importer receives it.
    let refused = unsafe { region.export() }.map(drop);
    assert!(
        matches!(refused, Err(Error::Unsupported { what, .. }) if what.contains("no dma-buf")),
        "{refused:?}"
    );
}

/// A backend whose value has `BYTES` bytes, and whose memory is a static.
struct OfBytes<const BYTES: usize>([u8; BYTES]);

#[repr(align(64))]
struct Line([u8; 4096]);
static LINES: Line = Line([0; 4096]);

// SAFETY: the memory is not used: the regions over it give no views.
unsafe impl<const BYTES: usize> Backend for OfBytes<BYTES> {
    fn name(&self) -> &'static str {
        "static"
    }
    fn mapping(&self) -> Mapping {
        let base = BaseAddr::Phys(PhysAddr(0x1000_0000));
        let cpu = NonNull::from(&LINES.0).cast();
        Mapping {
            cpu,
            len_bytes: 4096,
            base,
            bus: Bus::Soc,
            scope: SyncScope::Coherent,
            coherent: None,
        }
    }
    unsafe fn sync_for_device(&self, _: Range<usize>, _: Direction) -> Result<()> {
        Ok(())
    }
    unsafe fn sync_for_cpu(&self, _: Range<usize>, _: Direction) -> Result<()> {
        Ok(())
    }
}

/// `bytes` of memory for ever, which begin `past` bytes after a multiple of 64.
fn given(bytes: usize, past: usize) -> &'static mut [MaybeUninit<u8>] {
    let memory = Box::leak(Box::new_uninit_slice(bytes + 128));
    let skip = memory.as_ptr().align_offset(64) + past;
    &mut memory[skip..skip + bytes]
}

fn fits_wherever_it_begins<const BYTES: usize>() {
    let needs = Requirements { align: Align::MIN, ..Requirements::default() };
    let figures: &[usize] = if cfg!(miri) { &[1] } else { &[1, 63, 64, 100] };
    for &allocations in figures {
        let limits = Limits { allocations };
        let need = limits.control_bytes::<OfBytes<BYTES>>().unwrap();
        for past in (0..64).step_by(if cfg!(miri) { 31 } else { 1 }) {
            let region = Region::with_memory(OfBytes([7; BYTES]), needs, limits, given(need, past))
                .map_err(|refused| refused.error)
                .unwrap();
            let pool_bytes = Pool::control_bytes(allocations).unwrap();
            let pool = region
                .pool_with_memory(allocations.min(32), 64, given(pool_bytes, past))
                .map_err(|refused| refused.error)
                .unwrap();
            drop(pool.take().unwrap());
        }
        // The worst case is the first byte after a line: there, one byte less is too few.
        let refused = Region::with_memory(OfBytes([7; BYTES]), needs, limits, given(need - 1, 1))
            .unwrap_err();
        assert_eq!(refused.error, Error::Exhausted { need_bytes: need, capacity_bytes: need - 1 });
        let (backend, memory) = refused.into_returned();
        assert_eq!((backend.0, memory.len()), ([7; BYTES], need - 1));
    }
}

#[test]
fn asked_control_memory_is_always_enough() {
    const { assert!(matches!(Limits { allocations: 1 }.control_bytes::<Block>(), Ok(1..))) };
    fits_wherever_it_begins::<0>();
    fits_wherever_it_begins::<1>();
    fits_wherever_it_begins::<8>();
    fits_wherever_it_begins::<64>();
}

#[test]
fn without_a_kernel_the_program_gives_the_memory() {
    let limits = Limits { allocations: 8 };
    let need = limits.control_bytes::<Block>().unwrap();
    let (block, gone) = Block::new(4096, RANGED);
    // What is refused comes back, whatever the reason, and works for the next try.
    let needs = Requirements { len_bytes: 8192, ..Requirements::default() };
    let refused = Region::with_memory(block, needs, limits, given(need, 1)).unwrap_err();
    assert!(matches!(refused.error, Error::BlockSize { .. }), "{}", refused.error);
    let (block, memory) = refused.into_returned();
    let region = Region::with_memory(block, Requirements::default(), limits, memory)
        .map_err(|refused| refused.error)
        .unwrap();

    let need = Pool::control_bytes(64).unwrap();
    let refused = region.pool_with_memory(64, 64, given(need - 1, 1)).unwrap_err();
    assert_eq!(refused.error, Error::Exhausted { need_bytes: need, capacity_bytes: need - 1 });
    let refused = region.pool_with_memory(64, 4096, given(need, 1)).unwrap_err();
    assert!(matches!(refused.error, Error::Exhausted { .. }), "{}", refused.error);
    assert_eq!((region.users(), region.free_bytes()), (1, 4096));
    let pool = region
        .pool_with_memory(64, 64, refused.into_returned())
        .map_err(|refused| refused.error)
        .unwrap();
    let all: Vec<_> = (0..64).map(|_| pool.take().unwrap()).collect();
    drop((region, pool));
    assert_eq!(ends(&gone), 0);
    drop(all);
    assert_eq!(ends(&gone), 1);
}

#[test]
fn a_refused_backend_comes_back() {
    let (block, gone) = Block::new(4096, RANGED);
    let needs = Requirements { len_bytes: 8192, ..Requirements::default() };
    let refused = Region::with(block, needs, Limits::default()).unwrap_err();
    assert!(matches!(refused.error, Error::BlockSize { len_bytes: 4096, need_bytes: 8192, .. }));
    let refused =
        Region::with(refused.into_returned(), Requirements::default(), Limits { allocations: 0 })
            .unwrap_err();
    assert!(matches!(refused.error, Error::Argument { name: "allocations", .. }));
    assert_eq!(ends(&gone), 0);
    drop(refused);
    assert_eq!(ends(&gone), 1);
}

#[test]
fn panicking_drop_runs_once_account_kept() {
    let last: [fn(Region) -> Box<dyn Send>; 3] = [
        |region| Box::new(region),
        |region| Box::new(region.pool(2, 256).unwrap().take().unwrap()),
        |region| {
            let (left, right) = region.alloc(128, Align::LINE).unwrap().split_at(64).unwrap();
            drop(left);
            Box::new(right)
        },
    ];
    for last in last {
        let (mut block, gone) = Block::new(4096, RANGED);
        block.panics = true;
        let region = Region::new(block).map_err(|refused| refused.error).unwrap();
        let control = region.control;
        let last = last(region);
        assert_eq!(ends(&gone), 0);
        assert!(catch_unwind(AssertUnwindSafe(|| drop(last))).is_err());
        // SAFETY: a control block is leaked if its backend's drop panics, which this test checks.
        // Miri would report a use after free.
        assert_eq!((ends(&gone), unsafe { control.as_ref() }.units()), (1, 0));
    }
}

#[test]
#[cfg_attr(miri, ignore = "16 million clones")]
fn a_count_is_refused_long_before_it_wraps() {
    let (region, gone) = region(4096, Limits::default());
    for _ in 0..super::count::MAX_HANDLES - 1 {
        mem::forget(region.clone());
    }
    assert!(catch_unwind(AssertUnwindSafe(|| region.clone())).is_err());
    assert!(matches!(region.alloc(64, Align::LINE), Err(Error::TooMany { .. })));
    assert!(matches!(region.another(), Err(Error::TooMany { .. })));
    assert!(matches!(region.pool(1, 64), Err(Error::TooMany { .. })));
    assert_eq!(region.users(), super::count::MAX_HANDLES);
    drop(region);
    assert_eq!(ends(&gone), 0);
}

#[test]
fn threads_take_and_drop_all_comes_back() {
    let (region, gone) = region(256 * 1024, Limits { allocations: 64 });
    let rounds = if cfg!(miri) { 20 } else { 3000 };
    for _ in 0..if cfg!(miri) { 2 } else { 20 } {
        let pool = region.pool(100, 256).unwrap();
        let threads: Vec<_> = (0..3)
            .map(|number| {
                let (region, pool) = (region.clone(), pool.clone());
                thread::spawn(move || {
                    let mut held = Vec::new();
                    for round in 0..rounds {
                        let mut buf = if round % 3 == number {
                            region.alloc(64 + round % 4096, Align::LINE)
                        } else {
                            pool.take()
                        }
                        .unwrap();
                        buf.view_mut::<u8>().unwrap()[0] = 1;
                        held.push(buf);
                        if held.len() > 4 {
                            drop(held.swap_remove(round % 4));
                        }
                    }
                    held
                })
            })
            .collect();
        drop(pool);
        // Slots are out of a pool that has no handle, and come back here.
        let held: Vec<_> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        assert_eq!(held.len(), 12);
        drop(held);
        assert_eq!((region.free_bytes(), region.users()), (256 * 1024, 1));
    }
    drop(region);
    assert_eq!(ends(&gone), 1);
}

#[test]
fn each_slot_has_one_token_mark_has_none() {
    let most = if cfg!(miri) { 1 } else { 1000 };
    for slots in [1, WORD_SLOTS - 1, WORD_SLOTS, WORD_SLOTS + 1, 3 * WORD_SLOTS, most] {
        let words: Vec<_> = (0..words_for(slots)).map(|_| AtomicUsize::new(0)).collect();
        let parts: Vec<_> = (0..words.len() * WORD_BITS).map(|_| AtomicU8::new(0)).collect();
        let (likely, pending) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let state = Slots { words: &words, parts: &parts, likely: &likely, pending: &pending };
        state.open(slots);
        assert_eq!(state.free(), slots);
        let tokens: Vec<_> = core::iter::from_fn(|| state.claim()).collect();
        let numbers: BTreeSet<_> = tokens.iter().map(|&token| slot_of(token)).collect();
        assert_eq!(numbers, (0..slots).collect());
        // Half of them come back before the close, the others after it.
        let (early, late) = tokens.split_at(slots / 2);
        assert!(early.iter().all(|&token| state.last_is_gone(token) && !state.release(token)));
        assert!(!state.close(slots), "{slots} slots, {} out", late.len());
        let (last, rest) = late.split_last().unwrap();
        assert!(rest.iter().all(|&token| !state.release(token)));
        assert!(state.release(*last));
        // The same memory again, with no slot out.
        state.open(slots);
        assert!(state.close(slots));
    }
}

#[test]
fn lone_buffer_dropped_under_lock_is_free() {
    let (block, _) = Block::new(4096, SyncScope::Whole);
    let region = Region::new(block).map_err(|refused| refused.error).unwrap();
    let only = region.alloc(64, Align::LINE).unwrap();
    // SAFETY: the region is alive.
    let held = unsafe { &region.control.as_ref().hot.table }.lock();
    drop(only);
    drop(held);
    assert!(region.alloc(64, Align::LINE).is_ok());
}

#[test]
fn drop_skips_lock_next_allocation_frees() {
    let (region, _) = region(4096, Limits::default());
    // SAFETY: the region is alive.
    let table = unsafe { &region.control.as_ref().hot.table };
    let (buffer, pool) = (region.alloc(2048, Align::LINE).unwrap(), region.pool(1, 2048).unwrap());
    let slot = pool.take().unwrap();
    let held = table.lock();
    drop((buffer, pool, slot));
    assert_eq!(
        (region.free_bytes(), region.users()),
        (0, 1),
        "the lock kept them from being freed"
    );
    drop(held);
    assert!(region.alloc(4096, Align::LINE).is_ok());
    assert_eq!(region.free_bytes(), 4096);
}

#[test]
fn limit_beyond_any_table_is_refused() {
    let refused = |allocations| match (Limits { allocations }).control_bytes::<Block>() {
        Err(Error::Argument { name, .. }) => name,
        other => panic!("{other:?}"),
    };
    assert_eq!((refused(0), refused(16_385)), ("allocations", "allocations"));
    assert!(matches!(Pool::control_bytes(0), Err(Error::Argument { name: "slots", .. })));
    assert!(matches!(
        Pool::control_bytes((1 << 20) + 1),
        Err(Error::Argument { name: "slots", .. })
    ));
    #[repr(align(8192))]
    struct Wide;
    let Err(Error::Argument { max: 4096, .. }) = Limits::default().control_bytes::<Wide>() else {
        panic!()
    };
    // The figures of the documentation.
    let bytes = Limits::default().control_bytes::<Block>().unwrap();
    assert!((19 * 1024..=21 * 1024).contains(&bytes), "{bytes}");
    let most = Limits { allocations: 16_384 }.control_bytes::<Block>().unwrap();
    assert!((17 * 16_384..17 * 16_384 + 8192).contains(&most), "{most}");
    assert!(Pool::control_bytes(2000).unwrap() - 63 <= 4096);
    assert!(Pool::control_bytes(1 << 20).unwrap() < 5 << 18);
}
