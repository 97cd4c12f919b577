//! docs/frameworks.md.

use contigo::{
    Error, Queue, Region, Result,
    dlpack::{ByteOffset, DataType, Shape, TensorSpec, TensorTable},
    types::TensorRule,
};
use contigo_gemm8::{Gemm, Output, opencl::Gemm8Module};
use contigo_gpu::opencl::{Log, OpenClGpu, OpenClMemory};
use core::time::Duration;

static TENSORS: TensorTable<4> = TensorTable::new();

#[rustfmt::skip]
pub(crate) fn run() -> Result<()> {
    let gpu = OpenClGpu::open(0)?;
    let region = Region::new(OpenClMemory::allocate(gpu, 1 << 20)?)?;   // one cl_mem
    let module = Gemm8Module::build(gpu, &mut Log::new())?;
    let mut queue = Queue::new(module.kernel()?, 1)?;
    let [a, b, bias, c] = [64, 1024, 64, 64].map(|len| region.alloc(len, gpu.align()));
    let operands = [a?.to_device(..64), b?.to_device(..1024), bias?.to_device(..64), c?.from_device(..64)];
    let gemm = Gemm { m: 1, n: 16, k: 64, output: Output::Int32 { relu: false } };
    queue.submit(operands, &gemm.words())?;
    let [_, _, _, c] = queue.wait_device(Duration::from_secs(10))?.ok_or(Error::Busy)?.buffers;

    let spec = TensorSpec::new(DataType::I32, Shape::new(&[16])?);
    let refused = TENSORS.lend(c, &spec).unwrap_err();          // ByteOffset::Folded: a handle is no address
    assert!(matches!(refused.error, Error::Tensor { rule: TensorRule::Handle, found: 1.., need: 0 }));

    let kept = TensorSpec { offset: ByteOffset::Kept, ..spec };
    let mut lent = TENSORS.lend(refused.into_returned(), &kept)?;      // data: the cl_mem; byte_offset: the origin
    let tensor = lent.tensor()?;                                // for clCreateSubBuffer of the consumer
    // SAFETY: it is valid until its deleter is called.
    let shown = unsafe { &tensor.as_ref().tensor };
    assert_eq!((shown.device.device_type, shown.byte_offset % gpu.align().bytes() as u64), (4, 0));
    // SAFETY: as its consumer does, once.
    unsafe { tensor.as_ref().deleter.unwrap()(tensor.as_ptr()) };
    let _c = lent.take_back()?;
    Ok(())
}
