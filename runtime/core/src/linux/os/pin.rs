//! A long-term pin that needs no IOMMU: the memory is registered as a buffer of an io_uring, which
//! never transfers anything.
//!
//! The kernel takes the pages of such a buffer with FOLL_LONGTERM, as VFIO does. It moves them out
//! of CMA first, and from 5.13 on out of ZONE_MOVABLE too. Then nothing migrates them until the
//! buffer is unregistered or the ring's last descriptor is closed. So pin before reading the pages'
//! addresses.
//!
//! # References
//! io_uring_setup(2), io_uring_register(2) (`IORING_REGISTER_BUFFERS`, since Linux 5.1; "huge pages
//! are supported as well"); Linux `Documentation/core-api/pin_user_pages.rst`, for what such a pin
//! is; `io_pin_pages`, in `io_uring/rsrc.c` of Linux 6.1.
#![allow(unsafe_code, reason = "two system calls, one of which reads an address")]

use super::fd::Fd;
use memmap2::MmapRaw;
use nix::errno::Errno;
use nix::libc::{self, c_int, c_long, c_uint, iovec, pid_t};

/// `enum io_uring_register_op`, `include/uapi/linux/io_uring.h`.
const REGISTER_BUFFERS: c_uint = 0;
/// The same.
const UNREGISTER_BUFFERS: c_uint = 1;
/// The ring is never used; 1 is the fewest entries that it can have.
const ENTRIES: c_uint = 1;

/// `struct io_uring_params`, of which every field may be 0: 120 bytes.
#[repr(C)]
struct Params([u32; 30]);

const _: () = assert!(size_of::<Params>() == 120);

/// Pages that do not move while this lives. It owns a ring, and nothing of the memory.
#[derive(Debug)]
pub(crate) struct Pin {
    ring: Fd,
    /// A child after a fork has the same ring: only this process may unpin the pages.
    owner: pid_t,
}

impl Pin {
    /// Pins all of `map`, at most 1 GiB.
    ///
    /// # Errors
    /// The errno. ENOSYS: a kernel without io_uring, or qemu-user. EPERM:
    /// `kernel.io_uring_disabled`, or a container's filter. ENOMEM: RLIMIT_MEMLOCK without
    /// CAP_IPC_LOCK, or no free huge page outside of ZONE_MOVABLE.
    pub(crate) fn new(map: &MmapRaw) -> Result<Self, i32> {
        let mut params = Params([0; 30]);
        // SAFETY: the kernel reads and writes one `struct io_uring_params`, which is borrowed
        // exclusively for the call.
        let ring = unsafe { libc::syscall(libc::SYS_io_uring_setup, ENTRIES, &raw mut params) };
        let ring = c_int::try_from(checked(ring)?).map_err(|_| libc::EBADF)?;
        // SAFETY: the kernel has just made this descriptor for this call. It is closed on exec
        // (`io_uring_setup`).
        let ring = unsafe { Fd::from_raw(ring) };
        let all = iovec { iov_base: map.as_mut_ptr().cast(), iov_len: map.len() };
        // SAFETY: the kernel reads one `iovec`, borrowed for the call. It pins the pages of the
        // mapping, and reads and writes no byte of them: nothing is ever submitted to the ring.
        checked(unsafe {
            libc::syscall(
                libc::SYS_io_uring_register,
                ring.raw(),
                REGISTER_BUFFERS,
                &raw const all,
                1 as c_uint,
            )
        })?;
        Ok(Self { ring, owner: this_process() })
    }
}

fn checked(answer: c_long) -> Result<c_long, i32> {
    if answer < 0 { Err(Errno::last_raw()) } else { Ok(answer) }
}

fn this_process() -> pid_t {
    // SAFETY: getpid(2) takes nothing and cannot fail.
    unsafe { libc::getpid() }
}

impl Drop for Pin {
    /// Unpins the pages at once: closing the ring does it a moment later, on a kernel thread.
    fn drop(&mut self) {
        if this_process() == self.owner {
            let nothing = core::ptr::null::<iovec>();
            // SAFETY: this call reads no memory. An error changes nothing: the close does it then.
            unsafe {
                libc::syscall(
                    libc::SYS_io_uring_register,
                    self.ring.raw(),
                    UNREGISTER_BUFFERS,
                    nothing,
                    0 as c_uint,
                )
            };
        }
    }
}
