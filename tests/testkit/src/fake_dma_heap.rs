//! A kernel with a dma-heap, for machines that have none: memfds for dma-bufs, and a page table
//! that says what each kind of kernel would say. It fails where the test asks for it, and keeps a
//! log of what was opened and closed.
#![allow(unsafe_code, reason = "implements the unsafe trait HeapKernel")]

use contigo::Error;
use contigo::linux::memory::dma_heap::seam::{Fd, HeapKernel};
use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::stat::Mode;
use nix::unistd::{SysconfVar, Whence, ftruncate, lseek64, sysconf};
use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The one heap that there is.
pub const HEAP: &str = "linux,cma";
/// The frame of the first page that a contiguous heap hands out: 512 MiB, for 4 KiB pages.
pub const FIRST_FRAME: u64 = 0x2_0000;
/// pagemap's bit for a page that is there.
pub const PRESENT: u64 = 1 << 63;
/// pagemap's bit 55, which newer kernels may set also where there is no page.
pub const SOFT_DIRTY: u64 = 1 << 55;

/// The page table's entries for a dma-buf's pages.
#[derive(Clone, Debug)]
pub enum Pages {
    /// Linux before 6.9, a CMA heap, CAP_SYS_ADMIN: one frame after the other from [`FIRST_FRAME`].
    Contiguous,
    /// The same for the heap `system`: these frames.
    Frames(Vec<u64>),
    /// The same entry for every page: 0 (Linux since 6.9), [`SOFT_DIRTY`] (the same), [`PRESENT`]
    /// (no capability), nonsense.
    Entry(u64),
}

/// Which call fails.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// None.
    None,
    /// Opening the heap.
    Open(Errno),
    /// The allocation.
    Alloc(Errno),
    /// The mapping: the dma-buf's descriptor is read-only, which is EACCES for a writable mapping.
    Map,
    /// Reading the page table.
    Pagemap(Error),
}

/// A call or its effect; the log keeps them in order.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "a heap or a dma-buf was opened or closed")]
pub enum Event {
    OpenHeap,
    /// Of so many bytes.
    Alloc(u64),
    CloseHeap,
    /// A real kernel would free the dma-buf's pages now.
    CloseBuf,
}

/// The kernel. Clones are the same kernel, so that a test keeps one to look at.
#[derive(Clone, Debug)]
pub struct FakeHeap {
    pages: Pages,
    fault: Fault,
    log: Arc<Mutex<Vec<Event>>>,
    bufs: Arc<Mutex<Vec<Buf>>>,
}

#[derive(Clone, Debug)]
struct Buf {
    name: String,
    raw_fd: i32,
}

/// An open heap or dma-buf.
#[derive(Debug)]
struct FakeFile {
    fd: OwnedFd,
    closes: Event,
    kernel: FakeHeap,
}

impl Drop for FakeFile {
    fn drop(&mut self) {
        lock(&self.kernel.bufs).retain(|buf| buf.raw_fd != self.fd.as_raw_fd());
        lock(&self.kernel.log).push(self.closes.clone());
    }
}

impl FakeHeap {
    /// A kernel whose page table shows `pages`, and where nothing fails.
    pub fn new(pages: Pages) -> Self {
        Self { pages, fault: Fault::None, log: Arc::default(), bufs: Arc::default() }
    }

    /// A kernel with contiguous pages where one call fails.
    pub fn failing(fault: Fault) -> Self {
        Self { fault, ..Self::new(Pages::Contiguous) }
    }

    /// The events so far.
    pub fn log(&self) -> Vec<Event> {
        lock(&self.log).clone()
    }

    /// How many files were opened and not closed.
    pub fn open_files(&self) -> usize {
        let log = self.log();
        let closed =
            log.iter().filter(|event| matches!(event, Event::CloseHeap | Event::CloseBuf)).count();
        log.len() - 2 * closed
    }

    fn file(&self, fd: OwnedFd, opens: Event, closes: Event) -> Fd {
        lock(&self.log).push(opens);
        // SAFETY: the file has its descriptor until it is dropped.
        unsafe { Fd::owned_by(fd.as_raw_fd(), FakeFile { fd, closes, kernel: self.clone() }) }
    }

