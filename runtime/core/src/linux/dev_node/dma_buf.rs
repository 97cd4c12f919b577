#![allow(unsafe_code, reason = "implements the unsafe trait Backend on a raw mapping")]
//! A dma-buf, imported for one bus master.

use super::abi::{Import, SYNC_FOR_CPU, SYNC_FOR_DEVICE};
use super::{DevNode, calls, check, os, to_sync};
use crate::linux::os::fd::{self, Fd};
use crate::linux::os::{Kernel, SystemCalls};
use crate::mem::backend::{Backend, Mapping, Segment, SyncRange, SyncScope};
use crate::types::platform::{AsRawFd as _, BorrowedFd, OwnedFd};
use crate::types::{Direction, Error, timeout_us};
use core::fmt;
use core::ops::Range;
use core::slice;
use core::time::Duration;
use memmap2::MmapRaw;
use nix::errno::Errno;

/// A dma-buf from any exporter, mapped for this process and for the device of a [`DevNode`]: a
/// dma-heap's block ([`DmaHeap::allocate_for`](crate::linux::memory::DmaHeap::allocate_for)), a
/// camera's or a display's buffer ([`import`](Self::import)).
///
/// It owns the mapping, the import and a descriptor. The kernel gives its address. On a port that
/// does not snoop, each hand-over is one system call, by which the exporter maintains the caches of
/// **all of the buffer**: no exporter promises less. So on such a port it holds one buffer at a
/// time ([`Error::WholeBlock`]), and each frame is a dma-buf of its own. For a pool of many buffers
/// use [`DevNode::allocate`]. On a port that snoops, no call is made, and buffers are allocated
/// from it as from any other memory.
///
/// Dropping it unmaps the block from the device and then from the process; a
/// [`Region`](crate::Region) leaks it rather than drop it while a buffer is out. On a port that
/// does not snoop, that may discard what the CPU wrote since the last hand-over to the device:
/// first hand over what another reader of the dma-buf (a display, another process) is to see.
///
/// References: Linux `Documentation/driver-api/dma-buf.rst`; `kernel-helpers/uapi/contigo.h`.
pub struct DmaBuf {
    dev_node: DevNode,
    // INVARIANT: not null, maps all of the dma-buf, never remapped.
    map: MmapRaw,
    file: Fd,
    handle: u32,
    addr: u64,
    name: &'static str,
}

impl DmaBuf {
    /// Imports the dma-buf behind `fd` for the device of `contigo`, and maps it. `fd` stays the
    /// caller's.
    ///
    /// # Errors
    /// - [`Error::Os`] with `ioctl(CONTIGO_IMPORT)`: EBADF, EINVAL, it is no dma-buf, or this
    ///   device's own memory. EACCES, it was opened read-only. ENOSPC, the contigo device has 256
    ///   buffers, counting what is kept for its device; EDQUOT, more bytes than the module's
    ///   parameter `max_mib`. ERANGE, the device does not reach it. EOPNOTSUPP, the kernel cannot
    ///   maintain its caches (`no-map`). ENODEV, the device was taken away. Else the exporter's
    ///   errno.
    /// - [`Error::Os`] with `mmap(dma-buf)` or `fcntl(F_DUPFD_CLOEXEC)`: the errno. Some exporters'
    ///   buffers cannot be mapped.
    /// - EOVERFLOW there: it is larger than this process's address space.
    ///
    /// # Safety
    /// As long as this value or a region over it lives, nothing else touches the buffer's bytes,
    /// except for devices that it hands them to. No other importer (a camera's driver), process or
    /// mapping writes into it meanwhile. The buffer is initialised.
    pub unsafe fn import(dev_node: &DevNode, fd: BorrowedFd<'_>) -> Result<Self, Error> {
        // SAFETY: the caller's promise.
        unsafe { Self::import_as(dev_node, fd.as_raw_fd(), "dma-buf") }
    }

    /// As [`import`](Self::import), after waiting for the buffer's current writers to finish: a
    /// camera's frame under way, a GPU's kernel. It waits at most for `timeout`, and not for
    /// writers that begin later: poll(2) the dma-buf.
    ///
    /// ```no_run
    /// use contigo::{Region, linux::dev_node::{DmaBuf, DevNode}};
    /// use core::time::Duration;
    /// use std::os::fd::AsFd;
    /// # fn frame() -> std::fs::File { unreachable!() }
    /// let dev_node = DevNode::open("40000000.gemm8")?;
    /// // SAFETY: the camera writes this frame, and then leaves it alone.
    /// let frame = unsafe { DmaBuf::import_written(&dev_node, frame().as_fd(), Duration::from_millis(50))? };
    /// # Ok::<(), contigo::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`import`](Self::import). [`Error::Os`] with `ppoll(dma-buf)`: ETIMEDOUT, the writers
    /// have not finished, or a signal came first.
    ///
    /// # Safety
    /// As [`import`](Self::import), from when this returns.
    pub unsafe fn import_written(
        dev_node: &DevNode,
        fd: BorrowedFd<'_>,
        timeout: Duration,
    ) -> Result<Self, Error> {
        let wait_us = timeout_us(timeout)?;
        let kernel = &dev_node.0.kernel;
        let file = kernel
            .duplicate(fd.as_raw_fd())
            .map_err(|errno| os("fcntl(F_DUPFD_CLOEXEC)", errno))?;
        match kernel.wait_readable(&file, wait_us) {
            Ok(true) => {}
            Ok(false) => return Err(os("ppoll(dma-buf)", Errno::ETIMEDOUT as i32)),
            Err(errno) => return Err(os("ppoll(dma-buf)", errno)),
        }
        // SAFETY: the caller's promise.
        unsafe { Self::import(dev_node, fd) }
    }

