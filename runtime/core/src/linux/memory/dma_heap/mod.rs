//! A dma-heap: contiguous memory from a mainline kernel's CMA, with no module, where the kernel
//! shows its address.
//!
//! The kernel gives user space a dma-buf and no address. `/proc/self/pagemap` had the right one
//! until Linux 6.9; since then the mapping is a PFN mapping, which pagemap shows as nothing. So
//! there are two ways. The first goes through the kernel module `contigo`
//! ([`DmaHeap::allocate_for`]), on every kernel, which also has memory of its own
//! ([`DevNode::allocate`]). The second works without it on kernels before 6.9
//! (most vendor kernels of boards). On newer ones it says what to install, and never guesses.
//!
//! **Why `DMA_BUF_IOCTL_SYNC` is not called.** The ioctl maintains the caches for the devices that
//! have attached to the dma-buf and mapped it, inside the kernel
//! (`cma_heap_dma_buf_begin_cpu_access` walks the list of attachments). An accelerator that user
//! space drives by address never attaches: the list is empty, and the call returns 0 having done
//! nothing. The mapping does not need its start and end as a bracket either: they only maintain
//! caches. So on arm64 this backend maintains by address itself, and on a PC nothing needs it. On
//! armv7, where user space cannot, the memory is refused on a port that does not snoop.
#![allow(
    unsafe_code,
    reason = "implements the unsafe trait Backend, and reads one byte of each page of a raw mapping"
)]

mod ioctl;

use crate::linux::dev_node::{DevNode, DmaBuf};
use crate::linux::os::fd::{self, Fd};
use crate::linux::os::pagemap::{self, Block};
use crate::linux::os::path::check_name;
#[cfg(feature = "testkit")]
use crate::linux::os::seam::Test;
use crate::linux::os::{Kernel, RUNNING, SystemCalls, cache};
use crate::mem::backend::{Backend, Mapping, Segment, SyncRange, SyncScope};
use crate::types::platform::OwnedFd;
use crate::types::{Direction, Error, PhysAddr};
use core::ops::Range;
use core::slice;
use memmap2::MmapRaw;

/// The advice where pagemap has no address for a dma-buf.
const INSTALL: &str = "the kernel module contigo (kernel-helpers), and use DevNode::allocate, or \
 u-dma-buf in its place; \
                       /proc/self/pagemap has no address for a dma-heap since Linux 6.9";

/// One block from a dma-heap. This value owns its descriptor and mapping. The last close frees the
/// pages **even while a device still writes into them**. So a [`Region`](crate::Region) leaks it
/// rather than drop it while a buffer is out.
///
/// Byte 0 is page-aligned in both address spaces. The address is physical, stays the same while
/// this value lives (the dma-buf holds the pages: no mlock is needed), and each port adds its own
/// offset. A CMA heap (`linux,cma`, `reserved`, `default_cma_region`, a vendor's name) gives
/// contiguous memory; the heap `system` does not, and a region then refuses the block with
/// [`Error::NotContiguous`]. `contigo info` lists the heaps of a board.
///
/// The kernel needs `CONFIG_DMABUF_HEAPS` and `CONFIG_DMABUF_HEAPS_CMA`, which Debian's ARM kernels
/// leave out.
///
/// # References
/// Linux `Documentation/userspace-api/dma-buf-heaps.rst`, `drivers/dma-buf/heaps/cma_heap.c`,
/// `Documentation/admin-guide/mm/pagemap.rst`.
///
/// ```no_run
/// use contigo::{Backend, Error, linux::memory::DmaHeap};
/// let block = match DmaHeap::allocate("linux,cma", 4 << 20) {
///     Err(Error::NoAddress { install }) => panic!("install {install}"),
///     other => other?,
/// };
/// println!("{} bytes at {:#x}", block.mapping().len_bytes, block.mapping().base.raw());
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct DmaHeap {
    // INVARIANT: not null, maps all of `file`, every page faulted in, never remapped. Dropped
    // before `file`.
    map: MmapRaw,
    file: Fd,
    kernel: Kernel,
    base: PhysAddr,
    page_bytes: usize,
    scope: SyncScope,
}

impl DmaHeap {
    /// The most bytes in one block: 1 GiB. That is a quarter of a Kria's memory and more CMA than
    /// any board here has. It bounds every walk over the pages.
    pub(crate) const MAX_BYTES: usize = 1 << 30;

