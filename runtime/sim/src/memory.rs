#![allow(unsafe_code, reason = "a backend promises that its mapping is valid")]
//! Memory on a simulated board's bus, as backends: the board's own, or another backend's.

use super::SimBoard;
use super::block::SimBlock;
use contigo_core::forward;
use contigo_core::mem::{Backend, Holder, Mapping, Segment, SyncScope, WrongAccesses};
use contigo_core::types::platform::{Anonymous, HAS_MEMORY};
use contigo_core::types::{Align, BaseAddr, Direction, Error, Result};
use core::fmt;
use core::mem::ManuallyDrop;
use core::ops::Range;
use core::ptr::NonNull;

/// The properties of a block of simulated memory. The default is a good block on a non-coherent
/// board; every other value is there to be refused, or to stand for another kind of board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimSpec {
    /// The size, in bytes.
    pub len_bytes: usize,
    /// Its address on the bus; `None`: wherever there is room, below 4 GiB.
    pub base: Option<BaseAddr>,
    /// The cache line of the simulated processor.
    pub line: Align,
    /// The bytes that one sync covers. The granule of a range is always `line`.
    pub scope: SyncScope,
    /// Whether it is coherent, as the kernel would report it.
    pub coherent: Option<bool>,
    /// Whether the CPU caches it. Otherwise CPU and bus have one view, whatever the port, as of
    /// memory that a kernel allocates coherent; a sync moves nothing.
    pub cached: bool,
    /// The first byte that is not contiguous with those before it, a multiple of 32.
    pub break_at: Option<usize>,
}

impl Default for SimSpec {
    fn default() -> Self {
        Self {
            len_bytes: 1 << 20,
            base: None,
            line: Align::LINE,
            scope: SyncScope::Range { granule_bytes: Align::LINE.bytes() },
            coherent: None,
            cached: true,
            break_at: None,
        }
    }
}

/// One block of a simulated board's memory, with a handle to the board. [`SimBoard::memory`] makes
/// it, or [`SimBoard::memory_over`] where there is no kernel.
pub struct Sim {
    board: SimBoard,
    block: SimBlock,
    spec: SimSpec,
    storage: Storage,
}

/// The memory behind the four views.
enum Storage {
    Mapped(ManuallyDrop<Anonymous>),
    Static,
}

impl SimBoard {
    /// Allocates `len_bytes` of the board's memory: non-coherent, 64-byte lines, synced by range.
    ///
    /// # Errors
    /// As [`memory_with`](Self::memory_with).
    pub fn memory(&self, len_bytes: usize) -> Result<Sim> {
        self.memory_with(SimSpec { len_bytes, ..SimSpec::default() })
    }

    /// Allocates `len_bytes` that the CPU does not cache: coherent for devices behind any port, for
    /// descriptors. Stores are seen in order here, so a missing barrier before a doorbell does not
    /// show.
    ///
    /// # Errors
    /// As [`memory_with`](Self::memory_with).
    pub fn memory_coherent(&self, len_bytes: usize) -> Result<Sim> {
        self.memory_with(SimSpec { len_bytes, cached: false, ..SimSpec::default() })
    }

    /// Allocates a block as `spec` describes it, which may be one that no program should accept.
    ///
    /// # Errors
    /// [`Error::Os`] where the kernel has no memory; [`Error::TooMany`] past 32 blocks;
    /// [`Error::BlockSize`].
    pub fn memory_with(&self, spec: SimSpec) -> Result<Sim> {
        let refusal = Error::BlockSize {
            len_bytes: spec.len_bytes,
            need_bytes: 1,
            line_bytes: spec.line.bytes(),
        };
        let len_bytes = spec.line.round_up(spec.len_bytes).filter(|&len| len > 0).ok_or(refusal)?;
        let mut mapped = Anonymous::zeroed(len_bytes.checked_mul(4).ok_or(refusal)?)?;
        let memory = NonNull::new(mapped.as_mut_ptr()).ok_or(refusal)?;
        // SAFETY: the mapping has 4 * len_bytes bytes, zeroed, and is this backend's alone; `Drop`
        // unmaps it only after the block was taken from the board.
        let (block, spec) = unsafe { self.attach_over(spec, memory, len_bytes)? };
        let storage = Storage::Mapped(ManuallyDrop::new(mapped));
        Ok(Sim { board: self.clone(), block, spec, storage })
    }

