//! The kernel's side of a contigo: one trait, so that a test can stand in for any board.
#![allow(unsafe_code, reason = "ioctls on a raw descriptor, and the unsafe trait of the seam")]

use super::abi::{
    self, Alloc, DmaBits, EventFd, Export, Import, Info, Release, SegmentAt, Segments, Step,
    SyncRange, Unmask, WaitFor,
};
use crate::linux::os::fd::{Fd, Path, check_name};
use crate::linux::os::{dir, sysfs};
use crate::types::Error;
use core::ffi::c_void;
use core::ptr;
use nix::errno::Errno;
use nix::libc::{self, EACCES, EBUSY, ENOENT, EPERM, O_DIRECTORY, O_NONBLOCK, O_RDONLY, O_RDWR};
use nix::sys::ioctl::ioctl_num_type;

/// One ioctl of the module. Arrays are passed as slices: their length and their address are filled
/// in here.
#[derive(Debug)]
#[allow(missing_docs, reason = "uapi/contigo.h documents the calls")]
pub enum Request<'r> {
    GetInfo(&'r mut Info),
    SetDmaBits(u32),
    Alloc(&'r mut Alloc),
    /// Returns the dma-buf that holds allocated memory.
    Export {
        handle: u32,
        dma_buf: &'r mut Option<Fd>,
    },
    Import(&'r mut Import),
    /// Returns the run at `offset_bytes` of an import, and how many runs the kernel wrote.
    GetSegment {
        handle: u32,
        offset_bytes: u64,
        found: &'r mut SegmentAt,
        count: &'r mut u32,
    },
    Release(u32),
    Sync(&'r [SyncRange]),
    Arm(&'r [Step]),
    /// A bit for each interrupt.
    Unmask(u32),
    SetEventFd {
        interrupt: u32,
        event: &'r Fd,
    },
    Reset,
    /// Returns those of `interrupts` that came; 0 at the timeout, or after a signal.
    Wait {
        interrupts: u32,
        timeout_us: u32,
        came: &'r mut u32,
    },
}

/// The calls of a [`DevNode`](super::DevNode) to the kernel. `RealDevNode` makes them; a test
/// provides its own kernel.
///
/// # Safety
/// Callers owe nothing, because only this module can call: no other code can make or see a
/// `RealDevNode`. A request writes registers, and releases memory.
///
/// # Implementation safety
/// 1. An import's address and segments are where the device finds the dma-buf's bytes, until it is
///    released or the file is closed. The dma-buf is as long as it says, and can be mapped shared.
///    Allocated memory is as long as was asked for, zero, and in no other use. Its address is that
///    of its first byte for the device, and the others follow it. [`memory`](Self::memory) maps it,
///    and a mapping of it holds the same bytes for as long as it lives.
/// 2. The answer of [`Request::GetInfo`] about coherency and translation is true, and a sync that
///    succeeds was done.
/// 3. A window of that answer is registers of this device, which no other code writes while the
///    file is open, and which [`registers`](Self::registers) maps. A mapping keeps the file open.
///    Where the device is taken away, one page of ordinary memory is in the place of each of its
///    pages: ones at first, and then what this process wrote.
pub unsafe trait DevNodeKernel: Send + Sync {
    /// Opens `/dev/contigo/<name>`.
    ///
    /// # Errors
    /// As [`DevNode::open`](super::DevNode::open).
    fn open(&self, name: &str) -> Result<Fd, Error>;

    /// Duplicates `fd`, the descriptor of a dma-buf.
    ///
    /// # Errors
    /// The errno of fcntl(2).
    fn duplicate(&self, fd: i32) -> Result<Fd, i32>;

    /// Waits until the current writers of the dma-buf `file` have finished.
    ///
    /// # Errors
    /// The errno of ppoll(2); ETIMEDOUT, after a signal too.
    fn written(&self, file: &Fd, timeout_us: u32) -> Result<(), i32> {
        if file.wait_readable(timeout_us)? { Ok(()) } else { Err(libc::ETIMEDOUT) }
    }

    /// One ioctl.
    ///
    /// # Errors
    /// The errno.
    fn ioctl(&self, file: &Fd, request: Request<'_>) -> Result<(), i32>;

    /// The file whose bytes are the registers: this one. A test has another.
    fn registers<'f>(&self, file: &'f Fd) -> &'f Fd {
        file
    }

    /// The file of the allocated memory `handle`, which begins at its first byte. `None`: it is
    /// `file` itself, at the place that the kernel reported. A test has another.
    fn memory(&self, file: &Fd, handle: u32) -> Option<Fd> {
        let _ = (file, handle);
        None
    }
}

crate::linux::os::asked!(RealDevNode as DevNodeKernel);

/// The running kernel, with the module `contigo`.
#[derive(Debug)]
pub(super) struct RealDevNode;

/// Where the module lists its contigo devices.
const CLASS: &str = "/sys/class/contigo";

// SAFETY: 1. `contigo_import`: the addresses are those of the mapped scatter list, which stays
// mapped until its release. A dma-buf's size is fixed (`struct dma_buf`). `contigo_own_new`: the
// DMA API gives cleared pages and the address of the first; `contigo_own_mmap` maps those pages
// alone, and each mapping has a reference of its own. 2. The kernel itself reports them. 3.
// `contigo_mmap`: the windows that the device tree or the bus declares, of a device that this
// module is bound to; one file at a time is open.
unsafe impl DevNodeKernel for RealDevNode {
    fn open(&self, name: &str) -> Result<Fd, Error> {
        const WHAT: &str = "/dev/contigo/";
        const FIX: &str =
            "add the user to the group of the udev rule (kernel-helpers/udev), or be root";
        const UNCONFINED: &str = "nothing confines this device, so it needs CAP_SYS_RAWIO (root), \
         or the module parameter \
                                  unprivileged=1; a kernel that is locked down refuses it to all";
        check_name(name)?;
        let path = Path::join(&["/dev/contigo", name])?;
        // Non-blocking, for an event loop that reads the file itself.
        Fd::open(path.as_c_str(), O_RDWR | O_NONBLOCK).map_err(|errno| match errno {
            ENOENT => Error::NotFound {
                what: "device of the kernel module contigo",
                among: dev_nodes().into(),
            },
            EACCES => Error::Denied { what: WHAT, errno, fix: FIX },
            EPERM => Error::Denied { what: WHAT, errno, fix: UNCONFINED },
            EBUSY => Error::InUse { errno },
            errno => Error::Os { call: "open(/dev/contigo/)", errno },
        })
    }

    fn duplicate(&self, fd: i32) -> Result<Fd, i32> {
        Fd::duplicate(fd)
    }

    fn ioctl(&self, file: &Fd, request: Request<'_>) -> Result<(), i32> {
        let fd = file.raw();
        let count = |len: usize| u32::try_from(len).map_err(|_| libc::E2BIG);
        match request {
            // SAFETY: each structure is the one of its request code (sizes asserted in `abi.rs`),
            // lives until the call returns, and is borrowed exclusively where the kernel writes.
            Request::GetInfo(info) => unsafe {
                call(fd, abi::code::GET_INFO, (&raw mut *info).cast())
            },
            // SAFETY: as above.
            Request::Import(import) => unsafe {
                call(fd, abi::code::IMPORT, (&raw mut *import).cast())
            },
            // SAFETY: as above.
            Request::Alloc(alloc) => unsafe {
                call(fd, abi::code::ALLOC, (&raw mut *alloc).cast())
            },
            Request::Export { handle, dma_buf } => {
                let mut export = Export { handle, fd: -1 };
                // SAFETY: as above.
                unsafe { call(fd, abi::code::EXPORT, (&raw mut export).cast())? };
                // SAFETY: the kernel has just made it, for this caller.
                *dma_buf = (export.fd >= 0).then(|| unsafe { Fd::from_raw(export.fd) });
                Ok(())
            }
            Request::SetDmaBits(bits) => {
                let mut bits = DmaBits { bits, reserved: 0 };
                // SAFETY: as above.
                unsafe { call(fd, abi::code::SET_DMA_BITS, (&raw mut bits).cast()) }
            }
            Request::Release(handle) => {
                let mut release = Release { handle, reserved: 0 };
                // SAFETY: as above.
                unsafe { call(fd, abi::code::RELEASE, (&raw mut release).cast()) }
            }
            Request::GetSegment { handle, offset_bytes, found, count } => {
                let ptr = (&raw mut *found).expose_provenance() as u64;
                let mut ask = Segments { handle, count: 1, offset_bytes, ptr };
                // SAFETY: as above; and there is room for one, borrowed exclusively.
                unsafe { call(fd, abi::code::GET_SEGMENTS, (&raw mut ask).cast())? };
                *count = ask.count;
                Ok(())
            }
            Request::Unmask(interrupts) => {
                let mut unmask = Unmask { interrupts, reserved: 0 };
                // SAFETY: as above.
                unsafe { call(fd, abi::code::UNMASK, (&raw mut unmask).cast()) }
            }
            Request::SetEventFd { interrupt, event } => {
                let mut event = EventFd { interrupt, fd: event.raw() };
                // SAFETY: as above.
                unsafe { call(fd, abi::code::SET_EVENTFD, (&raw mut event).cast()) }
            }
            // SAFETY: it takes no argument.
            Request::Reset => unsafe { call(fd, abi::code::RESET, ptr::null_mut()) },
            Request::Wait { interrupts, timeout_us, came } => {
                let mut wait = WaitFor { interrupts, timeout_us };
                // SAFETY: as above.
                let waited = unsafe { call_once(fd, abi::code::WAIT, (&raw mut wait).cast()) };
                match waited {
                    Ok(()) => *came = wait.interrupts,
                    // Called again, it would wait for the whole time again.
                    Err(libc::EINTR) => *came = 0,
                    Err(errno) => return Err(errno),
                }
                Ok(())
            }
            Request::Sync(ranges) => {
                let ptr = ranges.as_ptr().expose_provenance() as u64;
                let mut sync = abi::Sync { count: count(ranges.len())?, reserved: 0, ptr };
                // SAFETY: as above; the kernel only reads the array.
                unsafe { call(fd, abi::code::SYNC, (&raw mut sync).cast()) }
            }
            Request::Arm(steps) => {
                let ptr = steps.as_ptr().expose_provenance() as u64;
                let mut sequence =
                    abi::StopSequence { count: count(steps.len())?, reserved: 0, ptr };
                // SAFETY: as above.
                unsafe { call(fd, abi::code::ARM, (&raw mut sequence).cast()) }
            }
        }
    }
}

/// How many devices the module has.
fn dev_nodes() -> u32 {
    let mut ports = 0;
    let Ok(folder) =
        Path::join(&[CLASS]).map(|path| Fd::open(path.as_c_str(), O_RDONLY | O_DIRECTORY))
    else {
        return 0;
    };
    if let Ok(folder) = folder {
        let _ = dir::each_name(&folder, CLASS, |_| {
            ports += 1;
            Ok(())
        });
    }
    ports
}

/// One ioctl with a pointer; again after a signal, before which the kernel has done nothing
/// (`uapi/contigo.h`, EINTR).
///
/// # Safety
/// `argument` is what the request reads and writes.
unsafe fn call(fd: i32, request: ioctl_num_type, argument: *mut c_void) -> Result<(), i32> {
    // SAFETY: the caller's promise.
    sysfs::retry(|| unsafe { call_once(fd, request, argument) })
}

/// # Safety
/// As [`call`].
unsafe fn call_once(fd: i32, request: ioctl_num_type, argument: *mut c_void) -> Result<(), i32> {
    // SAFETY: the caller's promise.
    let result = unsafe { libc::ioctl(fd, request, argument) };
    if result < 0 { Err(Errno::last_raw()) } else { Ok(()) }
}