    /// Allocates `len_bytes`, rounded up to whole pages and zeroed, from `/dev/dma_heap/<name>` of
    /// the running kernel.
    ///
    /// # Errors
    /// - [`Error::BadName`]: `name` is empty, longer than 63 bytes, `.` or `..`, or holds a `/` or
    ///   a NUL.
    /// - [`Error::Argument`]: `len_bytes` is 0 or more than 1 GiB.
    /// - [`Error::Os`] with `open(/dev/dma_heap/)`: ENOENT, no such heap (`contigo info` lists
    ///   them); EACCES, no permission (a udev rule, or root).
    /// - [`Error::Os`] with `ioctl(DMA_HEAP_IOCTL_ALLOC)`: ENOMEM, the heap is exhausted or in
    ///   pieces (`cma=` on the kernel's command line makes it larger); ENOTTY, the file is no heap.
    /// - [`Error::Os`] with `mmap(dma-buf)`: the errno of mmap(2); EINVAL where the dma-buf is
    ///   shorter than asked for.
    /// - [`Error::NoAddress`]: pagemap has no address for this memory: Linux 6.9 or newer. Install
    ///   what it names.
    /// - [`Error::PagemapHidden`]: an older kernel, without CAP_SYS_ADMIN. Run as root, or give the
    ///   file the capability.
    /// - [`Error::AttributeMissing`], [`Error::AttributeUnreadable`]: `/proc/self/pagemap` is not
    ///   there or not ours.
    pub fn allocate(name: &str, len_bytes: usize) -> Result<Self, Error> {
        Self::asking(RUNNING, name, len_bytes)
    }

    /// Allocates `len_bytes`, rounded up to whole pages and zeroed, from `/dev/dma_heap/<name>`,
    /// and imports it for the device of `contigo`. The kernel gives its address then and maintains
    /// its caches, on every kernel. No privilege is needed, except for the files. Where the device
    /// does not snoop, the block holds one buffer ([`DmaBuf`]): for more use [`DevNode::allocate`].
    ///
    /// # Errors
    /// - As [`allocate`](Self::allocate), except for those about pagemap.
    /// - As [`DmaBuf::import`].
    ///
    /// ```no_run
    /// use contigo::{Region, linux::{dev_node::DevNode, memory::DmaHeap}};
    /// let dev_node = DevNode::open("40000000.gemm8")?;
    /// let region = Region::new(DmaHeap::allocate_for(&dev_node, "linux,cma", 4 << 20)?)?;
    /// # Ok::<(), contigo::Error>(())
    /// ```
    pub fn allocate_for(dev_node: &DevNode, name: &str, len_bytes: usize) -> Result<DmaBuf, Error> {
        Self::imported(&RUNNING, dev_node, name, len_bytes)
    }

    /// As [`allocate_for`](DmaHeap::allocate_for), with a heap that the test provides.
    ///
    /// # Errors
    /// As [`allocate_for`](DmaHeap::allocate_for).
    #[cfg(feature = "testkit")]
    pub fn allocate_for_from(
        kernel: Test,
        dev_node: &DevNode,
        name: &str,
        len_bytes: usize,
    ) -> Result<DmaBuf, Error> {
        Self::imported(&Kernel::Test(kernel), dev_node, name, len_bytes)
    }

    fn imported(
        kernel: &Kernel,
        dev_node: &DevNode,
        name: &str,
        len_bytes: usize,
    ) -> Result<DmaBuf, Error> {
        let (_, file) = Self::alloc(kernel, name, len_bytes)?;
        // SAFETY: a new dma-buf, zeroed, whose only other descriptor is closed at the end of this
        // function (`ioctl.rs`, 1); it is open until then.
        unsafe { DmaBuf::import_as(dev_node, file.raw(), "dma-heap") }
    }

    /// Allocates a new dma-buf from the heap: its length, in whole pages, and its file.
    fn alloc(kernel: &Kernel, name: &str, len_bytes: usize) -> Result<(usize, Fd), Error> {
        check_name(name)?;
        let page_bytes = pagemap::page_bytes()?;
        let whole_bytes = len_bytes
            .checked_next_multiple_of(page_bytes)
            .filter(|whole| (1..=Self::MAX_BYTES).contains(whole));
        let Some(whole_bytes) = whole_bytes else {
            let max = Self::MAX_BYTES as u64;
            return Err(Error::Argument {
                name: "len_bytes",
                value: len_bytes as u64,
                min: 1,
                max,
                multiple_of: 1,
            });
        };
        let heap = ioctl::open(kernel, name)?;
        // The dma-buf lives on its own, without the heap's file.
        Ok((whole_bytes, ioctl::alloc(kernel, &heap, whole_bytes as u64)?))
    }

