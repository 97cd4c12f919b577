//! Huge pages: contiguous memory from any stock kernel, 2 MiB at a time, for a privileged process.
#![allow(
    unsafe_code,
    reason = "implements the unsafe trait Backend, and writes one byte to each page of a raw \
     mapping"
)]

use crate::linux::os::pagemap::{self, Block};
use crate::linux::os::pin::Pin;
use crate::linux::os::{cache, map};
use crate::mem::backend::{Backend, Mapping, Segment, SyncRange, SyncScope};
use crate::mem::block::contiguous;
use crate::types::{Align, Direction, Error, PhysAddr};
use core::ops::Range;
use core::slice;
use memmap2::{MmapOptions, MmapRaw};
use nix::errno::Errno;

/// log2 of the huge page: the size that x86-64 and every arm64 granule (4, 16 and 64 KiB) have.
const PAGE_BITS: u8 = 21;
/// One huge page: 2 MiB.
const HUGE: Align = match Align::new(1 << PAGE_BITS) {
    Ok(align) => align,
    Err(_) => Align::PAGE,
};
const _: () = assert!(HUGE.bytes() == 2 << 20);

/// One block of huge pages, with physical addresses. This value owns the pages, and they go back to
/// the kernel when it is dropped. So a [`Region`](crate::Region) leaks it rather than drop it while
/// a buffer of it is out.
///
/// **Contiguous to 2 MiB.** Each huge page is one physical run of 2 MiB, aligned to 2 MiB. Two
/// neighbours are contiguous only by luck: often so on a machine that just booted, hardly ever
/// later. [`segment`](Backend::segment) says where each lies, and a region refuses a block in
/// pieces with [`Error::NotContiguous`]; ask for at most 2 MiB and it never does.
///
/// **To reserve pages**, as root, best at boot: `echo 64 > /proc/sys/vm/nr_hugepages` for 128 MiB
/// of 2 MiB pages, or `hugepages=64` on the kernel's command line. `grep Huge /proc/meminfo` shows
/// what is free.
///
/// **Privilege.** The kernel shows physical addresses only to CAP_SYS_ADMIN. A program that wants
/// to drop the capability does so after its region is built: `segment` and [`verify`](Self::verify)
/// ask the kernel again, `mapping` does not.
///
/// **The address stays true** where [`is_pinned`](Self::is_pinned) returns true. The pages are
/// registered as a buffer of an io_uring then, which is a long-term pin: the kernel moves no page
/// that has an extra reference. It never swaps a huge page. It is not copied into children
/// (MADV_DONTFORK), since a copy-on-write after fork(2) would move it under the device. Each block
/// costs a descriptor, for its ring. Where an IOMMU translates for the device (`/sys/class/iommu`
/// is not empty and the device has a group), a physical address is not its bus address: use VFIO.
///
/// **After a program was killed** its pinned pages come back a moment later, on a kernel thread.
/// While a child of a fork lives they do not: it has the ring's descriptor too. A program that
/// restarts on a pool with nothing to spare tries again after ENOMEM.
///
/// **Without the pin** nothing keeps a huge page where it is: mlock(2) does nothing to one. There
/// is no pin on a kernel before 5.1 or without io_uring, where `kernel.io_uring_disabled` forbids
/// it, and in most containers.
///
/// | this moves a page | source |
/// |---|---|
/// | memory is taken offline or unplugged; virtio-mem gives memory back | `admin-guide/mm/memory-hotplug.rst` |
/// | a frame is taken out of service: MADV_SOFT_OFFLINE, `soft_offline_page`, rasdaemon | `mm/memory-failure.c` |
/// | CMA wants the place (from 5.13 on) | `mm/page_alloc.c`, `alloc_contig_range` |
/// | with several nodes: move_pages(2), migrate_pages(2), mbind(2) with MPOL_MF_MOVE | their man pages |
/// | with several nodes: a cpuset whose `cpuset.mems` changes (version 1: with `memory_migrate`) | `admin-guide/cgroup-v2.rst` |
///
/// Then call [`verify`](Self::verify), or [`Region::verify`](crate::Region::verify): before the
/// first job, after each event of the table that the program or its administrator causes, and now
/// and then in a program that runs for long. It finds a move that has happened, and prevents none.
/// A page that is being moved, or was poisoned, is [`Error::Os`] with ENOMEM: stop the device too.
/// Keep huge pages out of ZONE_MOVABLE on a board, or use VFIO.
///
/// Seen on Debian's kernels 6.1 and 6.12, for arm64 and x86-64, in QEMU with two nodes:
/// `move_pages`, `migrate_pages`, `mbind`, MADV_SOFT_OFFLINE and `soft_offline_page` each moved a
/// page without the pin. Pinned, it stayed: they answered 1 page not moved, EIO or EBUSY. A write
/// to `compact_memory` moved neither. The pin moved a page of ZONE_MOVABLE out of it first. Memory
/// offline, virtio-mem, CMA and cpusets were not tried.
///
/// **Caches.** A PC's masters snoop. On aarch64 the runtime cleans and invalidates by address;
/// elsewhere only coherent ports are served.
///
/// # References
/// mmap(2), MAP_HUGETLB and MAP_HUGE_2MB; Linux `Documentation/admin-guide/mm/hugetlbpage.rst` and
/// `pagemap.rst`.
///
/// ```no_run
/// use contigo::{Backend, linux::memory::HugeTlb};
/// let block = HugeTlb::new(1 << 20)?; // one page: 2 MiB, contiguous
/// println!("{} bytes at {:#x}", block.mapping().len_bytes, block.mapping().base.raw());
/// # Ok::<(), contigo::Error>(())
/// ```
#[derive(Debug)]
pub struct HugeTlb {
    /// Before the mapping: it is dropped first.
    pin: Option<Pin>,
    // INVARIANT: not null, a whole number of huge pages, every one faulted in, never remapped.
    map: MmapRaw,
    base: PhysAddr,
    page_bytes: usize,
    scope: SyncScope,
}

