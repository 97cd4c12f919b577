//! docs/frameworks.md.

use contigo::{
    Align, Region, Result,
    dlpack::{Contract, DataType, Shape, TensorSpec, TensorTable},
    sim::SimBoard,
};

#[rustfmt::skip]
pub(crate) fn run() -> Result<()> {
    let board = SimBoard::new(1);
    let region = Region::new(board.memory(64 * 1024)?)?;
    let input = region.alloc(4096, Align::DLPACK)?;
    static TENSORS: TensorTable<16> = TensorTable::new();
    let shape = Shape::new(&[1, 3, 16, 16])?;
    let spec = TensorSpec { contract: Contract::TVM, ..TensorSpec::new(DataType::F32, shape) };
    let mut lent = TENSORS.lend(input, &spec)?;     // refused here if TVM would refuse it
    let tensor = lent.tensor()?;                    // for the framework's `from_dlpack`
    // SAFETY: the tensor was lent to this function, which calls its deleter once.
    if let Some(delete) = unsafe { tensor.as_ref() }.deleter {
        // SAFETY: as above.
        unsafe { delete(tensor.as_ptr()) };
    }
    let input = lent.take_back()?;                  // `TensorOut` while the framework has it
    drop(input);
    Ok(())
}
