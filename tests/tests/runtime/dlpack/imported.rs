//! Tensors of frameworks: memory of ours is imported, memory of others is refused or copied.

use super::tensors::Theirs;
use super::{data, delete, import, memory, spec};
use contigo::dlpack::{Contract, Foreign, Imported, TensorTable};
use contigo::sim::SimBoard;
use contigo::{Align, Error, Region};

#[test]
fn copied_bytes_are_counted() {
    let board = SimBoard::new(1);
    let region = Region::new(memory(&board, 16 << 10)).unwrap();
    let mut buf = region.alloc(4096, Align::DLPACK).unwrap();
    let mut elsewhere: Vec<f32> = (0..16_u8).map(f32::from).collect();
    let theirs = Theirs::new(elsewhere.as_mut_ptr().cast(), &[4, 4]);
    // SAFETY: the test's own, which no other code writes.
    unsafe {
        let foreign = Foreign::from_versioned(theirs.give()).unwrap();
        assert_eq!(foreign.copy_to(&mut buf), Ok(64));
    }
    assert_eq!(region.stats().bytes_copied, 64);
    assert_eq!(buf.view_at::<f32>(..64).unwrap(), elsewhere);
}

/// A framework that was lent a buffer hands a part of it on, and lets go of its own tensor with
/// that part.
#[test]
fn framework_returns_a_part_of_a_loan() {
    static TENSORS: TensorTable<2> = TensorTable::new();
    let board = SimBoard::new(1);
    let region = Region::new(memory(&board, 16 << 10)).unwrap();
    let [buf, other] = [(); 2].map(|()| region.alloc(4096, Align::DLPACK).unwrap());
    let at = buf.offset_bytes();
    let mut lent = TENSORS.lend(buf, &spec(&[1024])).unwrap();
    let tensor = lent.tensor().unwrap();
    let part = |offset: usize| Theirs::new(data(tensor).0.wrapping_add(offset), &[16]);
    // While the framework has another tensor of it, the framework owns it.
    let mut theirs = part(128);
    let imported = import(&region, &mut theirs, &Contract::TVM).unwrap();
    let (error, lent) = imported.into_buf(lent).unwrap_err().into_parts();
    assert_eq!((error, theirs.deleted()), (Error::TensorOut, 1));
    delete(tensor);
    // Another buffer's bytes are none of this one's.
    let mut elsewhere = TENSORS.lend(other, &spec(&[16])).unwrap();
    let there = elsewhere.tensor().unwrap();
    let mut theirs = Theirs::new(data(there).0, &[16]);
    let imported = import(&region, &mut theirs, &Contract::TVM).unwrap();
    let (error, lent) = imported.into_buf(lent).unwrap_err().into_parts();
    assert!(matches!(error, Error::NotOurs { len_bytes: 64, .. }), "{error}");
    delete(there);
    let mut theirs = part(128);
    let buf = import(&region, &mut theirs, &Contract::TVM).unwrap().into_buf(lent).unwrap();
    assert_eq!((buf.offset_bytes(), buf.len_bytes()), (at + 128, 64));
    assert_eq!(buf.whole().len_bytes(), 4096);
    drop(elsewhere.take_back().unwrap());
}

/// An import is a user of its region as a handle is, until it is dropped or given up.
#[test]
fn an_import_keeps_its_region() {
    let board = SimBoard::new(1);
    let region = Region::new(memory(&board, 16 << 10)).unwrap();
    let mut buf = region.alloc(64, Align::DLPACK).unwrap();
    let (first, at, port) = (buf.as_mut_ptr(), buf.offset_bytes(), board.port());
    let addr = region.dev_addr_of(&port, first, 64).unwrap();
    let mut theirs = Theirs::new(first, &[16]);
    let imported = import(&region, &mut theirs, &Contract::TVM).unwrap();
    assert_eq!((region.users(), theirs.deleted()), (3, 0));
    let foreign = imported.into_foreign();
    assert_eq!((region.users(), theirs.deleted()), (2, 0), "the framework's again");
    let imported = Imported::new(&region, foreign, &Contract::TVM).unwrap();
    // What is refused is no user.
    let mut elsewhere = Theirs::new(std::ptr::dangling_mut(), &[16]);
    drop(import(&region, &mut elsewhere, &Contract::ANY).unwrap_err());
    assert_eq!(region.users(), 3);
    drop((buf, region));
    let imported = std::thread::spawn(move || imported).join().unwrap();
    assert_eq!((imported.dev_addr(&port), imported.offset_bytes()), (Ok(addr), at));
    drop(imported);
    assert_eq!(theirs.deleted(), 1);
}
