//! A kernel that does not end until the CPU sets its flag, or it gives up after a minute or so
//! (`spin.rs`), and the work that is possible beside it.
//!
//! The runtime gives up on such a kernel: it leaks what the kernel may use, and calls nothing any
//! more that might wait for the whole context. `engine.rs` tests that, by the time that each call
//! takes.

mod engine;
mod spin;

use self::spin::{BEGUN, ENDED, GAVE_UP, PTX};
use super::libcuda::cuDeviceGetAttribute;
use super::say;
use contigo::cuda::{
    CudaFunction, CudaHost, Gpu, Image, Launch, Log, Module, Parameter, Signature,
};
use contigo::{Align, Backend, OperandSpec};
use std::ffi::c_int;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use std::{mem, thread};

/// A kernel that was launched has begun by then, and one that may end has ended: either takes
/// microseconds.
const SOON: Duration = Duration::from_secs(5);

/// `spin(out, flag)`, whose argument words are the flag's address.
fn spin(module: &Module) -> CudaFunction {
    let operand = OperandSpec { min_bytes: 4, ..OperandSpec::from_device() };
    let parameters = [Parameter::Operand(operand), Parameter::Words(2)];
    let signature = Signature::new("spin", &parameters).unwrap().launched(Launch::of(1, 1));
    // SAFETY: [`PTX`]: one thread writes four bytes at the operand. It reads four more at the flag,
    // which is never freed ([`Word::new`]) and which the CPU reads and writes as an atomic.
    unsafe { CudaFunction::new(module, c"spin", signature) }.unwrap()
}

/// Loads [`PTX`]. A kernel of it that hangs keeps it.
fn module(gpu: &Gpu) -> Module {
    let mut log = Log::new();
    // SAFETY: it is PTX.
    let module = unsafe { Module::load(gpu, Image::Ptx(PTX), &mut log) };
    module.unwrap_or_else(|error| panic!("{error}: {log}"))
}

/// A word that CPU and GPU read and write at any time.
#[derive(Clone, Copy, Debug)]
struct Word {
    cpu: &'static AtomicU32,
    addr: u64,
}

impl Word {
    /// A new one, 0, in pinned memory of its own that is never freed.
    fn new(gpu: &Gpu) -> Self {
        let memory = CudaHost::allocate(gpu, 64, Align::LINE).unwrap();
        let mapping = memory.mapping();
        mem::forget(memory);
        Self { cpu: shared(mapping.cpu), addr: mapping.base.raw() }
    }

    /// Waits until it is `value`; `false` where it was not [`SOON`]. Panics where the kernel has
    /// given up.
    fn becomes(self, value: u32) -> bool {
        let since = Instant::now();
        loop {
            match self.cpu.load(Ordering::Acquire) {
                found if found == value => return true,
                GAVE_UP => panic!("the kernel gave up waiting for its flag"),
                _ => {}
            }
            if since.elapsed() > SOON {
                return false;
            }
            thread::yield_now();
        }
    }
}

/// The word there, as both sides use it.
fn shared(first: NonNull<u8>) -> &'static AtomicU32 {
    // SAFETY: the callers' words begin a line of pinned memory that is never given back, and the
    // CPU makes no other reference to them.
    unsafe { first.cast::<AtomicU32>().as_ref() }
}

/// The flag that kernels wait for. Dropping it ends them, so that a test that fails leaves none
/// behind.
#[derive(Debug)]
struct Flag(Word);

impl Flag {
    fn spin(&self) {
        self.0.cpu.store(0, Ordering::Release);
    }

    fn end(&self) {
        self.0.cpu.store(1, Ordering::Release);
    }
}

impl Drop for Flag {
    fn drop(&mut self) {
        self.end();
    }
}

/// Why no kernel may spin here; `None` where one may.
fn forbidden() -> Option<&'static str> {
    const KERNEL_EXEC_TIMEOUT: c_int = 17;
    let mut limited = 0;
    // SAFETY: the pointer is a reference, and the device is there.
    let asked = unsafe { cuDeviceGetAttribute(&raw mut limited, KERNEL_EXEC_TIMEOUT, 0) };
    (asked != 0 || limited != 0)
        .then_some("a display's watchdog ends this GPU's kernels, and the context with them")
}