    /// As [`allocate`](DmaHeap::allocate), with a kernel that the test provides.
    ///
    /// # Errors
    /// As [`allocate`](DmaHeap::allocate). Files that were opened are closed again.
    #[cfg(feature = "testkit")]
    pub fn allocate_from(kernel: Test, name: &str, len_bytes: usize) -> Result<Self, Error> {
        Self::asking(Kernel::Test(kernel), name, len_bytes)
    }

    fn asking(kernel: Kernel, name: &str, len_bytes: usize) -> Result<Self, Error> {
        let page_bytes = pagemap::page_bytes()?;
        let (whole_bytes, file) = Self::alloc(&kernel, name, len_bytes)?;
        // With the length given, memmap2 asks for no file size, and the kernel refuses a dma-buf
        // that is shorter (`dma_buf_mmap_internal`): a mapped byte is a byte that exists.
        let map = kernel.map(&file, 0, whole_bytes, "mmap(dma-buf)")?;
        let mut this =
            Self { map, file, kernel, base: PhysAddr(0), page_bytes, scope: cache::scope() };
        this.touch();
        this.base = pagemap::base(&this.block(), |page, entries| this.pagemap(page, entries))?;
        Ok(this)
    }

    /// The dma-buf's descriptor number, for another importer (V4L2, DRM). Borrowed: valid while
    /// this value lives, never to be closed; duplicate it to keep it. An importer may write into
    /// this memory: hand it only to one that obeys the same ownership as a device here.
    #[must_use]
    pub fn raw_fd(&self) -> i32 {
        self.file.raw()
    }

    /// Reads one byte of every page: a heap's mapping is filled in at the first access, and pagemap
    /// shows nothing before.
    fn touch(&self) {
        for offset_bytes in (0..self.map.len()).step_by(self.page_bytes) {
            // SAFETY: offset_bytes < map.len() by the loop's bound. The kernel checked at mmap that
            // the file has that many bytes, and `ioctl.rs` (1) says that it keeps them. The mapping
            // is readable, and no other code has its address yet.
            let _ = unsafe { self.map.as_ptr().add(offset_bytes).read_volatile() };
        }
    }

    fn pagemap(&self, first_page: u64, entries: &mut [u64]) -> Result<(), Error> {
        pagemap::read_from(&self.kernel, first_page, entries)
    }

    fn block(&self) -> Block {
        Block {
            cpu: self.map.as_ptr().addr() as u64,
            len_bytes: self.map.len(),
            page_bytes: self.page_bytes,
            unit_bytes: self.page_bytes,
            absent: Error::NoAddress { install: INSTALL },
        }
    }
}

// SAFETY: 1. The mapping is owned by `self`, never remapped, and what `mapping` returns is fixed in
// `asking`; moving `self` moves no page. 2. It maps all of a dma-buf that nothing else maps
// (`ioctl.rs`, 1), readable and writable, which the heap cleared; munmap is in MmapRaw's drop, the
// close in the file's. 3. `cache` touches only the lines of the range, or nothing. 4. Addresses
// come from the kernel's page tables (`ioctl.rs`, 2), one page at a time.
unsafe impl Backend for DmaHeap {
    fn name(&self) -> &'static str {
        "dma-heap"
    }

    fn mapping(&self) -> Mapping {
        cache::mapping(&self.map, self.base, self.scope)
    }

    fn segment(&self, offset_bytes: usize) -> Result<Segment, Error> {
        pagemap::run(&self.block(), offset_bytes, |page, entries| self.pagemap(page, entries))
    }

    unsafe fn sync_for_device(
        &self,
        range: Range<usize>,
        direction: Direction,
    ) -> Result<(), Error> {
        cache::for_device(&self.map, slice::from_ref(&SyncRange { range, direction }))
    }

    unsafe fn sync_for_cpu(&self, range: Range<usize>, direction: Direction) -> Result<(), Error> {
        cache::for_cpu(&self.map, slice::from_ref(&SyncRange { range, direction }))
    }

    unsafe fn sync_all_for_device(&self, ranges: &[SyncRange]) -> Result<(), Error> {
        cache::for_device(&self.map, ranges)
    }

    unsafe fn sync_all_for_cpu(&self, ranges: &[SyncRange]) -> Result<(), Error> {
        cache::for_cpu(&self.map, ranges)
    }

    unsafe fn export(&self) -> Result<OwnedFd, Error> {
        fd::exported(self.raw_fd())
    }
}
