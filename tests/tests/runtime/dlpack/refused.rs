//! Unusual tensors that are right, and specs that are refused. The seeds in `contigo_testkit` break
//! every rule of an import.

use super::{memory, spec, tensors::Theirs};
use contigo::{
    Align, Error, Region,
    dlpack::{Contract, DataType, Description, Foreign, Shape, TensorSpec, TensorTable},
    sim::SimBoard,
    types::{Refused, TensorRule},
};

const fn wrong(rule: TensorRule, found: u64, need: u64) -> Error {
    Error::Tensor { rule, found, need }
}

fn describe(theirs: &mut Theirs) -> Result<Description, Error> {
    // SAFETY: the test's own tensor, which outlives this.
    let described = unsafe { Foreign::from_versioned(theirs.give()) }.unwrap().describe();
    assert_eq!(theirs.deleted(), 1, "its deleter is called, for every fault");
    described
}

#[test]
fn what_is_unusual_and_right_is_taken() {
    let mut bytes = [0_u8; 64];
    let first = bytes.as_mut_ptr();
    // A scalar, with neither shape nor strides.
    let mut scalar = Theirs::new(first, &[]);
    (scalar.managed().tensor.shape, scalar.managed().tensor.strides) =
        (std::ptr::null_mut(), std::ptr::null_mut());
    assert_eq!(describe(&mut scalar).unwrap().extent(), Ok((first.addr() as u64, 4)));
    // No strides mean C's; a dimension of one element may have any.
    let mut no_strides = Theirs::new(first, &[2, 3]);
    no_strides.managed().tensor.strides = std::ptr::null_mut();
    assert_eq!(describe(&mut no_strides).unwrap().strides(), None);
    assert_eq!(
        describe(&mut Theirs::new(first, &[2, 1, 3]).with_strides(&[3, 77, 1])).unwrap().strides(),
        None
    );
    let strided = describe(&mut Theirs::new(first, &[2, 3]).with_strides(&[1, 2])).unwrap();
    assert_eq!(
        (strided.strides(), strided.extent()),
        (Some([1, 2].as_slice()), Ok((first.addr() as u64, 24)))
    );
    // Shape and strides at an odd address, which Miri looks at.
    let mut entries: Vec<u8> = [0_i64, 2, 3, 1, 2].into_iter().flat_map(i64::to_ne_bytes).collect();
    let odd = 7 + entries.as_ptr().addr() % 2;
    entries.drain(..8 - odd);
    let mut anywhere = Theirs::new(first, &[2, 3]);
    let shape = entries.as_mut_ptr().wrapping_add(odd).cast::<i64>();
    (anywhere.managed().tensor.shape, anywhere.managed().tensor.strides) =
        (shape, shape.wrapping_byte_add(16));
    assert_eq!(describe(&mut anywhere), Ok(strided));
    // Nothing, with no data and any strides.
    let empty =
        describe(&mut Theirs::new(std::ptr::null_mut(), &[2, 0]).with_strides(&[9, 9])).unwrap();
    assert_eq!((empty.addr, empty.strides(), empty.extent()), (0, None, Ok((0, 0))));
    // The form before DLPack 1.0, with a deleter and without.
    let mut theirs = Theirs::new(first, &[2, 3]);
    let mut legacy = theirs.legacy();
    // SAFETY: the test's own.
    let foreign = unsafe { Foreign::from_legacy(&raw mut legacy) }.unwrap();
    assert_eq!(
        foreign.describe().map(|what| (what.read_only, what.addr)),
        Ok((false, first.addr() as u64))
    );
    drop(foreign);
    assert_eq!(theirs.deleted(), 1);
    legacy.deleter = None;
    // SAFETY: as above.
    drop(unsafe { Foreign::from_legacy(&raw mut legacy) }.unwrap());
    assert_eq!(theirs.deleted(), 1);
}

#[test]
fn small_buffers_and_wrong_specs_are_refused() {
    static TENSORS: TensorTable<1> = TensorTable::new();
    let board = SimBoard::new(1);
    let region = Region::new(memory(&board, 16 << 10)).unwrap();
    let mut buf = region.alloc(4096, Align::LINE).unwrap();
    let type_of = |bits, lanes| DataType { code: 2, bits, lanes };
    for (spec, error) in [
        (spec(&[1025]), wrong(TensorRule::Size, 4100, 4096)),
        (
            spec(&[i64::try_from(usize::MAX / 4).unwrap()]),
            wrong(TensorRule::Size, u64::MAX, isize::MAX as u64),
        ),
        (TensorSpec { dtype: type_of(32, 2), ..spec(&[1]) }, wrong(TensorRule::Lanes, 2, 1)),
        (TensorSpec { dtype: type_of(12, 1), ..spec(&[1]) }, wrong(TensorRule::Type, 12, 8)),
    ] {
        let Err((found, returned)) = TENSORS.lend(buf, &spec).map_err(Refused::into_parts) else {
            panic!("{spec:?}")
        };
        assert_eq!(found, error);
        buf = returned;
    }
    assert_eq!(Shape::new(&[1; 9]), Err(wrong(TensorRule::Dims, 9, 8)));
    // As NumPy counts: an empty dimension makes no stride 0.
    assert_eq!(
        Shape::new(&[2, 0, 3]).map(|shape| (shape.strides().to_vec(), shape.elements())),
        Ok((vec![3, 3, 1], 0))
    );
    assert_eq!(TENSORS.taken(), 0);
    // All of it, and none of it.
    for (dims, data) in [([1024], false), ([0], true)] {
        let mut lent =
            TENSORS.lend(buf, &TensorSpec { contract: Contract::DLPACK, ..spec(&dims) }).unwrap();
        let tensor = lent.tensor().unwrap();
        assert_eq!(super::data(tensor).0.is_null(), data);
        super::delete(tensor);
        buf = lent.take_back().unwrap();
    }
    // An empty tensor has no address, so that none is misaligned.
    let nothing = TensorSpec { contract: Contract::DLPACK, ..spec(&[0]) };
    let mut lent = TENSORS.lend(buf.slice(4..8).unwrap(), &nothing).unwrap();
    super::delete(lent.tensor().unwrap());
}

/// With a pointer of 32 bits, `byte_offset` leads where no pointer does: that is no empty tensor.
#[cfg(target_pointer_width = "32")]
#[test]
fn what_no_pointer_reaches_is_not_copied() {
    let board = SimBoard::new(1);
    let region = Region::new(memory(&board, 16 << 10)).unwrap();
    let mut buf = region.alloc(4096, Align::LINE).unwrap();
    let mut bytes = [0_u8; 64];
    let mut theirs = Theirs::new(bytes.as_mut_ptr(), &[4]);
    theirs.managed().tensor.byte_offset = 1 << 33;
    // SAFETY: the test's own; it is refused before an element is read.
    let copied = unsafe { Foreign::from_versioned(theirs.give()).unwrap().copy_to(&mut buf) };
    let addr = bytes.as_ptr().addr() as u64 + (1 << 33);
    assert_eq!(
        (copied, theirs.deleted()),
        (Err(wrong(TensorRule::Address, addr, usize::MAX as u64)), 1)
    );
    assert_eq!(region.stats().bytes_copied, 0);
}
