#![allow(unsafe_code, reason = "a handle is a pointer that counts")]
//! A region: a handle to one block of DMA memory.

use super::control::{Control, Plan};
use super::memory::{Given, Memory};
use super::pool_state::{PoolPlan, PoolState};
use super::{Limits, Pool};
use crate::mem::block::{self, Block, Requirements, State};
use crate::mem::{Backend, CpuBuf, Port, SyncScope};
use crate::trace::{self, Event, Site, Stats};
use crate::types::platform::OwnedFd;
use crate::types::{Align, BaseAddr, DevAddr, Error, Refused, Result};
use core::fmt;
use core::ptr::NonNull;

/// A handle to one block of DMA memory, checked, and given out in buffers. Clones are the same
/// region.
///
/// The memory is unmapped when the last handle, buffer and pool is gone, on the thread that drops
/// it. A buffer that was forgotten, or that a device still has, keeps it mapped for ever.
///
/// A child of fork(2) does not get the memory, nor a control block in pages from the kernel. It
/// must not drop a handle, a buffer or a pool that it inherits. A control block in memory that you
/// gave is copied to the child, and such a drop would release what is the parent's: see the crate's
/// "Programs that fork".
///
/// ```
/// use contigo::{Align, CpuBuf, Pool, Region, sim::SimBoard};
///
/// struct App { region: Region, frames: Pool, weights: CpuBuf } // no lifetime
///
/// let board = SimBoard::new(1);
/// let region = Region::new(board.memory(64 * 1024)?)?; // or UDmaBuf::open("udmabuf0")?
/// let frames = region.pool(8, 1500)?;
/// let weights = region.alloc(10_000, Align::DLPACK)?;
/// let app = App { region, frames, weights };
/// std::thread::spawn(move || app.frames.take().map(drop)).join().unwrap()?;
/// # Ok::<(), contigo::Error>(())
/// ```
pub struct Region {
    /// INVARIANT: this has one unit of the control block's count.
    pub(super) control: NonNull<Control>,
}

