#![allow(unsafe_code, reason = "the core behind registers is the program's word")]
//! The core that both channels share.

use super::{
    at::At,
    channel::AxiDmaChannel,
    config::{AxiDmaConfig, Side},
    halt,
    lane::Lane,
    regs,
    setup::ring,
};
use crate::{
    hw::{Device, Mmio},
    job::{Core, CoreChannel},
    mem::CpuBuf,
    types::{
        Result,
        atomic::{AtomicU32, Ordering},
    },
};
use core::fmt;

/// A core, as a channel's driver needs it.
pub(super) trait Siblings: Sync {
    /// Does it under the lock that a reset takes.
    fn locked(&self, act: &mut dyn FnMut() -> Result<()>) -> Result<()>;

    /// As [`Core::reset`].
    fn reset_all(&self, act: &mut dyn FnMut() -> Result<()>) -> Result<()>;

    /// `side` has jobs, or has none.
    fn set_busy(&self, side: Side, busy: bool);

    /// Has the other channel jobs?
    fn is_busy_beside(&self, side: Side) -> bool;

    /// The other channel's DMASR; 0 where the window ends before it.
    fn status_beside(&self, side: Side) -> u32;
}

/// One core whose channels have a driver each, in one thread or in several.
///
/// **A reset of one channel resets both** (PG021, DMACR.Reset). A channel is stopped without it
/// where its transfers end by themselves. A receive that waits for a packet does not, nor does a
/// channel that failed: there the core is reset, and the sibling answers
/// [`Error::EndedByReset`](crate::Error::EndedByReset) where it has jobs.
///
/// **An error of one channel halts both**, and neither runs again before a reset, which a stop of
/// either makes. A channel that its sibling's error halted answers that error, with the sibling's
/// name.
///
/// The core has two interrupts. Where the kernel gives a program one line, both are ORed in the
/// block design. A channel whose interrupt does not come finds its end when its wait is over.
#[derive(Debug)]
pub struct AxiDmaCore<D> {
    core: Core<D>,
    /// Bit N: channel N has jobs.
    busy: AtomicU32,
}

impl<D: Device> AxiDmaCore<D> {
    /// The core behind `device`. It is not touched before a channel is opened.
    ///
    /// # Safety
    /// The window is an AXI DMA's (PG021), and nobody else drives any of its channels while this
    /// value or a channel of it lives.
    pub unsafe fn open(device: D) -> Self {
        Self { core: Core::new(device), busy: AtomicU32::new(0) }
    }

    /// Resets the core by `pull`, from outside. A channel that has jobs in flight answers
    /// [`Error::EndedByReset`](crate::Error::EndedByReset) then.
    ///
    /// # Errors
    /// [`Error::Contended`](crate::Error::Contended), or what `pull` says.
    pub fn reset(&self, pull: impl FnOnce() -> Result<()>) -> Result<()> {
        self.core.reset(|_| pull())
    }
}

impl<D: Device + Send + Sync> AxiDmaCore<D> {
    /// The driver of one channel, with `memory` for its descriptors where the core has
    /// scatter-gather. The channel is stopped, and the core reset where its sibling has no jobs.
    ///
    /// # Errors
    /// [`Error::HasDriver`](crate::Error::HasDriver), or as
    /// [`AxiDmaChannel::alone`]. The memory goes back to its pool.
    ///
    /// # Safety
    /// The core is built as `config` says.
    pub unsafe fn channel<'c, 'p>(
        &'c self,
        side: Side,
        config: AxiDmaConfig,
        memory: Option<CpuBuf<'p>>,
    ) -> Result<AxiDmaChannel<'c, 'p, CoreChannel<'c, D>>> {
        let window = side.base()..side.base() + regs::CHANNEL_BYTES;
        // SAFETY: each channel's registers are its own, except for Reset, which is written by
        // `Core::reset` alone.
        let device = unsafe { self.core.channel(side.index(), window)? };
        let sg = halt::found_beside(&device, side, &config, self)?;
        let ring = ring(sg, memory, self.core.device().port(), &config)?;
        Ok(AxiDmaChannel::beside(device, Lane::new(side, config, ring), self))
    }
}

impl fmt::Debug for dyn Siblings + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AxiDmaCore")
    }
}

impl<D: Device + Send + Sync> Siblings for AxiDmaCore<D> {
    fn locked(&self, act: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let _lock = self.core.lock()?;
        act()
    }

    fn reset_all(&self, act: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        self.core.reset(|_| act())
    }

    fn set_busy(&self, side: Side, busy: bool) {
        let bit = 1 << side.index();
        if busy {
            self.busy.fetch_or(bit, Ordering::AcqRel);
        } else {
            self.busy.fetch_and(!bit, Ordering::AcqRel);
        }
    }

    fn is_busy_beside(&self, side: Side) -> bool {
        self.busy.load(Ordering::Acquire) & !(1 << side.index()) != 0
    }

    fn status_beside(&self, side: Side) -> u32 {
        let at = At { device: self.core.device(), base: side.other().base() };
        if at.len_bytes() < regs::CHANNEL_BYTES { 0 } else { regs::DMASR.read(&at) }
    }
}