    /// Makes a block over `memory`, for a processor without a kernel. A quarter of `memory`, in
    /// whole lines, becomes the CPU's view; the rest is the bus's view, the clean copy and the
    /// marks.
    ///
    /// # Errors
    /// [`Error::BlockSize`] where `memory` is too small; [`Error::TooMany`] past 32 blocks.
    pub fn memory_over(&self, memory: &'static mut [u8]) -> Result<Sim> {
        let line = Align::LINE;
        let have_bytes = memory.len();
        let refusal = Error::BlockSize {
            len_bytes: have_bytes,
            need_bytes: 5 * line.bytes(),
            line_bytes: line.bytes(),
        };
        let start = memory.as_mut_ptr();
        let skip = start.align_offset(line.bytes());
        let len_bytes = line.round_down(have_bytes.saturating_sub(skip) / 4);
        if len_bytes == 0 {
            return Err(refusal);
        }
        let spec = SimSpec { len_bytes, line, ..SimSpec::default() };
        // SAFETY: `skip + 4 * len_bytes` is at most the slice's length, so the result is inside it,
        // and not null.
        let memory = unsafe { NonNull::new_unchecked(start.add(skip)) };
        // SAFETY: the slice is borrowed for ever and only here; the four memories fit, see above.
        let (block, spec) = unsafe { self.attach_over(spec, memory, len_bytes)? };
        Ok(Sim { board: self.clone(), block, spec, storage: Storage::Static })
    }

    /// # Safety
    /// As [`SimBlock::over`].
    unsafe fn attach_over(
        &self,
        spec: SimSpec,
        memory: NonNull<u8>,
        len_bytes: usize,
    ) -> Result<(SimBlock, SimSpec)> {
        let base = match spec.base {
            Some(base) => base,
            None => self.place(len_bytes)?,
        };
        let scope = match spec.scope {
            SyncScope::Range { .. } => SyncScope::Range { granule_bytes: spec.line.bytes() },
            other => other,
        };
        let spec = SimSpec { scope, ..spec };
        // SAFETY: the caller's promise.
        let block = unsafe { SimBlock::over(memory, len_bytes, spec.line, base, spec.scope) };
        let block = if spec.cached { block } else { SimBlock { behind: None, ..block } };
        Ok((self.attach(block)?, spec))
    }
}

// SAFETY: 1. The block and the spec never change. 2. The mapping is this backend's, initialised by
// `SimBlock::over`. The first quarter is written only by its holder and, for bytes handed over, by
// the simulated devices and caches.
// 3. `SimBlock::for_device` and `for_cpu` touch the range, rounded out to lines where the device
//    writes. For `ToDevice` they touch exactly the range, and in its lines also bytes that a device
//    may write, of which no view exists. 4. `segment` says where `SimBlock::find` finds the bytes.
unsafe impl Backend for Sim {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn mapping(&self) -> Mapping {
        Mapping {
            cpu: self.block.cpu,
            len_bytes: self.block.len_bytes,
            base: self.block.base,
            bus: self.board.bus(),
            scope: self.spec.scope,
            coherent: self.spec.coherent,
        }
    }

    fn segment(&self, offset_bytes: usize) -> Result<Segment> {
        let addr = self.block.base.raw().wrapping_add(offset_bytes as u64);
        let whole = Segment { addr, len_bytes: self.block.len_bytes.saturating_sub(offset_bytes) };
        Ok(match self.spec.break_at {
            Some(at) if offset_bytes < at => Segment { addr, len_bytes: at - offset_bytes },
            Some(_) => Segment { addr: addr.wrapping_add(Align::PAGE.bytes() as u64), ..whole },
            None => whole,
        })
    }

    unsafe fn sync_for_device(&self, range: Range<usize>, direction: Direction) -> Result<()> {
        let mut board = self.board.lock()?;
        board.counts.lost_writes += self.block.for_device(range, direction);
        Ok(())
    }

    unsafe fn sync_for_cpu(&self, range: Range<usize>, direction: Direction) -> Result<()> {
        let mut board = self.board.lock()?;
        let evictions = self.block.for_cpu(range, direction, &mut board.rng);
        board.counts.evictions += evictions;
        Ok(())
    }

    fn held_by(&self, range: Range<usize>, holder: Holder<'_>) {
        self.board.hold(&self.block, range, holder);
    }

