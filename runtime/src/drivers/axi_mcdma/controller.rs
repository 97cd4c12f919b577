#![allow(unsafe_code, reason = "which core is behind registers is the program's word")]
//! The core that its channels share, and a channel that has it alone.

use super::{
    channel::McdmaChannel,
    config::{McdmaConfig, Way},
    fault, regs, stopping,
};
use crate::{
    hw::Device,
    job::{Core, CoreChannel},
    mem::CpuBuf,
    types::{Error, Refused, Result, platform::forward_as_fd},
};

/// One core, whose channels have a driver each: up to 16 that send and 16 that receive, in one
/// thread or in several.
///
/// The core has one reset. A channel that cannot be stopped otherwise resets it, and the others'
/// jobs end with [`Error::EndedByReset`]; so do all channels' jobs of a direction in which one
/// failed.
///
/// ```
/// use contigo::{Align, drivers::axi_mcdma::{Mcdma, SimMcdma, Way}, sim::SimBoard, Queue, Region};
/// use core::time::Duration;
/// let board = SimBoard::new(1);
/// let region = Region::new(board.memory(64 * 1024)?)?;
/// let rings = region.pool(2, 512)?;
/// let pool = region.pool(4, 4096)?;
/// let device = SimMcdma::new(&board, board.port());
///
/// let core = Mcdma::open_simulated(device.window()?)?;
/// let mut receiver = Queue::new(core.channel(Way::S2mm(1), rings.take()?)?, 8)?;
/// let mut sender = Queue::new(core.channel(Way::Mm2s(1), rings.take()?)?, 8)?;
/// receiver.submit([pool.take()?.from_device(..4096)], &[])?; // first: a packet without a buffer is dropped
/// sender.submit([pool.take()?.to_device(..1000)], &[])?;
/// let received = receiver.wait::<1>(Duration::from_millis(5))?.ok_or(contigo::Error::Busy)?;
/// assert!(received.last == Some(true) && received.bytes == Some(1000));
/// # Ok::<(), contigo::Error>(())
/// ```
#[derive(Debug)]
pub struct Mcdma<D> {
    core: Core<D>,
    config: McdmaConfig,
}

impl<D: Device> Mcdma<D> {
    /// The core behind `device`, built as `config` says. It is reset.
    ///
    /// # Errors
    /// [`Error::RegisterWindow`]; [`Error::Fault`] where nothing answers; [`Error::WillNotStop`]
    /// where its reset does not end.
    ///
    /// # Safety
    /// The window belongs to an AXI MCDMA that is built as `config` says, and nobody else drives
    /// any of its channels while this value or a channel of it lives.
    pub unsafe fn open(device: D, config: McdmaConfig) -> Result<Self> {
        begin(&device, None, config)?;
        Ok(Self { core: Core::new(device)?, config })
    }

    /// The driver of one channel. `descriptors`: 64 bytes for each job in flight, in whole cache
    /// lines, two at least. They are the driver's until it is dropped.
    ///
    /// # Errors
    /// `descriptors` come back with [`Error::HasDriver`] where the channel is another driver's,
    /// [`Error::Unsupported`] where the core has no such channel, [`Error::Argument`] for a
    /// parameter that no core has. Or with [`Error::BlockSize`], [`Error::Misaligned`], or an error
    /// of [`DriverBuf::new`](crate::mem::DriverBuf::new).
    pub fn channel(&self, way: Way, descriptors: CpuBuf) -> Result<McdmaChannel<CoreChannel<D>>, Refused<CpuBuf>> {
        self.channel_as(way, self.config, descriptors)
    }

    /// As [`channel`](Self::channel), with parameters of its own: those that no other channel
    /// knows.
    pub(super) fn channel_as(
        &self,
        way: Way,
        config: McdmaConfig,
        descriptors: CpuBuf,
    ) -> Result<McdmaChannel<CoreChannel<D>>, Refused<CpuBuf>> {
        // SAFETY: the window belongs to the core. A channel's driver writes its own registers, and
        // under the lock the enable bits and the common control, in which it changes its own alone.
        let channel = unsafe { self.core.channel(way.index().min(u32::BITS as usize), 0..regs::WINDOW_BYTES) };
        match channel {
            Ok(channel) => McdmaChannel::new(channel, way, config, descriptors),
            Err(error) => Err(Refused::new(error, descriptors)),
        }
    }

    /// How many packets the core dropped in all, since its reset.
    pub fn all_dropped(&self) -> u32 {
        regs::ALL_DROPPED.read(self.core.device())
    }

    /// Resets the core by `pull`, from outside: its reset line. Channels that have jobs in flight
    /// answer [`Error::EndedByReset`] then.
    ///
    /// # Errors
    /// [`Error::Contended`], or what `pull` says.
    pub fn reset(&self, pull: impl FnOnce() -> Result<()>) -> Result<()> {
        self.core.reset(|_| pull())
    }
}

forward_as_fd!({D} Mcdma<D>, core: D);

impl<D: Device> McdmaChannel<D> {
    /// The driver of one channel of a core whose other channels nobody uses. The core is reset.
    /// `descriptors`: as in [`Mcdma::channel`].
    ///
    /// # Errors
    /// As [`Mcdma::open`] and [`Mcdma::channel`].
    ///
    /// # Safety
    /// As [`Mcdma::open`].
    pub unsafe fn open(device: D, way: Way, config: McdmaConfig, descriptors: CpuBuf) -> Result<Self> {
        begin(&device, Some(way), config)?;
        Ok(Self::new(device, way, config, descriptors)?)
    }
}

/// Finds the core and resets it, by the direction of `way` or by whichever there is.
fn begin(device: &impl Device, way: Option<Way>, config: McdmaConfig) -> Result<()> {
    let (need_bytes, have_bytes) = (regs::WINDOW_BYTES, device.len_bytes());
    if have_bytes < need_bytes {
        return Err(Error::RegisterWindow { device: fault::DEVICE, need_bytes, have_bytes });
    }
    config.check(way.unwrap_or(Way::Mm2s(0)))?;
    let [send, receive] = &regs::COMMON;
    if [send, receive].iter().all(|common| common.status.read(device) == u32::MAX) {
        return Err(fault::gone());
    }
    match way {
        Some(Way::Mm2s(_)) => stopping::reset(device, send, config.stop_us),
        Some(Way::S2mm(_)) => stopping::reset(device, receive, config.stop_us),
        // A direction that was not built has no registers.
        None => stopping::reset(device, send, config.stop_us).or_else(|_| stopping::reset(device, receive, config.stop_us)),
    }
}
