//! Blocks that a region refuses, and what regions, buffers and pools refuse.

use super::Watched;
use contigo::{
    Align, Backend, CpuBuf, Error, Limits, PhysAddr, Port, Region, Result, forward,
    mem::{Requirements, Segment, SyncScope},
    sim::{SimBoard, SimSpec},
    types::BaseAddr,
};
use std::sync::{
    Arc,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

/// Where the bad blocks lie: a multiple of 256, and not of much more.
const BASE: u64 = 0x2000_0100;

#[test]
fn numbers_that_no_board_could_satisfy() {
    numbers();
}

#[test]
fn blocks_that_a_region_refuses() {
    blocks();
}

#[test]
fn refused_allocations_and_addresses() {
    allocations_and_addresses();
}

#[test]
fn refused_pools_and_their_allocations() {
    pools_and_allocations();
}

pub(super) fn numbers() -> Vec<Error> {
    let mut provoked = Vec::new();
    for align_bytes in [0, 3, 48, usize::MAX] {
        let error = Align::new(align_bytes).unwrap_err();
        assert_eq!(error, Error::NotPowerOfTwo { align_bytes });
        provoked.push(error);
    }
    let board = SimBoard::new(1);
    let region = Region::new(board.memory(4096).unwrap()).unwrap();
    let mut buf = region.alloc(128, Align::LINE).unwrap();
    provoked.extend(
        [
            (
                buf.view_at::<u8>(100..129).unwrap_err(),
                Error::OutOfRange { start: 100, end: 129, len_bytes: 128 },
            ),
            (
                buf.view_at_mut::<u8>(129..).unwrap_err(),
                Error::OutOfRange { start: 129, end: 128, len_bytes: 128 },
            ),
            (
                buf.copy_from_slice(&[0; 129]).unwrap_err(),
                Error::OutOfRange { start: 0, end: 129, len_bytes: 128 },
            ),
            (
                buf.view::<[u8; 3]>().unwrap_err(),
                Error::View { len_bytes: 128, element_bytes: 3, align_bytes: 1 },
            ),
            (
                buf.view_at::<u32>(2..6).unwrap_err(),
                Error::View { len_bytes: 4, element_bytes: 4, align_bytes: 4 },
            ),
            (
                buf.view_at_mut::<u64>(..12).unwrap_err(),
                Error::View { len_bytes: 12, element_bytes: 8, align_bytes: 8 },
            ),
        ]
        .map(|(error, expected)| {
            assert_eq!(error, expected);
            error
        }),
    );
    // The refused buffer comes back as it was.
    let refused = buf.slice(64..129).unwrap_err();
    assert_eq!(refused.error, Error::OutOfRange { start: 64, end: 129, len_bytes: 128 });
    let refused = refused.into_returned().split_at(129).unwrap_err();
    assert_eq!(refused.error, Error::OutOfRange { start: 0, end: 129, len_bytes: 128 });
    assert_eq!(refused.into_returned().len_bytes(), 128);
    provoked
}

/// A region's error for such a block; the block comes back, and is freed once.
fn refused(spec: SimSpec, needs: Requirements) -> Error {
    let (board, freed) = (SimBoard::new(1), Arc::new(AtomicUsize::new(0)));
    let watched = Watched { inner: board.memory_with(spec).unwrap(), freed: Arc::clone(&freed) };
    let (error, returned) =
        Region::with(watched, needs, Limits::default()).unwrap_err().into_parts();
    assert_eq!(freed.load(Ordering::Relaxed), 0, "it was handed back");
    drop(returned);
    assert_eq!(freed.load(Ordering::Relaxed), 1);
    error
}

pub(super) fn blocks() -> Vec<Error> {
    let plain = Requirements::default();
    let spec = SimSpec {
        len_bytes: 8192,
        base: Some(BaseAddr::Phys(PhysAddr(BASE))),
        ..SimSpec::default()
    };
    // Two lines of 32 bytes and a half of one of 64.
    let odd = SimSpec { len_bytes: 96, line: Align::MIN, scope: SyncScope::Whole, ..spec };
    let cases = [
        (
            SimSpec { break_at: Some(4096), ..spec },
            plain,
            Error::NotContiguous { offset_bytes: 4096, expected: BASE + 4096, found: BASE + 8192 },
        ),
        (
            SimSpec { base: Some(BaseAddr::Phys(PhysAddr(BASE + 32))), ..spec },
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
            Error::BlockSize { len_bytes: 8192, need_bytes: 8193, line_bytes: 64 },
        ),
        (odd, plain, Error::BlockSize { len_bytes: 96, need_bytes: 1, line_bytes: 64 }),
        (
            spec,
            Requirements { addr_bits: 29, ..plain },
            Error::TooHigh { last: BASE + 8191, addr_bits: 29 },
        ),
    ];
    let mut provoked: Vec<_> = cases
        .map(|(spec, needs, expected)| {
            let error = refused(spec, needs);
            assert_eq!(error, expected);
            error
        })
        .into();
    // The CPU's address has to be as aligned as the device's; no mapping happens to lie at a
    // multiple of 1 GiB.
    let far = SimSpec { base: Some(BaseAddr::Phys(PhysAddr(1 << 30))), ..spec };
    let apart = refused(far, Requirements { align: Align::new(1 << 30).unwrap(), ..plain });
    assert!(
        matches!(apart, Error::Misaligned { addr, align_bytes: 0x4000_0000 } if addr != 1 << 30),
        "{apart}"
    );
    provoked.push(apart);
    let board = SimBoard::new(1);
    let none = board.memory(0).unwrap_err();
    assert_eq!(none, Error::BlockSize { len_bytes: 0, need_bytes: 1, line_bytes: 64 });
    let small = board.memory_over(Box::leak(Box::new([0; 64]))).unwrap_err();
    assert!(matches!(small, Error::BlockSize { len_bytes: 64, line_bytes: 64, .. }), "{small}");
    let kept: Vec<_> = std::iter::from_fn(|| board.memory(64).ok()).collect();
    let full = board.memory(64).unwrap_err();
    assert_eq!(
        (kept.len(), full),
        (32, Error::TooMany { what: "blocks on one simulated board", most: 32 })
    );
    drop(kept);
    assert!(board.memory(64).is_ok());
    provoked.extend([none, small, full]);
    provoked
}

pub(super) fn allocations_and_addresses() -> Vec<Error> {
    let (board, freed) = (SimBoard::new(1), Arc::new(AtomicUsize::new(0)));
    let region =
        Region::new(Watched { inner: board.memory(8192).unwrap(), freed: Arc::clone(&freed) })
            .unwrap();
    let past = region.alloc(8193, Align::LINE).unwrap_err();
    assert_eq!(past, Error::Exhausted { need_bytes: 8193, capacity_bytes: 8192 });
    let nothing = region.alloc(0, Align::LINE).unwrap_err();
    assert_eq!(
        nothing,
        Error::Argument {
            name: "the length of a buffer",
            value: 0,
            min: 1,
            max: 8192,
            multiple_of: 1
        }
    );
    assert_eq!(region.free_bytes(), 8192, "a refused buffer takes nothing");
    let buf = region.alloc(8192, Align::LINE).unwrap();
    let first = buf.view::<u8>().unwrap().as_ptr();
    let apart = region.alloc(64, Align::new(1 << 30).unwrap()).unwrap_err();
    assert_eq!(apart, Error::Misaligned { addr: first.addr() as u64, align_bytes: 1 << 30 });
    assert_eq!(
        region.alloc(1, Align::LINE).unwrap_err(),
        Error::Exhausted { need_bytes: 1, capacity_bytes: 8192 }
    );

    let (port, elsewhere) = (board.port(), 0_u8);
    let theirs = region.dev_addr_of(&port, &raw const elsewhere, 1).unwrap_err();
    assert_eq!(theirs, Error::NotOurs { addr: (&raw const elsewhere).addr() as u64, len_bytes: 1 });
    assert_eq!(
        region.dev_addr_of(&port, first, 8193).unwrap_err(),
        Error::NotOurs { addr: first.addr() as u64, len_bytes: 8193 }
    );
    let addr = region.dev_addr_of(&port, first, 8192).unwrap();
    for outside in [addr.0 - 1, addr.0 + 8192] {
        assert_eq!(
            region.host_ptr_of(&port, contigo::DevAddr(outside)).unwrap_err(),
            Error::NotOurs { addr: outside, len_bytes: 1 }
        );
    }
    let narrow = Port { addr_bits: 28, ..port };
    let above = region.dev_addr_of(&narrow, first, 64).unwrap_err();
    assert_eq!(
        above,
        Error::Unreachable {
            port: "sim-hp0",
            addr: addr.0,
            len_bytes: 64,
            first: 0,
            last: 0x0FFF_FFFF
        }
    );
    let other = region.dev_addr_of(&SimBoard::new(1).port(), first, 64).unwrap_err();
    assert_eq!(other, Error::WrongBus { port: "sim-hp0", memory: board.bus() });

    // Parts of a buffer are bounded, so that a count can never wrap. A forgotten part stays
    // counted.
    let (mut rest, mut parts) = (buf, 1);
    let many = loop {
        match rest.split_at(0) {
            Ok((left, right)) => {
                std::mem::forget(left);
                (rest, parts) = (right, parts + 1);
            }
            Err(refused) => break refused,
        }
    };
    let error = many.error;
    assert_eq!((error, parts), (Error::TooManyParts { limit: 256 }, 256));
    drop(many);
    assert_eq!((region.users(), region.free_bytes()), (2, 0));
    drop(region);
    assert_eq!(freed.load(Ordering::Relaxed), 0, "a part was forgotten: leaked");
    vec![past, nothing, apart, theirs, above, other, error]
}

pub(super) fn pools_and_allocations() -> Vec<Error> {
    const CAPACITY: usize = 64 * 1024;
    let (board, freed) = (SimBoard::new(1), Arc::new(AtomicUsize::new(0)));
    let watched =
        |len_bytes| Watched { inner: board.memory(len_bytes).unwrap(), freed: Arc::clone(&freed) };
    let region = Region::new(watched(CAPACITY)).unwrap();
    let argument = |name, value, max| Error::Argument { name, value, min: 1, max, multiple_of: 1 };
    let exhausted = |need_bytes, capacity_bytes| Error::Exhausted { need_bytes, capacity_bytes };
    let mut provoked = Vec::new();
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
        assert_eq!(
            (region.free_bytes(), region.users()),
            (CAPACITY, 1),
            "a refused pool takes nothing"
        );
        provoked.push(error);
    }
    // One line less than the slots need: the last one would begin in the block and end behind it.
    let short = Region::new(watched(64)).unwrap();
    assert_eq!(short.pool(2, 64).unwrap_err(), exhausted(128, 64));
    drop(short);
    assert_eq!(region.pool(2, 100).unwrap().slot_bytes(), 128, "whole lines");
    let pool = region.pool(2, 2048).unwrap();
    let held = [pool.take().unwrap(), pool.take().unwrap()];
    let dry = pool.take().unwrap_err();
    assert_eq!(dry, Error::NoSlots { slots: 2 });
    drop(held);
    let large = region.alloc(CAPACITY - 4096 + 1, Align::LINE).unwrap_err();
    assert_eq!(large, exhausted(CAPACITY - 4096 + 1, CAPACITY));
    assert_eq!(region.alloc(usize::MAX, Align::LINE).unwrap_err(), exhausted(usize::MAX, CAPACITY));

    let few = Region::with(watched(CAPACITY), Requirements::default(), Limits { allocations: 2 })
        .unwrap();
    let blocks = (few.alloc(64, Align::LINE).unwrap(), few.pool(1, 64).unwrap());
    let many = few.alloc(64, Align::LINE).unwrap_err();
    assert_eq!(
        many,
        Error::TooMany { what: "allocations of a region, by its limit `allocations`", most: 2 }
    );
    assert_eq!(few.pool(1, 64).unwrap_err(), many);
    drop((blocks, few));

    // 256 parts of one slot and no more, wherever it is from.
    let split_until_refused = |first: CpuBuf| {
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
        assert_eq!((refused.error, parts.len() + 1), (Error::TooManyParts { limit: 256 }, 256));
        refused.error
    };
    provoked.extend([split_until_refused(pool.take().unwrap()), dry, large, many]);
    split_until_refused(region.alloc(64, Align::LINE).unwrap());
    assert_eq!((pool.taken(), region.free_bytes()), (0, CAPACITY - 4096), "every part came back");
    drop((pool, region));
    assert_eq!(freed.load(Ordering::Relaxed), 3);
    provoked
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
    let (board, by, run) =
        (SimBoard::new(1), Arc::new(AtomicU64::new(0)), Arc::new(AtomicUsize::new(4096)));
    let moving =
        Moving { inner: board.memory(8192).unwrap(), by: Arc::clone(&by), run: Arc::clone(&run) };
    let region = Region::new(moving).unwrap();
    let BaseAddr::Phys(base) = region.base() else { panic!("physical") };
    assert_eq!(region.verify(), Ok(()));
    by.store(64, Ordering::Relaxed);
    let moved = Error::NotContiguous {
        offset_bytes: 4096,
        expected: base.0 + 4096,
        found: base.0 + 4096 + 64,
    };
    assert_eq!(region.verify(), Err(moved));
    // A backend that answers runs of no bytes is refused, and not asked for ever.
    run.store(0, Ordering::Relaxed);
    assert_eq!(
        region.verify(),
        Err(Error::NotContiguous { offset_bytes: 0, expected: base.0, found: base.0 })
    );
}
