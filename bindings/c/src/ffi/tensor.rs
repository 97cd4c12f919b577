#![allow(unsafe_code, reason = "functions that C calls, and tensors of frameworks")]
//! Buffers as tensors of a framework (DLPack), and a framework's tensors as bytes of a region.

use super::raw::{self, Versioned, flag};
use crate::fault::Fault;
use crate::handles::{CONTIGO_MAX_DIMS, contigo_buf, contigo_region};
use crate::last_error::call;
use crate::object::buf::{BUFS, Buf, TENSORS};
use crate::object::region::REGIONS;
use crate::status::contigo_status;
use contigo::dlpack::{ByteOffset, Contract, DataType, Foreign, Imported, Shape, TensorSpec};
use core::ffi::c_void;
use core::{mem, ptr};

/// The tensor as which a buffer is lent. Its elements follow each other in C's order.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct contigo_tensor_options {
    /// `sizeof(contigo_tensor_options)`.
    pub struct_size: usize,
    /// `ndim` dimensions, the outermost first. It is copied; NULL where `ndim` is 0, a scalar.
    pub shape: *const i64,
    /// How many dimensions: at most `CONTIGO_MAX_DIMS`.
    pub ndim: u32,
    /// `DLDataTypeCode`: 0 signed, 1 unsigned, 2 float, 4 bfloat, 5 complex, 6 bool.
    pub dtype_code: u8,
    /// Bits of an element: a multiple of 8.
    pub dtype_bits: u8,
    /// Always 0.
    pub reserved: u16,
    /// 1: the consumer may not write. Refused together with `legacy`, which cannot say it.
    pub read_only: u32,
    /// 1: the data pointer is the region's first byte, and `byte_offset` leads to the buffer; 0:
    /// the data pointer leads there itself.
    pub keep_byte_offset: u32,
    /// 1: the form before DLPack 1.0, a `DLManagedTensor`; 0: a `DLManagedTensorVersioned`.
    pub legacy: u32,
    /// The alignment that the consumer demands of the first element's address: 64 for TVM and ONNX
    /// Runtime, 256 for dlpack.h; 0: none.
    pub align_bytes: u32,
}

// SAFETY: integers and a pointer, `struct_size` first.
unsafe impl Versioned for contigo_tensor_options {
    const NAME: &'static str = "contigo_tensor_options";
    const LEAST: usize = mem::size_of::<Self>();
}

/// Which bytes of a region a tensor is.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct contigo_tensor_info {
    /// `sizeof(contigo_tensor_info)`.
    pub struct_size: usize,
    /// Where the lowest element is, from the beginning of the region.
    pub offset_bytes: usize,
    /// From the lowest element's first byte to the highest one's last.
    pub len_bytes: usize,
    /// 1: its producer forbids to write.
    pub read_only: u32,
    /// Always 0.
    pub reserved: u32,
}

// SAFETY: integers only, `struct_size` first.
unsafe impl Versioned for contigo_tensor_info {
    const NAME: &'static str = "contigo_tensor_info";
    const LEAST: usize = mem::size_of::<Self>();
}

/// Lends the buffer to a framework. `tensor` gets a `DLManagedTensorVersioned *`, or a
/// `DLManagedTensor *` where `options->legacy` is 1. The tensor is for one consumer, which calls
/// its deleter when it is done, on any thread.
///
/// While the CPU owns the buffer, the tensor has the CPU's address: kDLCPU, or kDLCUDAHost for
/// memory that CUDA pinned. While a device owns it, the tensor has the bus address (kDLExtDev), or
/// the GPU's pointer with the GPU's number (kDLCUDA). Through Vulkan and OpenCL it has an object
/// (kDLVulkan, kDLOpenCL), and needs `keep_byte_offset`. It then has the bytes of the last
/// hand-over and no more. Where it is not `read_only`, these bytes count as written by a device,
/// and `CONTIGO_E_SHARED_LINE` is possible.
///
/// Until the deleter was called and `contigo_buf_unlend` took the buffer back, it can be neither
/// mapped, nor given to a device, nor released: `CONTIGO_E_TENSOR_OUT`. `CONTIGO_E_MAPPED`: the
/// buffer is mapped. `CONTIGO_E_TENSOR`: the elements do not fit in the buffer, or are not as the
/// options demand. `CONTIGO_E_NO_SLOTS`: `CONTIGO_MAX_TENSORS` are out.
///
/// # Safety
/// `options` points to an initialised structure with `ndim` entries in its shape; `tensor` is
/// writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_buf_lend(
    buf: contigo_buf,
    options: *const contigo_tensor_options,
    tensor: *mut *mut c_void,
) -> contigo_status {
    // SAFETY: the caller's promise.
    unsafe {
        raw::answer_or(ptr::null_mut(), tensor, "tensor", || {
            let (spec, legacy) = read_spec(options)?;
            BUFS.with(buf, |Buf { state, views, .. }| {
                Ok(state.lend(views, &TENSORS, &spec, legacy)?)
            })
        })
    }
}

