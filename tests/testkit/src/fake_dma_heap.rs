//! A kernel with a dma-heap, for machines that have none: memfds for dma-bufs, and a page table
//! that says what each kind of kernel would say. It fails where the test asks for it, and keeps a
//! log of what was opened and closed.
#![allow(unsafe_code, reason = "implements the unsafe trait SystemCalls")]

use contigo::linux::os::seam::{Fd, Running, SystemCalls};
use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::libc;
use nix::sys::ioctl::ioctl_num_type;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::stat::Mode;
use nix::unistd::{SysconfVar, Whence, ftruncate, lseek64, sysconf};
use std::ffi::{CStr, c_int, c_void};
use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// `DMA_HEAP_IOCTL_ALLOC`.
const ALLOC: ioctl_num_type = 0xC018_4800_u32 as ioctl_num_type;

/// `struct dma_heap_allocation_data`.
#[repr(C)]
struct AllocationData {
    len: u64,
    fd: u32,
    fd_flags: u32,
    heap_flags: u64,
}

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
    /// Opening the page table.
    Pagemap(Errno),
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
    /// Allocated, and not taken over by the program yet.
    made: Arc<Mutex<Vec<OwnedFd>>>,
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

/// `/proc/self/pagemap`, open.
#[derive(Debug)]
struct Pagemap(#[allow(dead_code, reason = "held open")] OwnedFd);

impl Drop for FakeFile {
    fn drop(&mut self) {
        lock(&self.kernel.bufs).retain(|buf| buf.raw_fd != self.fd.as_raw_fd());
        lock(&self.kernel.log).push(self.closes.clone());
    }
}

impl FakeHeap {
    /// A kernel whose page table shows `pages`, and where nothing fails.
    pub fn new(pages: Pages) -> Self {
        let (log, bufs, made) = Default::default();
        Self { pages, fault: Fault::None, log, bufs, made }
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

    fn file(&self, fd: OwnedFd, closes: Event) -> Fd {
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
unsafe impl SystemCalls for FakeHeap {
    fn open(&self, path: &CStr, flags: c_int) -> Result<Fd, i32> {
        // A heap's ioctl asks for no right to write, and neither does the page table.
        check_flags(flags, libc::O_RDONLY)?;
        match (path.to_bytes(), self.fault) {
            (b"/proc/self/pagemap", Fault::Pagemap(errno)) => Err(errno as i32),
            (b"/proc/self/pagemap", _) => {
                let file = Pagemap(memfd("contigo-pagemap")?);
                // SAFETY: the file has its descriptor until it is dropped.
                Ok(unsafe { Fd::owned_by(file.0.as_raw_fd(), file) })
            }
            (_, Fault::Open(errno)) => Err(errno as i32),
            (path, _) if path.strip_prefix(b"/dev/dma_heap/") == Some(HEAP.as_bytes()) => {
                lock(&self.log).push(Event::OpenHeap);
                Ok(self.file(memfd("contigo-heap")?, Event::CloseHeap))
            }
            _ => Err(libc::ENOENT),
        }
    }

    unsafe fn ioctl(
        &self,
        _: &Fd,
        request: ioctl_num_type,
        argument: *mut c_void,
    ) -> Result<c_int, i32> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        if request != ALLOC {
            return Err(libc::ENOTTY);
        }
        if let Fault::Alloc(errno) = self.fault {
            return Err(errno as i32);
        }
        // SAFETY: the request's structure, by the caller's promise.
        let data = unsafe { &mut *argument.cast::<AllocationData>() };
        let flags = (libc::O_RDWR | libc::O_CLOEXEC).cast_unsigned();
        if (data.fd, data.fd_flags, data.heap_flags) != (0, flags, 0) {
            return Err(libc::EINVAL);
        }
        let name = format!("contigo-buf-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let mut fd = memfd(&name)?;
        let errno = |errno: Errno| errno as i32;
        ftruncate(&fd, data.len.try_into().map_err(|_| libc::EFBIG)?).map_err(errno)?;
        if let Fault::Map = self.fault {
            let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
            fd = open(path.as_str(), OFlag::O_RDONLY, Mode::empty()).map_err(errno)?;
        }
        data.fd = fd.as_raw_fd().cast_unsigned();
        lock(&self.bufs).push(Buf { name, raw_fd: fd.as_raw_fd() });
        lock(&self.log).push(Event::Alloc(data.len));
        lock(&self.made).push(fd);
        Ok(0)
    }

    unsafe fn made(&self, raw: c_int) -> Fd {
        let mut made = lock(&self.made);
        match made.iter().position(|fd| fd.as_raw_fd() == raw) {
            Some(index) => self.file(made.swap_remove(index), Event::CloseBuf),
            // SAFETY: the caller's promise.
            None => unsafe { Running.made(raw) },
        }
    }

    fn read_at(&self, file: &Fd, offset_bytes: u64, bytes: &mut [u8]) -> Result<usize, i32> {
        file.owner::<Pagemap>().ok_or(libc::EBADF)?;
        if !offset_bytes.is_multiple_of(8) || !bytes.len().is_multiple_of(8) {
            return Err(libc::EINVAL);
        }
        let maps = fs::read_to_string("/proc/self/maps").map_err(|_| libc::EIO)?;
        let (entries, _) = bytes.as_chunks_mut::<8>();
        for (page, entry) in (offset_bytes / 8..).zip(&mut *entries) {
            *entry = self.entry(&maps, page).to_ne_bytes();
        }
        Ok(8 * entries.len())
    }
}

/// The kernel's page size.
pub fn page_bytes() -> u64 {
    let value = sysconf(SysconfVar::PAGE_SIZE).ok().flatten();
    value.and_then(|value| value.try_into().ok()).unwrap_or(4096)
}

/// A file is opened with exactly the flags that the runtime must pass: another access is EACCES,
/// another flag EINVAL. A real kernel would take some of them, and fail later.
pub(crate) fn check_flags(flags: c_int, expected: c_int) -> Result<(), i32> {
    match flags ^ expected {
        0 => Ok(()),
        differ if differ & libc::O_ACCMODE != 0 => Err(libc::EACCES),
        _ => Err(libc::EINVAL),
    }
}

fn memfd(name: &str) -> Result<OwnedFd, i32> {
    memfd_create(name, MFdFlags::MFD_CLOEXEC).map_err(|errno| errno as i32)
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
