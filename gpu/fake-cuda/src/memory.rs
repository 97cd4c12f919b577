//! Memory: pinned blocks of the process's own, registered ones of the caller, and device memory,
//! which no CPU address reaches.

use crate::code;
use crate::state::{Answer, Handle};
use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

/// Memory that has a device pointer.
pub(crate) const DEVICEMAP: u32 = 2;

/// Above what a 48-bit processor maps: a CPU that uses such an address gets a SIGSEGV.
const DEVICE_BASE: u64 = 0x0002_0000_0000_0000;
/// The alignment of device memory, in odd multiples; `cuMemAlloc` promises "any kind of variable".
const DEVICE_ALIGN: u64 = 256;
/// Device memory before its first write.
const DEVICE_GARBAGE: u8 = 0xA5;
/// Pinned memory before its first write.
const HOST_GARBAGE: u8 = 0xB6;
/// The bytes around pinned memory.
const FENCE: u8 = 0xC7;
/// So many freed blocks keep their addresses, which nothing can use; then the kernel may give these
/// to others.
const FREED_MAX: usize = 256;

/// A block of host memory that a device can use.
#[derive(Debug)]
pub(crate) struct HostBlock {
    pub(crate) base: usize,
    pub(crate) len: usize,
    /// Where a device finds it.
    pub(crate) device_base: u64,
    pub(crate) flags: u32,
    pub(crate) context: Handle,
    /// Of allocations; registered memory belongs to the caller.
    mapping: Option<Mapping>,
}

#[derive(Debug)]
pub(crate) struct DeviceBlock {
    pub(crate) bytes: Vec<u8>,
    pub(crate) context: Handle,
}

/// Pages of this process.
#[derive(Clone, Copy, Debug)]
struct Mapping {
    base: usize,
    len: usize,
}

