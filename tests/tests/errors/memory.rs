//! Blocks that a region refuses, and what regions, buffers, pools and arenas refuse.

use super::Watched;
use contigo::{
    Align, Arena, BaseAddr, Error, LocalPool, PhysAddr, Pool, Port, Region, Requirements, SyncScope,
    sim::{SimBoard, SimSpec},
};
use std::sync::atomic::{AtomicUsize, Ordering};

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
fn carves_and_addresses_that_a_region_refuses() {
    carves_and_addresses();
}

#[test]
fn what_pools_and_arenas_refuse() {
    pools_and_arenas();
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
    let mut buf = region.carve(128, Align::LINE).unwrap().into_buf();
    provoked.extend(
        [
            (buf.view_at::<u8>(100..129).unwrap_err(), Error::OutOfRange { start: 100, end: 129, len_bytes: 128 }),
            (buf.view_at_mut::<u8>(129..).unwrap_err(), Error::OutOfRange { start: 129, end: 128, len_bytes: 128 }),
            (buf.copy_from_slice(&[0; 129]).unwrap_err(), Error::OutOfRange { start: 0, end: 129, len_bytes: 128 }),
            (buf.view::<[u8; 3]>().unwrap_err(), Error::View { len_bytes: 128, element_bytes: 3, align_bytes: 1 }),
            (buf.view_at::<u32>(2..6).unwrap_err(), Error::View { len_bytes: 4, element_bytes: 4, align_bytes: 4 }),
            (buf.view_at_mut::<u64>(..12).unwrap_err(), Error::View { len_bytes: 12, element_bytes: 8, align_bytes: 8 }),
        ]
        .map(|(error, expected)| {
            assert_eq!(error, expected);
            error
        }),
    );
    // The refused buffer comes back as it was.
    let refused = buf.slice(64..129).unwrap_err();
    assert_eq!(refused.error, Error::OutOfRange { start: 64, end: 129, len_bytes: 128 });
    let refused = refused.returned.split_at(129).unwrap_err();
    assert_eq!(refused.error, Error::OutOfRange { start: 0, end: 129, len_bytes: 128 });
    assert_eq!(refused.returned.len_bytes(), 128);
    provoked
}

/// A region's error for such a block; the block comes back, and is freed once.
fn refused(spec: SimSpec, needs: Requirements) -> Error {
    let (board, freed) = (SimBoard::new(1), AtomicUsize::new(0));
    let refused = Region::with(Watched { inner: board.memory_with(spec).unwrap(), freed: &freed }, needs).unwrap_err();
    assert_eq!(freed.load(Ordering::Relaxed), 0, "it was handed back");
    drop(refused.returned);
    assert_eq!(freed.load(Ordering::Relaxed), 1);
    refused.error
}

pub(super) fn blocks() -> Vec<Error> {
    let plain = Requirements::default();
    let spec = SimSpec { len_bytes: 8192, base: Some(BaseAddr::Phys(PhysAddr(BASE))), ..SimSpec::default() };
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
        (spec, Requirements { align: Align::PAGE, ..plain }, Error::Misaligned { addr: BASE, align_bytes: 4096 }),
        (spec, Requirements { len_bytes: 8193, ..plain }, Error::BlockSize { len_bytes: 8192, need_bytes: 8193, line_bytes: 64 }),
        (odd, plain, Error::BlockSize { len_bytes: 96, need_bytes: 1, line_bytes: 64 }),
        (spec, Requirements { addr_bits: 29, ..plain }, Error::TooHigh { last: BASE + 8191, addr_bits: 29 }),
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
    assert!(matches!(apart, Error::Misaligned { addr, align_bytes: 0x4000_0000 } if addr != 1 << 30), "{apart}");
    provoked.push(apart);
    let board = SimBoard::new(1);
    let none = board.memory(0).unwrap_err();
    assert_eq!(none, Error::BlockSize { len_bytes: 0, need_bytes: 1, line_bytes: 64 });
    let small = board.memory_over(Box::leak(Box::new([0; 64]))).unwrap_err();
    assert!(matches!(small, Error::BlockSize { len_bytes: 64, line_bytes: 64, .. }), "{small}");
    let kept: Vec<_> = std::iter::from_fn(|| board.memory(64).ok()).collect();
    let full = board.memory(64).unwrap_err();
    assert_eq!((kept.len(), full), (32, Error::TooMany { what: "blocks on one simulated board", most: 32 }));
    drop(kept);
    assert!(board.memory(64).is_ok());
    provoked.extend([none, small, full]);
    provoked
}

