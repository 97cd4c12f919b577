//! Tensors in DMA memory: who has the buffer when, what a framework receives, and what is refused
//! with which numbers.

mod deleters;
mod fuzzed;
mod imported;
mod refused;
mod tensors;

use contigo::{
    Align, Error, Queue, Region,
    dlpack::{
        ByteOffset, Contract, DataType, Foreign, Imported, Place, Shape, TensorSpec, TensorTable,
        abi::{DlManagedTensorVersioned, IS_COPIED, READ_ONLY},
    },
    sim::{Sim, SimBoard},
    types::{Refused, TensorRule},
};
use contigo_gemm8::{Gemm, Gemm8, Output, SimGemm8};
use std::{ptr::NonNull, time::Duration};
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
    assert_eq!(
        (what.device.device_type, what.device.device_id, what.dtype),
        (1, 0, DataType { code: 2, bits: 32, lanes: 1 })
    );
    // SAFETY: three entries each, and 24 floats.
    unsafe {
        assert_eq!(std::slice::from_raw_parts(what.shape, 3), [2, 3, 4]);
        assert_eq!(std::slice::from_raw_parts(what.strides, 3), [12, 4, 1]);
        let elements = std::slice::from_raw_parts_mut(what.data.cast::<f32>(), 24);
        assert_eq!(elements, [1.5; 24]);
        elements.fill(2.5);
    }
    // Only one consumer has it, in one of the two forms.
    assert_eq!(
        (lent.tensor().unwrap_err(), lent.legacy_tensor().unwrap_err()),
        (Error::TensorOut, Error::TensorOut)
    );
    let Err((error, lent)) = lent.take_back().map_err(Refused::into_parts) else {
        panic!("it is out")
    };
    assert_eq!(error, Error::TensorOut);
    delete(tensor);
    let buf = lent.take_back().unwrap();
    assert_eq!((buf.len_bytes(), TENSORS.taken(), TENSORS.misuses()), (4096, 0, 0));
    assert_eq!(buf.view_at::<f32>(..96).unwrap(), [2.5; 24], "what the framework wrote");
    assert_eq!(buf.view_at::<f32>(96..100).unwrap(), [1.5]);
}

#[test]
fn a_frame_loop_lends_the_same_buffer_anew() {
    static TENSORS: TensorTable<1> = TensorTable::new();
    let board = SimBoard::new(1);
    let region = Region::new(memory(&board, 16 << 10)).unwrap();
    let pool = region.pool(2, 4096).unwrap();
    let mut buf = pool.take().unwrap();
    for round in 0..20_u8 {
        buf.view_mut::<u8>().unwrap().fill(round);
        let mut lent = TENSORS.lend(buf, &spec(&[16])).unwrap();
        for _ in 0..2 {
            let tensor = lent.tensor().unwrap();
            // SAFETY: out.
            assert_eq!(unsafe { data(tensor).0.read() }, round);
            delete(tensor);
        }
        buf = lent.take_back().unwrap();
    }
    drop(buf);
    assert_eq!((pool.taken(), TENSORS.taken()), (0, 0));
}

#[test]
fn flags_are_true_flagless_form_is_refused() {
    static TENSORS: TensorTable<1> = TensorTable::new();
    let board = SimBoard::new(1);
    let region = Region::new(memory(&board, 16 << 10)).unwrap();
    let buf = region.alloc(4096, Align::LINE).unwrap();
    let mut lent = TENSORS.lend(buf, &TensorSpec { read_only: true, ..spec(&[4]) }).unwrap();
    assert_eq!(
        lent.legacy_tensor().unwrap_err(),
        Error::Tensor { rule: TensorRule::Flags, found: READ_ONLY, need: 0 }
    );
    let tensor = lent.tensor().unwrap();
    // SAFETY: out.
    assert_eq!(unsafe { tensor.as_ref() }.flags & (READ_ONLY | IS_COPIED), READ_ONLY);
    delete(tensor);
}

