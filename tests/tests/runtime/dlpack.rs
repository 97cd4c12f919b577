//! Tensors in DMA memory: who has the buffer when, what a framework receives, and what is refused
//! with which numbers.

mod deleters;
mod fuzzed;
mod imported;
mod refused;
mod tensors;

use crate::gemm::{GEMM, LIMIT, operands, queue};
use contigo::dlpack::abi::DlManagedTensorVersioned;
use contigo::dlpack::{
    ByteOffset, Contract, DataType, Foreign, Imported, Place, Shape, TensorSpec, TensorTable,
};
use contigo::sim::{Sim, SimBoard};
use contigo::types::{Refused, TensorRule};
use contigo::{Align, Error, Region};
use contigo_gemm8::SimGemm8;
use std::ptr::NonNull;
use tensors::Theirs;

/// Memory that needs no kernel, so that Miri can run this; whole pages, four times, and room to
/// align.
fn memory(board: &SimBoard, len_bytes: usize) -> Sim {
    #[derive(Clone)]
    #[repr(align(4096))]
    struct Page(#[allow(dead_code, reason = "it is its size that counts")] [u8; 4096]);
    let pages = Box::leak(vec![Page([0; 4096]); 4 * len_bytes / 4096 + 1].into_boxed_slice());
    // SAFETY: bytes, initialised, leaked, and used by no other code.
    board
        .memory_over(unsafe {
            std::slice::from_raw_parts_mut(pages.as_mut_ptr().cast(), 4 * len_bytes + 64)
        })
        .unwrap()
}

fn spec(dims: &[i64]) -> TensorSpec {
    TensorSpec::new(DataType::F32, Shape::new(dims).unwrap())
}

/// The framework's last step, when it is done.
fn delete(tensor: NonNull<DlManagedTensorVersioned>) {
    // SAFETY: the framework's tensor, once; or once too often, and then it reads no other field of
    // it.
    unsafe { (&raw const (*tensor.as_ptr()).deleter).read().unwrap()(tensor.as_ptr()) }
}

fn data(tensor: NonNull<DlManagedTensorVersioned>) -> (*mut u8, u64) {
    // SAFETY: the tensor is out.
    let tensor = unsafe { tensor.as_ref() }.tensor;
    (tensor.data.cast(), tensor.byte_offset)
}

#[test]
fn a_tensor_is_the_buffer_and_comes_back() {
    static TENSORS: TensorTable<2> = TensorTable::new();
    let board = SimBoard::new(1);
    let region = Region::new(memory(&board, 16 << 10)).unwrap();
    let mut buf = region.alloc(4096, Align::DLPACK).unwrap();
    buf.view_mut::<f32>().unwrap().fill(1.5);
    let own = buf.view::<u8>().unwrap().as_ptr();
    let mut lent = TENSORS.lend(buf, &spec(&[2, 3, 4])).unwrap();
    assert_eq!((TENSORS.taken(), lent.is_out()), (1, false));
    let tensor = lent.tensor().unwrap();
    assert!(lent.is_out());
    // SAFETY: out, and this test is the framework.
    let seen = unsafe { tensor.as_ref() };
    assert_eq!((seen.version.major, seen.version.minor, seen.flags), (1, 1, 0));
    let what = seen.tensor;
    assert_eq!((what.data.cast_const().cast::<u8>(), what.byte_offset, what.ndim), (own, 0, 3));
    assert_eq!((what.device.device_type, what.device.device_id), (1, 0));
    assert_eq!(what.dtype, DataType { code: 2, bits: 32, lanes: 1 });
    // SAFETY: three entries each, and 24 floats.
    unsafe {
        assert_eq!(std::slice::from_raw_parts(what.shape, 3), [2, 3, 4]);
        assert_eq!(std::slice::from_raw_parts(what.strides, 3), [12, 4, 1]);
        let elements = std::slice::from_raw_parts_mut(what.data.cast::<f32>(), 24);
        assert_eq!(elements, [1.5; 24]);
        elements.fill(2.5);
    }
    // Only one consumer has it, in one of the two forms.
    assert_eq!(lent.tensor(), Err(Error::TensorOut));
    assert_eq!(lent.legacy_tensor(), Err(Error::TensorOut));
    let (error, lent) = lent.take_back().unwrap_err().into_parts();
    assert_eq!(error, Error::TensorOut);
    delete(tensor);
    let buf = lent.take_back().unwrap();
    assert_eq!((buf.len_bytes(), TENSORS.taken(), TENSORS.misuses()), (4096, 0, 0));
    assert_eq!(buf.view_at::<f32>(..96).unwrap(), [2.5; 24], "what the framework wrote");
    assert_eq!(buf.view_at::<f32>(96..100).unwrap(), [1.5]);

    // The offset from the block's beginning, where the consumer wants it apart.
    let at = buf.offset_bytes() + 64;
    let kept = TensorSpec { offset: ByteOffset::Kept, ..spec(&[16]) };
    let mut lent = TENSORS.lend(buf.slice(64..).unwrap(), &kept).unwrap();
    let tensor = lent.tensor().unwrap();
    assert_eq!(data(tensor), (own.wrapping_add(64).wrapping_sub(at).cast_mut(), at as u64));
    delete(tensor);
}

/// The device's view of a result, which a driver of the framework's would read, and then the CPU's.
#[test]
fn a_devices_buffer_is_lent_as_its_bus_address() {
    static TENSORS: TensorTable<2> = TensorTable::new();
    let board = SimBoard::new(1);
    let region = Region::new(memory(&board, 64 << 10)).unwrap();
    let mut queue = queue(&SimGemm8::new(&board, board.port()));
    let [mut a, mut b, bias, c] = [(); 4].map(|()| region.alloc(256, Align::DLPACK).unwrap());
    a.view_at_mut::<i8>(..16).unwrap().fill(1);
    b.view_at_mut::<i8>(..256).unwrap().fill(2);
    let (c_at, line) = (c.offset_bytes(), region.line().bytes());
    queue.submit(operands([a, b, bias, c]), &GEMM.words()).unwrap();
    let [_, _, _, c] = queue.wait_device(LIMIT).unwrap().unwrap().buffers;
    let bus = board.port().dev_addr(region.base(), region.len_bytes()).unwrap().0 + c_at as u64;
    let spec = TensorSpec::new(DataType::I32, Shape::new(&[16]).unwrap());
    let cpu = TensorSpec { contract: Contract::TVM, ..spec };
    let (error, mut c) = TENSORS.lend(c, &cpu).unwrap_err().into_parts();
    let wrong = Error::Tensor { rule: TensorRule::DeviceType, found: 12, need: 1 };
    assert_eq!(error, wrong, "TVM wants the CPU's memory");
    for (offset, data_at, byte_offset) in
        [(ByteOffset::Folded, bus, 0), (ByteOffset::Kept, bus - c_at as u64, c_at as u64)]
    {
        let contract =
            Contract { place: Some(Place::BusAddress), align_bytes: line, contiguous: true };
        let mut lent = TENSORS.lend(c, &TensorSpec { contract, offset, ..spec }).unwrap();
        let tensor = lent.tensor().unwrap();
        // SAFETY: out.
        let what = unsafe { tensor.as_ref() }.tensor;
        assert_eq!(
            (what.device.device_type, what.data.addr() as u64, what.byte_offset),
            (12, data_at, byte_offset)
        );
        delete(tensor);
        c = lent.take_back().unwrap();
    }
    let mut lent =
        TENSORS.lend(c.into_cpu().unwrap(), &TensorSpec { read_only: true, ..spec }).unwrap();
    let tensor = lent.tensor().unwrap();
    // SAFETY: out, and 16 numbers.
    assert_eq!(unsafe { std::slice::from_raw_parts(data(tensor).0.cast::<i32>(), 16) }, [32; 16]);
    delete(tensor);
}

fn import(
    region: &Region,
    theirs: &mut Theirs,
    contract: &Contract,
) -> Result<Imported, Refused<Foreign>> {
    // SAFETY: the test's own tensor, which outlives it.
    Imported::new(region, unsafe { Foreign::from_versioned(theirs.give()) }.unwrap(), contract)
}
