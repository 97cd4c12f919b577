#![allow(unsafe_code, reason = "implementing `Driver` is a promise about the hardware")]
//! One channel: what it has in flight, and its driver beside its sibling's or alone.

use super::{
    at::At,
    config::{AxiDmaConfig, DEPTH_MAX, Side, found, ring},
    driver::{set_busy, status_beside},
    regs, stop,
};
use crate::{ring::Ring, tail::Tail};
use contigo_core::{
    forward,
    hw::{self, Device},
    job::{Completion, Driver, OperandSpec, StopProgram, exactly},
    mem::{CpuBuf, DevSlice},
    types::{DevAddr, Error, Result, platform::forward_as_fd},
};
use core::time::Duration;

/// Completion's word 0: the packet may lack its beginning.
pub(super) const MAYBE_TORN: u32 = 1;

/// What DMASR said since the last job was given.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Seen {
    /// Nothing, or an end that was told. An Idle of before may be that of the time before the job.
    #[default]
    Nothing,
    /// It told an end when the job was given. It says nothing of what came behind the doorbell.
    Told(u32),
    /// A look read it: is the channel idle?
    Looked { idle: bool },
}

/// One channel: its jobs in flight, with descriptors or one at a time in registers.
///
/// It is stopped, or it runs from its first job on. While it runs, the `in_flight` jobs from slot
/// `oldest` on are to be told; after a stop, those of them that had ended.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) side: Side,
    pub(super) config: AxiDmaConfig,
    /// `None`: direct register mode.
    pub(super) ring: Option<Ring>,
    pub(super) depth: usize,
    pub(super) operand: [OperandSpec; 1],
    /// Between the first job and a stop.
    pub(super) runs: bool,
    /// The oldest slot that was not told, and how many were not.
    pub(super) oldest: usize,
    pub(super) in_flight: usize,
    /// How many descriptors the job in each slot has.
    pub(super) counts: [u16; DEPTH_MAX],
    /// The next descriptor to write, and the first of the oldest job.
    pub(super) head: usize,
    pub(super) first: usize,
    /// So many from `first` on were written for jobs that were not told.
    pub(super) given: usize,
    /// How TAILDESC was written last.
    pub(super) tail: Tail,
    /// Of the oldest job: so many descriptors are done, with so many bytes, and RXSOF.
    pub(super) done: usize,
    pub(super) bytes: usize,
    pub(super) began: u32,
    /// The address in direct register mode.
    pub(super) addr: DevAddr,
    /// Lengths up to this one are known to fit the core's LENGTH.
    pub(super) fits_bytes: usize,
    /// An end in registers, found when the channel was stopped.
    pub(super) ended: Option<Completion>,
    /// A receive was stopped, or reset, in the middle: so the first packet after the next start may
    /// lack its beginning. Packets that ended before are whole.
    pub(super) cut: bool,
    /// The packet that was told last goes on: the next buffer begins with its rest.
    pub(super) open: bool,
    /// The first packet of this run may lack its beginning, and was not told.
    pub(super) torn: bool,
    pub(super) seen: Seen,
    pub(super) ran_dry: u64,
    pub(super) looks: u64,
    pub(super) quiet: u32,
}

impl Lane {
    /// A channel without jobs. The depth is the configuration's, or one descriptor a job.
    pub(super) fn new(side: Side, config: AxiDmaConfig, ring: Option<Ring>) -> Self {
        let descriptors = ring.as_ref().map_or(1, Ring::len);
        let depth = if ring.is_some() {
            config.depth.unwrap_or(DEPTH_MAX).min(descriptors).min(DEPTH_MAX)
        } else {
            1
        };
        Self {
            side,
            config,
            ring,
            depth,
            operand: [config.operand(side, descriptors / depth.max(1))],
            runs: false,
            oldest: 0,
            in_flight: 0,
            counts: [0; DEPTH_MAX],
            head: 0,
            first: 0,
            given: 0,
            tail: Tail::default(),
            done: 0,
            bytes: 0,
            began: 0,
            addr: DevAddr(0),
            fits_bytes: 0,
            ended: None,
            cut: false,
            open: false,
            torn: false,
            seen: Seen::Nothing,
            ran_dry: 0,
            looks: 0,
            quiet: 0,
        }
    }
}