/// A block that an address is in.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Found<'m> {
    Host(&'m HostBlock),
    Device(u64, &'m DeviceBlock),
}

impl Found<'_> {
    /// Where a device finds it, and how many bytes it has.
    pub(crate) const fn range(self) -> (u64, u64) {
        match self {
            Self::Host(block) => (block.device_base, block.len as u64),
            Self::Device(base, block) => (base, block.bytes.len() as u64),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Memory {
    host: BTreeMap<usize, HostBlock>,
    pub(crate) device: BTreeMap<u64, DeviceBlock>,
    /// Where the next block of device memory may begin.
    pub(crate) device_next: u64,
    freed: VecDeque<Mapping>,
}

/// Whether two ranges share a byte.
pub(crate) const fn overlap(a: u64, a_len: u64, b: u64, b_len: u64) -> bool {
    a < b.saturating_add(b_len) && b < a.saturating_add(a_len)
}

fn page_bytes() -> usize {
    // SAFETY: sysconf has no preconditions.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// Whether the process can read all of it. The kernel is asked, page by page: under qemu-user msync
/// and mincore know addresses that are only reserved.
fn readable(base: usize, len: usize) -> bool {
    let mut ends = [0; 2];
    // SAFETY: room for two descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return false;
    }
    // SAFETY: two new descriptors that no other code owns.
    let (from, to) = unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) };
    let page = page_bytes();
    let pages = (base / page * page..base + len).step_by(page).map(|at| at.max(base));
    pages.into_iter().all(|at| {
        let mut byte = 0_u8;
        // SAFETY: the kernel answers EFAULT where there is nothing to read.
        let written = unsafe { libc::write(to.as_raw_fd(), ptr::with_exposed_provenance(at), 1) };
        // SAFETY: room for one byte.
        written == 1
            && unsafe { libc::read(from.as_raw_fd(), ptr::from_mut(&mut byte).cast(), 1) } == 1
    })
}

impl Memory {
    pub(crate) const fn new() -> Self {
        Self {
            host: BTreeMap::new(),
            device: BTreeMap::new(),
            device_next: DEVICE_BASE,
            freed: VecDeque::new(),
        }
    }

    /// An owner of pinned memory keeps it, mapped and unknown.
    pub(crate) fn forget(self) {
        self.freed.into_iter().for_each(Mapping::unmap);
    }

    /// How many live allocations and registrations of pinned memory there are.
    pub(crate) fn live(&self) -> (u64, u64) {
        let allocs = self.host.values().filter(|block| block.mapping.is_some()).count();
        (allocs as u64, (self.host.len() - allocs) as u64)
    }

    pub(crate) fn pinned_bytes(&self) -> u64 {
        self.host.values().map(|block| block.len as u64).sum()
    }

    pub(crate) fn device_bytes_of(&self, contexts: impl Fn(Handle) -> bool) -> u64 {
        self.device
            .values()
            .filter(|block| contexts(block.context))
            .map(|block| block.bytes.len() as u64)
            .sum()
    }

    /// Pins `len` new bytes at an odd multiple of `align`.
    pub(crate) fn allocate(
        &mut self,
        len: usize,
        align: usize,
        offset: u64,
        flags: u32,
        context: Handle,
    ) -> Answer<usize> {
        let page = page_bytes();
        let whole = len
            .checked_add(4 * align)
            .and_then(|bytes| bytes.checked_next_multiple_of(page))
            .ok_or(code::OUT_OF_MEMORY)?;
        let mapping = Mapping::new(whole, page)?;
        let base = (mapping.base + 1).next_multiple_of(2 * align) + align;
        // SAFETY: the mapping is new and writable up to its last page. The block lies within it,
        // because `whole` has four times `align` more and at most three are before it.
        unsafe {
            ptr::write_bytes(ptr::with_exposed_provenance_mut::<u8>(mapping.base), FENCE, whole);
            ptr::write_bytes(ptr::with_exposed_provenance_mut::<u8>(base), HOST_GARBAGE, len);
        }
        let device_base = (base as u64).wrapping_add(offset);
        self.host.insert(
            base,
            HostBlock { base, len, device_base, flags, context, mapping: Some(mapping) },
        );
        Ok(base)
    }

    /// Pins the caller's bytes.
    pub(crate) fn register(
        &mut self,
        base: usize,
        len: usize,
        offset: u64,
        flags: u32,
        context: Handle,
    ) -> Answer {
        if base.checked_add(len).is_none() {
            return Err(code::INVALID_VALUE);
        }
        if self
            .host
            .values()
            .any(|block| overlap(block.base as u64, block.len as u64, base as u64, len as u64))
        {
            return Err(code::HOST_MEMORY_ALREADY_REGISTERED);
        }
        if !readable(base, len) {
            return Err(code::INVALID_VALUE);
        }
        let device_base = (base as u64).wrapping_add(offset);
        self.host.insert(base, HostBlock { base, len, device_base, flags, context, mapping: None });
        Ok(())
    }

    /// The allocation that begins at `base`; or, with `registered`, the registration.
    pub(crate) fn host_at(&self, base: usize, registered: bool) -> Option<&HostBlock> {
        self.host.get(&base).filter(|block| block.mapping.is_none() == registered)
    }

    /// The block of pinned memory that has all `len` bytes from this CPU address.
    pub(crate) fn host_block(&self, addr: usize, len: usize) -> Option<&HostBlock> {
        let (_, block) = self.host.range(..=addr).next_back()?;
        (addr - block.base < block.len && len <= block.len - (addr - block.base)).then_some(block)
    }

    /// Frees or unregisters the block. Memory that something in a stream still uses stays mapped,
    /// so that only the count tells. Whether the bytes around an allocation were as they had been.
    pub(crate) fn release(&mut self, base: usize, used: bool) -> bool {
        let Some(block) = self.host.remove(&base) else { return true };
        let Some(mapping) = block.mapping else { return true };
        let intact = mapping.is_intact_around(block.base, block.len);
        if !used {
            mapping.protect();
            self.freed.push_back(mapping);
            if self.freed.len() > FREED_MAX
                && let Some(oldest) = self.freed.pop_front()
            {
                oldest.unmap();
            }
        }
        intact
    }

    /// Device memory.
    pub(crate) fn allocate_device(&mut self, len: usize, context: Handle) -> Answer<u64> {
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(len).map_err(|_| code::OUT_OF_MEMORY)?;
        bytes.resize(len, DEVICE_GARBAGE);
        let base = self.device_next.next_multiple_of(2 * DEVICE_ALIGN) + DEVICE_ALIGN;
        // Nothing is behind a block.
        self.device_next = base + len as u64 + 0x10000;
        self.device.insert(base, DeviceBlock { bytes, context });
        Ok(base)
    }

    /// The block that has all `len` bytes from this device address.
    pub(crate) fn find(&self, addr: u64, len: u64) -> Option<Found<'_>> {
        let within = |found: &Found<'_>| {
            let (base, block_len) = found.range();
            addr >= base && addr - base < block_len && len <= block_len - (addr - base)
        };
        let device = self.device.range(..=addr).next_back();
        let device = device.map(|(base, block)| Found::Device(*base, block)).filter(within);
        device.or_else(|| self.host.values().map(Found::Host).find(within))
    }

    /// `len` bytes at a block that was found.
    pub(crate) fn read(found: Found<'_>, addr: u64, len: usize) -> Vec<u8> {
        let at = usize::try_from(addr - found.range().0).unwrap_or(usize::MAX);
        match found {
            Found::Device(_, block) => {
                block.bytes.get(at..).and_then(|rest| rest.get(..len)).unwrap_or_default().to_vec()
            }
            Found::Host(block) => read_host(block.base + at, len),
        }
    }

    /// Writes device memory: the block at `base`, from byte `at` on.
    pub(crate) fn write_device(&mut self, base: u64, at: usize, bytes: &[u8]) {
        let block = self.device.get_mut(&base);
        block
            .and_then(|block| block.bytes.get_mut(at..)?.get_mut(..bytes.len()))
            .unwrap_or_default()
            .copy_from_slice(bytes);
    }

    /// All of a context's memory ends. How many blocks there were, and how many were written
    /// around.
    pub(crate) fn end(&mut self, context: Handle) -> (u64, u64) {
        let device = self.device.len();
        self.device.retain(|_, block| block.context != context);
        let blocks: Vec<_> = self
            .host
            .values()
            .filter(|block| block.context == context)
            .map(|block| block.base)
            .collect();
        let overruns = blocks.iter().filter(|base| !self.release(**base, false)).count();
        ((device - self.device.len() + blocks.len()) as u64, overruns as u64)
    }
}

