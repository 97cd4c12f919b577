//! Tensors in DMA memory: who has the buffer when, what a framework is told, and what is refused with which numbers.
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_sign_loss,
    clippy::cast_possible_truncation,
    reason = "a test that panics has failed, which is its purpose; a framework is raw pointers"
)]

#[path = "dlpack/fuzzed.rs"]
mod fuzzed;
#[path = "dlpack/refused.rs"]
mod refused;
#[path = "dlpack/tensors.rs"]
mod tensors;

use contigo::{
    Align, CpuBuf, Engine, Error, Pool, Port, Refused, Region, TensorRule, Timeout,
    dlpack::{
        ByteOffset, Contract, DataType, Foreign, Imported, Lent, Place, Shape, TensorSpec, TensorTable,
        abi::{DlManagedTensorVersioned, IS_COPIED, READ_ONLY},
    },
    sim::{Sim, SimBoard},
};
use contigo_gemm8::{Gemm, Gemm8, Output, SimGemm8};
use std::ptr::NonNull;
use tensors::Theirs;

/// Memory that needs no kernel, so that Miri can run this; whole pages, four times, and room to
/// align.
fn memory(board: &SimBoard, len_bytes: usize) -> Sim<'_> {
    #[derive(Clone)]
    #[repr(align(4096))]
    struct Page(#[allow(dead_code, reason = "it is its size that counts")] [u8; 4096]);
    let pages = Box::leak(vec![Page([0; 4096]); 4 * len_bytes / 4096 + 1].into_boxed_slice());
    // SAFETY: bytes, initialised, leaked, and nobody else's.
    board.memory_over(unsafe { std::slice::from_raw_parts_mut(pages.as_mut_ptr().cast(), 4 * len_bytes + 64) }).unwrap()
}

fn spec(dims: &[i64]) -> TensorSpec {
    TensorSpec::new(DataType::F32, Shape::new(dims).unwrap())
}

/// What the framework does when it is done.
fn delete(tensor: NonNull<DlManagedTensorVersioned>) {
    // SAFETY: the framework's tensor, once; or once too often, and then it reads no other field of
    // it.
    unsafe { (&raw const (*tensor.as_ptr()).deleter).read().unwrap()(tensor.as_ptr()) }
}

fn data(tensor: NonNull<DlManagedTensorVersioned>) -> (*mut u8, u64) {
    // SAFETY: the tensor is out.
    let tensor = unsafe { tensor.as_ref() }.tensor;
    (tensor.data.cast(), tensor.byte_offset)
}

fn refused<T>(result: Result<T, Refused<impl Sized>>) -> Error {
    result.map(drop).map_err(|refused| refused.error).unwrap_err()
}