    /// The entry of one virtual page: 0 where no dma-buf of this kernel is mapped, or where the
    /// page was not touched yet.
    fn entry(&self, maps: &str, page: u64) -> u64 {
        let page_bytes = page_bytes();
        let bufs = lock(&self.bufs);
        let Some((name, offset)) = mapped_at(maps, page * page_bytes) else { return 0 };
        let Some(buf) = bufs.iter().find(|buf| buf.name == name) else { return 0 };
        let index = offset / page_bytes;
        // SAFETY: the descriptor is in the list while its FakeFile is open.
        let fd = unsafe { std::os::fd::BorrowedFd::borrow_raw(buf.raw_fd) };
        let offset = i64::try_from(index * page_bytes).unwrap_or(i64::MAX);
        if lseek64(fd, offset, Whence::SeekData) != Ok(offset) {
            return 0;
        }
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        match &self.pages {
            Pages::Contiguous => PRESENT | (FIRST_FRAME + index as u64),
            Pages::Frames(frames) => frames.get(index).map_or(0, |frame| PRESENT | frame),
            Pages::Entry(entry) => *entry,
        }
    }
}

// SAFETY: 1. A memfd is zeroed, as long as `ftruncate` made it, known to no other code and never
// shortened. 2. The addresses are invented: no device is ever given one.
unsafe impl HeapKernel for FakeHeap {
    fn open(&self, name: &str) -> Result<Fd, Error> {
        let errno = match self.fault {
            Fault::Open(errno) => errno,
            _ if name != HEAP => Errno::ENOENT,
            _ => return Ok(self.file(memfd("contigo-heap")?, Event::OpenHeap, Event::CloseHeap)),
        };
        Err(Error::Os { call: "open(/dev/dma_heap/)", errno: errno as i32 })
    }

    fn alloc(&self, heap: &Fd, len_bytes: u64) -> Result<Fd, Error> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let _ = heap;
        if let Fault::Alloc(errno) = self.fault {
            return Err(Error::Os { call: "ioctl(DMA_HEAP_IOCTL_ALLOC)", errno: errno as i32 });
        }
        let name = format!("contigo-buf-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let mut fd = memfd(&name)?;
        ftruncate(&fd, len_bytes.try_into().map_err(|_| fake(Errno::EFBIG))?).map_err(fake)?;
        if let Fault::Map = self.fault {
            let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
            fd = open(path.as_str(), OFlag::O_RDONLY, Mode::empty()).map_err(fake)?;
        }
        lock(&self.bufs).push(Buf { name, raw_fd: fd.as_raw_fd() });
        Ok(self.file(fd, Event::Alloc(len_bytes), Event::CloseBuf))
    }

    fn pagemap(&self, first_page: u64, entries: &mut [u64]) -> Result<(), Error> {
        if let Fault::Pagemap(error) = self.fault {
            return Err(error);
        }
        let maps = fs::read_to_string("/proc/self/maps").map_err(|_| fake(Errno::EIO))?;
        for (page, entry) in (first_page..).zip(entries) {
            *entry = self.entry(&maps, page);
        }
        Ok(())
    }
}

/// The kernel's page size.
pub fn page_bytes() -> u64 {
    let value = sysconf(SysconfVar::PAGE_SIZE).ok().flatten();
    value.and_then(|value| value.try_into().ok()).unwrap_or(4096)
}

fn memfd(name: &str) -> Result<OwnedFd, Error> {
    memfd_create(name, MFdFlags::MFD_CLOEXEC).map_err(fake)
}

fn fake(errno: Errno) -> Error {
    Error::Os { call: "the fake heap's own memfd", errno: errno as i32 }
}

/// Which memfd is mapped at this virtual address, and which byte of it.
fn mapped_at(maps: &str, addr: u64) -> Option<(String, u64)> {
    maps.lines().find_map(|line| {
        let mut fields = line.split_ascii_whitespace();
        let (start, end) = fields.next()?.split_once('-')?;
        let (start, end) =
            (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
        let offset = u64::from_str_radix(fields.nth(1)?, 16).ok()?;
        let name = fields.nth(2)?.strip_prefix("/memfd:")?;
        (start..end).contains(&addr).then(|| (name.to_owned(), addr - start + offset))
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
