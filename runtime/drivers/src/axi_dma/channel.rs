#![allow(unsafe_code, reason = "implementing `Driver` is a promise about the hardware")]
//! The driver of one channel, beside its sibling's driver or alone.

use super::config::AxiDmaConfig;
use super::lane::{Lane, MAYBE_TORN};
use super::regs::{self, At, Side, is_busy_beside, set_busy, status_beside};
use super::stop::{self, found, halt, reset, ring};
use contigo_core::forward;
use contigo_core::hw::wait::{poll_every, poll_until};
use contigo_core::hw::{self, Device};
use contigo_core::job::{Completion, Driver, OperandSpec, StopProgram, exactly};
use contigo_core::mem::{CpuBuf, DevSlice};
use contigo_core::types::platform::forward_as_fd;
use contigo_core::types::{Error, MAX_TIMEOUT, Result};
use core::time::Duration;

/// The driver of one channel. It owns its descriptors' memory, and may share its core with a
/// sibling ([`AxiDmaCore::channel`](super::AxiDmaCore::channel)).
///
/// | channel | operand | direction |
/// |---|---|---|
/// | MM2S | the bytes of one packet | to the device |
/// | S2MM | room for one packet, from its beginning | from the device |
///
/// A receive's completion has the number of bytes, and its words make a [`PacketReport`].
/// [`Driver::underruns`] counts underruns: how often a receive's buffer came when the channel had
/// none left, as its Idle bit shows.
///
/// ```
/// use contigo::{Align, Queue, Region, drivers::axi_dma::{AxiDmaConfig, Side}};
/// use contigo::sim::{SimDevice, axi_dma::AxiDmaModel, SimBoard};
/// use core::time::Duration;
/// let board = SimBoard::new(1);
/// let region = Region::new(board.memory(64 * 1024)?)?;
/// let rings = region.pool(2, 512)?;
/// let pool = region.pool(4, 1024)?;
/// // Its stream is a loopback.
/// let device = SimDevice::<AxiDmaModel>::new(&board, board.port());
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
    /// The core's epoch when the channel got its first job.
    pub(super) epoch: u32,
}

/// A descriptor's report on its packet. In direct register mode the packet is always whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketReport {
    /// It has the packet's first byte.
    pub first: bool,
    /// It has the packet's last byte. If not, the packet continues in the next job's buffer.
    pub last: bool,
    /// A stop, or a sibling's reset, may have come in the middle of a packet, and this is the first
    /// end after the next start. It may begin with the rest of that packet, which waited in the
    /// stream. Discard it, up to the end that `last` marks, unless the stream is reset with the
    /// core. Packets that had ended before the stop are whole.
    pub maybe_torn: bool,
}

impl PacketReport {
    /// Decodes the status and the words of a job's completion.
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
    /// With scatter-gather it needs `memory` for descriptors, 64 bytes each. A core without
    /// scatter-gather does not use it.
    ///
    /// # Errors
    /// [`Error::RegisterWindow`], [`Error::WrongDevice`], [`Error::WillNotStop`]: this is no AXI
    /// DMA, or it has no clock. [`Error::Unsupported`]: the channel is not built in, or there is no
    /// memory for descriptors. [`Error::Argument`]: no core is built as `config` says. The errors
    /// of [`DriverBuf::new`](contigo_core::mem::DriverBuf::new), [`Error::BlockSize`],
    /// [`Error::Misaligned`]: the memory does not fit. It goes back to its pool.
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

    /// The channel of `lane`, whose core was found.
    pub(super) fn new(device: D, lane: Lane) -> Self {
        let epoch = device.reset_epoch();
        Self { device, lane, epoch }
    }

    /// How often it polled a descriptor: on a port that does not snoop, each poll is a sync.
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

    /// The sibling's error, if that halted this channel.
    pub(super) fn or_siblings(&self, error: Error) -> Error {
        let side = self.lane.side;
        status_beside(&self.device, side)
            .map_or(error, |status| regs::or_siblings(error, side.other(), status))
    }

    /// As [`Driver::poll`](contigo_core::Driver::poll).
    #[inline]
    pub(super) fn wait(&mut self, timeout: Duration) -> Result<Option<Completion>> {
        if self.lane.in_flight == 0 {
            return Ok(None);
        }
        if !self.lane.runs {
            return self.lane.look_stopped();
        }
        if timeout <= MAX_TIMEOUT {
            match self.look_first() {
                Ok(None) => {}
                told => return told,
            }
        }
        self.wait_for_registers(timeout)
    }