#[test]
fn a_tensor_is_the_buffer_and_comes_back() {
    static TENSORS: TensorTable<2> = TensorTable::new();
    let board = SimBoard::new(1);
    let region = Region::new(memory(&board, 16 << 10)).unwrap();
    let mut buf = region.carve(4096, Align::DLPACK).unwrap().into_buf();
    buf.view_mut::<f32>().unwrap().fill(1.5);
    let own = buf.view::<u8>().unwrap().as_ptr();
    let mut lent = TENSORS.lend(buf, &spec(&[2, 3, 4])).unwrap();
    assert_eq!((TENSORS.taken(), lent.is_out()), (1, false));
    let tensor = lent.tensor().unwrap();
    assert!(lent.is_out());
    // SAFETY: out, and this test is the framework.
    let seen = unsafe { tensor.as_ref() };
    assert_eq!((seen.version.major, seen.version.minor, seen.flags), (1, 1, 0));
    let what = seen.tensor;
    assert_eq!((what.data.cast_const().cast::<u8>(), what.byte_offset, what.ndim), (own, 0, 3));
    assert_eq!((what.device.device_type, what.device.device_id, what.dtype), (1, 0, DataType { code: 2, bits: 32, lanes: 1 }));
    // SAFETY: three entries each, and 24 floats.
    unsafe {
        assert_eq!(std::slice::from_raw_parts(what.shape, 3), [2, 3, 4]);
        assert_eq!(std::slice::from_raw_parts(what.strides, 3), [12, 4, 1]);
        let elements = std::slice::from_raw_parts_mut(what.data.cast::<f32>(), 24);
        assert_eq!(elements, [1.5; 24]);
        elements.fill(2.5);
    }
    // Only one consumer has it, in one of the two forms.
    assert_eq!((lent.tensor().unwrap_err(), lent.legacy_tensor().unwrap_err()), (Error::TensorOut, Error::TensorOut));
    let Err(Refused { error, returned: lent }) = lent.take_back() else { panic!("it is out") };
    assert_eq!(error, Error::TensorOut);
    delete(tensor);
    let buf = lent.take_back().unwrap();
    assert_eq!((buf.len_bytes(), TENSORS.taken(), TENSORS.misuses()), (4096, 0, 0));
    assert_eq!(buf.view_at::<f32>(..96).unwrap(), [2.5; 24], "what the framework wrote");
    assert_eq!(buf.view_at::<f32>(96..100).unwrap(), [1.5]);
}

