//! The driver's functions, called as a program calls them: they keep to CUDA's documentation, and
//! are as hostile as it allows.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that panics has failed, which is its purpose"
)]

mod kernels;
mod memory;
mod semantics;

use crate::exports::*;
use crate::memory::DEVICEMAP;
use crate::state::{Handle, lock};
use crate::{Code, Config, Counters, Device, Function, LateError, code};
use std::ffi::{CStr, c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{ptr, thread};

const OK: Code = code::SUCCESS;
/// From pinned memory to its device pointer, as the default configuration says.
const OFFSET: u64 = 0x10_0000_0000;

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

/// The library, for one test at a time.
struct Fake {
    _alone: MutexGuard<'static, ()>,
}

impl Fake {
    fn configured(config: &Config) -> Self {
        static ALONE: Mutex<()> = Mutex::new(());
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        lock().configure(config);
        Self { _alone }
    }

    /// With a primary context that is current on this thread.
    fn current(config: &Config) -> Self {
        let fake = Self::configured(config);
        fake.again(config);
        fake
    }

    /// The same for another configuration.
    fn again(&self, config: &Config) {
        lock().configure(config);
        assert_eq!((cuInit(0), cuCtxSetCurrent(retain(0))), (OK, OK));
    }

    fn counters(&self) -> Counters {
        lock().counted()
    }
}

/// What a call writes.
fn out<T>(call: impl FnOnce(Out<'_, T>) -> Code) -> Result<T, Code> {
    let mut value = MaybeUninit::uninit();
    match call(Some(&mut value)) {
        // SAFETY: a call that succeeds has written it.
        OK => Ok(unsafe { value.assume_init() }),
        code => Err(code),
    }
}

fn retain(device: c_int) -> Handle {
    out(|context| cuDevicePrimaryCtxRetain(context, device)).unwrap()
}

fn pin(len: usize, flags: u32) -> Result<*mut u8, Code> {
    out(|p| cuMemHostAlloc(p, len, flags)).map(<*mut c_void>::cast)
}

fn free(p: *mut u8) -> Code {
    cuMemFreeHost(p.cast())
}

fn device_pointer(p: *mut u8) -> Result<u64, Code> {
    out(|addr| cuMemHostGetDevicePointer_v2(addr, p.cast(), 0))
}

/// 64 pinned bytes, and where a device finds them.
fn block() -> (*mut u8, u64) {
    let p = pin(64, DEVICEMAP).unwrap();
    (p, device_pointer(p).unwrap())
}

fn event() -> Handle {
    out(|event| cuEventCreate(event, 2)).unwrap()
}

fn load(image: &CStr) -> Result<Handle, Code> {
    // SAFETY: it ends with NUL, and there are no options.
    out(|module| unsafe {
        cuModuleLoadDataEx(module, image.as_ptr().cast(), 0, ptr::null(), ptr::null_mut())
    })
}

fn function(module: Handle, name: &CStr) -> Result<Handle, Code> {
    // SAFETY: a C string.
    out(|function| unsafe { cuModuleGetFunction(function, module, name.as_ptr()) })
}

/// One block of 32 threads, with pointers to these values.
fn launch<const N: usize>(function: Handle, stream: Handle, values: [u64; N]) -> Code {
    let params = values.each_ref().map(|value| ptr::from_ref(value).cast());
    launch_as(function, [1; 3], [32, 1, 1], stream, &params)
}

fn launch_as(
    function: Handle,
    [gx, gy, gz]: [u32; 3],
    [bx, by, bz]: [u32; 3],
    stream: Handle,
    params: &[*const c_void],
) -> Code {
    let params = if params.is_empty() { ptr::null() } else { params.as_ptr() };
    // SAFETY: null, or a pointer to a value for each parameter.
    unsafe { cuLaunchKernel(function, gx, gy, gz, bx, by, bz, 0, stream, params, ptr::null()) }
}

/// `fill_bytes(dst, value, len)` of [`PTX`].
fn fill_bytes() -> Handle {
    function(load(PTX).unwrap(), c"fill_bytes").unwrap()
}

fn byte(p: *const u8, index: usize) -> u8 {
    // SAFETY: the tests' own memory, of which no other code makes references.
    unsafe { p.add(index).read_volatile() }
}

fn fill(p: *mut u8, value: u8, len: usize) {
    // SAFETY: as in `byte`.
    unsafe { p.write_bytes(value, len) };
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
