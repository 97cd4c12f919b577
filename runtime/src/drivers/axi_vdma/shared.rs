#![allow(unsafe_code, reason = "the core behind registers is the program's word")]
//! The core that both channels share.

use super::{AxiVdmaChannel, AxiVdmaConfig, Side, channel, regs};
use crate::{
    hw::Device,
    job::{Core, CoreChannel},
    types::Result,
};

/// One core whose channels have a driver each, in one thread or in several.
#[derive(Debug)]
pub struct AxiVdmaCore<D> {
    core: Core<D>,
}

impl<D: Device> AxiVdmaCore<D> {
    /// The core behind `device`. It is not touched before a channel is opened.
    ///
    /// # Errors
    /// As [`Core::new`].
    ///
    /// # Safety
    /// The window is an AXI VDMA's (PG020), and no other driver has any of its channels while this
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

impl<D: Device> AxiVdmaCore<D> {
    /// The driver of one channel.
    ///
    /// # Errors
    /// [`Error::HasDriver`](crate::Error::HasDriver), or as [`AxiVdmaChannel::alone`].
    ///
    /// # Safety
    /// The core is built as `config` says.
    pub unsafe fn channel(&self, side: Side, config: AxiVdmaConfig) -> Result<AxiVdmaChannel<CoreChannel<D>>> {
        channel::check(self.core.device(), &config)?;
        // SAFETY: a channel's driver writes its own registers alone (`Side::registers`).
        let device = unsafe { self.core.channel(side.index(), 0..regs::WINDOW_BYTES)? };
        AxiVdmaChannel::opened(device, side, config)
    }
}
