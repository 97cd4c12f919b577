//! Modules and launches.

use super::{
    Out,
    device::{BLOCK_MAX, GRID_MAX, SHARED_BYTES_MAX, THREADS_MAX},
    put,
};
use crate::{
    Code, Function, Launch, code,
    kernels::Kernel,
    ptx::parse,
    state::{Answer, Handle, Loaded, Module, Needs, call},
    stream::Work,
};
use std::{
    ffi::{CStr, c_char, c_void},
    ptr,
    sync::Arc,
};

/// `CUjit_option`.
const JIT_INFO_LOG_BUFFER: u32 = 3;
const JIT_INFO_LOG_BUFFER_SIZE_BYTES: u32 = 4;
const JIT_ERROR_LOG_BUFFER: u32 = 5;
const JIT_ERROR_LOG_BUFFER_SIZE_BYTES: u32 = 6;
/// The first number that is no option.
const JIT_OPTIONS: u32 = 34;

/// The caller's wish for the JIT compiler: where its logs go.
#[derive(Clone, Copy, Debug)]
struct Log {
    buffer: *mut c_char,
    room: usize,
    /// Where the length of the log is put: the option's own value.
    filled: *mut *mut c_void,
}

impl Log {
    /// # Safety
    ///
    /// `options` and `values` have `count` entries, and a buffer among them as many bytes as its
    /// size says.
    unsafe fn find(
        buffer: u32,
        size: u32,
        count: usize,
        options: *const u32,
        values: *mut *mut c_void,
    ) -> Self {
        let mut log = Self { buffer: ptr::null_mut(), room: 0, filled: ptr::null_mut() };
        for index in 0..count {
            // SAFETY: the caller's promise.
            let (option, value) = unsafe { (options.add(index).read(), values.add(index)) };
            // SAFETY: the caller's promise.
            let given = unsafe { value.read() };
            if option == buffer {
                log.buffer = given.cast();
            } else if option == size {
                // A 32-bit number in the place of a pointer.
                (log.room, log.filled) = (given.addr() & 0xFFFF_FFFF, value);
            }
        }
        log
    }

    /// # Safety
    ///
    /// As for `find`.
    unsafe fn write(self, text: &str) {
        if self.buffer.is_null() || self.room == 0 {
            return;
        }
        let shown = text.len().min(self.room - 1);
        // SAFETY: the caller's promise: the text and its NUL are at most the buffer's size.
        unsafe {
            ptr::copy_nonoverlapping(text.as_ptr(), self.buffer.cast(), shown);
            self.buffer.add(shown).write(0);
        }
        // SAFETY: `filled` is the entry that said the size.
        unsafe { self.filled.write(ptr::without_provenance_mut(shown + 1)) };
    }
}

/// `CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int numOptions,
/// CUjit_option *options, void **optionValues)`
///
/// # Safety
///
/// `image` is NULL or PTX text that ends with NUL; the options and their values are `count`, and a
/// log's buffer has the size that it says.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleLoadDataEx(
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
        let count = count as usize;
        // SAFETY: the caller's promise, and neither is null where there is an option.
        let unknown = (0..count).any(|index| unsafe { options.add(index).read() } >= JIT_OPTIONS);
        if unknown {
            return Err(code::INVALID_VALUE);
        }
        // SAFETY: the caller's promise.
        let (info, error) = unsafe {
            let find = |buffer, size| Log::find(buffer, size, count, options, values);
            (
                find(JIT_INFO_LOG_BUFFER, JIT_INFO_LOG_BUFFER_SIZE_BYTES),
                find(JIT_ERROR_LOG_BUFFER, JIT_ERROR_LOG_BUFFER_SIZE_BYTES),
            )
        };
        // SAFETY: the caller's promise: the image ends with NUL.
        let text = unsafe { CStr::from_ptr(image.cast()) }.to_string_lossy();
        let device = state.device_of(current)?;
        let compute_capability = (10 * device.major + device.minor).cast_unsigned();
        match parse(&text, compute_capability) {
            Err(log) => {
                // SAFETY: the caller's promise.
                unsafe { error.write(&log) };
                Err(code::INVALID_PTX)
            }
            Ok(entries) => {
                // SAFETY: the caller's promise.
                unsafe { info.write("") };
                let handle = state.new_handle();
                let entries = entries.into_iter().map(Arc::new).collect();
                state.modules.insert(handle, Module { context: current, entries });
                put(Some(module), handle)
            }
        }
    })
}

/// `CUresult cuModuleUnload(CUmodule hmod)`
#[unsafe(no_mangle)]
extern "C" fn cuModuleUnload(module: Handle) -> Code {
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

/// `CUresult cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name)`
///
/// # Safety
///
/// `name` is NULL or a C string.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleGetFunction(
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
            own.entries.iter().find(|entry| entry.name() == name).ok_or(code::NOT_FOUND)?.clone();
        let same = state
            .functions
            .iter()
            .find(|(_, own)| own.module == module && own.entry.name() == name)
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

/// `CUresult cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned
/// int gridDimZ, unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ, unsigned
/// int sharedMemBytes, CUstream hStream, void **kernelParams, void **extra)`
///
/// # Safety
///
/// `params` is NULL or has the pointers that the kernel's declaration needs, each to a value of its
/// type.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "the C function's")]
unsafe extern "C" fn cuLaunchKernel(
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
        state.counters.last_launch = launch;
        state.push(stream, Work::Kernel { kernel, module })?;
        Ok(())
    })
}