    /// As [`import`](Self::import), with the name of what it is a block of.
    ///
    /// # Errors
    /// As [`import`](Self::import).
    ///
    /// # Safety
    /// As [`import`](Self::import); `fd` is open.
    pub(crate) unsafe fn import_as(
        dev_node: &DevNode,
        fd: i32,
        name: &'static str,
    ) -> Result<Self, Error> {
        let file =
            dev_node.0.kernel.duplicate(fd).map_err(|errno| os("fcntl(F_DUPFD_CLOEXEC)", errno))?;
        let mut import = Import { fd: file.raw(), ..Import::default() };
        dev_node.0.ask(&mut import).map_err(|errno| os("ioctl(CONTIGO_IMPORT)", errno))?;
        match map(&dev_node.0.kernel, &file, import.len_bytes) {
            Ok(map) => Ok(Self {
                dev_node: dev_node.clone(),
                map,
                file,
                handle: import.handle,
                addr: import.addr,
                name,
            }),
            Err(error) => {
                // No device received its address.
                dev_node.release(import.handle);
                Err(error)
            }
        }
    }

    /// Syncs all of the buffer once, whatever `ranges` of it change hands: the exporter maintains
    /// its caches by its own `begin_cpu_access` and `end_cpu_access`, which know no ranges.
    fn sync(&self, ranges: &[SyncRange], flags: u32) -> Result<(), Error> {
        let len_bytes = self.map.len();
        ranges.iter().try_for_each(|each| check(&each.range, len_bytes))?;
        // Bytes that the device only read are as they were.
        let changes = |each: &SyncRange| {
            !each.range.is_empty() && (flags == SYNC_FOR_DEVICE || each.direction.device_writes())
        };
        if ranges.iter().any(changes) {
            self.dev_node.sync(&[to_sync(self.handle, &(0..len_bytes), flags)])
        } else {
            Ok(())
        }
    }
}

/// Maps all of the dma-buf `file`.
fn map(kernel: &Kernel, file: &Fd, len_bytes: u64) -> Result<MmapRaw, Error> {
    const CALL: &str = "mmap(dma-buf)";
    let len_bytes = usize::try_from(len_bytes).map_err(|_| os(CALL, Errno::EOVERFLOW as i32))?;
    if len_bytes == 0 {
        return Err(os(CALL, Errno::EINVAL as i32));
    }
    // The kernel refuses more than the dma-buf has (`dma_buf_mmap_internal`): a mapped byte is a
    // byte that exists.
    kernel.map(file, 0, len_bytes, CALL)
}

impl Drop for DmaBuf {
    fn drop(&mut self) {
        self.dev_node.release(self.handle);
    }
}

// SAFETY: 1. The mapping is owned by `self` and never remapped, and the address was fixed in
// `import_as`. 2. It maps all of a dma-buf, readable and writable, which nothing else touches
// (`import`'s contract), with a descriptor of its own. munmap is in MmapRaw's drop, after the
// device has lost it. 3. The scope says that all of it is synchronised; the kernel touches no more.
// 4. The addresses are the kernel's (`calls.rs`, 1): physical ones where nothing translates, else
// on a bus that this contigo device alone is on. 5. `calls.rs`, 2.
unsafe impl Backend for DmaBuf {
    fn name(&self) -> &'static str {
        self.name
    }

    fn mapping(&self) -> Mapping {
        self.dev_node.mapping(&self.map, self.addr, SyncScope::Whole)
    }

    fn segment(&self, offset_bytes: usize) -> Result<Segment, Error> {
        let dev_node = &self.dev_node.0;
        let (found, count) =
            calls::segment(&dev_node.kernel, &dev_node.file, self.handle, offset_bytes as u64)
                .map_err(|errno| os("ioctl(CONTIGO_GET_SEGMENTS)", errno))?;
        let left = self.map.len().saturating_sub(offset_bytes);
        match count {
            1 if left > 0 && found.len_bytes > 0 => Ok(Segment {
                addr: found.addr,
                len_bytes: usize::try_from(found.len_bytes).map_or(left, |run| run.min(left)),
            }),
            0 => Err(Error::OutOfRange {
                start: offset_bytes,
                end: offset_bytes,
                len_bytes: self.map.len(),
            }),
            1 => Err(Error::Unexpected {
                name: "length of CONTIGO_GET_SEGMENTS",
                value: found.len_bytes,
            }),
            count => Err(Error::Unexpected {
                name: "count of CONTIGO_GET_SEGMENTS",
                value: count.into(),
            }),
        }
    }

    unsafe fn sync_for_device(
        &self,
        range: Range<usize>,
        direction: Direction,
    ) -> Result<(), Error> {
        self.sync(slice::from_ref(&SyncRange { range, direction }), SYNC_FOR_DEVICE)
    }

    unsafe fn sync_for_cpu(&self, range: Range<usize>, direction: Direction) -> Result<(), Error> {
        self.sync(slice::from_ref(&SyncRange { range, direction }), SYNC_FOR_CPU)
    }

    unsafe fn sync_all_for_device(&self, ranges: &[SyncRange]) -> Result<(), Error> {
        self.sync(ranges, SYNC_FOR_DEVICE)
    }

    unsafe fn sync_all_for_cpu(&self, ranges: &[SyncRange]) -> Result<(), Error> {
        self.sync(ranges, SYNC_FOR_CPU)
    }

    unsafe fn export(&self) -> Result<OwnedFd, Error> {
        fd::exported(self.file.raw())
    }
}

impl fmt::Debug for DmaBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DmaBuf")
            .field("addr", &self.addr)
            .field("len_bytes", &self.map.len())
            .finish_non_exhaustive()
    }
}
