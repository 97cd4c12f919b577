//! Slots and deleters: a deleter that comes late, twice, or on another thread.

use super::{data, delete, memory, spec};
use contigo::dlpack::abi::DlManagedTensorVersioned;
use contigo::dlpack::{Lendable, Lent, TensorTable};
use contigo::sim::{Sim, SimBoard};
use contigo::types::Refused;
use contigo::{Align, Backend, CpuBuf, Direction, Error, Region};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A page of `region` that is lent, and its tensor.
fn page(
    table: &'static TensorTable<1>,
    region: &Region,
) -> (Lent<CpuBuf>, NonNull<DlManagedTensorVersioned>) {
    let mut lent = table.lend(region.alloc(4096, Align::LINE).unwrap(), &spec(&[4])).unwrap();
    let tensor = lent.tensor().unwrap();
    (lent, tensor)
}

#[test]
fn no_more_tensors_than_slots() {
    static TENSORS: TensorTable<3> = TensorTable::new();
    let board = SimBoard::new(1);
    let region = Region::new(memory(&board, 16 << 10)).unwrap();
    let pool = region.pool(4, 1024).unwrap();
    let mut out: Vec<_> =
        (0..3).map(|_| TENSORS.lend(pool.take().unwrap(), &spec(&[4])).unwrap()).collect();
    let refused = TENSORS.lend(pool.take().unwrap(), &spec(&[4])).unwrap_err();
    let (error, buf) = refused.into_parts();
    assert_eq!((error, buf.len_bytes()), (Error::NoSlots { slots: 3 }, 1024));
    drop(out.remove(1));
    let again = TENSORS.lend(buf, &spec(&[4])).unwrap();
    drop((out, again));
    // Dropped with no tensor out, nothing is lost.
    assert_eq!((pool.taken(), TENSORS.taken()), (0, 0));
}

/// Memory that records its drop.
struct Told(Sim, Arc<AtomicBool>);

// SAFETY: every method is the backend's inside.
unsafe impl Backend for Told {
    contigo::forward!(|this| this.0 => name, mapping, segment, sync_for_device, sync_for_cpu,
        settled, held_by, wrong_accesses);
}

impl Drop for Told {
    fn drop(&mut self) {
        self.1.store(true, Ordering::Relaxed);
    }
}

fn delete_elsewhere(tensor: NonNull<DlManagedTensorVersioned>) {
    let tensor = tensor.as_ptr().expose_provenance();
    std::thread::spawn(move || {
        delete(NonNull::new(std::ptr::with_exposed_provenance_mut(tensor)).unwrap())
    })
    .join()
    .unwrap();
}

#[test]
fn deleter_returns_what_was_dropped() {
    static TENSORS: TensorTable<1> = TensorTable::new();
    let board = SimBoard::new(1);
    let region = Region::new(memory(&board, 16 << 10)).unwrap();
    let pool = region.pool(1, 4096).unwrap();
    for round in 1..4 {
        let mut lent = TENSORS.lend(pool.take().unwrap(), &spec(&[4])).unwrap();
        let tensor = lent.tensor().unwrap();
        drop(lent);
        assert_eq!((pool.taken(), TENSORS.taken()), (1, 1), "the framework still has it");
        assert_eq!(pool.take().unwrap_err(), Error::NoSlots { slots: 1 });
        // SAFETY: out.
        unsafe { data(tensor).0.write(round) };
        delete_elsewhere(tensor);
        let misuses = usize::from(round) - 1;
        assert_eq!((pool.taken(), TENSORS.taken(), TENSORS.misuses()), (0, 0, misuses));
        let again = pool.take().unwrap();
        assert_eq!(again.view::<u8>().unwrap()[0], round, "what the framework wrote");
        drop(again);
        // Once too often: its next owner keeps it.
        let next = pool.take().unwrap();
        delete(tensor);
        assert_eq!((pool.taken(), TENSORS.misuses()), (1, round.into()));
        drop(next);
    }
    // A part of a buffer: the deleter's drop is the last of two.
    let (left, right) = pool.take().unwrap().split_at(64).unwrap();
    let mut lent = TENSORS.lend(right, &spec(&[4])).unwrap();
    let tensor = lent.tensor().unwrap();
    drop((lent, left));
    assert_eq!(pool.taken(), 1);
    delete(tensor);
    assert_eq!((pool.taken(), region.users()), (0, 2));
}

