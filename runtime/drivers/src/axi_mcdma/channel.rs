#![allow(unsafe_code, reason = "implementing `Driver` is a promise about the hardware")]
//! The core that its channels share, and the driver of one channel: a ring with a descriptor for
//! each job in flight.

use super::config::{McdmaConfig, Way, begin};
use super::regs;
use crate::ring::{Layout, Ring};
use crate::tail::Tail;
use contigo_core::forward;
use contigo_core::hw::Device;
use contigo_core::job::{Completion, Core, CoreChannel, Driver, OperandSpec, StopProgram, exactly};
use contigo_core::mem::{CpuBuf, DevSlice};
use contigo_core::types::platform::forward_as_fd;
use contigo_core::types::{Error, Refused, Result};
use core::cell::Cell;
use core::fmt;
use core::mem::ManuallyDrop;
use core::time::Duration;

/// The most descriptors of a channel, and so the most jobs in flight.
const DEPTH_MAX: usize = 256;
/// Completion's word 1: the packet may lack its beginning.
pub(super) const MAYBE_TORN: u32 = 1;
const LAYOUT: Layout = Layout {
    len_bytes: regs::DESCRIPTOR_BYTES,
    align_bytes: regs::DESCRIPTOR_BYTES,
    most: DEPTH_MAX,
};

/// One core, whose channels have a driver each: up to 16 that send and 16 that receive, in one
/// thread or in several.
///
/// The core has one reset. A channel that cannot be stopped otherwise resets the core, and the
/// other channels' jobs end with [`Error::EndedByReset`]. If one channel fails, so do the jobs of
/// all channels in its direction.
///
/// ```
/// use contigo::{Align, Queue, Region, drivers::axi_mcdma::Way};
/// use contigo::sim::{SimDevice, axi_mcdma::McdmaModel, SimBoard};
/// use core::time::Duration;
/// let board = SimBoard::new(1);
/// let region = Region::new(board.memory(64 * 1024)?)?;
/// let rings = region.pool(2, 512)?;
/// let pool = region.pool(4, 4096)?;
/// let device = SimDevice::<McdmaModel>::new(&board, board.port());
///
/// let core = device.window()?.core()?;
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
    /// The window belongs to an AXI MCDMA that is built as `config` says, and no other code drives
    /// any of its channels while this value or a channel of it lives.
    pub unsafe fn open(device: D, config: McdmaConfig) -> Result<Self> {
        begin(&device, None, config)?;
        Ok(Self { core: Core::new(device)?, config })
    }

    /// The driver of one channel. `descriptors`: 64 bytes for each job in flight, in whole cache
    /// lines, two at least. The driver owns them until it is dropped.
    ///
    /// # Errors
    /// `descriptors` come back with [`Error::HasDriver`] if another driver has the channel,
    /// [`Error::Unsupported`] if the core has no such channel, [`Error::Argument`] for a parameter
    /// that no core has. Or with [`Error::BlockSize`], [`Error::Misaligned`], or an error of
    /// [`DriverBuf::new`](contigo_core::mem::DriverBuf::new).
    pub fn channel(
        &self,
        way: Way,
        descriptors: CpuBuf,
    ) -> Result<McdmaChannel<CoreChannel<D>>, Refused<CpuBuf>> {
        self.channel_as(way, self.config, descriptors)
    }

    /// As [`channel`](Self::channel), with the parameters that are this channel's own.
    pub(super) fn channel_as(
        &self,
        way: Way,
        config: McdmaConfig,
        descriptors: CpuBuf,
    ) -> Result<McdmaChannel<CoreChannel<D>>, Refused<CpuBuf>> {
        // SAFETY: the window belongs to the core. A channel's driver writes its own registers, and
        // under the lock the enable bits and the common control, in which it changes its own alone.
        let channel = unsafe {
            self.core.channel(way.index().min(u32::BITS as usize), 0..regs::WINDOW_BYTES)
        };
        match channel {
            Ok(channel) => McdmaChannel::new(channel, way, config, descriptors),
            Err(error) => Err(Refused::new(error, descriptors)),
        }
    }

    /// The packets that all of the core's channels dropped since its reset.
    pub fn all_dropped(&self) -> u32 {
        regs::ALL_DROPPED.read(self.core.device())
    }

    /// Resets the core externally: `pull` pulses its reset line. Channels with jobs in flight then
    /// return [`Error::EndedByReset`].
    ///
    /// # Errors
    /// [`Error::Contended`], or the error of `pull`.
    pub fn reset(&self, pull: impl FnOnce() -> Result<()>) -> Result<()> {
        self.core.reset(|_| pull())
    }
}

forward_as_fd!({D} Mcdma<D>, core: D);

