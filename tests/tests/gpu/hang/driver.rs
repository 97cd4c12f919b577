//! Which of the driver's functions wait for a kernel of the context that has nothing to do with
//! them.

use super::{BEGUN, ENDED, Flag, PTX, SOON, Word, forbidden, say};
use crate::{
    alone,
    libcuda::{
        cuEventCreate, cuEventDestroy_v2, cuEventQuery, cuEventRecord, cuLaunchKernel,
        cuMemAlloc_v2, cuMemFree_v2, cuMemFreeHost, cuMemHostAlloc, cuModuleGetFunction,
        cuModuleLoadDataEx, cuModuleUnload, cuStreamCreate, cuStreamDestroy_v2, cuStreamQuery,
    },
    raw::Raw,
};
use contigo_gemm8::cuda as gemm8_cuda;
use contigo_testkit::emulated::skipped;
use std::{
    ffi::{c_int, c_uint, c_void},
    ptr,
    sync::{
        Arc,
        atomic::Ordering,
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::{Duration, Instant},
};

const NAME: &str = "needed_calls_wait_for_no_hung_kernel";
/// A call that is not back by then waits for the kernel: the others take microseconds, loading a
/// module milliseconds.
const LIMIT: Duration = Duration::from_secs(2);
const NON_BLOCKING: c_uint = 1;
const PORTABLE_AND_MAPPED: c_uint = 3;
const BLOCK_BYTES: usize = 1 << 20;

/// An object of the driver: a handle, or the address of a block.
#[derive(Clone, Copy, Debug)]
struct Made(*mut c_void);

// SAFETY: any thread may use the driver's handles, and no code accesses the bytes of the blocks.
unsafe impl Send for Made {}

impl Made {
    /// The handle that `make` writes.
    fn by(make: impl FnOnce(*mut *mut c_void) -> c_int) -> Self {
        let mut handle = ptr::null_mut();
        assert_eq!(make(&raw mut handle), 0);
        Self(handle)
    }

    fn stream() -> Self {
        // SAFETY: the pointer is a reference; so below.
        Self::by(|to| unsafe { cuStreamCreate(to, NON_BLOCKING) })
    }

    fn event() -> Self {
        // SAFETY: as above.
        Self::by(|to| unsafe { cuEventCreate(to, 0) })
    }

    fn block() -> Self {
        // SAFETY: as above.
        Self::by(|to| unsafe { cuMemHostAlloc(to, BLOCK_BYTES, PORTABLE_AND_MAPPED) })
    }

    fn module(ptx: &core::ffi::CStr) -> Self {
        // SAFETY: as above; PTX, with its NUL; no options.
        Self::by(|to| unsafe {
            cuModuleLoadDataEx(to, ptx.as_ptr().cast(), 0, ptr::null_mut(), ptr::null_mut())
        })
    }
}

/// One measurement: a name, whether the runtime calls it beside a kernel that hangs, and the call.
type Call = (&'static str, bool, Box<dyn FnOnce() -> c_int + Send>);

/// The calls to measure, with all the objects that they need.
fn calls() -> Vec<Call> {
    let (event, stream, block, module) =
        (Made::event(), Made::stream(), Made::block(), Made::module(gemm8_cuda::PTX));
    let idle = Made::stream();
    // SAFETY: both were made above.
    assert_eq!(unsafe { cuEventRecord(event.0, idle.0) }, 0);
    let mut device = 0;
    // SAFETY: the pointer is a reference.
    assert_eq!(unsafe { cuMemAlloc_v2(&raw mut device, BLOCK_BYTES) }, 0);
    let on =
        |call: unsafe fn(*mut c_void) -> c_int, made: Made| -> Box<dyn FnOnce() -> c_int + Send> {
            // The whole of it moves to the other thread, not the pointer in it.
            // SAFETY: below, each handle is what the function takes, and is given back once.
            Box::new(move || unsafe { call({ made }.0) })
        };
    vec![
        ("cuEventQuery", true, on(cuEventQuery, event)),
        ("cuStreamQuery", true, on(cuStreamQuery, idle)),
        ("cuEventDestroy", true, on(cuEventDestroy_v2, event)),
        ("cuStreamDestroy", true, on(cuStreamDestroy_v2, stream)),
        ("cuMemFreeHost", false, on(cuMemFreeHost, block)),
        // SAFETY: allocated above, and freed once.
        ("cuMemFree", false, Box::new(move || unsafe { cuMemFree_v2(device) })),
        ("cuModuleUnload", false, on(cuModuleUnload, module)),
        ("cuStreamCreate", false, Box::new(|| i32::from(Made::stream().0.is_null()))),
        ("cuMemHostAlloc", false, Box::new(|| i32::from(Made::block().0.is_null()))),
        (
            "cuModuleLoadDataEx",
            false,
            Box::new(|| i32::from(Made::module(gemm8_cuda::PTX).0.is_null())),
        ),
    ]
}

/// Puts `spin` into `stream`. The driver's code.
fn launch(spin: Made, stream: Made, out: Word, flag: Word) -> c_int {
    let (mut out, mut flag) = (out.addr, flag.addr);
    let mut parameters: [*mut c_void; 2] = [(&raw mut out).cast(), (&raw mut flag).cast()];
    // SAFETY: `spin` has these two parameters, and both words stay for ever.
    unsafe {
        cuLaunchKernel(
            spin.0,
            1,
            1,
            1,
            1,
            1,
            1,
            0,
            stream.0,
            parameters.as_mut_ptr(),
            ptr::null_mut(),
        )
    }
}

/// One line of the table: how long `call` took on a thread of its own beside the kernel, and
/// whether it waited.
fn beside(
    name: &str,
    raw: &Arc<Raw>,
    flag: &Flag,
    call: Box<dyn FnOnce() -> c_int + Send>,
) -> (Duration, c_int, bool) {
    let (send, receive) = mpsc::channel();
    let raw = Arc::clone(raw);
    thread::spawn(move || {
        raw.current();
        let since = Instant::now();
        let code = call();
        let _ = send.send((since.elapsed(), code));
    });
    let first = receive.recv_timeout(LIMIT);
    flag.end();
    let waited = first == Err(RecvTimeoutError::Timeout);
    match if waited { receive.recv_timeout(SOON) } else { first } {
        Ok((took, code)) => (took, code, waited),
        Err(RecvTimeoutError::Timeout) => {
            panic!("{name}: the kernel may end, and the call does not come back")
        }
        Err(RecvTimeoutError::Disconnected) => {
            panic!("{name}: the call failed, as its thread says above")
        }
    }
}

#[test]
fn needed_calls_wait_for_no_hung_kernel() {
    let Some((gpu, _alone)) = alone(NAME) else { return };
    if let Some(why) = forbidden() {
        return skipped(NAME, why);
    }
    let raw = Arc::new(Raw::open());
    let (flag, out, stream, module) =
        (Flag(Word::new(gpu)), Word::new(gpu), Made::stream(), Made::module(PTX));
    // SAFETY: the pointer is a reference, the name ends with its NUL.
    let spin = Made::by(|to| unsafe { cuModuleGetFunction(to, module.0, c"spin".as_ptr()) });
    // Once with the flag up, for what a driver loads late.
    flag.end();
    assert_eq!(launch(spin, stream, out, flag.0), 0);
    assert!(out.becomes(ENDED), "the kernel did not end");
    let mut waiting = Vec::new();
    for (name, needed, call) in calls() {
        flag.spin();
        out.cpu.store(0, Ordering::Release);
        assert_eq!(launch(spin, stream, out, flag.0), 0);
        assert!(out.becomes(BEGUN), "the kernel did not begin");
        let (took, code, waited) = beside(name, &raw, &flag, call);
        assert!(out.becomes(ENDED), "{name}: the flag is up, and the kernel goes on");
        assert_eq!((code, raw.synchronize()), (0, 0), "{name}");
        let how = if waited { "waits for the kernel" } else { "does not wait" };
        say(&format!("  {name:<20} {:>10} us  {how}", took.as_micros()));
        if waited && needed {
            waiting.push(name);
        }
    }
    assert!(waiting.is_empty(), "the runtime calls these beside a kernel that hangs: {waiting:?}");
}