#[test]
fn a_frame_loop_lends_the_same_buffer_anew() {
    static TENSORS: TensorTable<1> = TensorTable::new();
    let board = SimBoard::new(1);
    let region = Region::new(memory(&board, 16 << 10)).unwrap();
    let pool = Pool::<2>::new(region.carve(8192, Align::LINE).unwrap(), 4096).unwrap();
    let mut buf = pool.take().unwrap();
    for round in 0..20_u8 {
        buf.view_mut::<u8>().unwrap().fill(round);
        let mut lent = TENSORS.lend(buf, &spec(&[16])).unwrap();
        for _ in 0..2 {
            let tensor = lent.tensor().unwrap();
            // SAFETY: out.
            assert_eq!(unsafe { data(tensor).0.read() }, round);
            delete(tensor);
        }
        buf = lent.take_back().unwrap();
    }
    drop(buf);
    assert_eq!((pool.taken(), TENSORS.taken()), (0, 0));
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
    let mut lent = TENSORS.lend(region.carve(4096, Align::LINE).unwrap().into_buf(), &spec(&[4])).unwrap();
    let tensor = lent.tensor().unwrap();
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
    let mut lent = TENSORS.lend(region.carve(4096, Align::LINE).unwrap().into_buf(), &spec(&[4])).unwrap();
    let tensor = lent.tensor().unwrap();
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

#[test]
fn flags_are_true_and_a_form_without_them_is_refused() {
    static TENSORS: TensorTable<1> = TensorTable::new();
    let board = SimBoard::new(1);
    let region = Region::new(memory(&board, 16 << 10)).unwrap();
    let buf = region.carve(4096, Align::LINE).unwrap().into_buf();
    let mut lent = TENSORS.lend(buf, &TensorSpec { read_only: true, ..spec(&[4]) }).unwrap();
    assert_eq!(lent.legacy_tensor().unwrap_err(), Error::Tensor { rule: TensorRule::Flags, found: READ_ONLY, need: 0 });
    let tensor = lent.tensor().unwrap();
    // SAFETY: out.
    assert_eq!(unsafe { tensor.as_ref() }.flags & (READ_ONLY | IS_COPIED), READ_ONLY);
    delete(tensor);
}

/// What each alignment and offset comes to, for contracts of every framework.
#[test]
fn offsets_are_folded_or_kept_and_contracts_look_at_the_sum() {
    static TENSORS: TensorTable<1> = TensorTable::new();
    let board = SimBoard::new(1);
    let region = Region::new(memory(&board, 16 << 10)).unwrap();
    let mut buf = region.carve(8192, Align::DLPACK).unwrap().into_buf();
    let block = buf.view::<u8>().unwrap().as_ptr().addr() - buf.offset_bytes();
    let first = block + buf.offset_bytes();
    for at in [0, 4, 16, 32, 64, 128, 256, 4096] {
        buf = buf.slice(at..at + 64).unwrap();
        for (contract, align) in [(Contract::TVM, 64), (Contract::DLPACK, 256), (Contract::ONNX_RUNTIME, 64), (Contract::NUMPY, 1)] {
            for offset in [ByteOffset::Folded, ByteOffset::Kept] {
                let spec = TensorSpec { contract, offset, ..spec(&[16]) };
                buf = match TENSORS.lend(buf, &spec) {
                    Ok(mut lent) => {
                        assert_eq!((first + at) % align, 0, "{contract:?} at {at}");
                        let tensor = lent.tensor().unwrap();
                        let (data, byte_offset) = data(tensor);
                        let expected = if offset == ByteOffset::Folded { (first + at, 0) } else { (block, (first + at - block) as u64) };
                        assert_eq!((data.addr(), byte_offset), expected);
                        delete(tensor);
                        lent.take_back().unwrap()
                    }
                    Err(Refused { error, returned }) => {
                        let found = (first + at) as u64;
                        assert_eq!(error, Error::Tensor { rule: TensorRule::Alignment, found, need: align as u64 });
                        assert_ne!(found % align as u64, 0);
                        returned
                    }
                };
            }
        }
        buf = buf.whole();
    }
}

/// The device's view of a result, which a driver of the framework's would read, and then the CPU's.
#[test]
fn a_devices_buffer_is_lent_as_its_bus_address() {
    static TENSORS: TensorTable<2> = TensorTable::new();
    let board = SimBoard::new(1);
    let region = Region::new(memory(&board, 64 << 10)).unwrap();
    let device = SimGemm8::new(&board, board.port());
    let mut engine = Engine::new(Gemm8::open_simulated(device.window().unwrap()).unwrap()).unwrap();
    let buf = |len| region.carve(len, Align::DLPACK).unwrap().into_buf();
    let (mut a, mut b, bias, c) = (buf(256), buf(256), buf(256), buf(256));
    a.view_at_mut::<i8>(..16).unwrap().fill(1);
    b.view_at_mut::<i8>(..256).unwrap().fill(2);
    let (c_at, line) = (c.offset_bytes(), region.line().bytes());
    let args = Gemm { m: 1, n: 16, k: 16, output: Output::Int32 { relu: false } };
    let job = engine.start([a.to_device(..16), b.to_device(..), bias.to_device(..64), c.from_device(..64)], &args).unwrap();
    let [_, _, _, c] = job.wait_device(Timeout::ms(20)).unwrap().buffers;
    let bus = board.port().dev_addr(region.base(), region.len_bytes()).unwrap().0 + c_at as u64;
    let spec = TensorSpec::new(DataType::I32, Shape::new(&[16]).unwrap());
    let Err(Refused { error, returned: c }) = TENSORS.lend(c, &TensorSpec { contract: Contract::TVM, ..spec }) else { panic!("TVM") };
    assert_eq!(error, Error::Tensor { rule: TensorRule::DeviceType, found: 12, need: 1 }, "TVM wants the CPU's memory");
    let mut c = c;
    for (offset, data_at, byte_offset) in [(ByteOffset::Folded, bus, 0), (ByteOffset::Kept, bus - c_at as u64, c_at as u64)] {
        let contract = Contract { place: Some(Place::BusAddress), align_bytes: line, contiguous: true };
        let mut lent = TENSORS.lend(c, &TensorSpec { contract, offset, ..spec }).unwrap();
        let tensor = lent.tensor().unwrap();
        // SAFETY: out.
        let what = unsafe { tensor.as_ref() }.tensor;
        assert_eq!((what.device.device_type, what.data.addr() as u64, what.byte_offset), (12, data_at, byte_offset));
        delete(tensor);
        c = lent.take_back().unwrap();
    }
    let mut lent = TENSORS.lend(c.into_cpu().unwrap(), &TensorSpec { read_only: true, ..spec }).unwrap();
    let tensor = lent.tensor().unwrap();
    // SAFETY: out, and 16 numbers.
    assert_eq!(unsafe { std::slice::from_raw_parts(data(tensor).0.cast::<i32>(), 16) }, [32; 16]);
    delete(tensor);
}

// ---- And back.

fn import<'r>(region: &'r Region<Sim<'_>>, theirs: &mut Theirs, contract: &Contract) -> Result<Imported<'r>, Refused<Foreign>> {
    // SAFETY: the test's own tensor, which outlives it.
    Imported::new(region, unsafe { Foreign::from_versioned(theirs.give()) }.unwrap(), contract)
}

#[test]
fn memory_of_ours_is_imported_wherever_it_points_and_knows_its_bus_address() {
    let board = SimBoard::new(1);
    let region = Region::new(memory(&board, 16 << 10)).unwrap();
    let buf = region.carve(8192, Align::DLPACK).unwrap().into_buf();
    let (first, at) = (buf.view::<u8>().unwrap().as_ptr().cast_mut(), buf.offset_bytes());
    let port = board.port();
    for offset in [0, 4, 100, 8192 - 96] {
        let mut theirs = Theirs::new(first.wrapping_add(offset), &[2, 3, 4]);
        let imported = import(&region, &mut theirs, &Contract::NUMPY).unwrap();
        assert_eq!((imported.offset_bytes(), imported.len_bytes(), imported.is_read_only()), (at + offset, 96, false));
        assert_eq!((imported.shape().dims(), imported.dtype()), ([2, 3, 4].as_slice(), DataType::F32));
        assert_eq!(imported.dev_addr(&port), region.dev_addr_of(&port, first.wrapping_add(offset), 96));
        let other = Port { bus: contigo::Bus::Soc, ..port };
        assert!(matches!(imported.dev_addr(&other), Err(Error::WrongBus { .. })));
        drop(imported);
        assert_eq!(theirs.deleted(), 1);
    }
    // byte_offset counts, and so do strides, backwards too: every second row, from the last column on.
    let mut theirs = Theirs::new(first, &[3, 2]).with_strides(&[8, -1]);
    theirs.managed().tensor.byte_offset = 8;
    theirs.managed().flags = READ_ONLY;
    let imported = import(&region, &mut theirs, &Contract::NUMPY).unwrap();
    assert_eq!((imported.offset_bytes(), imported.len_bytes(), imported.is_read_only()), (at + 4, 4 * (2 * 8 + 2), true));
    drop(imported);
    // An empty tensor has no bytes and no address.
    let imported = import(&region, &mut Theirs::new(std::ptr::null_mut(), &[0, 5]), &Contract::TVM).map(|imported| imported.len_bytes());
    assert_eq!(imported.unwrap(), 0);
}

#[test]
fn memory_of_others_is_refused_or_copied_by_a_call_that_says_so() {
    let board = SimBoard::new(1);
    let region = Region::new(memory(&board, 16 << 10)).unwrap();
    let mut buf = region.carve(4096, Align::DLPACK).unwrap().into_buf();
    let first = buf.view_mut::<u8>().unwrap().as_mut_ptr();
    let end = first.wrapping_add(region.len_bytes() - buf.offset_bytes());
    let mut elsewhere: Vec<f32> = (0..16_u8).map(f32::from).collect();
    for start in [elsewhere.as_mut_ptr().cast(), end, end.wrapping_sub(60), first.wrapping_sub(buf.offset_bytes() + 4)] {
        let mut theirs = Theirs::new(start, &[16]);
        let refused = import(&region, &mut theirs, &Contract::ANY).unwrap_err();
        assert_eq!(refused.error, Error::NotOurs { addr: start.addr() as u64, len_bytes: 64 });
        assert_eq!(theirs.deleted(), 0, "it came back");
        drop(refused);
        assert_eq!(theirs.deleted(), 1);
    }
    let theirs = Theirs::new(elsewhere.as_mut_ptr().cast(), &[4, 4]);
    // SAFETY: the test's own.
    let foreign = unsafe { Foreign::from_versioned(theirs.give()) }.unwrap();
    let before = region.stats().bytes_copied;
    // SAFETY: as above, and nobody writes it.
    assert_eq!(unsafe { foreign.copy_to(&mut buf) }, Ok(64));
    assert_eq!(region.stats().bytes_copied - before, 64, "counted");
    assert_eq!(buf.view_at::<f32>(..64).unwrap(), elsewhere);
    let mut small = buf.slice(..60).unwrap();
    // SAFETY: as above.
    assert_eq!(unsafe { foreign.copy_to(&mut small) }, Err(Error::OutOfRange { start: 0, end: 64, len_bytes: 60 }));
    drop(foreign);
    let theirs = Theirs::new(elsewhere.as_mut_ptr().cast(), &[4, 4]).with_strides(&[1, 4]);
    // SAFETY: as above.
    let transposed = unsafe { Foreign::from_versioned(theirs.give()) }.unwrap();
    // SAFETY: as above.
    let strided = unsafe { transposed.copy_to(&mut small) };
    assert_eq!(strided, Err(Error::Tensor { rule: TensorRule::Strides, found: 1, need: 4 }));
}

/// A framework that was lent a buffer hands a part of it on, and lets go of its own tensor with that part.
#[test]
fn what_was_lent_comes_back_as_the_part_that_a_framework_hands_on() {
    static TENSORS: TensorTable<2> = TensorTable::new();
    let board = SimBoard::new(1);
    let region = Region::new(memory(&board, 16 << 10)).unwrap();
    let whole = |region: &Region<Sim<'_>>| -> CpuBuf<'static> {
        // SAFETY: the region outlives the buffer in this test.
        unsafe { std::mem::transmute::<CpuBuf<'_>, CpuBuf<'static>>(region.carve(4096, Align::DLPACK).unwrap().into_buf()) }
    };
    let (buf, other) = (whole(&region), whole(&region));
    let at = buf.offset_bytes();
    let mut lent = TENSORS.lend(buf, &spec(&[1024])).unwrap();
    let tensor = lent.tensor().unwrap();
    let part = |offset: usize| Theirs::new(data(tensor).0.wrapping_add(offset), &[16]);
    // While the framework has another tensor of it, it stays the framework's.
    let mut theirs = part(128);
    let Err(Refused { error, returned: mut lent }) = import(&region, &mut theirs, &Contract::TVM).unwrap().into_buf(lent) else {
        panic!("it is out")
    };
    assert_eq!((error, theirs.deleted()), (Error::TensorOut, 1));
    delete(tensor);
    // Another buffer's bytes are none of this one's.
    let mut elsewhere = TENSORS.lend(other, &spec(&[16])).unwrap();
    let there = elsewhere.tensor().unwrap();
    let mut theirs = Theirs::new(data(there).0, &[16]);
    let refused = import(&region, &mut theirs, &Contract::TVM).unwrap().into_buf(lent);
    let Err(Refused { error: Error::NotOurs { len_bytes: 64, .. }, returned }) = refused else { panic!("{refused:?}") };
    lent = returned;
    delete(there);
    let mut theirs = part(128);
    let buf = import(&region, &mut theirs, &Contract::TVM).unwrap().into_buf(lent).unwrap();
    assert_eq!((buf.offset_bytes(), buf.len_bytes()), (at + 128, 64), "the part that was handed on");
    assert_eq!(buf.whole().len_bytes(), 4096);
    drop(elsewhere.take_back().unwrap());
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
                    // One in 64 goes to the other thread; the rest are deleted here, as most consumers do.
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