/// The driver of one channel. Dropping it stops the channel, and returns the channel and the
/// descriptors' memory; if it will not stop, both stay claimed.
pub struct McdmaChannel<D: Device> {
    pub(super) device: ManuallyDrop<D>,
    pub(super) ring: Ring,
    pub(super) regs: &'static regs::Channel,
    pub(super) common: &'static regs::Common,
    pub(super) config: McdmaConfig,
    pub(super) way: Way,
    operand: [OperandSpec; 1],
    /// The descriptor of the oldest unreported job, and the job's slot.
    pub(super) oldest: usize,
    pub(super) slot: usize,
    pub(super) in_flight: usize,
    /// How many of them, the newest, had no doorbell yet.
    pub(super) owed: usize,
    /// True between the first doorbell and a stop.
    pub(super) runs: bool,
    /// The device's reset epoch at the start.
    pub(super) epoch: u32,
    /// How many jobs registers showed to be done. A hint: their descriptors' status may be late.
    pub(super) known: usize,
    /// An interrupt was acknowledged, and not all the ends behind it were found yet.
    pub(super) look_again: bool,
    dropped: Cell<u64>,
    /// A receive was stopped or reset in mid-packet, so the first packet after the next start may
    /// be the rest of one; and this run's first packet is not reported yet.
    pub(super) cut: bool,
    pub(super) torn: bool,
    /// The last reported packet continues.
    pub(super) open: bool,
    /// How the tail was written last.
    pub(super) tail: Tail,
}

/// A descriptor's report on what it received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct PacketReport {
    /// It has the packet's first byte.
    pub first: bool,
    /// It has the packet's last byte. If not, the packet continues in the next job's buffer.
    pub last: bool,
    /// A stop, or a sibling's reset, may have cut a packet, and this is the first completion after
    /// the next start. It may be the rest of that packet, which waited in the stream. Packets that
    /// ended before the stop are whole.
    pub maybe_torn: bool,
    /// TUSER of the packet's last beat; 0 without [`McdmaConfig::sideband`].
    pub user: u16,
    /// TID; 0 without [`McdmaConfig::sideband`].
    pub id: u8,
}

impl PacketReport {
    /// Reads a report from a completion's status and words.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, reason = "fields of a word")]
    pub const fn of(status: u32, words: [u32; 4]) -> Self {
        let [sideband, torn, ..] = words;
        let (first, last) = (status & regs::FIRST != 0, status & regs::LAST != 0);
        Self {
            first,
            last,
            maybe_torn: torn & MAYBE_TORN != 0,
            user: sideband as u16,
            id: (sideband >> 24) as u8,
        }
    }
}

impl<D: Device> McdmaChannel<D> {
    /// The driver of one channel of a core whose other channels are not used. The core is reset.
    /// `descriptors`: as in [`Mcdma::channel`].
    ///
    /// # Errors
    /// As [`Mcdma::open`] and [`Mcdma::channel`].
    ///
    /// # Safety
    /// As [`Mcdma::open`].
    pub unsafe fn open(
        device: D,
        way: Way,
        config: McdmaConfig,
        descriptors: CpuBuf,
    ) -> Result<Self> {
        begin(&device, Some(way), config)?;
        Ok(Self::new(device, way, config, descriptors)?)
    }

    /// The driver of channel `way` of a core that is built as `config` says, and was reset.
    ///
    /// # Errors
    /// `descriptors` come back with the error of [`McdmaConfig::check`] or of the ring, or
    /// [`Error::Unsupported`] if the core has no such channel.
    fn new(
        device: D,
        way: Way,
        config: McdmaConfig,
        descriptors: CpuBuf,
    ) -> Result<Self, Refused<CpuBuf>> {
        let (regs, common, operand) = match parts(&device, way, &config) {
            Ok(parts) => parts,
            Err(error) => return Err(Refused::new(error, descriptors)),
        };
        let ring = Ring::new(descriptors, device.port(), config.address_bits.into(), LAYOUT, 2)?;
        // SAFETY: the core was reset, and does not have the address of this memory.
        let ring = unsafe { ring.cleared(way.status_at(), regs::COMPLETE)? };
        Ok(Self {
            device: ManuallyDrop::new(device),
            ring,
            regs,
            common,
            config,
            way,
            operand: [operand],
            oldest: 0,
            slot: 0,
            in_flight: 0,
            owed: 0,
            runs: false,
            epoch: 0,
            known: 0,
            look_again: false,
            dropped: Cell::new(0),
            cut: false,
            torn: false,
            open: false,
            tail: Tail::default(),
        })
    }

    /// The packets that the core dropped since the open because this channel had no descriptor or
    /// was not enabled; at most 65,535 between two calls count. 0 for a channel that sends.
    pub fn dropped(&self) -> u64 {
        if let Way::S2mm(_) = self.way {
            let count = self.regs.dropped.read_and_clear(&*self.device);
            // An absent device reads all ones; the upper half is reserved.
            let count = if count > u16::MAX.into() { 0 } else { count };
            self.dropped.set(self.dropped.get() + u64::from(count));
        }
        self.dropped.get()
    }
}