/// The driver of one channel. It owns its descriptors' memory, and may share its core with a
/// sibling ([`AxiDmaCore::channel`](super::AxiDmaCore::channel)).
///
/// | channel | operand | direction |
/// |---|---|---|
/// | MM2S | the bytes of one packet | to the device |
/// | S2MM | room for one packet, from its beginning | from the device |
///
/// The completion of a receive has the bytes, and the types' report is a [`PacketReport`].
/// [`Driver::ran_dry`] counts how often a receive's buffer came when the channel had none left,
/// which its Idle bit tells.
///
/// ```
/// use contigo::{Align, Queue, Region, drivers::axi_dma::{AxiDmaConfig, Side}};
/// use contigo::sim::{axi_dma::SimAxiDma, SimBoard};
/// use core::time::Duration;
/// let board = SimBoard::new(1);
/// let region = Region::new(board.memory(64 * 1024)?)?;
/// let rings = region.pool(2, 512)?;
/// let pool = region.pool(4, 1024)?;
/// // Its stream is a loopback.
/// let device = SimAxiDma::new(&board, board.port());
///
/// let (core, config) = (device.window()?.core()?, AxiDmaConfig::default());
/// // SAFETY: the model is built as the configuration says.
/// let (send, receive) = unsafe { (core.channel(Side::Mm2s, config, Some(rings.take()?))?, core.channel(Side::S2mm, config, Some(rings.take()?))?) };
/// let (mut send, mut receive) = (Queue::new(send, 8)?, Queue::new(receive, 8)?);
/// let mut packet = pool.take()?;
/// packet.view_mut::<u8>()?.fill(7);
/// receive.submit([pool.take()?.from_device(..)], &[])?;
/// send.submit([packet.to_device(..100)], &[])?;
/// let done = receive.wait::<1>(Duration::from_millis(20))?.ok_or(contigo::Error::Busy)?;
/// assert!(done.last == Some(true) && done.bytes == Some(100));
/// assert!(send.wait::<1>(Duration::from_millis(20))?.is_some());
/// # Ok::<(), contigo::Error>(())
/// ```
#[derive(Debug)]
pub struct AxiDmaChannel<D: Device> {
    pub(super) device: D,
    pub(super) lane: Lane,
    /// The core's, when the channel got its first job.
    pub(super) epoch: u32,
}

/// A descriptor's report on its packet. In direct register mode it is always a whole one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketReport {
    /// It has the packet's first byte.
    pub first: bool,
    /// It has the packet's last byte. Where it has not, the packet goes on in the next job's
    /// buffer.
    pub last: bool,
    /// A stop, or a sibling's reset, may have come in the middle of a packet, and this is the first
    /// end after the next start. Its beginning may be the rest of that packet, which waited in the
    /// stream. Throw it away, up to the end that `last` marks, where the stream is not reset with
    /// the core. Packets that had ended before the stop are whole.
    pub maybe_torn: bool,
}

impl PacketReport {
    /// The status and the words of a job's end say it.
    #[must_use]
    pub const fn of(status: u32, words: [u32; 4]) -> Self {
        let [torn, ..] = words;
        Self {
            first: status & regs::FIRST != 0,
            last: status & regs::LAST != 0,
            maybe_torn: torn & MAYBE_TORN != 0,
        }
    }
}

impl<D: Device> AxiDmaChannel<D> {
    /// The driver of one channel of `device`. No other code drives the core, by either channel.
    /// With scatter-gather it needs `memory` for descriptors, 64 bytes each. A core without leaves
    /// it alone.
    ///
    /// # Errors
    /// [`Error::RegisterWindow`], [`Error::WrongDevice`], [`Error::WillNotStop`]: this is no AXI
    /// DMA, or it has no clock. [`Error::Unsupported`]: the channel is not built in, or there is no
    /// memory for descriptors. [`Error::Argument`]: no core is built as `config` says. The errors
    /// of [`DriverBuf::new`](contigo_core::mem::DriverBuf::new), [`Error::BlockSize`],
    /// [`Error::Misaligned`]: the memory does not suit. It goes back to its pool.
    ///
    /// # Safety
    /// The window is an AXI DMA's (PG021), built as `config` says. No other code drives it while
    /// this value lives.
    pub unsafe fn alone(
        device: D,
        side: Side,
        config: AxiDmaConfig,
        memory: Option<CpuBuf>,
    ) -> Result<Self> {
        let sg = found(&device, &[side], &config)?;
        let ring = ring(sg, memory, device.port(), &config)?;
        Ok(Self::new(device, Lane::new(side, config, ring)))
    }

    /// The channel of `lane`, which was found.
    pub(super) fn new(device: D, lane: Lane) -> Self {
        let epoch = device.reset_epoch();
        Self { device, lane, epoch }
    }

    /// Which channel it is.
    #[must_use]
    pub const fn side(&self) -> Side {
        self.lane.side
    }

