//! Page "Frameworks".

use contigo::{
    Align, Region, Result,
    dlpack::{Contract, DataType, DlManagedTensorVersioned, Shape, TensorSpec, TensorTable},
    sim::SimBoard,
};
use core::ptr::NonNull;

/// A framework that is done at once.
fn from_dlpack(tensor: NonNull<DlManagedTensorVersioned>) {
    // SAFETY: the tensor was lent to this function, which calls its deleter once.
    let delete = unsafe { tensor.as_ref() }.deleter;
    if let Some(delete) = delete {
        // SAFETY: as above.
        unsafe { delete(tensor.as_ptr()) };
    }
}

pub fn run() -> Result<()> {
    let board = SimBoard::new(1);
    let region = Region::new(board.memory(64 * 1024)?)?;
    let input = region.carve(4096, Align::DLPACK)?.into_buf();
    #[rustfmt::skip]
    {
    static TENSORS: TensorTable<16> = TensorTable::new();
    let shape = Shape::new(&[1, 3, 16, 16])?;
    let spec = TensorSpec { contract: Contract::TVM, ..TensorSpec::new(DataType::F32, shape) };
    let mut lent = TENSORS.lend(input, &spec)?;     // refused here if TVM would refuse it
    from_dlpack(lent.tensor()?);                    // the framework's; it calls the deleter
    let input = lent.take_back()?;                  // `TensorOut` while the framework has it
    drop(input);
    }
    Ok(())
}