impl Region {
    /// A region over all of `backend`'s block, with [`Limits::default`].
    ///
    /// # Errors
    /// As [`with`](Self::with).
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn new<B: Backend + 'static>(backend: B) -> Result<Self, Refused<B>> {
        Self::with(backend, Requirements::default(), Limits::default())
    }

    /// A region over all of `backend`'s block, if it meets `needs`. Its caches are cleaned and
    /// invalidated once: a fresh CMA block can hold dirty lines that would later overwrite what a
    /// device wrote (amd/xdna-driver#1439). The region's control block lies in pages from the
    /// kernel, as many as `limits` ask for.
    ///
    /// # Errors
    /// The backend comes back with [`Error::NotContiguous`], [`Error::Misaligned`],
    /// [`Error::BlockSize`], [`Error::TooHigh`], or the error of its `segment` or sync.
    /// [`Error::OutOfRange`]: it has 2³² cache lines or more. [`Error::Argument`]: a limit is 0, or
    /// too large. [`Error::Os`]: the kernel has no pages. [`Error::Unsupported`]: there is no
    /// kernel.
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn with<B: Backend + 'static>(
        backend: B,
        needs: Requirements,
        limits: Limits,
    ) -> Result<Self, Refused<B>> {
        let site = Site::here();
        let made = Plan::new::<B>(limits).and_then(|plan| {
            Ok((plan, Memory::from_kernel(plan.layout)?, Control::check(&backend, needs, site)?))
        });
        match made {
            Ok((plan, memory, state)) => {
                // SAFETY: the memory is new, and the plan and the state are this backend's.
                Ok(Self { control: unsafe { Control::write(backend, state, &plan, memory) } })
            }
            Err(error) => Err(Refused::new(error, backend)),
        }
    }

    /// As [`with`](Self::with), without a kernel: the control block lies in `memory`, which is
    /// given for ever. [`Limits::control_bytes`] says how much is enough.
    ///
    /// # Errors
    /// As [`with`](Self::with), and the memory comes back with the backend; [`Error::Exhausted`] if
    /// it is too small.
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn with_memory<B: Backend + 'static>(
        backend: B,
        needs: Requirements,
        limits: Limits,
        memory: Given,
    ) -> Result<Self, Refused<(B, Given)>> {
        // From here on no use of the reference can invalidate what is made of the memory.
        let (site, mut memory) = (Site::here(), NonNull::from(memory));
        let made = Plan::new::<B>(limits).and_then(|plan| {
            // SAFETY: `memory` is given for ever, and comes back only if nothing is made of it.
            let given = unsafe { Memory::given(plan.layout, memory)? };
            Ok((plan, given, Control::check(&backend, needs, site)?))
        });
        match made {
            Ok((plan, given, state)) => {
                // SAFETY: as in `with`.
                Ok(Self { control: unsafe { Control::write(backend, state, &plan, given) } })
            }
            // SAFETY: nothing was made of the memory. It is the caller's again, for ever.
            Err(error) => Err(Refused::new(error, (backend, unsafe { memory.as_mut() }))),
        }
    }

    fn control(&self) -> &Control {
        // SAFETY: this handle's unit of the count keeps the control block.
        unsafe { self.control.as_ref() }
    }

    /// Makes one more handle.
    ///
    /// # Errors
    /// [`Error::TooMany`].
    pub(crate) fn another(&self) -> Result<Self> {
        self.control().add()?;
        Ok(Self { control: self.control })
    }

    pub(crate) fn block(&self) -> &dyn Block {
        self.control()
    }

    fn state(&self) -> &State {
        self.control().state()
    }

    /// A buffer of `len_bytes`, rounded up to whole cache lines, at an address that is a multiple
    /// of `align` for the CPU and for the device. It holds whatever its last owner left. Dropping
    /// it frees the bytes.
    ///
    /// Good fit, not best fit: it is sure to succeed if a free run is as long as the request
    /// rounded up by 1/32. If another thread has the allocator, it waits. Then it frees the blocks
    /// that were dropped while another thread had it, at most [`Limits::allocations`], and searches
    /// for its own in constant time, whatever is allocated.
    ///
    /// # Errors
    /// [`Error::Exhausted`]: no free run is long enough. [`Error::TooMany`]:
    /// [`Limits::allocations`] are out. [`Error::Argument`]: no bytes. [`Error::Misaligned`]: the
    /// block's CPU address can never have that alignment together with its device address.
    /// [`Error::WholeBlock`]: the block can only be synchronised as a whole, and has a buffer.
    /// [`Error::Contended`]: other threads kept the allocator for a second.
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn alloc(&self, len_bytes: usize, align: Align) -> Result<CpuBuf> {
        let (id, span) = self.control().take(len_bytes, align)?;
        trace::happened(Event::Take { slot: id.into(), len_bytes: span.len }, Site::here());
        // SAFETY: this handle keeps the control block, and `take` added the unit that the buffer
        // has.
        Ok(CpuBuf::new(unsafe { Control::buffer(self.control, (id, span)) }))
    }

    /// A pool of `slots` slots of `slot_bytes`, rounded up to whole cache lines, in memory of this
    /// region. Its control block lies in pages from the kernel, one page for a pool of up to 2,000
    /// slots: so making a pool is a system call, and so is the end of one.
    ///
    /// Slot 0 is aligned as DLPack wants ([`Align::DLPACK`]) if there is room for that. A word of
    /// 64 bits tracks 63 slots: a pool of up to so many is the cheapest to take from.
    ///
    /// # Errors
    /// As [`alloc`](Self::alloc). [`Error::Argument`]: no slots, or more than 1,048,576; no bytes.
    /// [`Error::Os`]: the kernel has no pages. [`Error::Unsupported`]: there is no kernel.
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn pool(&self, slots: usize, slot_bytes: usize) -> Result<Pool> {
        let site = Site::here();
        let plan = PoolPlan::new(slots)?;
        // SAFETY: the memory is new.
        unsafe { self.pool_in(&plan, Memory::from_kernel(plan.layout)?, slot_bytes, None, site) }
    }

    /// As [`pool`](Self::pool), and slot 0 is at a multiple of `align` for the CPU and for the
    /// device: with pages as slots, each slot is aligned to a page.
    ///
    /// # Errors
    /// As [`pool`](Self::pool).
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn pool_aligned(&self, slots: usize, slot_bytes: usize, align: Align) -> Result<Pool> {
        let site = Site::here();
        let plan = PoolPlan::new(slots)?;
        // SAFETY: the memory is new.
        unsafe {
            self.pool_in(&plan, Memory::from_kernel(plan.layout)?, slot_bytes, Some(align), site)
        }
    }

    /// As [`pool`](Self::pool), without a kernel: the control block lies in `memory`, which is
    /// given for ever. [`Pool::control_bytes`] says how much is enough.
    ///
    /// # Errors
    /// As [`pool`](Self::pool), and the memory comes back; [`Error::Exhausted`] also if it is too
    /// small.
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn pool_with_memory(
        &self,
        slots: usize,
        slot_bytes: usize,
        memory: Given,
    ) -> Result<Pool, Refused<Given>> {
        // As in `Region::with_memory`.
        let (site, mut memory) = (Site::here(), NonNull::from(memory));
        let made = PoolPlan::new(slots).and_then(|plan| {
            // SAFETY: `memory` is given for ever, and comes back only if nothing is made of it.
            unsafe {
                self.pool_in(&plan, Memory::given(plan.layout, memory)?, slot_bytes, None, site)
            }
        });
        // SAFETY: nothing was made of the memory. It is the caller's again, for ever.
        made.map_err(|error| Refused::new(error, unsafe { memory.as_mut() }))
    }

    /// # Safety
    /// `memory` was made for the layout of `plan`, and has nothing in it.
    unsafe fn pool_in(
        &self,
        plan: &PoolPlan,
        memory: Memory,
        slot_bytes: usize,
        align: Option<Align>,
        site: Site,
    ) -> Result<Pool> {
        let exhausted =
            |need_bytes| Error::Exhausted { need_bytes, capacity_bytes: self.len_bytes() };
        let slot_bytes = self.line().round_up(slot_bytes).ok_or(exhausted(slot_bytes))?;
        let len_bytes = slot_bytes.checked_mul(plan.slots).ok_or(exhausted(usize::MAX))?;
        let (block, span) = match self.control().take(len_bytes, align.unwrap_or(Align::DLPACK)) {
            Err(Error::Misaligned { .. } | Error::Exhausted { .. }) if align.is_none() => {
                self.control().take(len_bytes, self.line())?
            }
            taken => taken?,
        };
        trace::happened(Event::CarveBytes { offset_bytes: span.start, len_bytes: span.len }, site);
        // SAFETY: the caller's promise; this region's `take` gave the block, and the unit with it.
        // The pool was made with one handle.
        Ok(unsafe {
            Pool::of(PoolState::write(plan, memory, self.control, (block, span), slot_bytes))
        })
    }

    /// The bus address through `port` of `len_bytes` bytes at `ptr`, in O(1). It is a number: it
    /// gives no right to the bytes.
    ///
    /// # Errors
    /// [`Error::NotOurs`] if not all of them belong to this region; [`Error::WrongBus`];
    /// [`Error::Unreachable`].
    #[inline]
    pub fn dev_addr_of(&self, port: &Port, ptr: *const u8, len_bytes: usize) -> Result<DevAddr> {
        self.state().dev_addr_of(port, ptr, len_bytes)
    }

    /// Where the CPU finds the byte at bus address `addr` of `port`, in O(1): a raw pointer,
    /// because a device may own the byte at this moment. It is for reading: a hand-over cleans what
    /// was written through the buffer ([`CpuBuf::as_mut_ptr`](crate::CpuBuf::as_mut_ptr)).
    ///
    /// # Errors
    /// [`Error::NotOurs`], [`Error::WrongBus`].
    #[inline]
    pub fn host_ptr_of(&self, port: &Port, addr: DevAddr) -> Result<NonNull<u8>> {
        self.state().host_ptr_of(port, addr)
    }

    /// Asks the backend again where the block lies, and compares. For memory that may migrate, as
    /// huge pages without a pin, call it before the first job and now and then.
    ///
    /// # Errors
    /// [`Error::NotContiguous`]: from byte `offset_bytes` on the block is elsewhere. Stop the
    /// device. Or the error of the backend's `segment`, if it cannot know any more.
    pub fn verify(&self) -> Result<()> {
        block::contiguous(self.control().backend(), &self.state().mapping)
    }

    /// A descriptor of a dma-buf that holds the block, for another importer: a camera's or a
    /// display's driver writes or reads it without a copy. The pages live as long as the last
    /// descriptor of them.
    ///
    /// # Safety
    /// - While an importer has the block mapped, no view of any byte of it exists, and no queue
    ///   has a job in it. The importer reads, writes, and maintains the caches of all of it, the
    ///   buffers of others included.
    /// - For u-dma-buf: the importers have released it before the region's memory is unmapped,
    ///   because then another program may open the device.
    ///
    /// # Errors
    /// [`Error::Unsupported`]: the memory is no dma-buf (u-dma-buf's, a dma-heap's, a contigo
    /// device's and an imported one are), or the module says why not. [`Error::Os`]: the kernel's
    /// error.
    ///
    /// ```no_run
    /// # #[cfg(all(feature = "linux", target_os = "linux"))] {
    /// use contigo::{Region, linux::memory::DmaHeap};
    /// let region = Region::new(DmaHeap::allocate("linux,cma", 4 << 20)?)?;
    /// // SAFETY: nothing is allocated from it yet; the camera has it alone until VIDIOC_DQBUF.
    /// let fd = unsafe { region.export()? };   // V4L2's VIDIOC_QBUF with V4L2_MEMORY_DMABUF, DRM's PRIME
    /// # drop(fd);
    /// # }
    /// # Ok::<(), contigo::Error>(())
    /// ```
    pub unsafe fn export(&self) -> Result<OwnedFd> {
        // SAFETY: the caller's promise.
        unsafe { self.control().backend().export() }
    }

    /// The block's size in bytes.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        self.state().mapping.len_bytes
    }

    /// How many bytes are neither in a buffer nor in a pool. They may lie in several places. Blocks
    /// that were dropped while another thread had the allocator are freed first; if another thread
    /// has it now, they are not counted yet.
    #[must_use]
    pub fn free_bytes(&self) -> usize {
        self.control().free_bytes()
    }

    /// How many handles, buffers and pools there are, this one included: the memory is unmapped
    /// after the last. Other threads may change that at once.
    #[must_use]
    pub fn users(&self) -> usize {
        self.control().units()
    }

    /// The limits that it was opened with.
    #[must_use]
    #[cfg(test)]
    pub(crate) fn limits(&self) -> Limits {
        self.control().limits
    }

    /// The cache line: buffers and slots are whole lines.
    #[must_use]
    pub fn line(&self) -> Align {
        self.state().line
    }

    /// Where the block lies.
    #[must_use]
    pub fn base(&self) -> BaseAddr {
        self.state().mapping.base
    }

    /// The bytes that one cache maintenance call covers here.
    #[must_use]
    pub fn scope(&self) -> SyncScope {
        self.state().mapping.scope
    }

    /// The counts of this region's work so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.state().counters.snapshot()
    }

    /// The backend's name. The backend itself is out of reach: its syncs would change bytes under a
    /// view.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.control().backend().name()
    }
}

impl Clone for Region {
    /// # Panics
    /// If there are 16,777,216 users: in a program that forgets clones in
    /// a loop.
    fn clone(&self) -> Self {
        // PANIC: `clone` cannot refuse, and a count that wraps would free memory under a device.
        #[allow(clippy::expect_used, reason = "as above")]
        self.another().expect("too many handles of one region")
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the unit is this handle's, `drop` runs once, and uses nothing after it.
        unsafe { Control::drop_one(self.control) }
    }
}

// SAFETY: a handle reaches numbers, atomics, the allocator behind its lock, and the backend, which
// is `Send + Sync`. The memory itself is reached through buffers only.
unsafe impl Send for Region {}
// SAFETY: as for `Send`.
unsafe impl Sync for Region {}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Region")
            .field("backend", &self.name())
            .field("base", &self.base())
            .field("len_bytes", &self.len_bytes())
            .field("free_bytes", &self.free_bytes())
            .finish_non_exhaustive()
    }
}