impl HugeTlb {
    /// Bytes in one page, and the alignment of the block in both address spaces.
    pub const PAGE_BYTES: usize = HUGE.bytes();

    /// Maps `len_bytes` of zeroed memory, rounded up to whole pages of
    /// [`PAGE_BYTES`](Self::PAGE_BYTES), locked and faulted in, and pinned where the kernel can.
    ///
    /// # Errors
    /// - [`Error::Argument`]: `len_bytes` is 0, or more than 512 pages.
    /// - [`Error::NoMemory`]: too few pages are reserved and free (above: how to reserve).
    /// - [`Error::Os`] with `mmap(MAP_HUGETLB)`: EINVAL where the kernel has no 2 MiB pages, as on
    ///   armv7.
    /// - [`Error::PagemapHidden`]: no CAP_SYS_ADMIN. Run as root, or give the file the capability.
    /// - [`Error::AttributeMissing`], [`Error::AttributeUnreadable`]: `/proc/self/pagemap` is not
    ///   there or not ours.
    /// - [`Error::Os`] with `mlock`: ENOMEM, the limit of locked memory (`ulimit -l`) without
    ///   CAP_IPC_LOCK, or a hugetlb cgroup with fewer pages than the machine.
    pub fn new(len_bytes: usize) -> Result<Self, Error> {
        // More than a board here has to spare, and a bound on every walk over them.
        const MAX_BYTES: usize = 512 * HugeTlb::PAGE_BYTES;
        let out_of_bounds = Error::Argument {
            name: "len_bytes",
            value: len_bytes as u64,
            min: 1,
            max: MAX_BYTES as u64,
            multiple_of: 1,
        };
        let whole_bytes = HUGE
            .round_up(len_bytes)
            .filter(|whole| (1..=MAX_BYTES).contains(whole))
            .ok_or(out_of_bounds)?;
        let page_bytes = pagemap::page_bytes()?;

        // Without MAP_NORESERVE the kernel reserves every page now, or fails now.
        let map = map::anonymous(
            MmapOptions::new().len(whole_bytes).huge(Some(PAGE_BITS)).populate(),
            "mmap(MAP_HUGETLB)",
        )
        .map_err(|error| match error {
            Error::Os { errno, .. } if errno == Errno::ENOMEM as i32 => Error::NoMemory {
                need_bytes: whole_bytes,
                errno,
                fix: "reserve huge pages, as root: echo 64 > /proc/sys/vm/nr_hugepages",
            },
            error => error,
        })?;
        let mut this =
            Self { pin: None, map, base: PhysAddr(0), page_bytes, scope: cache::scope() };

        // Hidden frames first: without the capability the lock might fail too, which would be the
        // less useful message.
        pagemap::base(&this.block(), pagemap::read)?;
        this.map.lock().map_err(|error| os("mlock", error.raw_os_error()))?;
        this.touch()?;
        // Before the address is read: a pin moves pages out of ZONE_MOVABLE.
        this.pin = Pin::new(&this.map).ok();
        this.base = pagemap::base(&this.block(), pagemap::read)?;
        Ok(this)
    }