pub(super) fn carves_and_addresses() -> Vec<Error> {
    let (board, freed) = (SimBoard::new(1), AtomicUsize::new(0));
    let region = Region::new(Watched { inner: board.memory(8192).unwrap(), freed: &freed }).unwrap();
    let past = region.carve(8193, Align::LINE).unwrap_err();
    assert_eq!(past, Error::Exhausted { need_bytes: 8193, capacity_bytes: 8192 });
    let nothing = region.carve(0, Align::LINE).unwrap_err();
    assert_eq!(nothing, Error::Argument { name: "the length of a carve", value: 0, min: 1, max: 8192, multiple_of: 1 });
    assert_eq!(region.free_bytes(), 8192, "a refused carve takes nothing");
    let buf = region.carve(8192, Align::LINE).unwrap().into_buf();
    let first = buf.view::<u8>().unwrap().as_ptr();
    let apart = region.carve(64, Align::new(1 << 30).unwrap()).unwrap_err();
    assert_eq!(apart, Error::Misaligned { addr: first.addr() as u64, align_bytes: 1 << 30 });
    assert_eq!(region.carve(1, Align::LINE).unwrap_err(), Error::Exhausted { need_bytes: 1, capacity_bytes: 8192 });

    let (port, elsewhere) = (board.port(), 0_u8);
    let theirs = region.dev_addr_of(&port, &raw const elsewhere, 1).unwrap_err();
    assert_eq!(theirs, Error::NotOurs { addr: (&raw const elsewhere).addr() as u64, len_bytes: 1 });
    assert_eq!(region.dev_addr_of(&port, first, 8193).unwrap_err(), Error::NotOurs { addr: first.addr() as u64, len_bytes: 8193 });
    let addr = region.dev_addr_of(&port, first, 8192).unwrap();
    for outside in [addr.0 - 1, addr.0 + 8192] {
        assert_eq!(region.host_ptr_of(&port, contigo::DevAddr(outside)).unwrap_err(), Error::NotOurs { addr: outside, len_bytes: 1 });
    }
    let narrow = Port { addr_bits: 28, ..port };
    let above = region.dev_addr_of(&narrow, first, 64).unwrap_err();
    assert_eq!(above, Error::Unreachable { port: "sim-hp0", addr: addr.0, len_bytes: 64, first: 0, last: 0x0FFF_FFFF });
    let other = region.dev_addr_of(&SimBoard::new(1).port(), first, 64).unwrap_err();
    assert_eq!(other, Error::WrongBus { port: "sim-hp0", memory: board.bus() });

    // Parts of a carve are bounded too, so that a count can never wrap. A forgotten part stays
    // counted.
    let (mut rest, mut parts) = (buf, 1_u32);
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
    assert_eq!((error, parts), (Error::TooManyParts { limit: 1 << 20 }, 1 << 20));
    drop(many);
    drop(region);
    assert_eq!(freed.load(Ordering::Relaxed), 0, "a part was forgotten: leaked");
    vec![past, nothing, apart, theirs, above, other, error]
}