    /// An end that a descriptor shows, before any register is read.
    #[inline]
    fn look_first(&mut self) -> Result<Option<Completion>> {
        let is_shared = self.device.siblings().is_some();
        match self.lane.look_first(&self.lane.side.at(&self.device), is_shared) {
            // An end is true even after a reset (`believed`), and not the last one.
            Err(error) => self.believed(Err(self.or_siblings(error))),
            seen => seen,
        }
    }

    /// As `wait`, for a running channel whose descriptors showed nothing, or were not polled.
    #[inline(never)]
    fn wait_for_registers(&mut self, timeout: Duration) -> Result<Option<Completion>> {
        let side = self.lane.side;
        let (lane, mut found) = (&mut self.lane, Ok(None));
        let (step_us, mut ended, mut left) = (lane.step_us(), false, timeout);
        let look = |lane: &mut Lane, device: &D| lane.look(&side.at(device));
        if step_us < u32::MAX {
            let from_us = self.device.now_us();
            poll_every(&self.device, step_us, timeout, |device| {
                found = look(lane, device);
                ended = !matches!(found, Ok(None));
                // From here on an interrupt comes.
                ended || lane.step_us() > step_us
            })?;
            left = timeout.saturating_sub(Duration::from_micros(
                self.device.now_us().saturating_sub(from_us),
            ));
        }
        if !ended {
            ended = poll_until(&self.device, left, |device| {
                found = look(lane, device);
                !matches!(found, Ok(None))
            })?;
        }
        if !ended && !timeout.is_zero() && self.lane.ring.is_some() {
            // Once per wait, even if no register showed anything.
            found = self.lane.look_at_memory(&side.at(&self.device), 0, false);
        }
        let told = self.believed(found.map_err(|error| self.or_siblings(error)));
        if self.lane.in_flight == 0 {
            set_busy(&self.device, side, false);
        }
        told
    }

    /// Returns a poll's result if no reset came: the core's epoch is read after the poll.
    fn believed(&mut self, found: Result<Option<Completion>>) -> Result<Option<Completion>> {
        if !self.was_reset() || !self.lane.runs {
            return found;
        }
        // A status in a descriptor was written before the reset, and is true.
        match (self.lane.ring.is_some(), found) {
            (true, Ok(Some(end))) => Ok(Some(end)),
            (true, Ok(None)) => {
                match self.lane.look_at_memory(&self.lane.side.at(&self.device), 0, false) {
                    Ok(Some(end)) => Ok(Some(end)),
                    _ => Err(Error::EndedByReset { device: self.lane.side.name() }),
                }
            }
            _ => Err(Error::EndedByReset { device: self.lane.side.name() }),
        }
    }

    /// As [`Driver::submit`](contigo_core::Driver::submit), or
    /// [`submit_more`](contigo_core::Driver::submit_more) if `more` jobs follow.
    ///
    /// # Safety
    /// As there.
    #[inline]
    unsafe fn give(&mut self, slot: usize, operands: &[DevSlice], more: bool) -> Result<()> {
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
            unsafe { lane.submit(&side.at(device), slot, operand, more) }
        });
        given.map_err(|error| self.or_siblings(error))
    }

    /// As [`Driver::stop`](contigo_core::Driver::stop).
    pub(super) fn end(&mut self) -> Result<()> {
        let at = self.lane.side.at(&self.device);
        if !self.was_reset() {
            self.lane.keep_end(&at);
        }
        if self.was_reset() {
            // The poll may have come after the reset, when Idle means nothing.
            self.lane.ended = None;
            if self.lane.runs {
                self.lane.cut();
            }
        }
        let (busy, held, unsure) =
            (self.lane.is_busy(&at), self.is_held(), self.lane.may_be_busy(&at));
        let sibling_works = is_busy_beside(&self.device, self.lane.side);
        // RS=0 waits for the packet of a receive, which may never come.
        let at_once = busy && !sibling_works && self.lane.side == Side::S2mm;
        let halted = !at_once && halt(&at, &self.lane.config)?;
        // A channel that did not halt was running, and one that is held may have taken the
        // beginning of a packet for its next job. Before the reset, which may fail.
        if unsure || !halted || held {
            self.lane.cut();
        }
        if !halted || held || busy && !sibling_works {
            let (side, config) = (self.lane.side, &self.lane.config);
            hw::reset_all(&self.device, || reset(&self.at(), side, config))?;
        }
        self.lane.stopped();
        self.epoch = self.device.reset_epoch();
        set_busy(&self.device, self.lane.side, false);
        Ok(())
    }

    /// Returns whether the sibling's error keeps this channel halted until a reset.
    fn is_held(&self) -> bool {
        let failed = || status_beside(&self.device, self.lane.side).is_some_and(regs::has_failed);
        self.lane.runs && regs::is_halted(regs::DMASR.read(&self.at())) && failed()
    }
}