    /// Returns whether the block is pinned as long as it lives: then no migration moves it.
    #[must_use]
    pub const fn is_pinned(&self) -> bool {
        self.pin.is_some()
    }

    /// Asks the kernel where every page is, and compares that with the address that
    /// [`mapping`](Backend::mapping) told: one `pread` of `/proc/self/pagemap` for each 2 MiB. Of a
    /// region, [`Region::verify`](crate::Region::verify) does the same.
    ///
    /// # Errors
    /// - [`Error::NotContiguous`]: the page at `offset_bytes` is elsewhere. It was moved, or never
    ///   was contiguous with the ones before. Stop the device: it writes into memory that is not
    ///   this block's.
    /// - [`Error::PagemapHidden`], [`Error::AttributeUnreadable`]: it cannot know, since the
    ///   program gave up CAP_SYS_ADMIN.
    ///
    /// ```no_run
    /// let block = contigo::linux::memory::HugeTlb::new(1)?;
    /// if !block.is_pinned() {
    ///     block.verify()?;
    /// }
    /// # Ok::<(), contigo::Error>(())
    /// ```
    pub fn verify(&self) -> Result<(), Error> {
        contiguous(self, &self.mapping())
    }

    /// Writes one byte of every page, once it is known to be there. MAP_POPULATE reports no
    /// failure, and touching a page that the kernel cannot give (a cgroup's limit) is a SIGBUS.
    fn touch(&self) -> Result<(), Error> {
        let block = self.block();
        for offset_bytes in (0..self.map.len()).step_by(Self::PAGE_BYTES) {
            let page = Block {
                cpu: block.cpu.saturating_add(offset_bytes as u64),
                len_bytes: Self::PAGE_BYTES,
                ..block
            };
            pagemap::base(&page, pagemap::read)?;
            // SAFETY: offset_bytes < map.len() by the loop's bound, so the byte lies in the
            // mapping. That is readable and writable, present (checked on the line above), and
            // no other code has its address yet. It reads 0: the kernel zeroes.
            unsafe { self.map.as_mut_ptr().add(offset_bytes).write_volatile(0) };
        }
        Ok(())
    }

    fn block(&self) -> Block {
        Block {
            cpu: self.map.as_ptr().addr() as u64,
            len_bytes: self.map.len(),
            page_bytes: self.page_bytes,
            unit_bytes: Self::PAGE_BYTES.max(self.page_bytes),
            absent: Error::Os { call: "populate(MAP_HUGETLB)", errno: Errno::ENOMEM as i32 },
        }
    }
}

fn os(call: &'static str, errno: Option<i32>) -> Error {
    Error::Os { call, errno: errno.unwrap_or(Errno::EINVAL as i32) }
}

// SAFETY: 1. The mapping is owned by `self`, never remapped, and what `mapping` returns is fixed in
// `new`; moving `self` moves no page. 2. It is anonymous, private and not copied into children:
// nothing else has it; it is readable and writable, and the kernel zeroed it; munmap is in
// MmapRaw's drop. 3. `cache` touches only the lines of the range, or nothing where the memory is
// coherent. 4. Addresses come from the kernel's page tables; a huge page is one physical run
// by construction (hugetlbpage.rst).
unsafe impl Backend for HugeTlb {
    fn name(&self) -> &'static str {
        "hugetlb"
    }

    fn mapping(&self) -> Mapping {
        cache::mapping(&self.map, self.base, self.scope)
    }

    fn segment(&self, offset_bytes: usize) -> Result<Segment, Error> {
        pagemap::run(&self.block(), offset_bytes, pagemap::read)
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
}