/// The framework is the last that has anything of the region: it reads and writes, and its deleter
/// unmaps the memory.
#[test]
fn tensor_alone_keeps_its_region() {
    static TENSORS: TensorTable<2> = TensorTable::new();
    let board = SimBoard::new(1);
    fn out<B: Lendable>(lent: Result<Lent<B>, Refused<B>>) -> NonNull<DlManagedTensorVersioned> {
        lent.unwrap().tensor().unwrap()
    }
    let lend: [fn(&Region, &SimBoard) -> NonNull<DlManagedTensorVersioned>; 3] = [
        |region, _| out(TENSORS.lend(region.alloc(4096, Align::LINE).unwrap(), &spec(&[4]))),
        |region, _| out(TENSORS.lend(region.pool(2, 64).unwrap().take().unwrap(), &spec(&[4]))),
        |region, board| {
            let buf = region.alloc(4096, Align::LINE).unwrap();
            // SAFETY: no device receives the address.
            let buf = unsafe { buf.hand_over(&board.port(), 32, .., Direction::FromDevice) };
            out(TENSORS.lend(buf.unwrap(), &spec(&[4])))
        },
    ];
    for (index, lend) in lend.into_iter().enumerate() {
        let ended = Arc::new(AtomicBool::new(false));
        let region = Region::new(Told(memory(&board, 16 << 10), Arc::clone(&ended))).unwrap();
        let tensor = lend(&region, &board);
        drop(region);
        assert!(!ended.load(Ordering::Relaxed), "{index}: the tensor is out");
        if index < 2 {
            // SAFETY: out, and the CPU's.
            unsafe { data(tensor).0.write(7) };
        }
        delete_elsewhere(tensor);
        assert!(ended.load(Ordering::Relaxed), "{index}");
        assert_eq!((TENSORS.taken(), TENSORS.misuses()), (0, 0));
    }
    // Forgotten, it is leaked, with its slot: no handle is left that could take the buffer back.
    let ended = Arc::new(AtomicBool::new(false));
    let region = Region::new(Told(memory(&board, 16 << 10), Arc::clone(&ended))).unwrap();
    let mut lent = TENSORS.lend(region.alloc(64, Align::LINE).unwrap(), &spec(&[4])).unwrap();
    let tensor = lent.tensor().unwrap();
    std::mem::forget(lent);
    drop(region);
    delete(tensor);
    assert_eq!((ended.load(Ordering::Relaxed), TENSORS.taken()), (false, 1));
}

/// A holder that goes and a deleter that comes, at the same time: one of them gives the buffer
/// back.
#[test]
fn leaving_holder_beside_deleter_loses_nothing() {
    static TENSORS: TensorTable<1> = TensorTable::new();
    let board = SimBoard::new(1);
    let region = Region::new(memory(&board, 16 << 10)).unwrap();
    for _ in 0..if cfg!(miri) { 10 } else { 2_000 } {
        let (lent, tensor) = page(&TENSORS, &region);
        let tensor = tensor.as_ptr().expose_provenance();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                delete(NonNull::new(std::ptr::with_exposed_provenance_mut(tensor)).unwrap())
            });
            drop(lent);
        });
        assert_eq!((region.users(), TENSORS.taken(), TENSORS.misuses()), (1, 0, 0));
    }
    assert_eq!(region.free_bytes(), region.len_bytes());
}