// SAFETY: 1. PG021: MM2S reads, and S2MM writes, at an address as many bytes as a length says: in
// registers, or in descriptors, whose end is TAILDESC's. `submit` takes both from the operand, and
// `operands` keeps it inside the length's bits. MM2S reads the rest of the first and last bus word
// too, as `word_bytes` says. The descriptors are the driver's own. 2. Idle, in direct register
// mode, comes when the transfer has completed ("DMASR"). A descriptor's Cmplt is written after its
// last byte was answered. No other poll is believed, nor one with an error. `stop` believes Halted,
// which comes when all transfers have ended, and the end of a reset, which is graceful ("DMACR").
// After a sibling's reset no register is believed: the epoch is read after them. 3. The bytes are
// LENGTH's or the descriptors' own counts. 4. `check` touches nothing. `poll` acknowledges
// interrupts, and rings again for jobs before which the core may have paused. 5. The port is the
// device's. 6. The caller of the function that made it promised it, and `Core` gives each channel
// to one driver. 7. The program writes 0 and Reset into DMACR. 8. Each wait has a limit. 9. A panic
// may leave a job uncounted, and a burst counts its jobs before their doorbell. `stop` uses the
// count only to decide whether to wait before it resets the channel, and `runs` is set before RS.
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
        // SAFETY: the caller's promise.
        unsafe { self.give(slot, operands, false) }
    }

    unsafe fn submit_more(&mut self, slot: usize, operands: &[DevSlice], _: &[u32]) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.give(slot, operands, true) }
    }

    fn waits_for_doorbell(&self) -> bool {
        self.lane.ring.is_some()
    }

    fn poll_again(&mut self) -> Result<Option<Completion>> {
        if self.lane.runs && self.lane.in_flight > 0 { self.look_first() } else { Ok(None) }
    }

    fn doorbell(&mut self) -> Result<()> {
        let Self { device, lane, epoch } = self;
        let side = lane.side;
        let rung = hw::locked(device, || {
            if device.reset_epoch() != *epoch {
                let has_jobs = lane.runs && lane.in_flight > 0;
                let ended = Err(Error::EndedByReset { device: side.name() });
                return if has_jobs { ended } else { Ok(()) };
            }
            lane.doorbell(&side.at(device));
            Ok(())
        });
        rung.map_err(|error| self.or_siblings(error))
    }

    fn poll(&mut self, timeout: Duration) -> Result<Option<Completion>> {
        self.wait(timeout)
    }

    fn stop(&mut self) -> Result<()> {
        self.end()
    }

    /// The stop program of a channel that has the device to itself.
    fn stop_program(&self) -> StopProgram {
        if self.device.siblings().is_some() {
            StopProgram::NONE
        } else {
            stop::program(&[self.lane.side], &self.lane.config)
        }
    }

    fn underruns(&self) -> Option<u64> {
        (self.lane.side == Side::S2mm && self.lane.ring.is_some()).then_some(self.lane.underruns)
    }
}

forward_as_fd!({D: Device} AxiDmaChannel<D>, device: D);

impl<D: Device> Drop for AxiDmaChannel<D> {
    /// Stops the channel. The descriptors' memory goes back only when it has stopped; otherwise it
    /// stays leaked.
    fn drop(&mut self) {
        // Even if a sibling's reset is reported to have stopped it: that may have failed.
        if (self.lane.runs || self.lane.ring.is_some())
            && self.stop().is_ok()
            && let Some(ring) = &mut self.lane.ring
        {
            // SAFETY: the channel is halted, and gets other descriptors before it runs.
            unsafe { ring.release() }
        }
    }
}
