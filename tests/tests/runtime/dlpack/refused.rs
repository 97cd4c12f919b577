//! Specs that are refused, and a shape at an odd address. The seeds in `contigo_testkit` break
//! every rule of an import, and have the unusual tensors that are right.

use super::tensors::Theirs;
use super::{data, delete, memory, spec};
use contigo::dlpack::{Contract, DataType, Foreign, Shape, TensorSpec, TensorTable};
use contigo::sim::SimBoard;
use contigo::types::TensorRule;
use contigo::{Align, Error, Region};

const fn wrong(rule: TensorRule, found: u64, need: u64) -> Error {
    Error::Tensor { rule, found, need }
}

/// Miri looks at how they are read.
#[test]
fn shape_and_strides_lie_at_an_odd_address() {
    let mut bytes = [0_u8; 64];
    let first = bytes.as_mut_ptr();
    let mut entries: Vec<u8> = [0_i64, 2, 3, 1, 2].into_iter().flat_map(i64::to_ne_bytes).collect();
    let odd = 7 + entries.as_ptr().addr() % 2;
    entries.drain(..8 - odd);
    let shape = entries.as_mut_ptr().wrapping_add(odd).cast::<i64>();
    let mut theirs = Theirs::new(first, &[2, 3]);
    (theirs.managed().tensor.shape, theirs.managed().tensor.strides) =
        (shape, shape.wrapping_byte_add(16));
    // SAFETY: the test's own tensor, which outlives this.
    let seen = unsafe { Foreign::from_versioned(theirs.give()) }.unwrap().describe().unwrap();
    assert_eq!((seen.shape.dims(), seen.strides()), (&[2, 3][..], Some(&[1, 2][..])));
    assert_eq!((seen.extent(), theirs.deleted()), (Ok((first.addr() as u64, 24)), 1));
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
        let refused = TENSORS.lend(buf, &spec).unwrap_err();
        assert_eq!(refused.error, error);
        buf = refused.into_returned();
    }
    assert_eq!(Shape::new(&[1; 9]), Err(wrong(TensorRule::Dims, 9, 8)));
    // As NumPy counts: an empty dimension makes no stride 0.
    let empty = Shape::new(&[2, 0, 3]).unwrap();
    assert_eq!((empty.strides(), empty.elements()), (&[3, 3, 1][..], 0));
    assert_eq!(TENSORS.taken(), 0);
    // All of it, and none of it.
    for (dims, is_null) in [([1024], false), ([0], true)] {
        let mut lent =
            TENSORS.lend(buf, &TensorSpec { contract: Contract::DLPACK, ..spec(&dims) }).unwrap();
        let tensor = lent.tensor().unwrap();
        assert_eq!(data(tensor).0.is_null(), is_null);
        delete(tensor);
        buf = lent.take_back().unwrap();
    }
    // An empty tensor has no address, so that none is misaligned.
    let nothing = TensorSpec { contract: Contract::DLPACK, ..spec(&[0]) };
    let mut lent = TENSORS.lend(buf.slice(4..8).unwrap(), &nothing).unwrap();
    delete(lent.tensor().unwrap());
}