#[test]
fn old_loans_deleter_spares_a_later_loan() {
    static TENSORS: TensorTable<1> = TensorTable::new();
    let board = SimBoard::new(1);
    let region = Region::new(memory(&board, 16 << 10)).unwrap();
    let mut buf = region.alloc(4096, Align::LINE).unwrap();
    for misuses in 1..10 {
        let mut lent = TENSORS.lend(buf, &spec(&[4])).unwrap();
        let earlier = lent.tensor().unwrap();
        delete(earlier);
        let later = [(); 2].map(|()| {
            // Once given out anew, once lent anew.
            let later = lent.tensor().unwrap();
            delete(earlier);
            assert!(lent.is_out(), "{misuses}");
            delete(later);
            later
        });
        assert!(later.iter().all(|later| *later != earlier));
        buf = lent.take_back().unwrap();
        let mut lent = TENSORS.lend(buf, &spec(&[8])).unwrap();
        let legacy = lent.legacy_tensor().unwrap();
        delete(earlier);
        assert!(lent.is_out(), "{misuses}");
        // SAFETY: the framework's tensor, once; null is none.
        unsafe {
            (legacy.as_ref().deleter.unwrap())(std::ptr::null_mut());
            assert!(lent.is_out());
            (legacy.as_ref().deleter.unwrap())(legacy.as_ptr());
        }
        buf = lent.take_back().unwrap();
        assert_eq!((TENSORS.misuses(), TENSORS.taken()), (3 * misuses, 0));
    }
}

/// Under Miri: the deleter reads nothing that a later loan of the slot writes.
#[test]
fn second_deleter_races_no_later_loan() {
    static TENSORS: TensorTable<1> = TensorTable::new();
    let board = SimBoard::new(1);
    let region = Region::new(memory(&board, 16 << 10)).unwrap();
    let (lent, tensor) = page(&TENSORS, &region);
    delete(tensor);
    let mut buf = lent.take_back().unwrap();
    let tensor = tensor.as_ptr().expose_provenance();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            delete(NonNull::new(std::ptr::with_exposed_provenance_mut(tensor)).unwrap())
        });
        for _ in 0..9 {
            let mut lent = TENSORS.lend(buf, &spec(&[8])).unwrap();
            delete(lent.tensor().unwrap());
            buf = lent.take_back().unwrap();
        }
    });
    assert_eq!((TENSORS.misuses(), TENSORS.taken()), (1, 0));
}

/// Four threads, each with frames of its own, whose deleters are called on another one.
#[test]
fn nothing_is_lost_and_nothing_is_freed_twice() {
    const ROUNDS: usize = if cfg!(miri) { 20 } else { 250_000 };
    const THREADS: usize = 4;
    static TENSORS: TensorTable<16> = TensorTable::new();
    let board = SimBoard::new(1);
    let region = Region::new(memory(&board, 16 << 10)).unwrap();
    let pool = region.pool(8, 1024).unwrap();
    let (sender, receiver) = std::sync::mpsc::sync_channel::<usize>(8);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for tensor in receiver {
                delete(NonNull::new(std::ptr::with_exposed_provenance_mut(tensor)).unwrap());
            }
        });
        let pool = &pool;
        for thread in 0..THREADS {
            let sender = sender.clone();
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let buf = pool.take().unwrap();
                    let at = buf.offset_bytes();
                    let mut lent = TENSORS.lend(buf, &spec(&[4, 4])).unwrap();
                    let tensor = lent.tensor().unwrap();
                    // SAFETY: out, and this thread is the framework.
                    unsafe { data(tensor).0.cast::<u32>().write(thread as u32) };
                    // One in 64 goes to the other thread; the rest are deleted here, as most
                    // consumers do.
                    if round % 64 == 0 {
                        sender.send(tensor.as_ptr().expose_provenance()).unwrap();
                        lent = waited_for(lent);
                    } else {
                        delete(tensor);
                    }
                    let buf = lent.take_back().unwrap();
                    assert_eq!(
                        (buf.offset_bytes(), buf.view_at::<u32>(..4).unwrap()[0]),
                        (at, thread as u32)
                    );
                }
            });
        }
        drop(sender);
    });
    assert_eq!((pool.taken(), TENSORS.taken(), TENSORS.misuses()), (0, 0, 0));
}

fn waited_for<B: Lendable>(lent: Lent<B>) -> Lent<B> {
    while lent.is_out() {
        std::thread::yield_now();
    }
    lent
}
