#![allow(unsafe_code, reason = "a hand-over to a device is the C program's promise")]
//! Buffers: what each is of, and where it goes when it is released.

use super::{
    pool::Pool,
    region::{REGIONS, Region},
};
use crate::{
    fault::{Fault, Misuse},
    limits,
};
use contigo::{
    Align, CpuBuf, Direction, Error, Port,
    dlpack::{TensorSpec, TensorTable},
};
use contigo_objects::{Access, Buffer, Kind, Lease, Locked, Refusal, Table, Views};
use core::ffi::c_void;

/// The tensors that frameworks have.
static TENSORS: TensorTable<{ limits::TENSORS }> = TensorTable::new();

/// Buffers. The pools' free slots have entries too, which are kept for them.
pub(crate) static BUFS: Table<Buf, { Kind::Buf as u8 }, { limits::BUFS }> = Table::new();

/// One buffer: who has it, its views, and what it is of.
pub(crate) struct Buf {
    pub(crate) state: Buffer,
    pub(crate) views: Views,
    origin: Origin,
}

/// What a buffer is of, and is not closed while the buffer is there.
pub(super) enum Origin {
    /// A slot, or a part of one. Is it in the slot's own entry?
    Slot {
        pool: Lease<Pool>,
        has_entry: bool,
    },
    Region(Lease<Region>),
}

impl Origin {
    /// That of a part that is cut off.
    fn of_rest(&self) -> Result<Self, Refusal> {
        Ok(match self {
            Self::Slot { pool, .. } => {
                Self::Slot { pool: pool.again(Kind::Pool)?, has_entry: false }
            }
            Self::Region(region) => Self::Region(region.again(Kind::Region)?),
        })
    }
}

impl Buf {
    pub(super) const fn new(buf: CpuBuf, origin: Origin) -> Self {
        Self { state: Buffer::new(buf), views: Views::new(), origin }
    }

    /// Allocates one buffer.
    pub(crate) fn carve(region: u64, len_bytes: usize, align: Align) -> Result<u64, Fault> {
        let region = REGIONS.lease(region)?;
        let mut claimed = BUFS.claim()?;
        let buf = region.memory().alloc(len_bytes, align)?;
        claimed.locked.put(Self::new(buf, Origin::Region(region)));
        Ok(claimed.raw())
    }

    /// Gives the buffer back to its pool, or for good. Refused while it is mapped or a device's.
    #[inline]
    pub(crate) fn release(raw: u64) -> Result<(), Fault> {
        let mut locked = BUFS.lock(raw)?;
        let Some(Self { state, views, origin }) = locked.value() else {
            return Err(Refusal::Stale { kind: Kind::Buf }.into());
        };
        state.is_idle(views)?;
        let has_entry = matches!(origin, Origin::Slot { has_entry: true, .. });
        // Dropped after that: the call that takes the slot next finds its entry kept. The pool may
        // be closed at once.
        drop(if has_entry { locked.keep() } else { locked.take() });
        Ok(())
    }

    /// Cuts a buffer at byte `at_bytes`: it keeps what is before, and what is behind gets the handle
    /// that is returned. Where it is refused, the buffer is as it was.
    pub(crate) fn split(raw: u64, at_bytes: usize) -> Result<u64, Fault> {
        let mut locked = BUFS.lock(raw)?;
        let Some(Self { state, views, origin }) = locked.value() else {
            return Err(Refusal::Stale { kind: Kind::Buf }.into());
        };
        // Before anything is cut: a full table leaves the buffer as it is.
        let mut rest = BUFS.claim()?;
        let origin = origin.of_rest()?;
        rest.locked.put(Self::new(state.split(views, at_bytes)?, origin));
        Ok(rest.raw())
    }

    /// The CPU's address of the buffer, for as long as `unmap` is not called.
    pub(crate) fn map(&mut self, access: Access) -> Result<(*mut u8, usize), Fault> {
        self.state.open_view(&self.views, access)?;
        let shown = match access {
            // Readers may be many, so the pointer comes from a shared borrow; nothing is written
            // through it (contigo.h).
            Access::Read => {
                self.state.cpu()?.view::<u8>().map(|bytes| (bytes.as_ptr().cast_mut(), bytes.len()))
            }
            Access::Write => self
                .state
                .cpu_mut()?
                .view_mut::<u8>()
                .map(|bytes| (bytes.as_mut_ptr(), bytes.len())),
        };
        shown.map_err(|error| self.views.close().map_or_else(Fault::from, |_| error.into()))
    }

    /// Do `len_bytes` bytes fit, and is none of those at `addr` one of the buffer's?
    pub(crate) fn may_take(&self, addr: usize, len_bytes: usize) -> Result<(), Fault> {
        self.state.is_idle(&self.views)?;
        let shown = self.state.cpu()?.view::<u8>()?;
        if len_bytes > shown.len() {
            return Err(
                Error::OutOfRange { start: 0, end: len_bytes, len_bytes: shown.len() }.into()
            );
        }
        let shown = shown.as_ptr_range();
        let apart =
            addr >= shown.end.addr() || addr.saturating_add(len_bytes) <= shown.start.addr();
        if apart { Ok(()) } else { Err(Misuse::Overlap.into()) }
    }

    /// Copies `source` to the beginning of the buffer.
    pub(crate) fn copy_from(&mut self, source: &[u8]) -> Result<(), Fault> {
        Ok(self.state.cpu_mut()?.copy_from_slice(source)?)
    }

    /// Makes a part of it a device's, and says where the device finds it.
    ///
    /// # Safety
    /// As `Buffer::give`.
    pub(crate) unsafe fn hand_to_device(
        &mut self,
        port: &Port,
        offset_bytes: usize,
        len_bytes: usize,
        direction: Direction,
    ) -> Result<u64, Fault> {
        // A sum past the end of all memory is past the end of the buffer, which is checked.
        let range = offset_bytes..offset_bytes.saturating_add(len_bytes);
        // SAFETY: the caller's promise.
        Ok(unsafe { self.state.give(&self.views, port, range, direction)? }.slice().addr.0)
    }

    /// Lends it as a tensor, the CPU's or a device's, and gives the tensor out.
    pub(crate) fn lend(&mut self, spec: &TensorSpec, legacy: bool) -> Result<*mut c_void, Fault> {
        Ok(self.state.lend(&self.views, &TENSORS, spec, legacy)?)
    }
}

/// Does something with the buffer of a handle, in one call alone.
pub(crate) fn with<R>(
    raw: u64,
    act: impl FnOnce(&mut Buf) -> Result<R, Fault>,
) -> Result<R, Fault> {
    let mut locked: Locked<Buf> = BUFS.lock(raw)?;
    act(locked.value().ok_or(Refusal::Stale { kind: Kind::Buf })?)
}
