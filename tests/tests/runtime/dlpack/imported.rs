//! Tensors of frameworks: memory of ours is imported, memory of others is refused or copied.

use super::{data, delete, import, memory, spec, tensors::Theirs};
use contigo::{
    Align, Error, Port, Region,
    dlpack::{Contract, DataType, Foreign, Imported, TensorTable, abi::READ_ONLY},
    sim::SimBoard,
    types::{Refused, TensorRule},
};

#[test]
fn own_memory_is_imported_with_its_bus_address() {
    let board = SimBoard::new(1);
    let region = Region::new(memory(&board, 16 << 10)).unwrap();
    let buf = region.alloc(8192, Align::DLPACK).unwrap();
    let (first, at) = (buf.view::<u8>().unwrap().as_ptr().cast_mut(), buf.offset_bytes());
    let port = board.port();
    for offset in [0, 4, 100, 8192 - 96] {
        let mut theirs = Theirs::new(first.wrapping_add(offset), &[2, 3, 4]);
        let imported = import(&region, &mut theirs, &Contract::NUMPY).unwrap();
        assert_eq!(
            (imported.offset_bytes(), imported.len_bytes(), imported.is_read_only()),
            (at + offset, 96, false)
        );
        assert_eq!(
            (imported.shape().dims(), imported.dtype()),
            ([2, 3, 4].as_slice(), DataType::F32)
        );
        assert_eq!(
            imported.dev_addr(&port),
            region.dev_addr_of(&port, first.wrapping_add(offset), 96)
        );
        let other = Port { bus: contigo::Bus::Soc, ..port };
        assert!(matches!(imported.dev_addr(&other), Err(Error::WrongBus { .. })));
        drop(imported);
        assert_eq!(theirs.deleted(), 1);
    }
    // byte_offset counts, and so do strides, backwards too: every second row, from the last column
    // on.
    let mut theirs = Theirs::new(first, &[3, 2]).with_strides(&[8, -1]);
    theirs.managed().tensor.byte_offset = 8;
    theirs.managed().flags = READ_ONLY;
    let imported = import(&region, &mut theirs, &Contract::NUMPY).unwrap();
    assert_eq!(
        (imported.offset_bytes(), imported.len_bytes(), imported.is_read_only()),
        (at + 4, 4 * (2 * 8 + 2), true)
    );
    drop(imported);
    // An empty tensor has no bytes and no address.
    let imported = import(&region, &mut Theirs::new(std::ptr::null_mut(), &[0, 5]), &Contract::TVM)
        .map(|imported| imported.len_bytes());
    assert_eq!(imported.unwrap(), 0);
}

#[test]
fn foreign_memory_is_refused_or_copied() {
    let board = SimBoard::new(1);
    let region = Region::new(memory(&board, 16 << 10)).unwrap();
    let mut buf = region.alloc(4096, Align::DLPACK).unwrap();
    let first = buf.view_mut::<u8>().unwrap().as_mut_ptr();
    let end = first.wrapping_add(region.len_bytes() - buf.offset_bytes());
    let mut elsewhere: Vec<f32> = (0..16_u8).map(f32::from).collect();
    for start in [
        elsewhere.as_mut_ptr().cast(),
        end,
        end.wrapping_sub(60),
        first.wrapping_sub(buf.offset_bytes() + 4),
    ] {
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
    // SAFETY: as above, and no other code writes it.
    assert_eq!(unsafe { foreign.copy_to(&mut buf) }, Ok(64));
    assert_eq!(region.stats().bytes_copied - before, 64, "counted");
    assert_eq!(buf.view_at::<f32>(..64).unwrap(), elsewhere);
    let mut small = buf.slice(..60).unwrap();
    assert_eq!(
        // SAFETY: as above.
        unsafe { foreign.copy_to(&mut small) },
        Err(Error::OutOfRange { start: 0, end: 64, len_bytes: 60 })
    );
    drop(foreign);
    let theirs = Theirs::new(elsewhere.as_mut_ptr().cast(), &[4, 4]).with_strides(&[1, 4]);
    // SAFETY: as above.
    let transposed = unsafe { Foreign::from_versioned(theirs.give()) }.unwrap();
    // SAFETY: as above.
    let strided = unsafe { transposed.copy_to(&mut small) };
    assert_eq!(strided, Err(Error::Tensor { rule: TensorRule::Strides, found: 1, need: 4 }));
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
    let Err((error, mut lent)) = import(&region, &mut theirs, &Contract::TVM)
        .unwrap()
        .into_buf(lent)
        .map_err(Refused::into_parts)
    else {
        panic!("it is out")
    };
    assert_eq!((error, theirs.deleted()), (Error::TensorOut, 1));
    delete(tensor);
    // Another buffer's bytes are none of this one's.
    let mut elsewhere = TENSORS.lend(other, &spec(&[16])).unwrap();
    let there = elsewhere.tensor().unwrap();
    let mut theirs = Theirs::new(data(there).0, &[16]);
    let refused = import(&region, &mut theirs, &Contract::TVM).unwrap().into_buf(lent);
    let (Error::NotOurs { len_bytes: 64, .. }, returned) = refused.unwrap_err().into_parts() else {
        panic!("another error")
    };
    lent = returned;
    delete(there);
    let mut theirs = part(128);
    let buf = import(&region, &mut theirs, &Contract::TVM).unwrap().into_buf(lent).unwrap();
    assert_eq!(
        (buf.offset_bytes(), buf.len_bytes()),
        (at + 128, 64),
        "the part that was handed on"
    );
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
    let mut elsewhere = [0_u8; 64];
    drop(
        import(&region, &mut Theirs::new(elsewhere.as_mut_ptr(), &[16]), &Contract::ANY)
            .unwrap_err(),
    );
    assert_eq!(region.users(), 3);
    drop((buf, region));
    let imported = std::thread::spawn(move || imported).join().unwrap();
    assert_eq!((imported.dev_addr(&port), imported.offset_bytes()), (Ok(addr), at));
    drop(imported);
    assert_eq!(theirs.deleted(), 1);
}
