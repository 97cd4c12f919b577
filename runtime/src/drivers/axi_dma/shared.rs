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
    types::{Result, atomic::Ordering},
};

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
    /// Its drivers' mark N: channel N has jobs.
    core: Core<D>,
}

impl<D: Device> AxiDmaCore<D> {
    /// The core behind `device`. It is not touched before a channel is opened.
    ///
    /// # Errors
    /// As [`Core::new`].
    ///
    /// # Safety
    /// The window is an AXI DMA's (PG021), and no other driver has any of its channels while this
    /// value or a channel of it lives.
    pub unsafe fn open(device: D) -> Result<Self> {
        Ok(Self { core: Core::new(device)? })
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

impl<D: Device> AxiDmaCore<D> {
    /// The driver of one channel, with `memory` for its descriptors where the core has
    /// scatter-gather. The channel is stopped, and the core reset where its sibling has no jobs.
    ///
    /// # Errors
    /// [`Error::HasDriver`](crate::Error::HasDriver), or as
    /// [`AxiDmaChannel::alone`]. The memory goes back to its pool.
    ///
    /// # Safety
    /// The core is built as `config` says.
    pub unsafe fn channel(&self, side: Side, config: AxiDmaConfig, memory: Option<CpuBuf>) -> Result<AxiDmaChannel<CoreChannel<D>>> {
        let window = 0..self.core.device().len_bytes().max(side.base() + regs::CHANNEL_BYTES);
        // SAFETY: a channel's driver writes its own registers alone, and Reset by `Siblings::reset`.
        let device = unsafe { self.core.channel(side.index(), window)? };
        let sg = halt::found_beside(&device, side, &config)?;
        let ring = ring(sg, memory, device.port(), &config)?;
        Ok(AxiDmaChannel::new(device, Lane::new(side, config, ring)))
    }
}

/// `side` has jobs, or has none. What it says of a channel that is alone is not kept.
pub(super) fn set_busy(device: &impl Device, side: Side, busy: bool) {
    let Some(siblings) = device.siblings() else { return };
    let bit = 1 << side.index();
    if busy {
        siblings.marks().fetch_or(bit, Ordering::AcqRel);
    } else {
        siblings.marks().fetch_and(!bit, Ordering::AcqRel);
    }
}

/// Has the other channel jobs?
pub(super) fn is_busy_beside(device: &impl Device, side: Side) -> bool {
    device.siblings().is_some_and(|siblings| siblings.marks().load(Ordering::Acquire) & !(1 << side.index()) != 0)
}

/// The other channel's DMASR, where it has a driver; 0 where the window ends before it.
pub(super) fn status_beside(device: &impl Device, side: Side) -> Option<u32> {
    device.siblings()?;
    let at = At { device, base: side.other().base() };
    Some(if at.len_bytes() < regs::CHANNEL_BYTES { 0 } else { regs::DMASR.read(&at) })
}
