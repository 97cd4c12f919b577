//! The kernel's side of a guard: one trait, so that a test can stand in for boards that no one
//! machine is.
#![allow(unsafe_code, reason = "ioctls on a raw descriptor, and the unsafe trait of the seam")]

use super::abi::{self, BusMaster, DmaBits, Import, Info, Release, SegmentAt, Segments, Step, SyncRange};
use crate::{
    linux::os::{
        cache, dir,
        fd::{Fd, Path, check_name},
        sysfs,
    },
    types::{Align, Error},
};
use core::ffi::c_void;
use nix::{
    errno::Errno,
    libc::{self, EACCES, EBUSY, ENOENT, EPERM, O_DIRECTORY, O_RDONLY, O_RDWR},
};

/// One call of the module's. Arrays go along as slices: their length and their address are filled
/// in here.
#[derive(Debug)]
#[allow(missing_docs, reason = "uapi/contigo.h documents the calls")]
pub enum Request<'r> {
    GetInfo(&'r mut Info),
    SetDmaBits(u32),
    Import(&'r mut Import),
    /// Of an import, from the number given: how many were written comes back in the count.
    GetSegments {
        handle: u32,
        first: u32,
        found: &'r mut [SegmentAt],
        count: &'r mut u32,
    },
    Release(u32),
    Sync(&'r [SyncRange]),
    Arm(&'r [Step]),
    SetBusMaster(bool),
}

/// The calls of a [`Guard`](super::Guard) to the kernel. `RealGuard` makes them; a test puts its
/// own kernel here.
///
/// # Safety
/// Callers owe nothing, because only this module can call: nobody else can make a `RealGuard`, or
/// see one. A request writes registers, and gives up memory.
///
/// # Implementation safety
/// 1. An import's address and segments are where the device finds the dma-buf's bytes, until it is
///    released or the file is closed. The dma-buf is as long as it says, and can be mapped shared.
/// 2. The answer of [`Request::GetInfo`] about coherency and translation is true, and a sync that
///    succeeds was done.
pub unsafe trait GuardKernel: Send + Sync {
    /// Opens `/dev/contigo/<name>`.
    ///
    /// # Errors
    /// As [`Guard::open`](super::Guard::open).
    fn open(&self, name: &str) -> Result<Fd, Error>;

    /// A descriptor of one's own for the dma-buf `fd`.
    ///
    /// # Errors
    /// The errno of fcntl(2).
    fn duplicate(&self, fd: i32) -> Result<Fd, i32>;

    /// One ioctl.
    ///
    /// # Errors
    /// The errno.
    fn ioctl(&self, file: &Fd, request: Request<'_>) -> Result<(), i32>;

    /// The granule that two owners may not share on this machine. A test has another one.
    fn granule(&self) -> Align {
        cache::granule()
    }
}

crate::linux::os::asked!(RealGuard as GuardKernel);

/// The running kernel, with the module `contigo`.
#[derive(Debug)]
pub(super) struct RealGuard;

/// Where the module lists its guards.
const CLASS: &str = "/sys/class/contigo";

// SAFETY: 1. `contigo_import`: the addresses are those of the mapped scatter list, which stays
// mapped until its release. A dma-buf's size is fixed (`struct dma_buf`). 2. They are the kernel's
// own words about the device.
unsafe impl GuardKernel for RealGuard {
    fn open(&self, name: &str) -> Result<Fd, Error> {
        const WHAT: &str = "/dev/contigo/";
        const FIX: &str = "add the user to the group of the udev rule (kernel-helpers/udev), or be root";
        check_name(name)?;
        let path = Path::join(&["/dev/contigo", name])?;
        Fd::open(path.as_c_str(), O_RDWR).map_err(|errno| match errno {
            ENOENT => Error::NotFound { what: "guard of the kernel module contigo", among: guards() },
            EACCES | EPERM => Error::Denied { what: WHAT, errno, fix: FIX },
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
            Request::GetInfo(info) => unsafe { call(fd, abi::code::GET_INFO, (&raw mut *info).cast()) },
            // SAFETY: as above.
            Request::Import(import) => unsafe { call(fd, abi::code::IMPORT, (&raw mut *import).cast()) },
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
            Request::SetBusMaster(on) => {
                let mut on = BusMaster { on: on.into(), reserved: 0 };
                // SAFETY: as above.
                unsafe { call(fd, abi::code::SET_BUS_MASTER, (&raw mut on).cast()) }
            }
            Request::GetSegments { handle, first, found, count: written } => {
                let ptr = found.as_mut_ptr().expose_provenance() as u64;
                let mut ask = Segments { handle, first, count: count(found.len())?, reserved: 0, ptr };
                // SAFETY: as above; and the array has as many entries as `count` says, borrowed
                // exclusively.
                unsafe { call(fd, abi::code::GET_SEGMENTS, (&raw mut ask).cast())? };
                *written = ask.count;
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
                let mut program = abi::Program { count: count(steps.len())?, reserved: 0, ptr };
                // SAFETY: as above.
                unsafe { call(fd, abi::code::ARM, (&raw mut program).cast()) }
            }
        }
    }
}

/// How many ports there are.
fn guards() -> u32 {
    let mut ports = 0;
    let Ok(folder) = Path::join(&[CLASS]).map(|path| Fd::open(path.as_c_str(), O_RDONLY | O_DIRECTORY)) else { return 0 };
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
unsafe fn call(fd: i32, request: nix::sys::ioctl::ioctl_num_type, argument: *mut c_void) -> Result<(), i32> {
    sysfs::retry(|| {
        // SAFETY: the caller's promise.
        let result = unsafe { libc::ioctl(fd, request, argument) };
        if result < 0 { Err(Errno::last_raw()) } else { Ok(()) }
    })
}
