//! Blocks that a region refuses, and what regions, buffers and pools refuse.

use super::Watched;
use contigo::mem::{Requirements, Segment, SyncScope};
use contigo::sim::{SimBoard, SimSpec};
use contigo::types::BaseAddr;
use contigo::{
    Align, Backend, Bus, CpuBuf, DevAddr, Error, Limits, PhysAddr, Port, Region, Result, forward,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Where the bad blocks lie: a multiple of 256, and not of much more.
const BASE: u64 = 0x2000_0100;

#[test]
fn bad_alignments_ranges_and_views() {
    for align_bytes in [0, 3, 48, usize::MAX] {
        assert_eq!(Align::new(align_bytes), Err(Error::NotPowerOfTwo { align_bytes }));
    }
    let range = |start, end| Error::OutOfRange { start, end, len_bytes: 128 };
    let view = |len_bytes, element_bytes, align_bytes| Error::View {
        len_bytes,
        element_bytes,
        align_bytes,
    };
    let board = SimBoard::new(1);
    let region = Region::new(board.memory(4096).unwrap()).unwrap();
    let mut buf = region.alloc(128, Align::LINE).unwrap();
    assert_eq!(buf.view_at::<u8>(100..129), Err(range(100, 129)));
    assert_eq!(buf.view_at_mut::<u8>(129..), Err(range(129, 128)));
    assert_eq!(buf.copy_from_slice(&[0; 129]), Err(range(0, 129)));
    assert_eq!(buf.view::<[u8; 3]>(), Err(view(128, 3, 1)));
    assert_eq!(buf.view_at::<u32>(2..6), Err(view(4, 4, 4)));
    assert_eq!(buf.view_at_mut::<u64>(..12), Err(view(12, 8, 8)));
    // The refused buffer comes back as it was.
    let refused = buf.slice(64..129).unwrap_err();
    assert_eq!(refused.error, range(64, 129));
    let refused = refused.into_returned().split_at(129).unwrap_err();
    assert_eq!(refused.error, range(0, 129));
    assert_eq!(refused.into_returned().len_bytes(), 128);
}

/// A region's error for such a block; the block comes back, and is freed once.
fn refused(spec: SimSpec, needs: Requirements) -> Error {
    let board = SimBoard::new(1);
    let (watched, freed) = Watched::new(board.memory_with(spec).unwrap());
    let (error, returned) =
        Region::with(watched, needs, Limits::default()).unwrap_err().into_parts();
    assert_eq!(freed.load(Ordering::Relaxed), 0, "it was handed back");
    drop(returned);
    assert_eq!(freed.load(Ordering::Relaxed), 1);
    error
}

#[test]
fn blocks_that_a_region_refuses() {
    let at = |addr| Some(BaseAddr::Phys(PhysAddr(addr)));
    let plain = Requirements::default();
    let spec = SimSpec { len_bytes: 8192, base: at(BASE), ..SimSpec::default() };
    let line_bytes = 64;
    // Two lines of 32 bytes and a half of one of 64.
    let odd = SimSpec { len_bytes: 96, line: Align::MIN, scope: SyncScope::Whole, ..spec };
    for (spec, needs, expected) in [
        (
            SimSpec { break_at: Some(4096), ..spec },
            plain,
            Error::NotContiguous { offset_bytes: 4096, expected: BASE + 4096, found: BASE + 8192 },
        ),
        (
            SimSpec { base: at(BASE + 32), ..spec },
            plain,
            Error::Misaligned { addr: BASE + 32, align_bytes: 64 },
        ),
        (
            spec,
            Requirements { align: Align::PAGE, ..plain },
            Error::Misaligned { addr: BASE, align_bytes: 4096 },
        ),
        (
            spec,
            Requirements { len_bytes: 8193, ..plain },
            Error::BlockSize { len_bytes: 8192, need_bytes: 8193, line_bytes },
        ),
        (odd, plain, Error::BlockSize { len_bytes: 96, need_bytes: 1, line_bytes }),
        (
            spec,
            Requirements { addr_bits: 29, ..plain },
            Error::TooHigh { last: BASE + 8191, addr_bits: 29 },
        ),
    ] {
        assert_eq!(refused(spec, needs), expected);
    }
    // The CPU's address has to be as aligned as the device's; no mapping happens to lie at a
    // multiple of 1 GiB.
    let far = SimSpec { base: at(1 << 30), ..spec };
    let apart = refused(far, Requirements { align: Align::new(1 << 30).unwrap(), ..plain });
    assert!(
        matches!(apart, Error::Misaligned { addr, align_bytes: 0x4000_0000 } if addr != 1 << 30),
        "{apart}"
    );
    let board = SimBoard::new(1);
    let none = board.memory(0).unwrap_err();
    assert_eq!(none, Error::BlockSize { len_bytes: 0, need_bytes: 1, line_bytes });
    let small = board.memory_over(Box::leak(Box::new([0; 64]))).unwrap_err();
    assert!(matches!(small, Error::BlockSize { len_bytes: 64, .. }), "{small}");
    let kept: Vec<_> = std::iter::from_fn(|| board.memory(64).ok()).collect();
    assert_eq!(kept.len(), 32);
    let full = board.memory(64).unwrap_err();
    assert_eq!(full, Error::TooMany { what: "blocks on one simulated board", most: 32 });
    drop(kept);
    assert!(board.memory(64).is_ok());
}

fn argument(name: &'static str, value: u64, max: u64) -> Error {
    Error::Argument { name, value, min: 1, max, multiple_of: 1 }
}

const fn exhausted(need_bytes: usize, capacity_bytes: usize) -> Error {
    Error::Exhausted { need_bytes, capacity_bytes }
}

/// Parts of a buffer are bounded, so that a count can never wrap. Splits it until that is refused.
fn split_up(first: CpuBuf) -> Vec<CpuBuf> {
    let (mut rest, mut parts) = (first, Vec::new());
    let refused = loop {
        match rest.split_at(0) {
            Ok((left, right)) => {
                parts.push(left);
                rest = right;
            }
            Err(refused) => break refused,
        }
    };
    assert_eq!(refused.error, Error::TooManyParts { limit: 256 });
    parts.push(refused.into_returned());
    assert_eq!(parts.len(), 256);
    parts
}

#[test]
fn refused_allocations_and_addresses() {
    let board = SimBoard::new(1);
    let (watched, freed) = Watched::new(board.memory(8192).unwrap());
    let region = Region::new(watched).unwrap();
    let refused = |len_bytes, align| region.alloc(len_bytes, align).unwrap_err();
    assert_eq!(refused(8193, Align::LINE), exhausted(8193, 8192));
    assert_eq!(refused(usize::MAX, Align::LINE), exhausted(usize::MAX, 8192));
    assert_eq!(refused(0, Align::LINE), argument("the length of a buffer", 0, 8192));
    assert_eq!(region.free_bytes(), 8192, "a refused buffer takes nothing");
    let buf = region.alloc(8192, Align::LINE).unwrap();
    let first = buf.view::<u8>().unwrap().as_ptr();
    let apart = Error::Misaligned { addr: first.addr() as u64, align_bytes: 1 << 30 };
    assert_eq!(refused(64, Align::new(1 << 30).unwrap()), apart);
    assert_eq!(refused(1, Align::LINE), exhausted(1, 8192));

    let (port, elsewhere) = (board.port(), 0_u8);
    for (ptr, len_bytes) in [(&raw const elsewhere, 1), (first, 8193)] {
        let theirs = Error::NotOurs { addr: ptr.addr() as u64, len_bytes };
        assert_eq!(region.dev_addr_of(&port, ptr, len_bytes), Err(theirs));
    }
    let addr = region.dev_addr_of(&port, first, 8192).unwrap();
    for outside in [addr.0 - 1, addr.0 + 8192] {
        let theirs = Error::NotOurs { addr: outside, len_bytes: 1 };
        assert_eq!(region.host_ptr_of(&port, DevAddr(outside)), Err(theirs));
    }
    let last = 0x0FFF_FFFF;
    let above = Error::Unreachable { port: "sim-hp0", addr: addr.0, len_bytes: 64, first: 0, last };
    assert_eq!(region.dev_addr_of(&Port { addr_bits: 28, ..port }, first, 64), Err(above));
    let other = Error::WrongBus { port: "sim-hp0", memory: board.bus() };
    assert_eq!(region.dev_addr_of(&Port { bus: Bus::Soc, ..port }, first, 64), Err(other));

    let mut parts = split_up(buf);
    std::mem::forget(parts.pop());
    drop(parts);
    assert_eq!((region.users(), region.free_bytes()), (2, 0));
    drop(region);
    assert_eq!(freed.load(Ordering::Relaxed), 0, "a part was forgotten: leaked");
}

#[test]
fn refused_pools_and_their_allocations() {
    const CAPACITY: usize = 64 * 1024;
    let board = SimBoard::new(1);
    let (watched, freed) = Watched::new(board.memory(CAPACITY).unwrap());
    let region = Region::new(watched).unwrap();
    for (slots, slot_bytes, error) in [
        (2, 0, argument("the length of a buffer", 0, CAPACITY as u64)),
        (2, CAPACITY / 2 + 1, exhausted(CAPACITY + 128, CAPACITY)),
        (2, 1 << (usize::BITS - 1), exhausted(usize::MAX, CAPACITY)),
        (1, usize::MAX, exhausted(usize::MAX, CAPACITY)),
        (0, 64, argument("slots", 0, 1 << 20)),
        ((1 << 20) + 1, 64, argument("slots", (1 << 20) + 1, 1 << 20)),
        (usize::MAX, 64, argument("slots", usize::MAX as u64, 1 << 20)),
    ] {
        assert_eq!(region.pool(slots, slot_bytes).unwrap_err(), error, "{slots} of {slot_bytes}");
        let left = (region.free_bytes(), region.users());
        assert_eq!(left, (CAPACITY, 1), "a refused pool takes nothing");
    }
    // One line less than the slots need: the last one would begin in the block and end behind it.
    let short = Region::new(board.memory(64).unwrap()).unwrap();
    assert_eq!(short.pool(2, 64).unwrap_err(), exhausted(128, 64));
    assert_eq!(region.pool(2, 100).unwrap().slot_bytes(), 128, "whole lines");
    let pool = region.pool(2, 2048).unwrap();
    let held = [pool.take().unwrap(), pool.take().unwrap()];
    assert_eq!(pool.take().unwrap_err(), Error::NoSlots { slots: 2 });
    drop(held);
    let large = region.alloc(CAPACITY - 4096 + 1, Align::LINE).unwrap_err();
    assert_eq!(large, exhausted(CAPACITY - 4096 + 1, CAPACITY));

    let limits = Limits { allocations: 2 };
    let few = board.memory(CAPACITY).unwrap();
    let few = Region::with(few, Requirements::default(), limits).unwrap();
    let _blocks = (few.alloc(64, Align::LINE).unwrap(), few.pool(1, 64).unwrap());
    let what = "allocations of a region, by its limit `allocations`";
    let many = Error::TooMany { what, most: 2 };
    assert_eq!(few.alloc(64, Align::LINE).unwrap_err(), many);
    assert_eq!(few.pool(1, 64).unwrap_err(), many);

    // 256 parts of one slot and no more, wherever it is from.
    drop(split_up(pool.take().unwrap()));
    drop(split_up(region.alloc(64, Align::LINE).unwrap()));
    assert_eq!((pool.taken(), region.free_bytes()), (0, CAPACITY - 4096), "every part came back");
    drop((pool, region));
    assert_eq!(freed.load(Ordering::Relaxed), 1);
}

/// A simulated block whose pages lie where the test says.
struct Moving<B> {
    inner: B,
    /// How far the second page went.
    by: Arc<AtomicU64>,
    /// How long a run is.
    run: Arc<AtomicUsize>,
}

// SAFETY: the block is `inner`'s in every method; that its pages moved is not true.
unsafe impl<B: Backend> Backend for Moving<B> {
    forward!(|this| this.inner => name, mapping, sync_for_device, sync_for_cpu);
    fn segment(&self, offset_bytes: usize) -> Result<Segment> {
        let by = if offset_bytes < 4096 { 0 } else { self.by.load(Ordering::Relaxed) };
        let addr = self.inner.segment(offset_bytes)?.addr + by;
        Ok(Segment { addr, len_bytes: self.run.load(Ordering::Relaxed) })
    }
}

#[test]
fn memory_that_moved_is_seen_by_verify() {
    let (by, run) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicUsize::new(4096)));
    let inner = SimBoard::new(1).memory(8192).unwrap();
    let moving = Moving { inner, by: Arc::clone(&by), run: Arc::clone(&run) };
    let region = Region::new(moving).unwrap();
    let BaseAddr::Phys(base) = region.base() else { panic!("physical") };
    assert_eq!(region.verify(), Ok(()));
    by.store(64, Ordering::Relaxed);
    let expected = base.0 + 4096;
    let moved = Error::NotContiguous { offset_bytes: 4096, expected, found: expected + 64 };
    assert_eq!(region.verify(), Err(moved));
    // A backend that answers runs of no bytes is refused, and not asked for ever.
    run.store(0, Ordering::Relaxed);
    assert_eq!(
        region.verify(),
        Err(Error::NotContiguous { offset_bytes: 0, expected: base.0, found: base.0 })
    );
}
