//! The file of a contigo device, and the module's ioctls: `kernel-helpers/uapi/contigo.h`.
//!
//! The backends rely on this:
//! 1. An import's address and segments are where the device finds the dma-buf's bytes, until it is
//!    released or the file is closed (`contigo_import`: they are those of the mapped scatter list).
//!    The dma-buf is as long as it says, and can be mapped shared. Allocated memory is as long as
//!    was asked for, zero, and in no other use. Its address is that of its first byte for the
//!    device, and the others follow it (`contigo_own_new`: the DMA API gives cleared pages and the
//!    address of the first). The file maps it where the kernel says, and a mapping of it holds the
//!    same bytes for as long as it lives (`contigo_own_mmap`: each has a reference of its own).
//! 2. What CONTIGO_GET_INFO says about coherency and translation is true, and a sync that succeeds
//!    was done.
//! 3. A window of that answer is registers of this device, which no other code writes while the
//!    file is open, and which the file maps there (`contigo_mmap`). One file at a time is open, and
//!    a mapping keeps it open. Where the device is taken away, one page of ordinary memory is in
//!    the place of each of its pages: ones at first, and then what this process wrote.
#![allow(unsafe_code, reason = "ioctls whose argument is a pointer, or has one")]

use super::abi::{
    self, Alloc, DmaBits, EventFd, Export, Import, Info, Release, SegmentAt, Segments, Step,
    SyncRange, Unmask, WaitFor, code,
};
use crate::linux::os::fd::Fd;
use crate::linux::os::path::{Path, check_name};
use crate::linux::os::{self, Argument, Kernel, SystemCalls, arguments, dir, sysfs};
use crate::types::Error;
use core::ffi::c_void;
use core::ptr;
use nix::libc::{
    E2BIG, EACCES, EBUSY, EINTR, ENOENT, EPERM, EPROTO, O_DIRECTORY, O_NONBLOCK, O_RDONLY, O_RDWR,
};
use nix::sys::ioctl::ioctl_num_type;

// The header gives each request its structure; numbers and layouts are compared with it
// (`tests/tests/sources/uapi.rs`). None of them has a pointer.
arguments! {
    DmaBits: code::SET_DMA_BITS,
    Alloc: code::ALLOC,
    Export: code::EXPORT,
    Import: code::IMPORT,
    Release: code::RELEASE,
    Unmask: code::UNMASK,
    EventFd: code::SET_EVENTFD,
    WaitFor: code::WAIT,
}

/// Where the module lists its contigo devices.
const CLASS: &str = "/sys/class/contigo";

/// Opens `/dev/contigo/<name>`.
///
/// # Errors
/// As [`DevNode::open`](super::DevNode::open).
pub(super) fn open(kernel: &Kernel, name: &str) -> Result<Fd, Error> {
    const WHAT: &str = "/dev/contigo/";
    const FIX: &str =
        "add the user to the group of the udev rule (kernel-helpers/udev), or be root";
    const UNCONFINED: &str = "nothing confines this device, so it needs CAP_SYS_RAWIO (root), \
     or the module parameter unprivileged=1; a kernel that is locked down refuses it to all";
    check_name(name)?;
    let path = Path::join(&["/dev/contigo", name])?;
    // Non-blocking, for an event loop that reads the file itself.
    kernel.open(path.as_c_str(), O_RDWR | O_NONBLOCK).map_err(|errno| match errno {
        ENOENT => Error::NotFound {
            what: "device of the kernel module contigo",
            among: dev_nodes(kernel).into(),
        },
        EACCES => Error::Denied { what: WHAT, errno, fix: FIX },
        EPERM => Error::Denied { what: WHAT, errno, fix: UNCONFINED },
        EBUSY => Error::InUse { errno },
        errno => Error::Os { call: "open(/dev/contigo/)", errno },
    })
}

/// How many devices the module has.
fn dev_nodes(kernel: &Kernel) -> u32 {
    let mut count = 0;
    let folder =
        Path::join(&[CLASS]).map(|path| kernel.open(path.as_c_str(), O_RDONLY | O_DIRECTORY));
    if let Ok(Ok(folder)) = folder {
        let _ = dir::each_name(&folder, CLASS, |_| {
            count += 1;
            Ok(())
        });
    }
    count
}

/// One ioctl with its structure; again after a signal, before which the kernel has done nothing
/// (`uapi/contigo.h`, EINTR).
///
/// # Errors
/// The errno.
pub(super) fn ask<A: Argument>(kernel: &Kernel, file: &Fd, argument: &mut A) -> Result<(), i32> {
    sysfs::retry(|| os::ask(kernel, file, argument)).map(drop)
}

