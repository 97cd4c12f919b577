//! Modules and launches.

use super::device::{BLOCK_MAX, GRID_MAX, SHARED_BYTES_MAX, THREADS_MAX};
use super::{Out, put};
use crate::kernels::Kernel;
use crate::ptx::parse;
use crate::state::{Answer, Handle, Loaded, Module, Needs, call};
use crate::stream::Work;
use crate::{Code, Function, Launch, code};
use std::ffi::{CStr, c_char, c_void};
use std::sync::Arc;
use std::{ptr, slice};

/// `CUjit_option`.
const JIT_ERROR_LOG_BUFFER: u32 = 5;
const JIT_ERROR_LOG_BUFFER_SIZE_BYTES: u32 = 6;
/// The first number that is no option.
const JIT_OPTIONS: u32 = 34;

/// Writes the compiler's words where the options say, and their length.
///
/// # Safety
/// A log's buffer among `values` has as many bytes as the size beside it says.
unsafe fn write_log(text: &str, options: &[u32], values: &mut [*mut c_void]) {
    let at = |wanted| options.iter().position(|option| *option == wanted);
    let buffer = at(JIT_ERROR_LOG_BUFFER).and_then(|at| values.get(at).copied());
    let size = at(JIT_ERROR_LOG_BUFFER_SIZE_BYTES).and_then(|at| values.get_mut(at));
    let Some((buffer, size)) = buffer.zip(size) else { return };
    // A 32-bit number in the place of a pointer.
    let (buffer, room) = (buffer.cast::<u8>(), size.addr() & 0xFFFF_FFFF);
    if buffer.is_null() || room == 0 {
        return;
    }
    let shown = text.len().min(room - 1);
    // SAFETY: the caller's promise: the text and its NUL are at most the buffer's size.
    unsafe {
        ptr::copy_nonoverlapping(text.as_ptr(), buffer, shown);
        buffer.add(shown).write(0);
    }
    *size = ptr::without_provenance_mut(shown + 1);
}

/// # Safety
///
/// `image` is NULL or PTX text that ends with NUL; the options and their values are `count`, and a
/// log's buffer has the size that it says.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuModuleLoadDataEx(
    module: Out<'_, Handle>,
    image: *const c_void,
    count: u32,
    options: *const u32,
    values: *mut *mut c_void,
) -> Code {
    call(Function::cuModuleLoadDataEx, Needs::Context, |state, current| {
        let module = module.ok_or(code::INVALID_VALUE)?;
        if image.is_null() || (count > 0 && (options.is_null() || values.is_null())) {
            return Err(code::INVALID_VALUE);
        }
        let (options, values): (&[u32], &mut [*mut c_void]) = if count == 0 {
            (&[], &mut [])
        } else {
            let count = count as usize;
            // SAFETY: the caller's promise, and neither is null.
            unsafe {
                (slice::from_raw_parts(options, count), slice::from_raw_parts_mut(values, count))
            }
        };
        if options.iter().any(|option| *option >= JIT_OPTIONS) {
            return Err(code::INVALID_VALUE);
        }
        // SAFETY: the caller's promise: the image ends with NUL.
        let text = unsafe { CStr::from_ptr(image.cast()) }.to_string_lossy();
        let device = state.device_of(current)?;
        let compute_capability = (10 * device.major + device.minor).cast_unsigned();
        let entries = parse(&text, compute_capability).map_err(|log| {
            // SAFETY: the caller's promise.
            unsafe { write_log(&log, options, values) };
            code::INVALID_PTX
        })?;
        let handle = state.new_handle();
        let entries = entries.into_iter().map(Arc::new).collect();
        state.modules.insert(handle, Module { context: current, entries });
        put(Some(module), handle)
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuModuleUnload(module: Handle) -> Code {
    call(Function::cuModuleUnload, Needs::Context, |state, current| {
        state
            .modules
            .get(&module)
            .filter(|own| own.context == current)
            .ok_or(code::INVALID_HANDLE)?;
        state.unloads_under_a_kernel(module);
        state.modules.remove(&module);
        state.functions.retain(|_, function| function.module != module);
        Ok(())
    })
}

/// # Safety
///
/// `name` is NULL or a C string.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuModuleGetFunction(
    function: Out<'_, Handle>,
    module: Handle,
    name: *const c_char,
) -> Code {
    call(Function::cuModuleGetFunction, Needs::Context, |state, current| {
        let function = function.filter(|_| !name.is_null()).ok_or(code::INVALID_VALUE)?;
        // SAFETY: the caller's promise.
        let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
        let own = state
            .modules
            .get(&module)
            .filter(|own| own.context == current)
            .ok_or(code::INVALID_HANDLE)?;
        let entry =
            own.entries.iter().find(|entry| entry.name == name).ok_or(code::NOT_FOUND)?.clone();
        let same = state
            .functions
            .iter()
            .find(|(_, own)| own.module == module && own.entry.name == name)
            .map(|(handle, _)| *handle);
        let handle = same.unwrap_or_else(|| state.new_handle());
        state.functions.insert(handle, Loaded { context: current, module, entry });
        put(Some(function), handle)
    })
}

/// The dimensions that a device takes.
fn check(launch: Launch) -> Answer {
    let within = |dims: [u32; 3], max: [u32; 3]| {
        dims.into_iter().zip(max).all(|(dim, max)| (1..=max).contains(&dim))
    };
    let threads: u64 = launch.block.into_iter().map(u64::from).product();
    let fits = within(launch.grid, GRID_MAX)
        && within(launch.block, BLOCK_MAX)
        && threads <= u64::from(THREADS_MAX);
    if fits && launch.shared_bytes <= SHARED_BYTES_MAX { Ok(()) } else { Err(code::INVALID_VALUE) }
}

/// # Safety
///
/// `params` is NULL or has the pointers that the kernel's declaration needs, each to a value of its
/// type.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "the C function's")]
pub(crate) unsafe extern "C" fn cuLaunchKernel(
    function: Handle,
    grid_x: u32,
    grid_y: u32,
    grid_z: u32,
    block_x: u32,
    block_y: u32,
    block_z: u32,
    shared_bytes: u32,
    stream: Handle,
    params: *const *const c_void,
    extra: *const *const c_void,
) -> Code {
    call(Function::cuLaunchKernel, Needs::Context, |state, current| {
        let own = state
            .functions
            .get(&function)
            .filter(|own| own.context == current)
            .ok_or(code::INVALID_HANDLE)?;
        let (entry, module) = (Arc::clone(&own.entry), own.module);
        let stream = state.stream(stream, current)?;
        let launch = Launch {
            grid: [grid_x, grid_y, grid_z],
            block: [block_x, block_y, block_z],
            shared_bytes,
        };
        check(launch)?;
        if !extra.is_null() {
            return Err(if params.is_null() { code::NOT_SUPPORTED } else { code::INVALID_VALUE });
        }
        // SAFETY: the caller's promise.
        let kernel = unsafe { Kernel::with_params(entry, launch, params, state, current) }?;
        state.push(stream, Work::Kernel { kernel, module })?;
        Ok(())
    })
}