/// The registers and the operand of channel `way`, which exists.
fn parts(
    device: &impl Device,
    way: Way,
    config: &McdmaConfig,
) -> Result<(&'static regs::Channel, &'static regs::Common, OperandSpec)> {
    let operand = config.check(way)?;
    let none = Error::Unsupported {
        what: "the core has no such channel",
        fix: "build it with more, or take one with a smaller number",
    };
    let (Some(regs), Some(common)) =
        (regs::CHANNELS.get(way.index()), regs::COMMON.get(way.direction()))
    else {
        return Err(none);
    };
    if common.status.read(device) & regs::COMMON_RESERVED != 0 {
        return Err(regs::gone());
    }
    // SAFETY: a channel that does not run starts nothing.
    unsafe { regs.control.write(device, regs::IRQS | regs::THRESHOLD_1) };
    let there = regs.control.read(device) & (regs::IRQS | regs::CHANNEL_RESERVED) == regs::IRQS;
    // SAFETY: as above.
    unsafe { regs.control.write(device, regs::THRESHOLD_1) };
    if there { Ok((regs, common, operand)) } else { Err(none) }
}

// SAFETY: 1. PG288: a channel reads or writes the buffer of a descriptor, at most as many bytes as
// the descriptor says; `submit` takes that length from the operand. MM2S reads the rest of the
// first and last bus word too, as `word_bytes` says. It reads and writes descriptors, which are the
// driver's own, and goes no further than the tail. 2. The core writes a descriptor's Completed
// after its last byte was answered ("Status"); the driver trusts nothing else, and no descriptor
// with an error. `stop` succeeds when each descriptor is complete, or after a reset. It waits for
// the end of its own reset. A sibling's reset is over when the lock is free, no direction has Reset
// set, and this channel's control register has its reset value. 3. The transferred bytes are the
// descriptor's own count. 4. `check` reads no register, and `poll` acknowledges an interrupt. 5.
// The port is the device's, and the rest never changes. 6. The constructor's caller guarantees it.
// 7. The program writes the reset alone. 8. Every wait has a limit. 9. `runs` is set, and jobs
// count as the core's, before the first register is written for them.
unsafe impl<D: Device> Driver for McdmaChannel<D> {
    forward!(|this| *this.device => port, simulated, arm_irq);

    fn name(&self) -> &'static str {
        regs::DEVICE
    }

    fn addr_bits(&self) -> u32 {
        self.config.address_bits.into()
    }

    fn operands(&self) -> &[OperandSpec] {
        &self.operand
    }

    fn depth(&self) -> usize {
        self.ring.len()
    }

    fn check(&self, operands: &[DevSlice], args: &[u32]) -> Result<()> {
        let ([packet], []) = (exactly(operands)?, exactly(args)?);
        self.config.check_length(self.way, packet.len_bytes)
    }

    unsafe fn submit(&mut self, slot: usize, operands: &[DevSlice], _: &[u32]) -> Result<()> {
        let [packet] = exactly(operands)?;
        // SAFETY: the caller's promise.
        unsafe { self.give(slot, packet, false) }
    }

    unsafe fn submit_more(&mut self, slot: usize, operands: &[DevSlice], _: &[u32]) -> Result<()> {
        let [packet] = exactly(operands)?;
        // SAFETY: the caller's promise.
        unsafe { self.give(slot, packet, true) }
    }

    fn doorbell(&mut self) -> Result<()> {
        self.ring_doorbell()
    }

    fn waits_for_doorbell(&self) -> bool {
        true
    }

    fn poll(&mut self, timeout: Duration) -> Result<Option<Completion>> {
        self.wait(timeout)
    }

    fn poll_again(&mut self) -> Result<Option<Completion>> {
        if self.runs && self.in_flight > 0 { self.look_first() } else { Ok(None) }
    }

    fn stop(&mut self) -> Result<()> {
        self.stop_channel()
    }

    fn stop_program(&self) -> StopProgram {
        self.stop_steps()
    }

    fn underruns(&self) -> Option<u64> {
        if let Way::S2mm(_) = self.way { Some(self.dropped()) } else { None }
    }
}

forward_as_fd!({D: Device} McdmaChannel<D>, device: D);

impl<D: Device> Drop for McdmaChannel<D> {
    fn drop(&mut self) {
        if self.stop_channel().is_ok() {
            // SAFETY: `drop` runs once, nothing uses either after it, and the channel is stopped.
            unsafe {
                self.ring.release();
                ManuallyDrop::drop(&mut self.device);
            }
        }
    }
}

impl<D: Device> fmt::Debug for McdmaChannel<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McdmaChannel")
            .field("port", &self.device.port().name)
            .field("way", &self.way)
            .finish_non_exhaustive()
    }
}
