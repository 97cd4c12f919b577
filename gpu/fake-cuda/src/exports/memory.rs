//! Pinned memory, device memory, and copies.

use super::{Out, put};
use crate::memory::{DEVICEMAP, Found};
use crate::state::{Answer, Handle, Needs, State, call};
use crate::stream::Work;
use crate::{Code, Function, code};
use std::ffi::{c_int, c_void};
use std::ptr;

/// CU_MEMHOSTALLOC_PORTABLE, DEVICEMAP, WRITECOMBINED.
const ALLOC_FLAGS: u32 = 7;
/// CU_MEMHOSTREGISTER_PORTABLE, DEVICEMAP, IOMEMORY, READ_ONLY.
const REGISTER_FLAGS: u32 = 15;
/// IOMEMORY and READ_ONLY, which the devices do not have.
const REGISTER_UNSUPPORTED: u32 = 12;

fn pins(state: &State, len: usize) -> Answer {
    let pinned = state.memory.pinned_bytes().saturating_add(len as u64);
    if pinned > state.config.pinned_limit_bytes { Err(code::OUT_OF_MEMORY) } else { Ok(()) }
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuMemHostAlloc(
    block: Out<'_, *mut c_void>,
    len: usize,
    flags: u32,
) -> Code {
    call(Function::cuMemHostAlloc, Needs::Context, |state, current| {
        let block =
            block.filter(|_| len > 0 && flags & !ALLOC_FLAGS == 0).ok_or(code::INVALID_VALUE)?;
        pins(state, len)?;
        let config = state.config;
        let base = state.memory.allocate(
            len,
            config.host_alignment,
            config.device_pointer_offset,
            flags,
            current,
        )?;
        put(Some(block), ptr::with_exposed_provenance_mut(base))
    })
}

/// The allocation or registration at `p` ends.
fn release(state: &mut State, p: *mut c_void, registered: bool, none: Code) -> Answer {
    let block = state.memory.host_at(p.addr(), registered).ok_or(none)?;
    let (base, len, device_base) = (block.base, block.len as u64, block.device_base);
    let used = state.frees_under_a_kernel(device_base, len);
    let intact = state.memory.release(base, used);
    state.counters.overruns += u64::from(!intact);
    Ok(())
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuMemFreeHost(p: *mut c_void) -> Code {
    call(Function::cuMemFreeHost, Needs::Context, |state, _| {
        release(state, p, false, code::INVALID_VALUE)
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuMemHostRegister_v2(p: *mut c_void, len: usize, flags: u32) -> Code {
    call(Function::cuMemHostRegister_v2, Needs::Context, |state, current| {
        if p.is_null() || len == 0 || flags & !REGISTER_FLAGS != 0 {
            return Err(code::INVALID_VALUE);
        }
        let device = state.device_of(current)?;
        if !device.host_register_supported || flags & REGISTER_UNSUPPORTED != 0 {
            return Err(code::NOT_SUPPORTED);
        }
        pins(state, len)?;
        let offset = if device.can_use_host_pointer_for_registered_mem {
            0
        } else {
            state.config.device_pointer_offset
        };
        state.memory.register(p.expose_provenance(), len, offset, flags, current)
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuMemHostUnregister(p: *mut c_void) -> Code {
    call(Function::cuMemHostUnregister, Needs::Context, |state, _| {
        release(state, p, true, code::HOST_MEMORY_NOT_REGISTERED)
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuMemHostGetDevicePointer_v2(
    device: Out<'_, u64>,
    p: *mut c_void,
    flags: u32,
) -> Code {
    call(Function::cuMemHostGetDevicePointer_v2, Needs::Context, |state, current| {
        let found = state.memory.host_block(p.addr(), 1).filter(|_| flags == 0);
        let addr = found.map(|block| block.device_base + (p.addr() - block.base) as u64);
        let reached = addr.filter(|addr| state.check_range(current, *addr, 1));
        put(device, reached.ok_or(code::INVALID_VALUE)?)
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuMemHostGetFlags(flags: Out<'_, u32>, p: *mut c_void) -> Code {
    call(Function::cuMemHostGetFlags, Needs::Context, |state, _| {
        put(flags, state.memory.host_block(p.addr(), 1).ok_or(code::INVALID_VALUE)?.flags)
    })
}

/// The attributes that are known of a pointer (`CUpointer_attribute`).
mod pointer {
    pub(super) const MEMORY_TYPE: u32 = 2;
    pub(super) const DEVICE_POINTER: u32 = 3;
    pub(super) const HOST_POINTER: u32 = 4;
}

/// One of them, of the block that a device address, or the CPU address of pinned memory, is in.
/// `None` where there is no block, or it has none.
fn attribute(state: &State, attribute: u32, addr: u64) -> Option<u64> {
    let by_cpu = || state.memory.host_block(usize::try_from(addr).ok()?, 1).map(Found::Host);
    let of_device = state.memory.find(addr, 1);
    let found = of_device.or_else(by_cpu)?;
    let device_base = found.range().0;
    let block = match found {
        Found::Host(block) => block,
        Found::Device(..) => {
            return match attribute {
                pointer::MEMORY_TYPE => Some(2),
                pointer::DEVICE_POINTER => Some(addr),
                _ => None,
            };
        }
    };
    let offset = addr - if of_device.is_some() { device_base } else { block.base as u64 };
    match attribute {
        pointer::MEMORY_TYPE => Some(1),
        pointer::DEVICE_POINTER => (block.flags & DEVICEMAP != 0).then_some(device_base + offset),
        pointer::HOST_POINTER => Some(block.base as u64 + offset),
        _ => None,
    }
}

/// Writes an attribute in its width.
///
/// # Safety
/// `data` is NULL or has room for the attribute.
unsafe fn write(data: *mut c_void, which: u32, value: u64) -> Answer {
    let bytes = value.to_le_bytes();
    let len = if which == pointer::MEMORY_TYPE { 4 } else { 8 };
    if data.is_null() {
        return Err(code::INVALID_VALUE);
    }
    // SAFETY: the caller's promise.
    unsafe { data.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), len) };
    Ok(())
}

/// # Safety
///
/// `data` is NULL or has room for what the attribute is.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuPointerGetAttribute(
    data: *mut c_void,
    which: u32,
    addr: u64,
) -> Code {
    call(Function::cuPointerGetAttribute, Needs::Init, |state, _| {
        let value = attribute(state, which, addr).ok_or(code::INVALID_VALUE)?;
        // SAFETY: the caller's promise.
        unsafe { write(data, which, value) }
    })
}

/// An attribute that an address does not have is 0, and no error.
///
/// # Safety
///
/// `which` and `data` have `count` entries, and each of `data` has room for what its attribute is.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuPointerGetAttributes(
    count: u32,
    which: *const u32,
    data: *const *mut c_void,
    addr: u64,
) -> Code {
    call(Function::cuPointerGetAttributes, Needs::Init, |state, _| {
        if count == 0 || which.is_null() || data.is_null() {
            return Err(code::INVALID_VALUE);
        }
        for index in 0..count as usize {
            // SAFETY: the caller's promise.
            let (which, data) = unsafe { (which.add(index).read(), data.add(index).read()) };
            if ![pointer::MEMORY_TYPE, pointer::DEVICE_POINTER, pointer::HOST_POINTER]
                .contains(&which)
            {
                return Err(code::INVALID_VALUE);
            }
            // SAFETY: the caller's promise.
            unsafe { write(data, which, attribute(state, which, addr).unwrap_or(0))? };
        }
        Ok(())
    })
}

/// Bytes of the current device that its contexts hold, and all of them.
fn device_bytes(state: &State, current: Handle) -> Answer<(u64, u64)> {
    let device = state.contexts.get(current).ok_or(code::INVALID_CONTEXT)?.device;
    let held = state.memory.device_bytes_of(|handle| {
        state.contexts.get(handle).is_some_and(|context| context.device == device)
    });
    Ok((held, state.device_of(current)?.memory_bytes))
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuMemAlloc_v2(addr: Out<'_, u64>, len: usize) -> Code {
    call(Function::cuMemAlloc_v2, Needs::Context, |state, current| {
        let addr = addr.filter(|_| len > 0).ok_or(code::INVALID_VALUE)?;
        let (held, all) = device_bytes(state, current)?;
        if held.saturating_add(len as u64) > all {
            return Err(code::OUT_OF_MEMORY);
        }
        put(Some(addr), state.memory.allocate_device(len, current)?)
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuMemFree_v2(addr: u64) -> Code {
    call(Function::cuMemFree_v2, Needs::Context, |state, current| {
        let block = state
            .memory
            .device
            .get(&addr)
            .filter(|block| block.context == current)
            .ok_or(code::INVALID_VALUE)?;
        let len = block.bytes.len() as u64;
        state.frees_under_a_kernel(addr, len);
        state.memory.device.remove(&addr);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuMemGetInfo_v2(free: Out<'_, usize>, total: Out<'_, usize>) -> Code {
    call(Function::cuMemGetInfo_v2, Needs::Context, |state, current| {
        let (held, all) = device_bytes(state, current)?;
        let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        put(free, bytes(all.saturating_sub(held)))?;
        put(total, bytes(all))
    })
}

/// Both are addresses of the context's, pinned memory's included, read and written when the stream
/// comes to it.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuMemcpyAsync(dst: u64, src: u64, len: usize, stream: Handle) -> Code {
    call(Function::cuMemcpyAsync, Needs::Context, |state, current| {
        let stream = state.stream(stream, current)?;
        if !state.check_range(current, dst, len as u64)
            || !state.check_range(current, src, len as u64)
        {
            return Err(code::INVALID_VALUE);
        }
        if len == 0 {
            Ok(())
        } else {
            state.push(stream, Work::Within { dst, src, len: len as u64 }).map(|_| ())
        }
    })
}

const _: () = assert!(size_of::<c_int>() == size_of::<Code>());