/// Takes a lent buffer back, once the tensor's deleter was called. `CONTIGO_E_TENSOR_OUT`: its
/// consumer has not called it. `CONTIGO_E_CPU_OWNED`, `CONTIGO_E_DEVICE_OWNED`: it was not lent.
#[unsafe(no_mangle)]
pub extern "C" fn contigo_buf_unlend(buf: contigo_buf) -> contigo_status {
    call(|| Ok(BUFS.with(buf, |buf| buf.state.unlend())?))
}

/// Finds out which bytes of `region` the elements of a tensor are. Any library may have made the
/// tensor, and it stays with the caller. `tensor` is a `DLManagedTensorVersioned *`, or where
/// `legacy` is 1 a `DLManagedTensor *`. `contigo_dev_addr_of` answers the bus address of the lowest
/// element.
///
/// `CONTIGO_E_NOT_OURS`: they are elsewhere; `contigo_buf_write` copies them.
/// `CONTIGO_E_TENSOR`: it is no tensor that the CPU can read, or not aligned to `align_bytes` (0:
/// nothing is demanded).
///
/// # Safety
/// `tensor` is NULL or a tensor as DLPack says, and `info` points to a structure whose
/// `struct_size` is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_tensor_locate(
    region: contigo_region,
    tensor: *mut c_void,
    legacy: u32,
    align_bytes: u32,
    info: *mut contigo_tensor_info,
) -> contigo_status {
    call(|| {
        let region = REGIONS.lease(region)?;
        let contract = Contract { align_bytes: widen(align_bytes), ..Contract::ANY };
        // SAFETY: the caller's promise; and it is forgotten below, whatever comes of it.
        let foreign = unsafe { foreign(tensor, legacy)? };
        let (found, foreign) = match Imported::new(region.memory(), foreign, &contract) {
            Ok(imported) => {
                let value = contigo_tensor_info {
                    offset_bytes: imported.offset_bytes(),
                    len_bytes: imported.len_bytes(),
                    read_only: imported.is_read_only().into(),
                    ..contigo_tensor_info::default()
                };
                (Ok(value), imported.into_foreign())
            }
            Err(refused) => {
                let (error, foreign) = refused.into_parts();
                (Err(error), foreign)
            }
        };
        // The tensor stays the caller's: its deleter is not called here.
        mem::forget(foreign);
        // SAFETY: the caller's promise.
        unsafe { raw::fill(info, &found?) }
    })
}

/// # Safety
/// As `contigo_tensor_locate`.
unsafe fn foreign(tensor: *mut c_void, legacy: u32) -> Result<Foreign, Fault> {
    // SAFETY: the caller's promise.
    unsafe {
        Ok(match flag(legacy, "legacy")? {
            true => Foreign::from_legacy(tensor.cast())?,
            false => Foreign::from_versioned(tensor.cast())?,
        })
    }
}

/// # Safety
/// As `contigo_buf_lend`.
unsafe fn read_spec(options: *const contigo_tensor_options) -> Result<(TensorSpec, bool), Fault> {
    // SAFETY: the caller's promise.
    let options = unsafe { raw::read(options)? };
    if options.reserved != 0 {
        return Err(Fault::value("contigo_tensor_options.reserved", options.reserved));
    }
    let mut entries = [0; CONTIGO_MAX_DIMS as usize];
    let dims = entries.get_mut(..widen(options.ndim)).ok_or(too_many(options.ndim))?;
    if options.shape.is_null() && !dims.is_empty() {
        return Err(Fault::null("contigo_tensor_options.shape"));
    }
    for (index, dim) in dims.iter_mut().enumerate() {
        // SAFETY: not null, and the caller's promise: an index below `ndim`.
        *dim = unsafe { options.shape.add(index).read_unaligned() };
    }
    let dtype = DataType { code: options.dtype_code, bits: options.dtype_bits, lanes: 1 };
    let contract = Contract { align_bytes: widen(options.align_bytes), ..Contract::ANY };
    let offset = if flag(options.keep_byte_offset, "contigo_tensor_options.keep_byte_offset")? {
        ByteOffset::Kept
    } else {
        ByteOffset::Folded
    };
    let read_only = flag(options.read_only, "contigo_tensor_options.read_only")?;
    let spec =
        TensorSpec { read_only, offset, contract, ..TensorSpec::new(dtype, Shape::new(dims)?) };
    Ok((spec, flag(options.legacy, "contigo_tensor_options.legacy")?))
}

fn too_many(ndim: u32) -> Fault {
    let (rule, need) = (contigo::types::TensorRule::Dims, CONTIGO_MAX_DIMS.into());
    contigo::Error::Tensor { rule, found: ndim.into(), need }.into()
}

/// A number of the header's, which is 32 bits wide, as the runtime counts: never less wide here.
const fn widen(value: u32) -> usize {
    value as usize
}