/// The results of each alignment and offset, for contracts of every framework.
#[test]
fn offsets_are_folded_or_kept() {
    static TENSORS: TensorTable<1> = TensorTable::new();
    let board = SimBoard::new(1);
    let region = Region::new(memory(&board, 16 << 10)).unwrap();
    let mut buf = region.alloc(8192, Align::DLPACK).unwrap();
    let block = buf.view::<u8>().unwrap().as_ptr().addr() - buf.offset_bytes();
    let first = block + buf.offset_bytes();
    for at in [0, 4, 16, 32, 64, 128, 256, 4096] {
        buf = buf.slice(at..at + 64).unwrap();
        for (contract, align) in [
            (Contract::TVM, 64),
            (Contract::DLPACK, 256),
            (Contract::ONNX_RUNTIME, 64),
            (Contract::NUMPY, 1),
        ] {
            for offset in [ByteOffset::Folded, ByteOffset::Kept] {
                let spec = TensorSpec { contract, offset, ..spec(&[16]) };
                buf = match TENSORS.lend(buf, &spec) {
                    Ok(mut lent) => {
                        assert_eq!((first + at) % align, 0, "{contract:?} at {at}");
                        let tensor = lent.tensor().unwrap();
                        let (data, byte_offset) = data(tensor);
                        let expected = if offset == ByteOffset::Folded {
                            (first + at, 0)
                        } else {
                            (block, (first + at - block) as u64)
                        };
                        assert_eq!((data.addr(), byte_offset), expected);
                        delete(tensor);
                        lent.take_back().unwrap()
                    }
                    Err(refused) => {
                        let (error, returned) = refused.into_parts();
                        let found = (first + at) as u64;
                        assert_eq!(
                            error,
                            Error::Tensor {
                                rule: TensorRule::Alignment,
                                found,
                                need: align as u64
                            }
                        );
                        assert_ne!(found % align as u64, 0);
                        returned
                    }
                };
            }
        }
        buf = buf.whole();
    }
}

/// The device's view of a result, which a driver of the framework's would read, and then the CPU's.
#[test]
fn a_devices_buffer_is_lent_as_its_bus_address() {
    static TENSORS: TensorTable<2> = TensorTable::new();
    let board = SimBoard::new(1);
    let region = Region::new(memory(&board, 64 << 10)).unwrap();
    let device = SimGemm8::new(&board, board.port());
    let mut queue =
        Queue::new(Gemm8::open_simulated(device.window().unwrap()).unwrap(), 1).unwrap();
    let buf = |len| region.alloc(len, Align::DLPACK).unwrap();
    let (mut a, mut b, bias, c) = (buf(256), buf(256), buf(256), buf(256));
    a.view_at_mut::<i8>(..16).unwrap().fill(1);
    b.view_at_mut::<i8>(..256).unwrap().fill(2);
    let (c_at, line) = (c.offset_bytes(), region.line().bytes());
    let args = Gemm { m: 1, n: 16, k: 16, output: Output::Int32 { relu: false } };
    queue
        .submit(
            [a.to_device(..16), b.to_device(..), bias.to_device(..64), c.from_device(..64)],
            &args.words(),
        )
        .unwrap();
    let [_, _, _, c] = queue.wait_device(Duration::from_millis(20)).unwrap().unwrap().buffers;
    let bus = board.port().dev_addr(region.base(), region.len_bytes()).unwrap().0 + c_at as u64;
    let spec = TensorSpec::new(DataType::I32, Shape::new(&[16]).unwrap());
    let Err((error, c)) = TENSORS
        .lend(c, &TensorSpec { contract: Contract::TVM, ..spec })
        .map_err(Refused::into_parts)
    else {
        panic!("TVM")
    };
    assert_eq!(
        error,
        Error::Tensor { rule: TensorRule::DeviceType, found: 12, need: 1 },
        "TVM wants the CPU's memory"
    );
    let mut c = c;
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
