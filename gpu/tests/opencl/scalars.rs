//! Scalars of a kernel, as argument words.

use super::{LIMIT, device, module, region};
use contigo::job::Parameter::{Operand, Words};
use contigo::job::{Launch, Signature};
use contigo::{OperandSpec, Queue};
use contigo_gpu::opencl::OpenClKernel;

#[test]
fn scalars_of_one_and_two_words_arrive() {
    let Some(gpu) = device() else { return };
    let (module, region) = (module(gpu), region(gpu, 1 << 16));
    let (from, to) = (Operand(OperandSpec::to_device()), Operand(OperandSpec::from_device()));
    let signature = Signature::new("add", &[from, to, Words(1), Words(2)])
        .unwrap()
        .sized(0, 8, &[0])
        .unwrap()
        .sized(1, 8, &[0])
        .unwrap();
    let signature =
        signature.launched(Launch { grid: [2, 2, 1], block: [8, 1, 1], shared_bytes: 0 });
    // SAFETY: an item reads `from[i]` and writes `to[i]`, where `i < count`.
    let mut queue =
        Queue::new(unsafe { OpenClKernel::new(&module, c"add", signature) }.unwrap(), 1).unwrap();
    let [mut input, output] = [(); 2].map(|()| region.alloc(128, gpu.align()).unwrap());
    input.view_at_mut::<u64>(..128).unwrap().copy_from_slice(&[5; 16]);
    let operands = [input.to_device(..128), output.from_device(..128)];
    let [_, output] = queue.run(operands, &[16, 0x89AB_CDEF, 0x0123_4567], LIMIT).unwrap().buffers;
    assert_eq!(output.view_at::<u64>(..128).unwrap(), [0x0123_4567_89AB_CDEF + 5; 16]);
}