/// `len` bytes of the process's memory.
pub(crate) fn read_host(addr: usize, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    // SAFETY: the caller found them in a live block: pages of `Mapping`, or memory whose owner
    // registered it and promised to keep it. Or they are the source of a copy, which its caller
    // promised. A program that writes them meanwhile races as it would with a GPU.
    unsafe { ptr::copy(ptr::with_exposed_provenance::<u8>(addr), bytes.as_mut_ptr(), len) };
    bytes
}

/// Writes the process's memory.
pub(crate) fn write_host(addr: usize, bytes: &[u8]) {
    // SAFETY: as in `read_host`.
    unsafe { ptr::copy(bytes.as_ptr(), ptr::with_exposed_provenance_mut::<u8>(addr), bytes.len()) };
}

impl Mapping {
    /// `len` bytes, and a page behind them that nothing can use.
    fn new(len: usize, page: usize) -> Answer<Self> {
        let whole = len.checked_add(page).ok_or(code::OUT_OF_MEMORY)?;
        let (rw, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping, where the kernel has room.
        let base = unsafe { libc::mmap(ptr::null_mut(), whole, rw, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return Err(code::OUT_OF_MEMORY);
        }
        // SAFETY: the last page of the mapping above, to which no reference exists.
        unsafe { libc::mprotect(base.byte_add(len), page, libc::PROT_NONE) };
        Ok(Self { base: base.expose_provenance(), len: whole })
    }

    fn is_intact_around(self, base: usize, len: usize) -> bool {
        let before = read_host(self.base, base - self.base);
        let behind = read_host(base + len, self.base + self.len - page_bytes() - (base + len));
        before.iter().chain(&behind).all(|byte| *byte == FENCE)
    }

    /// The next access to it is a SIGSEGV; the pages are free.
    fn protect(self) {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
        // SAFETY: the mapping's own range, whose block was freed.
        unsafe {
            libc::mmap(
                ptr::with_exposed_provenance_mut(self.base),
                self.len,
                libc::PROT_NONE,
                flags,
                -1,
                0,
            )
        };
    }

    fn unmap(self) {
        // SAFETY: the mapping's own range, whose block was freed.
        unsafe { libc::munmap(ptr::with_exposed_provenance_mut(self.base), self.len) };
    }
}
