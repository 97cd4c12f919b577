//! Tensors that are refused; the buffer comes back. `tests/dlpack.rs` has every rule.

use contigo::{
    Align, Error, Region,
    dlpack::{Contract, DataType, Shape, TensorSpec, TensorTable},
    sim::SimBoard,
    types::{Refused, TensorRule},
};

#[test]
fn tensors_that_are_none_or_out() {
    refused();
}

pub(super) fn refused() -> Vec<Error> {
    // A table of its own: tests that run at the same time call this.
    let tensors: &'static TensorTable<1> = Box::leak(Box::new(TensorTable::new()));
    let board = SimBoard::new(1);
    let region = Region::new(board.memory(16 << 10).unwrap()).unwrap();
    let buf = region.alloc(4096, Align::LINE).unwrap();
    let spec = TensorSpec {
        contract: Contract::TVM,
        ..TensorSpec::new(DataType::F32, Shape::new(&[1025]).unwrap())
    };
    let Err((size, buf)) = tensors.lend(buf, &spec).map_err(Refused::into_parts) else {
        panic!("it does not fit")
    };
    assert_eq!(size, Error::Tensor { rule: TensorRule::Size, found: 4100, need: 4096 });
    let mut lent =
        tensors.lend(buf, &TensorSpec { shape: Shape::new(&[1024]).unwrap(), ..spec }).unwrap();
    let tensor = lent.tensor().unwrap();
    let Err((out, lent)) = lent.take_back().map_err(Refused::into_parts) else {
        panic!("it is out")
    };
    assert_eq!(out, Error::TensorOut);
    // SAFETY: this test is the consumer.
    unsafe { (tensor.as_ref().deleter.unwrap())(tensor.as_ptr()) };
    assert_eq!(lent.take_back().unwrap().len_bytes(), 4096);
    vec![size, out]
}
