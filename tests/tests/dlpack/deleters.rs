//! Slots and deleters: a deleter that comes late, twice, or on another thread.

use super::{data, delete, memory, spec};
use contigo::{
    Align, CpuBuf, Error, Pool, Refused, Region,
    dlpack::{Lent, TensorTable, abi::DlManagedTensorVersioned},
    sim::{Sim, SimBoard},
};
use std::ptr::NonNull;

/// A page of `region` that is lent, and its tensor.
fn page<'r>(table: &'static TensorTable<1>, region: &'r Region<Sim>) -> (Lent<CpuBuf<'r>>, NonNull<DlManagedTensorVersioned>) {
    let mut lent = table.lend(region.carve(4096, Align::LINE).unwrap().into_buf(), &spec(&[4])).unwrap();
    let tensor = lent.tensor().unwrap();
    (lent, tensor)
}

#[test]
fn no_more_tensors_than_slots() {
    static TENSORS: TensorTable<3> = TensorTable::new();
    let board = SimBoard::new(1);
    let region = Region::new(memory(&board, 16 << 10)).unwrap();
    let pool = Pool::<4>::new(region.carve(4096, Align::LINE).unwrap(), 1024).unwrap();
    let mut out: Vec<_> = (0..3).map(|_| TENSORS.lend(pool.take().unwrap(), &spec(&[4])).unwrap()).collect();
    let Err(Refused { error, returned: buf }) = TENSORS.lend(pool.take().unwrap(), &spec(&[4])) else { panic!("a fourth") };
    assert_eq!((error, buf.len_bytes()), (Error::NoSlots { slots: 3 }, 1024));
    drop(out.remove(1));
    let again = TENSORS.lend(buf, &spec(&[4])).unwrap();
    drop((out, again));
    assert_eq!((pool.taken(), TENSORS.taken()), (0, 0), "dropped with no tensor out, nothing is lost");
}

#[test]
fn what_is_dropped_while_its_tensor_is_out_is_leaked_and_its_slot_comes_back() {
    static TENSORS: TensorTable<1> = TensorTable::new();
    let board = SimBoard::new(1);
    let region = Region::new(memory(&board, 16 << 10)).unwrap();
    let pool = Pool::<1>::new(region.carve(4096, Align::LINE).unwrap(), 4096).unwrap();
    let mut lent = TENSORS.lend(pool.take().unwrap(), &spec(&[4])).unwrap();
    let tensor = lent.tensor().unwrap();
    drop(lent);
    assert_eq!((pool.taken(), TENSORS.taken()), (1, 1), "the framework still has it");
    drop(pool);
    drop(region);
    // The memory is there, though everything that it came from is gone.
    // SAFETY: out.
    unsafe { data(tensor).0.write(7) };
    std::thread::scope(|scope| {
        let tensor = tensor.as_ptr().expose_provenance();
        scope.spawn(move || delete(NonNull::new(std::ptr::with_exposed_provenance_mut(tensor)).unwrap()));
    });
    assert_eq!((TENSORS.taken(), TENSORS.misuses()), (0, 0));
}

#[test]
fn a_deleter_called_twice_is_counted_and_changes_nothing() {
    static TENSORS: TensorTable<1> = TensorTable::new();
    let board = SimBoard::new(1);
    let region = Region::new(memory(&board, 16 << 10)).unwrap();
    let (mut lent, tensor) = page(&TENSORS, &region);
    delete(tensor);
    delete(tensor);
    assert_eq!((TENSORS.misuses(), lent.is_out()), (1, false));
    let legacy = lent.legacy_tensor().unwrap();
    // SAFETY: the framework's tensor; null is none.
    unsafe {
        let delete = legacy.as_ref().deleter.unwrap();
        delete(std::ptr::null_mut());
        assert!(lent.is_out());
        delete(legacy.as_ptr());
        delete(legacy.as_ptr());
    }
    drop(lent.take_back().unwrap());
    delete(tensor);
    assert_eq!((TENSORS.misuses(), TENSORS.taken()), (3, 0));
}

#[test]
fn a_deleter_of_an_earlier_loan_does_not_end_a_later_one() {
    static TENSORS: TensorTable<1> = TensorTable::new();
    let board = SimBoard::new(1);
    let region = Region::new(memory(&board, 16 << 10)).unwrap();
    let mut buf = region.carve(4096, Align::LINE).unwrap().into_buf();
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
        // SAFETY: the framework's tensor, once.
        unsafe { (legacy.as_ref().deleter.unwrap())(legacy.as_ptr()) };
        buf = lent.take_back().unwrap();
        assert_eq!((TENSORS.misuses(), TENSORS.taken()), (3 * misuses, 0));
    }
}

/// Under Miri: the deleter reads nothing that whoever lends the slot anew writes.
#[test]
fn a_deleter_called_twice_races_with_no_later_loan() {
    static TENSORS: TensorTable<1> = TensorTable::new();
    let board = SimBoard::new(1);
    let region = Region::new(memory(&board, 16 << 10)).unwrap();
    let (lent, tensor) = page(&TENSORS, &region);
    delete(tensor);
    let mut buf = lent.take_back().unwrap();
    let tensor = tensor.as_ptr().expose_provenance();
    std::thread::scope(|scope| {
        scope.spawn(move || delete(NonNull::new(std::ptr::with_exposed_provenance_mut(tensor)).unwrap()));
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
    let pool = Pool::<8>::new(region.carve(8192, Align::LINE).unwrap(), 1024).unwrap();
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
                    assert_eq!((buf.offset_bytes(), buf.view_at::<u32>(..4).unwrap()[0]), (at, thread as u32));
                }
            });
        }
        drop(sender);
    });
    assert_eq!((pool.taken(), TENSORS.taken(), TENSORS.misuses()), (0, 0, 0));
}

fn waited_for<B>(lent: Lent<B>) -> Lent<B> {
    while lent.is_out() {
        std::thread::yield_now();
    }
    lent
}