/// `CONTIGO_GET_INFO`, unchecked.
///
/// # Errors
/// The errno.
pub(super) fn info(kernel: &Kernel, file: &Fd) -> Result<Info, i32> {
    let mut info = Info { argsz: Info::ARGSZ, ..Info::default() };
    // SAFETY: the kernel writes `argsz` bytes of it at most, which is its size.
    unsafe { call(kernel, file, code::GET_INFO, (&raw mut info).cast())? };
    Ok(info)
}

/// `CONTIGO_EXPORT`: a dma-buf of allocated memory.
///
/// # Errors
/// The errno.
pub(super) fn export(kernel: &Kernel, file: &Fd, handle: u32) -> Result<Fd, i32> {
    let mut export = Export { handle, fd: -1 };
    ask(kernel, file, &mut export)?;
    if export.fd < 0 {
        return Err(EPROTO);
    }
    // SAFETY: the kernel has just made it, for this caller.
    Ok(unsafe { kernel.made(export.fd) })
}

/// `CONTIGO_GET_SEGMENTS`: the run at `offset_bytes` of an import, and how many runs the kernel
/// wrote.
///
/// # Errors
/// The errno.
pub(super) fn segment(
    kernel: &Kernel,
    file: &Fd,
    handle: u32,
    offset_bytes: u64,
) -> Result<(SegmentAt, u32), i32> {
    let mut found = SegmentAt::default();
    let ptr = (&raw mut found).expose_provenance() as u64;
    let mut ask = Segments { handle, count: 1, offset_bytes, ptr };
    // SAFETY: the request's structure, and there is room for one segment.
    unsafe { call(kernel, file, code::GET_SEGMENTS, (&raw mut ask).cast())? };
    Ok((found, ask.count))
}

/// `CONTIGO_SYNC`.
///
/// # Errors
/// The errno.
pub(super) fn sync(kernel: &Kernel, file: &Fd, ranges: &[SyncRange]) -> Result<(), i32> {
    let ptr = ranges.as_ptr().expose_provenance() as u64;
    let mut sync = abi::Sync { count: count(ranges.len())?, reserved: 0, ptr };
    // SAFETY: the request's structure; the kernel only reads the array, which is that long.
    unsafe { call(kernel, file, code::SYNC, (&raw mut sync).cast()) }
}

/// `CONTIGO_ARM`.
///
/// # Errors
/// The errno.
pub(super) fn arm(kernel: &Kernel, file: &Fd, steps: &[Step]) -> Result<(), i32> {
    let ptr = steps.as_ptr().expose_provenance() as u64;
    let mut sequence = abi::StopSequence { count: count(steps.len())?, reserved: 0, ptr };
    // SAFETY: as in `sync`.
    unsafe { call(kernel, file, code::ARM, (&raw mut sequence).cast()) }
}

/// `CONTIGO_RESET`.
///
/// # Errors
/// The errno.
pub(super) fn reset(kernel: &Kernel, file: &Fd) -> Result<(), i32> {
    // SAFETY: it takes no argument.
    unsafe { call(kernel, file, code::RESET, ptr::null_mut()) }
}

/// `CONTIGO_WAIT`: those of `interrupts` that came; 0 at the timeout, or after a signal: called
/// again, it would wait for the whole time again.
///
/// # Errors
/// The errno.
pub(super) fn wait(
    kernel: &Kernel,
    file: &Fd,
    interrupts: u32,
    timeout_us: u32,
) -> Result<u32, i32> {
    let mut wait = WaitFor { interrupts, timeout_us };
    match os::ask(kernel, file, &mut wait) {
        Ok(_) => Ok(wait.interrupts),
        Err(EINTR) => Ok(0),
        Err(errno) => Err(errno),
    }
}

/// One ioctl with a pointer, as [`ask`].
///
/// # Safety
/// `argument` is what the request reads and writes.
unsafe fn call(
    kernel: &Kernel,
    file: &Fd,
    request: ioctl_num_type,
    argument: *mut c_void,
) -> Result<(), i32> {
    // SAFETY: the caller's promise.
    sysfs::retry(|| unsafe { kernel.ioctl(file, request, argument) }).map(drop)
}

fn count(len: usize) -> Result<u32, i32> {
    u32::try_from(len).map_err(|_| E2BIG)
}
