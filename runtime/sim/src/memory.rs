#![allow(unsafe_code, reason = "a backend promises that its mapping is valid")]
//! The simulated board's memory as a backend.

use super::{SimBoard, block::SimBlock};
use contigo_core::{
    mem::{Backend, Holder, Mapping, Segment, SyncScope, WrongAccesses},
    types::{Align, BaseAddr, Direction, Error, Result, platform::Anonymous},
};
use core::{fmt, ops::Range, ptr::NonNull};

/// The properties of a block of simulated memory. The default is a good block on a non-coherent
/// board; every other value is there to be refused, or to stand for another kind of board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimSpec {
    /// The size, in bytes.
    pub len_bytes: usize,
    /// Where it lies on the bus; `None`: where there is room, below 4 GiB.
    pub base: Option<BaseAddr>,
    /// The cache line of the simulated processor.
    pub line: Align,
    /// The bytes that one sync covers. The granule of a range is always `line`.
    pub scope: SyncScope,
    /// The kernel's word about its coherency.
    pub coherent: Option<bool>,
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
    Mapped(core::mem::ManuallyDrop<Anonymous>),
    Static,
}

impl Sim {
    pub(super) fn map(board: &SimBoard, spec: SimSpec) -> Result<Self> {
        let refusal = Error::BlockSize {
            len_bytes: spec.len_bytes,
            need_bytes: 1,
            line_bytes: spec.line.bytes(),
        };
        let len_bytes = spec.line.round_up(spec.len_bytes).filter(|&len| len > 0).ok_or(refusal)?;
        let four = len_bytes.checked_mul(4).ok_or(refusal)?;
        let mut mapped = Anonymous::zeroed(four)?;
        let memory = NonNull::new(mapped.as_mut_ptr()).ok_or(refusal)?;
        // SAFETY: the mapping has 4 * len_bytes bytes, zeroed, and is this backend's alone; `Drop`
        // unmaps it only after the block was taken from the board.
        let (block, spec) = unsafe { Self::attach(board, spec, memory, len_bytes)? };
        Ok(Self {
            board: board.clone(),
            block,
            spec,
            storage: Storage::Mapped(core::mem::ManuallyDrop::new(mapped)),
        })
    }

    pub(super) fn over(board: &SimBoard, memory: &'static mut [u8]) -> Result<Self> {
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
        let (block, spec) = unsafe { Self::attach(board, spec, memory, len_bytes)? };
        Ok(Self { board: board.clone(), block, spec, storage: Storage::Static })
    }

    /// # Safety
    /// As [`SimBlock::over`].
    unsafe fn attach(
        board: &SimBoard,
        spec: SimSpec,
        memory: NonNull<u8>,
        len_bytes: usize,
    ) -> Result<(SimBlock, SimSpec)> {
        let base = match spec.base {
            Some(base) => base,
            None => board.place(len_bytes)?,
        };
        let scope = match spec.scope {
            SyncScope::Range { .. } => SyncScope::Range { granule_bytes: spec.line.bytes() },
            other => other,
        };
        let spec = SimSpec { scope, ..spec };
        // SAFETY: the caller's promise.
        let block = unsafe { SimBlock::over(memory, len_bytes, spec.line, base, spec.scope) };
        Ok((board.attach(block)?, spec))
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
            // SAFETY: `drop` runs once, and the board knows the memory no more.
            unsafe { core::mem::ManuallyDrop::drop(mapped) }
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
