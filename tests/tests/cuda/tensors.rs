//! The two views of pinned memory as DLPack tensors: `kDLCUDAHost` for the CPU's, `kDLCUDA` for the
//! GPU's.

use super::{block, clean, driver};
use contigo::cuda::{Gpu, Log};
use contigo::dlpack::{Contract, DataType, Foreign, Imported, Shape, TensorSpec, TensorTable, abi};
use contigo::{Align, Queue, Region};
use contigo_gemm8::cuda::Gemm8Module;
use contigo_gemm8::{Gemm, Output};
use fake_cuda::{Config, Device};
use std::time::Duration;

static TENSORS: TensorTable<4> = TensorTable::new();

#[test]
fn each_view_has_its_tag_its_pointer_and_its_gpu() {
    let (controls, cuda) = driver(&Config::default().with_devices(2, Device::default()));
    let gpu = Gpu::primary(&cuda, 1).unwrap();
    let region = Region::new(block(&gpu).unwrap()).unwrap();
    let mut buf = region.alloc(4096, Align::DLPACK).unwrap();
    let (host, addr) =
        (buf.as_mut_ptr(), region.dev_addr_of(&gpu.port(), buf.as_mut_ptr(), 4096).unwrap());
    let spec = TensorSpec::new(DataType::F32, Shape::new(&[32, 32]).unwrap());
    let mut lent = TENSORS.lend(buf, &spec).unwrap();
    let tensor = lent.tensor().unwrap();
    // SAFETY: the consumer's, until the deleter below.
    let shown = unsafe { tensor.as_ref() };
    assert_eq!(
        (shown.tensor.device.device_type, shown.tensor.device.device_id),
        (abi::device::CUDA_HOST, 0)
    );
    assert_eq!((shown.tensor.data.cast::<u8>(), shown.tensor.byte_offset), (host, 0));

    // It comes back as what it was: ours, with the GPU's address.
    // SAFETY: the tensor's only consumer from here on.
    let foreign = unsafe { Foreign::from_versioned(tensor.as_ptr()) }.unwrap();
    let imported = Imported::new(&region, foreign, &Contract::ANY).unwrap();
    assert_eq!(imported.dev_addr(&gpu.port()).unwrap(), addr);
    drop(imported.into_buf(lent).unwrap());
    drop(region);

    // The GPU's view, of a buffer that the GPU owns: the bytes that a kernel has written.
    let module = Gemm8Module::load(&gpu, &mut Log::new()).unwrap();
    let mut queue = Queue::new(module.kernel().unwrap(), 1).unwrap();
    let region = Region::new(block(&gpu).unwrap()).unwrap();
    let args = Gemm { m: 16, n: 16, k: 16, output: Output::Int32 { relu: false } };
    let [a, b, bias, mut c] =
        [256, 256, 256, 4096].map(|len_bytes| region.alloc(len_bytes, Align::DLPACK).unwrap());
    let addr = region.dev_addr_of(&gpu.port(), c.as_mut_ptr(), 4096).unwrap();
    queue
        .submit(
            [a.to_device(..), b.to_device(..), bias.to_device(..64), c.from_device(..1024)],
            &args.words(),
        )
        .unwrap();
    let [_, _, _, c] = queue.wait_device(Duration::from_millis(100)).unwrap().unwrap().buffers;
    let spec = TensorSpec::new(DataType::I32, Shape::new(&[16, 16]).unwrap());
    let mut lent = TENSORS.lend(c, &spec).unwrap();
    let tensor = lent.tensor().unwrap();
    // SAFETY: as above.
    let shown = unsafe { tensor.as_ref() };
    assert_eq!(
        (shown.tensor.device.device_type, shown.tensor.device.device_id),
        (abi::device::CUDA, 1)
    );
    assert_eq!(
        (shown.tensor.data.addr() as u64, shown.tensor.byte_offset),
        (addr.0, 0),
        "a number, which the CPU does not follow"
    );
    // SAFETY: as above.
    drop(unsafe { Foreign::from_versioned(tensor.as_ptr()) }.unwrap());
    drop(lent.take_back().unwrap().into_cpu().unwrap());
    drop(queue);
    drop(module);
    drop(region);
    drop(gpu);
    clean(&controls);
}