    /// Does it use descriptors?
    #[must_use]
    pub const fn has_descriptors(&self) -> bool {
        self.lane.ring.is_some()
    }

    /// How often it looked at a descriptor: on a port that does not snoop, a sync each.
    #[must_use]
    pub const fn looks(&self) -> u64 {
        self.lane.looks
    }

    pub(super) const fn at(&self) -> At<'_, D> {
        self.lane.side.at(&self.device)
    }

    pub(super) fn was_reset(&self) -> bool {
        self.device.reset_epoch() != self.epoch
    }

    /// The sibling's error, where that halted this channel.
    pub(super) fn or_siblings(&self, error: Error) -> Error {
        let side = self.lane.side;
        status_beside(&self.device, side)
            .map_or(error, |status| regs::or_siblings(error, side.other(), status))
    }
}

// SAFETY: 1. PG021: MM2S reads, and S2MM writes, at an address as many bytes as a length says: in
// registers, or in descriptors, whose end is TAILDESC's. `submit` takes both from the operand, and
// `operands` keeps it inside the length's bits. MM2S reads the rest of the first and last bus word
// too, as `word_bytes` says. The descriptors are the driver's own. 2. Idle, in
// direct register mode, comes when the transfer has completed ("DMASR"). A descriptor's Cmplt is
// written after its last byte was answered. No other look is believed, nor one with an error.
// `stop` believes Halted, which comes when all transfers have ended, and the end of a reset, which
// is graceful ("DMACR"). After a sibling's reset no register is believed: the epoch is read after
// them. 3. The bytes are LENGTH's or the descriptors' own counts. 4. `check` touches nothing, and
// `poll` acknowledges interrupts. 5. The port is the device's. 6. The caller of the function that
// made it promised it, and `Core` gives each channel to one driver. 7. The program writes 0 and
// Reset into DMACR. 8. Each wait has a limit. 9. A job's fields say that it is in flight only after
// its doorbell; `stop` asks them only whether to wait before it resets the channel.
unsafe impl<D: Device> Driver for AxiDmaChannel<D> {
    forward!(|this| this.device => port, simulated, arm_irq);

    fn name(&self) -> &'static str {
        self.lane.side.name()
    }

    fn addr_bits(&self) -> u32 {
        self.lane.config.address_bits
    }

    fn operands(&self) -> &[OperandSpec] {
        &self.lane.operand
    }

    fn depth(&self) -> usize {
        self.lane.depth
    }

    fn check(&self, _: &[DevSlice], args: &[u32]) -> Result<()> {
        let [] = exactly(args)?;
        Ok(())
    }

    unsafe fn submit(&mut self, slot: usize, operands: &[DevSlice], _: &[u32]) -> Result<()> {
        let [operand] = exactly(operands)?;
        let Self { device, lane, epoch } = self;
        let side = lane.side;
        // A reset between the first register and the doorbell would start a job at address 0.
        let given = hw::locked(device, || {
            if device.reset_epoch() != *epoch {
                if lane.runs && lane.in_flight > 0 {
                    return Err(Error::EndedByReset { device: side.name() });
                }
                *epoch = device.reset_epoch();
                lane.was_reset();
            }
            set_busy(device, side, true);
            // SAFETY: the caller's promise; the lock that a reset takes is held.
            unsafe { lane.submit(&side.at(device), slot, operand) }
        });
        given.map_err(|error| self.or_siblings(error))
    }

    fn poll(&mut self, timeout: Duration) -> Result<Option<Completion>> {
        self.wait(timeout)
    }

    fn stop(&mut self) -> Result<()> {
        self.end()
    }

    /// Of a channel that has the device to itself.
    fn stop_program(&self) -> StopProgram {
        if self.device.siblings().is_some() {
            StopProgram::NONE
        } else {
            stop::program(&[self.lane.side], &self.lane.config)
        }
    }

    fn ran_dry(&self) -> Option<u64> {
        (self.lane.side == Side::S2mm && self.lane.ring.is_some()).then_some(self.lane.ran_dry)
    }
}

forward_as_fd!({D: Device} AxiDmaChannel<D>, device: D);

impl<D: Device> Drop for AxiDmaChannel<D> {
    /// Stops the channel. The descriptors' memory goes back only when it has stopped; otherwise it
    /// stays leaked.
    fn drop(&mut self) {
        // Also where a sibling's reset is said to have stopped it: that may have failed.
        if (self.lane.runs || self.lane.ring.is_some())
            && self.stop().is_ok()
            && let Some(ring) = &mut self.lane.ring
        {
            // SAFETY: the channel is halted, and gets other descriptors before it runs.
            unsafe { ring.release() }
        }
    }
}