    fn wrong_accesses(&self) -> Result<WrongAccesses> {
        self.board.wrong_accesses(None)
    }
}

impl Drop for Sim {
    fn drop(&mut self) {
        self.board.detach(self.block.id);
        if let Storage::Mapped(mapped) = &mut self.storage
            && !self.board.is_attached(self.block.id)
        {
            // SAFETY: `drop` runs once, and the board no longer knows the memory.
            unsafe { ManuallyDrop::drop(mapped) }
        }
    }
}

// SAFETY: the pointers of `block` are used under the board's lock, or by the region's rules;
// everything else is numbers.
unsafe impl Send for Sim {}
// SAFETY: as for `Send`.
unsafe impl Sync for Sim {}

impl fmt::Debug for Sim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = match &self.storage {
            Storage::Mapped(_) => "mapped",
            Storage::Static => "static",
        };
        f.debug_struct("Sim")
            .field("base", &self.block.base)
            .field("len_bytes", &self.block.len_bytes)
            .field("memory", &held)
            .finish()
    }
}

/// Puts another backend's block on the simulated board's bus, so that simulated devices work on
/// real memory: `contigo demo --memory hugetlb`. Its addresses are then for this board, not for any
/// real device. A simulated device is a program on the CPU: it reads and writes through the caches.
/// The backend still does its own maintenance, on memory that is not coherent too: what the device
/// wrote is cleaned before it is invalidated.
#[derive(Debug)]
pub struct OnBoard<B: Backend> {
    board: SimBoard,
    inner: ManuallyDrop<B>,
    block: SimBlock,
    /// The holder of each byte. Freed with `inner`.
    marks: ManuallyDrop<Option<Anonymous>>,
}

impl<B: Backend> OnBoard<B> {
    /// Puts `inner`'s block on `board`'s bus, at its own address.
    ///
    /// # Errors
    /// [`Error::TooMany`] past 32 blocks. `inner` is dropped: no
    /// device has seen it.
    pub fn new(board: &SimBoard, inner: B) -> Result<Self> {
        let Mapping { cpu, len_bytes, base, .. } = inner.mapping();
        let mut mapped = if HAS_MEMORY { Some(Anonymous::zeroed(len_bytes)?) } else { None };
        let marks = mapped.as_mut().and_then(|mapped| NonNull::new(mapped.as_mut_ptr()));
        let block = board.attach(SimBlock { id: 0, base, len_bytes, cpu, behind: None, marks })?;
        Ok(Self {
            board: board.clone(),
            inner: ManuallyDrop::new(inner),
            block,
            marks: ManuallyDrop::new(mapped),
        })
    }
}

// SAFETY: every method is `inner`'s, except that the addresses are for the board's bus, on which
// the block is. The simulated devices reach it only by addresses that the region gave them.
unsafe impl<B: Backend> Backend for OnBoard<B> {
    forward!(|this| *this.inner => name, segment, settled);

    fn mapping(&self) -> Mapping {
        Mapping { bus: self.board.bus(), ..self.inner.mapping() }
    }
    unsafe fn sync_for_device(&self, range: Range<usize>, direction: Direction) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.inner.sync_for_device(range, direction) }
    }
    unsafe fn sync_for_cpu(&self, range: Range<usize>, direction: Direction) -> Result<()> {
        if direction.device_writes() {
            // A simulated device wrote through the CPU's caches: an invalidate would throw that
            // away, so it is cleaned first. SAFETY: the caller's promise; the same range, and a
            // direction that writes as well.
            unsafe { self.inner.sync_for_device(range.clone(), Direction::Bidirectional)? }
        }
        // SAFETY: the caller's promise.
        unsafe { self.inner.sync_for_cpu(range, direction) }
    }
    fn held_by(&self, range: Range<usize>, holder: Holder<'_>) {
        self.board.hold(&self.block, range, holder);
    }
    fn wrong_accesses(&self) -> Result<WrongAccesses> {
        self.board.wrong_accesses(None)
    }
}

impl<B: Backend> Drop for OnBoard<B> {
    fn drop(&mut self) {
        self.board.detach(self.block.id);
        if !self.board.is_attached(self.block.id) {
            // SAFETY: `drop` runs once, and the board no longer knows the memory.
            unsafe { ManuallyDrop::drop(&mut self.inner) }
            // SAFETY: as above.
            unsafe {
                ManuallyDrop::drop(&mut self.marks);
            }
        }
    }
}
