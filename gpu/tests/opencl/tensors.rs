//! Tensors: the handle as it is, and the offset beside it.

use super::child::skipped;
use super::memory::mapped;
use super::{built, device, in_place, module, region, run_there};
use contigo::dlpack::abi::{self, DlManagedTensorVersioned};
use contigo::dlpack::{ByteOffset, DataType, Shape, TensorSpec, TensorTable};
use contigo::job::Launch;
use contigo::types::TensorRule;
use contigo::{CpuBuf, DevBuf, Error, Queue};
use contigo_gpu::opencl::OpenClKernel;
use libloading::Library;
use std::ptr::NonNull;

static TENSORS: TensorTable<16> = TensorTable::new();

type Sum = unsafe extern "C" fn(*mut DlManagedTensorVersioned, i32, *mut u64) -> i32;

/// The consumer in C, built by the machine's compiler; or why not.
fn consumer() -> Result<Library, String> {
    let to = built("consumer", "-l:libOpenCL.so.1")?;
    // SAFETY: it is the file of this folder, which does nothing when it is loaded.
    let library = unsafe { Library::new(&to) }.map_err(|error| error.to_string())?;
    std::fs::remove_file(to).map_err(|error| error.to_string())?;
    Ok(library)
}

fn spec(count: i64, offset: ByteOffset) -> TensorSpec {
    TensorSpec { offset, ..TensorSpec::new(DataType::U32, Shape::new(&[count]).unwrap()) }
}

/// The digits after the kernel `flip`, in a buffer that stays the device's.
fn on_device(queue: &mut Queue<OpenClKernel>, mut buf: CpuBuf, digits: &[u32]) -> DevBuf {
    let len = digits.len() * 4;
    buf.view_at_mut::<u32>(..len)
        .unwrap()
        .iter_mut()
        .zip(digits)
        .for_each(|(to, digit)| *to = !digit);
    let words = Launch::of(u32::try_from(len).unwrap() / 64, 64).with(&[]);
    let [buf] = run_there(queue, [buf.in_out(..len)], &words);
    buf
}

#[test]
fn the_handle_is_given_and_the_offset_beside_it() {
    let Some(gpu) = device() else { return };
    let consumer = match consumer() {
        Ok(consumer) => consumer,
        Err(why) => return skipped(&why),
    };
    // SAFETY: the file above has them, with these types.
    let sum_of = unsafe { consumer.get::<Sum>(b"consumer_sum").unwrap() };
    let (module, region) = (module(gpu), region(gpu, 1 << 16));
    let mut queue = Queue::new(in_place(&module, "flip", c"flip"), 1).unwrap();
    // The block's first bytes are other digits: what a consumer without an origin reads.
    let [first, second] = [(); 2].map(|()| region.alloc(4096, gpu.align()).unwrap());
    let offset = second.offset_bytes() as u64;
    assert_eq!(offset, 4096);
    let (wrong, right): (Vec<u32>, Vec<u32>) = ((0..64).collect(), (1000..1064).collect());
    let _first = on_device(&mut queue, first, &wrong);
    let mut buf = on_device(&mut queue, second, &right);

    // Folded, it would be another handle. Refused, with the number, and the buffer is back.
    let refused = TENSORS.lend(buf, &spec(64, ByteOffset::Folded)).unwrap_err();
    assert_eq!(refused.error, Error::Tensor { rule: TensorRule::Handle, found: 4096, need: 0 });
    buf = refused.into_returned();

    for (keeps, expected) in [(1, right.iter().sum::<u32>()), (0, wrong.iter().sum())] {
        let mut lent = TENSORS.lend(buf, &spec(64, ByteOffset::Kept)).unwrap();
        let tensor = lent.tensor().unwrap();
        // SAFETY: the consumer's, until it calls the deleter.
        let shown = unsafe { tensor.as_ref() };
        assert_eq!(
            (shown.tensor.device.device_type, shown.tensor.device.device_id),
            (abi::device::OPENCL, 0)
        );
        assert_eq!(shown.tensor.byte_offset, offset);
        let mut sum = 0;
        // SAFETY: the tensor's only consumer, which deletes it.
        let answer = unsafe { sum_of(tensor.as_ptr(), keeps, &raw mut sum) };
        assert_eq!((answer, sum), (0, expected.into()), "keeps {keeps}");
        buf = lent.take_back().unwrap();
    }
    // It comes back as it was.
    let buf = buf.into_cpu().unwrap();
    assert_eq!(buf.view_at::<u32>(..256).unwrap(), right);
}

/// While the tensor is out its bytes are not mapped: the consumer's queue may use the object.
/// (`CL_MEM_MAP_COUNT` counts the mappings of all of it.)
#[test]
fn what_is_lent_is_not_mapped() {
    let Some(gpu) = device() else { return };
    let (module, region) = (module(gpu), region(gpu, 1 << 16));
    let mut queue = Queue::new(in_place(&module, "flip", c"flip"), 1).unwrap();
    let buf = region.alloc(4096, gpu.align()).unwrap();
    // The CPU has had it between two jobs.
    let buf = on_device(&mut queue, buf, &[4; 64]).into_cpu().unwrap();
    let buf = on_device(&mut queue, buf, &[5; 64]);
    let mut lent = TENSORS.lend(buf, &spec(64, ByteOffset::Kept)).unwrap();
    let tensor = lent.tensor().unwrap();
    // SAFETY: as above.
    let raw = unsafe { tensor.as_ref() }.tensor.data.addr() as u64;
    assert_eq!(mapped(raw), 0);
    delete(tensor);
    let buf = lent.take_back().unwrap().into_cpu().unwrap();
    assert_eq!(mapped(raw), 0, "the CPU's again, and nothing stays mapped");
    drop(buf);
}

fn delete(tensor: NonNull<DlManagedTensorVersioned>) {
    // SAFETY: this test is its consumer, and deletes it once.
    unsafe {
        let delete = tensor.as_ref().deleter.unwrap();
        delete(tensor.as_ptr());
    }
}

/// A tensor of the block's beginning has no offset, and may be folded.
#[test]
fn an_offset_of_nothing_can_be_folded() {
    let Some(gpu) = device() else { return };
    let (module, region) = (module(gpu), region(gpu, 1 << 16));
    let mut queue = Queue::new(in_place(&module, "flip", c"flip"), 1).unwrap();
    let buf = on_device(&mut queue, region.alloc(4096, gpu.align()).unwrap(), &[5; 64]);
    let mut lent = TENSORS.lend(buf, &spec(64, ByteOffset::Folded)).unwrap();
    let tensor = lent.tensor().unwrap();
    // SAFETY: as above.
    assert_eq!(unsafe { tensor.as_ref() }.tensor.byte_offset, 0);
    delete(tensor);
    drop(lent.take_back().unwrap());
}