pub(super) fn pools_and_arenas() -> Vec<Error> {
    let (board, freed) = (SimBoard::new(1), AtomicUsize::new(0));
    let region = Region::new(Watched { inner: board.memory(64 * 1024).unwrap(), freed: &freed }).unwrap();
    let mut provoked = Vec::new();
    let mut carve = region.carve(4096, Align::LINE).unwrap();
    for (slot_bytes, error) in [
        (100, Error::SlotSize { slot_bytes: 100, line_bytes: 64 }),
        (0, Error::SlotSize { slot_bytes: 0, line_bytes: 64 }),
        (4096, Error::Exhausted { need_bytes: 8192, capacity_bytes: 4096 }),
        (1 << (usize::BITS - 1), Error::Exhausted { need_bytes: usize::MAX, capacity_bytes: 4096 }),
    ] {
        let refused = Pool::<2>::new(carve, slot_bytes).unwrap_err();
        assert_eq!(refused.error, error);
        let refused = LocalPool::<2>::new(refused.returned, slot_bytes).unwrap_err();
        assert_eq!(refused.error, error);
        carve = refused.returned;
        provoked.push(error);
    }
    for slots in [0, 3, usize::MAX] {
        let refused = Pool::<2>::with_slots(carve, 64, slots).unwrap_err();
        assert_eq!(refused.error, Error::Argument { name: "slots", value: slots as u64, min: 1, max: 2, multiple_of: 1 });
        let again = LocalPool::<2>::with_slots(refused.returned, 64, slots).unwrap_err();
        assert_eq!(again.error, refused.error);
        carve = again.returned;
    }
    // One line less than the slots need: the last one would begin in the carve and end behind it.
    let mut short = region.carve(2 * 64 - 64, Align::LINE).unwrap();
    for slots in [Pool::<2>::new, |carve, slot_bytes| Pool::<2>::with_slots(carve, slot_bytes, 2)] {
        let refused = slots(short, 64).unwrap_err();
        assert_eq!(refused.error, Error::Exhausted { need_bytes: 128, capacity_bytes: 64 });
        short = refused.returned;
    }
    for slots in [LocalPool::<2>::new, |carve, slot_bytes| LocalPool::<2>::with_slots(carve, slot_bytes, 2)] {
        let refused = slots(short, 64).unwrap_err();
        assert_eq!(refused.error, Error::Exhausted { need_bytes: 128, capacity_bytes: 64 });
        short = refused.returned;
    }
    drop(short);
    let pool = Pool::<2>::new(carve, 2048).unwrap();
    let local = LocalPool::<2>::new(region.carve(4096, Align::LINE).unwrap(), 2048).unwrap();
    let arena = Arena::<2>::new(region.carve(4096, Align::LINE).unwrap()).unwrap();
    let held = ([pool.take().unwrap(), pool.take().unwrap()], [local.take().unwrap(), local.take().unwrap()]);
    let dry = pool.take().unwrap_err();
    assert_eq!((dry, local.take().unwrap_err()), (Error::NoSlots { slots: 2 }, Error::NoSlots { slots: 2 }));
    let large = arena.take(4097).unwrap_err();
    assert_eq!(large, Error::Exhausted { need_bytes: 4097, capacity_bytes: 4096 });
    assert!(matches!(arena.take(usize::MAX).unwrap_err(), Error::Exhausted { need_bytes: usize::MAX, .. }));
    let blocks = [arena.take(64).unwrap(), arena.take(64).unwrap()];
    assert_eq!(arena.take(64).unwrap_err(), Error::TooMany { what: "blocks out of this arena", most: 2 });
    drop((held, blocks));

    // 256 parts of one slot and no more, wherever it is from.
    macro_rules! split_until_refused {
        ($first:expr) => {{
            let (mut rest, mut parts) = ($first, Vec::new());
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
        }};
    }
    provoked.extend([split_until_refused!(pool.take().unwrap()), dry, large]);
    split_until_refused!(local.take().unwrap());
    split_until_refused!(arena.take(64).unwrap());
    assert_eq!((pool.taken(), local.taken(), arena.taken()), (0, 0, 0), "every part came back");
    drop((pool, local, arena));
    drop(region);
    assert_eq!(freed.load(Ordering::Relaxed), 1);
    provoked
}
