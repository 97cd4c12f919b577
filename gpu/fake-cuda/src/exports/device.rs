//! Devices and what they say of themselves.

use super::{Out, put};
use crate::state::{Needs, call};
use crate::{Code, Function, code};
use std::ffi::{c_char, c_int};
use std::ptr;

/// `CUdevice_attribute`.
mod attribute {
    pub(super) const INTEGRATED: u32 = 18;
    pub(super) const CAN_MAP_HOST_MEMORY: u32 = 19;
    pub(super) const UNIFIED_ADDRESSING: u32 = 41;
    pub(super) const COMPUTE_CAPABILITY_MAJOR: u32 = 75;
    pub(super) const COMPUTE_CAPABILITY_MINOR: u32 = 76;
    pub(super) const HOST_NATIVE_ATOMIC_SUPPORTED: u32 = 86;
    pub(super) const CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM: u32 = 91;
    pub(super) const HOST_REGISTER_SUPPORTED: u32 = 99;
    /// The first number that is none in CUDA 12.9.
    pub(super) const END: u32 = 144;
}

/// The dimensions of a launch that every device takes: threads in a block, x, y, z; blocks, x, y,
/// z; shared memory.
pub(super) const THREADS_MAX: u32 = 1024;
pub(super) const BLOCK_MAX: [u32; 3] = [1024, 1024, 64];
pub(super) const GRID_MAX: [u32; 3] = [0x7FFF_FFFF, 0xFFFF, 0xFFFF];
pub(super) const SHARED_BYTES_MAX: u32 = 48 << 10;

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuDeviceGetCount(count: Out<'_, c_int>) -> Code {
    call(Function::cuDeviceGetCount, Needs::Init, |state, _| {
        put(count, state.config.device_count.cast_signed())
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuDeviceGet(device: Out<'_, c_int>, ordinal: c_int) -> Code {
    call(Function::cuDeviceGet, Needs::Init, |state, _| {
        state.device(ordinal)?;
        put(device, ordinal)
    })
}

/// # Safety
///
/// `name` is NULL or has room for `len` bytes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuDeviceGetName(
    name: *mut c_char,
    len: c_int,
    device: c_int,
) -> Code {
    call(Function::cuDeviceGetName, Needs::Init, |state, _| {
        let (index, own) = state.device(device)?;
        let room = usize::try_from(len)
            .ok()
            .filter(|room| *room > 0 && !name.is_null())
            .ok_or(code::INVALID_VALUE)?;
        let text = format!("Fake GPU {index} sm_{}{}", own.major, own.minor);
        let shown = text.len().min(room - 1);
        // SAFETY: the caller's promise: `shown` bytes and a NUL are at most `len`.
        unsafe {
            ptr::copy_nonoverlapping(text.as_ptr(), name.cast(), shown);
            name.add(shown).write(0);
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuDeviceGetAttribute(
    value: Out<'_, c_int>,
    attribute: u32,
    device: c_int,
) -> Code {
    call(Function::cuDeviceGetAttribute, Needs::Init, |state, _| {
        let (_, own) = state.device(device)?;
        let answer = match attribute {
            attribute::UNIFIED_ADDRESSING => 1,
            attribute::INTEGRATED => own.integrated.into(),
            attribute::CAN_MAP_HOST_MEMORY => own.can_map_host_memory.into(),
            attribute::COMPUTE_CAPABILITY_MAJOR => own.major,
            attribute::COMPUTE_CAPABILITY_MINOR => own.minor,
            attribute::HOST_NATIVE_ATOMIC_SUPPORTED => own.host_native_atomic_supported.into(),
            attribute::CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM => {
                own.can_use_host_pointer_for_registered_mem.into()
            }
            attribute::HOST_REGISTER_SUPPORTED => own.host_register_supported.into(),
            0 | attribute::END.. => return Err(code::INVALID_VALUE),
            // Others that there are: it has none of them.
            _ => 0,
        };
        put(value, answer)
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuDeviceTotalMem_v2(bytes: Out<'_, usize>, device: c_int) -> Code {
    call(Function::cuDeviceTotalMem_v2, Needs::Init, |state, _| {
        let (_, own) = state.device(device)?;
        put(bytes, usize::try_from(own.memory_bytes).unwrap_or(usize::MAX))
    })
}
