//! The library as a program has it: loaded, and called by its C names. It keeps to CUDA's
//! documentation, and is as hostile as it says.
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a test that panics has failed, and it calls a C library"
)]

mod kernels;
mod memory;
mod semantics;

use fake_cuda::{Config, Controls, Device, Function, LateError, code, library};
use std::{
    ffi::{CStr, CString, c_char, c_int, c_void},
    os::unix::ffi::OsStrExt,
    ptr, thread,
};

/// One function of the loaded library, called.
macro_rules! cu {
    ($name:ident($($arg:expr => $kind:ty),* $(,)?)) => {{
        let function = crate::symbol(stringify!($name));
        // SAFETY: the type is that of `cuda.h`. The arguments are valid for it, or they are those
        // that a test of misuse hands in.
        unsafe {
            std::mem::transmute::<*mut std::ffi::c_void, unsafe extern "C" fn($($kind),*) -> i32>(
                function,
            )($($arg),*)
        }
    }};
}
use cu;

type Handle = usize;

/// The project's kernels, and two that are of no use.
const PTX: &CStr = match CStr::from_bytes_with_nul(
    concat!(
        include_str!("../../../../examples/gemm8/kernels/gemm8.ptx"),
        ".visible .entry unknown() { ret; }\n.entry hidden() { ret; }\n",
        "\0"
    )
    .as_bytes(),
) {
    Ok(text) => text,
    Err(_) => c"",
};

fn symbol(name: &str) -> *mut c_void {
    let path = CString::new(library().as_os_str().as_bytes()).unwrap();
    let name = CString::new(name).unwrap();
    // SAFETY: C strings.
    let symbol = unsafe { libc::dlsym(libc::dlopen(path.as_ptr(), libc::RTLD_NOW), name.as_ptr()) };
    assert!(!symbol.is_null(), "{name:?}");
    symbol
}

/// The fake with `config`, initialised.
fn initialised(config: &Config) -> Controls {
    let controls = Controls::take(config);
    assert_eq!(cu!(cuInit(0 => u32)), 0);
    controls
}

/// The fake with `config`, and a primary context that is current on this thread.
fn current(config: &Config) -> Controls {
    let controls = initialised(config);
    let context = retain(0);
    assert_eq!(cu!(cuCtxSetCurrent(context => Handle)), 0);
    controls
}

fn retain(device: c_int) -> Handle {
    let mut context = 0;
    assert_eq!(cu!(cuDevicePrimaryCtxRetain(&mut context => &mut Handle, device => c_int)), 0);
    context
}

fn pin(len: usize, flags: u32) -> Result<*mut u8, i32> {
    let mut p = ptr::null_mut();
    match cu!(cuMemHostAlloc(&mut p => &mut *mut u8, len => usize, flags => u32)) {
        0 => Ok(p),
        code => Err(code),
    }
}

fn free(p: *mut u8) -> i32 {
    cu!(cuMemFreeHost(p => *mut u8))
}

fn device_pointer(p: *mut u8) -> Result<u64, i32> {
    let mut addr = 0;
    match cu!(cuMemHostGetDevicePointer_v2(&mut addr => &mut u64, p => *mut u8, 0 => u32)) {
        0 => Ok(addr),
        code => Err(code),
    }
}

fn device_alloc(len: usize) -> u64 {
    let mut addr = 0;
    assert_eq!(cu!(cuMemAlloc_v2(&mut addr => &mut u64, len => usize)), 0);
    addr
}

fn stream(flags: u32) -> Handle {
    let mut stream = 0;
    assert_eq!(cu!(cuStreamCreate(&mut stream => &mut Handle, flags => u32)), 0);
    stream
}

fn event() -> Handle {
    let mut event = 0;
    assert_eq!(cu!(cuEventCreate(&mut event => &mut Handle, 2 => u32)), 0);
    event
}

fn load(image: &CStr) -> Result<Handle, i32> {
    let mut module = 0;
    let (none, null) = (ptr::null_mut::<u32>(), ptr::null_mut::<*mut c_void>());
    let (image, module_at) = (image.as_ptr(), &mut module);
    match cu!(cuModuleLoadDataEx(
        module_at => &mut Handle, image => *const c_char, 0 => u32, none => *mut u32,
        null => *mut *mut c_void
    )) {
        0 => Ok(module),
        code => Err(code),
    }
}

fn function(module: Handle, name: &CStr) -> Result<Handle, i32> {
    let mut function = 0;
    match cu!(cuModuleGetFunction(
        &mut function => &mut Handle, module => Handle, name.as_ptr() => *const c_char
    )) {
        0 => Ok(function),
        code => Err(code),
    }
}

/// One block of 32 threads, with pointers to these values.
fn launch<const N: usize>(function: Handle, stream: Handle, mut values: [u64; N]) -> i32 {
    let mut params = values.each_mut().map(|value| ptr::from_mut(value).cast::<c_void>());
    launch_as(function, [1; 3], [32, 1, 1], stream, params.as_mut_ptr())
}

fn launch_as(
    function: Handle,
    [gx, gy, gz]: [u32; 3],
    [bx, by, bz]: [u32; 3],
    stream: Handle,
    params: *mut *mut c_void,
) -> i32 {
    cu!(cuLaunchKernel(
        function => Handle, gx => u32, gy => u32, gz => u32, bx => u32, by => u32, bz => u32,
        0 => u32, stream => Handle,
        params => *mut *mut c_void, ptr::null_mut() => *mut *mut c_void,
    ))
}

fn query(stream: Handle) -> i32 {
    cu!(cuStreamQuery(stream => Handle))
}

fn synchronize(stream: Handle) -> i32 {
    cu!(cuStreamSynchronize(stream => Handle))
}

fn record(event: Handle, stream: Handle) -> i32 {
    cu!(cuEventRecord(event => Handle, stream => Handle))
}

fn query_event(event: Handle) -> i32 {
    cu!(cuEventQuery(event => Handle))
}

/// A module with the fake's kernels, and `fill_bytes` of it.
fn fill_bytes() -> Handle {
    function(load(PTX).unwrap(), c"fill_bytes").unwrap()
}

fn byte(p: *const u8, index: usize) -> u8 {
    // SAFETY: the tests' own memory, of which no other code makes references.
    unsafe { p.add(index).read_volatile() }
}

/// The signal that ends a process which reads this byte of the memory as it is now; `None` where it
/// can.
fn signal_of_reading(p: *const u8) -> Option<i32> {
    // SAFETY: the child makes system calls and reads, and allocates nothing.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
            libc::signal(libc::SIGSEGV, libc::SIG_DFL);
            p.read_volatile();
            libc::_exit(0);
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
        libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status))
    }
}

/// The answers for another thread, without contexts.
fn elsewhere<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| scope.spawn(work).join().unwrap())
}

const DEVICEMAP: u32 = 2;
const OK: i32 = code::SUCCESS;
