//! Every tensor that must be refused, with the numbers; and a few hundred thousand random ones.

use super::{memory, spec, tensors::Theirs};
use contigo::{
    Align, Error, Region,
    dlpack::{Contract, DataType, Description, Foreign, Imported, Shape, TensorSpec, TensorTable},
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
fn a_tensor_is_refused_by_the_rule_that_it_breaks() {
    type Wrong = fn(&mut Theirs);
    let cases: [(Wrong, Error); 13] = [
        (|t| t.managed().version.major = 2, wrong(TensorRule::MajorVersion, 2, 1)),
        (|t| t.managed().tensor.ndim = 9, wrong(TensorRule::Dims, 9, 8)),
        (|t| t.managed().tensor.ndim = -1, wrong(TensorRule::Dims, u64::MAX, 8)),
        (|t| t.managed().tensor.shape = std::ptr::null_mut(), wrong(TensorRule::NullShape, 0, 2)),
        (|t| t.managed().tensor.data = std::ptr::null_mut(), wrong(TensorRule::NullData, 0, 12)),
        (|t| t.managed().tensor.dtype.lanes = 4, wrong(TensorRule::Lanes, 4, 1)),
        (|t| t.managed().tensor.dtype.lanes = 0, wrong(TensorRule::Lanes, 0, 1)),
        (|t| t.managed().tensor.dtype.bits = 4, wrong(TensorRule::Type, 4, 8)),
        (|t| t.managed().tensor.dtype.bits = 0, wrong(TensorRule::Type, 0, 8)),
        (|t| t.managed().tensor.device.device_type = 4, wrong(TensorRule::DeviceType, 4, 1)),
        (
            |t| t.managed().tensor.device.device_type = -1,
            wrong(TensorRule::DeviceType, u64::MAX, 1),
        ),
        (|t| t.managed().tensor.device.device_type = 0, wrong(TensorRule::DeviceType, 0, 1)),
        (
            |t| t.managed().tensor.byte_offset = u64::MAX,
            wrong(TensorRule::Size, u64::MAX, isize::MAX as u64),
        ),
    ];
    let mut bytes = [0_u8; 64];
    for (index, (break_it, error)) in cases.into_iter().enumerate() {
        let mut theirs = Theirs::new(bytes.as_mut_ptr(), &[3, 4]);
        break_it(&mut theirs);
        assert_eq!(describe(&mut theirs), Err(error), "case {index}");
    }
    for (dims, error) in [
        ([3, -4], wrong(TensorRule::Dimension, -4_i64 as u64, i64::MAX as u64)),
        ([i64::MIN, 1], wrong(TensorRule::Dimension, 1 << 63, i64::MAX as u64)),
        ([1 << 62, 2], wrong(TensorRule::Size, u64::MAX, isize::MAX as u64)),
        ([1 << 61, 1], wrong(TensorRule::Size, u64::MAX, isize::MAX as u64)),
    ] {
        assert_eq!(describe(&mut Theirs::new(bytes.as_mut_ptr(), &dims)), Err(error), "{dims:?}");
    }
    // SAFETY: null is no tensor.
    let null = unsafe {
        [Foreign::from_versioned(std::ptr::null_mut()), Foreign::from_legacy(std::ptr::null_mut())]
    };
    assert_eq!(null.map(|null| null.map(drop)), [Err(wrong(TensorRule::NullTensor, 0, 1)); 2]);
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
fn a_buffer_that_is_too_small_or_a_spec_that_is_none_is_refused() {
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

#[test]
fn a_contract_is_checked_at_import_too() {
    let board = SimBoard::new(1);
    let region = Region::new(memory(&board, 16 << 10)).unwrap();
    let buf = region.alloc(4096, Align::DLPACK).unwrap();
    let first = buf.view::<u8>().unwrap().as_ptr().cast_mut();
    let found = |theirs: &mut Theirs, contract: &Contract| {
        super::refused(super::import(&region, theirs, contract))
    };
    let at = first.addr() as u64 + 32;
    assert_eq!(
        found(&mut Theirs::new(first.wrapping_add(32), &[4]), &Contract::TVM),
        wrong(TensorRule::Alignment, at, 64)
    );
    assert_eq!(
        found(&mut Theirs::new(first, &[4, 4]).with_strides(&[1, 4]), &Contract::TVM),
        wrong(TensorRule::Strides, 1, 4)
    );
    let mut pinned = Theirs::new(first, &[4]);
    pinned.managed().tensor.device.device_type = 3;
    assert_eq!(found(&mut pinned, &Contract::TVM), wrong(TensorRule::DeviceType, 3, 1));
    // A device's address is no pointer of the CPU's, even where the number is one.
    let mut bus = Theirs::new(first, &[4]);
    bus.managed().tensor.device.device_type = 12;
    assert_eq!(found(&mut bus, &Contract::ANY), wrong(TensorRule::DeviceType, 12, 1));
    // Strides that leave the region, or all addresses.
    for strides in [[4096, 1], [-1, 1], [i64::MAX, i64::MAX], [i64::MIN, 1]] {
        let error = found(
            &mut Theirs::new(first.wrapping_sub(buf.offset_bytes()), &[4, 4])
                .with_strides(&strides),
            &Contract::NUMPY,
        );
        assert!(
            matches!(error, Error::NotOurs { .. } | Error::Tensor { rule: TensorRule::Size, .. }),
            "{strides:?}: {error:?}"
        );
    }
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

/// Numbers from everywhere: what is taken lies in the region, what is not has an error, and nothing
/// panics.
#[test]
fn random_tensors_are_refused_or_inside() {
    const EDGES: [i64; 12] = [0, 1, 2, 3, 7, 64, 4096, -1, i64::MAX, i64::MIN, 1 << 31, 1 << 62];
    const TENSORS: usize = if cfg!(miri) { 200 } else { 300_000 };
    let board = SimBoard::new(1);
    let region = Region::new(memory(&board, 16 << 10)).unwrap();
    let buf = region.alloc(8192, Align::DLPACK).unwrap();
    let first = buf.view::<u8>().unwrap().as_ptr().cast_mut();
    let mut rng = fastrand::Rng::with_seed(7);
    let number = |rng: &mut fastrand::Rng| match rng.u8(..4) {
        0 => EDGES[rng.usize(..EDGES.len())],
        1 => rng.i64(..),
        _ => rng.i64(0..40),
    };
    let mut taken = 0;
    for _ in 0..TENSORS {
        let dims: Vec<i64> = (0..rng.usize(..5)).map(|_| number(&mut rng)).collect();
        let strides: Vec<i64> = dims.iter().map(|_| number(&mut rng)).collect();
        let mut theirs = Theirs::new(first.wrapping_offset(rng.isize(-32_768..32_768)), &dims);
        if rng.bool() {
            theirs = theirs.with_strides(&strides);
        }
        let tensor = &mut theirs.managed().tensor;
        match rng.u8(..16) {
            0 => tensor.ndim = rng.i32(..=4).min(dims.len() as i32),
            1 => tensor.dtype.bits = rng.u8(..),
            2 => tensor.dtype.lanes = rng.u16(..),
            3 => tensor.device.device_type = rng.i32(-2..20),
            4 => tensor.byte_offset = rng.u64(..),
            5 => tensor.byte_offset = rng.u64(..20_000),
            6 => tensor.data = std::ptr::null_mut(),
            _ => {}
        }
        let contract =
            [Contract::ANY, Contract::NUMPY, Contract::TVM, Contract::DLPACK][rng.usize(..4)];
        // SAFETY: the test's own.
        if let Ok(imported) = Imported::new(
            &region,
            unsafe { Foreign::from_versioned(theirs.give()) }.unwrap(),
            &contract,
        ) {
            taken += 1;
            assert!(imported.offset_bytes() + imported.len_bytes() <= region.len_bytes());
            let _ = imported.dev_addr(&board.port());
        }
        assert_eq!(theirs.deleted(), 1);
    }
    assert!(taken > TENSORS / 50, "{taken} of {TENSORS}: too few to try anything");
}
