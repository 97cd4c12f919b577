#![allow(unsafe_code, reason = "implementing `Driver` is a promise about the hardware")]
//! The whole core: both channels as one driver, which sends a packet and receives its answer; or
//! the core that both channels' drivers share.

use super::channel::AxiDmaChannel;
use super::config::AxiDmaConfig;
use super::lane::Lane;
use super::regs::{self, At, Side};
use super::stop::{self, found, found_beside, ring};
use contigo_core::forward;
use contigo_core::hw::wait::poll_every;
use contigo_core::hw::{Device, Mmio};
use contigo_core::job::{Completion, Core, CoreChannel, Driver, OperandSpec, StopProgram, exactly};
use contigo_core::mem::{CpuBuf, DevSlice};
use contigo_core::types::platform::forward_as_fd;
use contigo_core::types::{Error, Result};
use core::time::Duration;

/// The core as one driver: a job sends operand 0 as a packet, and receives its answer in operand 1.
///
/// | operand | what | direction |
/// |---|---|---|
/// | packet | all of it is sent | to the device |
/// | answer | at least as long as the answer | from the device |
///
/// The completion has the answer's length. Bit 0 of its word 0 says that the answer may be the rest
/// of one that a stop cut: it is the first after that stop. S2MM is armed before MM2S, so that the
/// answer finds its operand. With a loopback, a job copies.
///
/// ```
/// use contigo::{Align, Queue, Region, drivers::axi_dma::AxiDmaConfig};
/// use contigo::sim::{SimDevice, axi_dma::AxiDmaModel, SimBoard};
/// use core::time::Duration;
/// let board = SimBoard::new(1);
/// let region = Region::new(board.memory(64 * 1024)?)?;
/// let descriptors = region.alloc(4096, Align::PAGE)?;
/// let pool = region.pool(2, 8192)?;
/// let device = SimDevice::<AxiDmaModel>::new(&board, board.port());
/// let mut queue = Queue::new(device.window()?.driver(AxiDmaConfig::default(), Some(descriptors))?, 1)?;
///
/// let mut packet = pool.take()?;
/// packet.view_mut::<u8>()?.fill(7);
/// let done = queue.run([packet.to_device(..5_000), pool.take()?.from_device(..)], &[], Duration::from_millis(20))?;
/// assert_eq!(done.bytes, Some(5_000));
/// let [_, answer] = done.buffers;
/// assert_eq!(answer.view_at::<u8>(..5_000)?, [7; 5_000]);
/// # Ok::<(), contigo::Error>(())
/// ```
#[derive(Debug)]
pub struct AxiDma<D: Device> {
    device: D,
    send: Lane,
    receive: Lane,
    operands: [OperandSpec; 2],
    /// How many packets were sent, from the oldest job's on; and the oldest job's answer.
    sent: usize,
    answer: Option<Completion>,
}

impl<D: Device> AxiDma<D> {
    /// The driver of `device`. With scatter-gather it needs `memory` for descriptors, 64 bytes
    /// each, half of them for each channel. A core without scatter-gather does not use it.
    ///
    /// # Errors
    /// As [`AxiDmaChannel::alone`](super::AxiDmaChannel::alone), for both channels.
    ///
    /// # Safety
    /// As [`AxiDmaChannel::alone`](super::AxiDmaChannel::alone).
    pub unsafe fn open(device: D, config: AxiDmaConfig, memory: Option<CpuBuf>) -> Result<Self> {
        let sg = found(&device, &[Side::Mm2s, Side::S2mm], &config)?;
        let (mut first, mut second) = (None, None);
        if let Some(memory) = memory {
            let half = memory.len_bytes() / 2 / regs::DESCRIPTOR_ALIGN_BYTES
                * regs::DESCRIPTOR_ALIGN_BYTES;
            let (low, high) = memory.split_at(half)?;
            (first, second) = (Some(low), Some(high));
        }
        let mut send = Lane::new(Side::Mm2s, config, ring(sg, first, device.port(), &config)?);
        let mut receive = Lane::new(Side::S2mm, config, ring(sg, second, device.port(), &config)?);
        let depth = send.depth.min(receive.depth);
        (send.depth, receive.depth) = (depth, depth);
        let ([out], [back]) = (send.operand, receive.operand);
        Ok(Self { device, send, receive, operands: [out, back], sent: 0, answer: None })
    }

    fn both(&mut self) -> [(&mut Lane, At<'_, D>); 2] {
        let Self { device, send, receive, .. } = self;
        [(receive, Side::S2mm.at(device)), (send, Side::Mm2s.at(device))]
    }

    /// The oldest job's end, if both channels reported theirs.
    fn end(&mut self) -> Result<Option<Completion>> {
        let Some(answer) = self.answer.filter(|_| self.sent > 0) else { return Ok(None) };
        (self.sent, self.answer) = (self.sent - 1, None);
        if answer.status & regs::LAST == 0 {
            let what = "an answer is longer than its operand; give a longer one";
            return Err(Error::Fault { device: "axi_dma", status: answer.status, what });
        }
        Ok(Some(answer))
    }
}

/// Polls one channel.
fn look_at(device: &impl Mmio, lane: &mut Lane) -> Result<Option<Completion>> {
    let side = lane.side;
    let at = side.at(device);
    let works = lane.runs && lane.in_flight > 0;
    let found = match if works { lane.look_first(&at, false) } else { Ok(None) } {
        Ok(None) => lane.look(&at),
        found => found,
    };
    found.map_err(|error| or_others(device, side, error))
}

/// An error of one channel also halts the other, `side`; returns the error that happened.
fn or_others(device: &impl Mmio, side: Side, error: Error) -> Error {
    let other = side.other();
    regs::or_siblings(error, other, regs::DMASR.read(&other.at(device)))
}

impl<D: Device> AxiDma<D> {
    /// As [`Driver::submit`], or [`submit_more`](Driver::submit_more) if `more` jobs follow.
    ///
    /// # Safety
    /// As there.
    unsafe fn give(&mut self, slot: usize, operands: &[DevSlice], more: bool) -> Result<()> {
        let [packet, answer] = exactly(operands)?;
        if !self.send.runs {
            (self.sent, self.answer) = (0, None);
        }
        // S2MM first: an answer that finds no room waits, and some kernels lose it.
        for (lane, operand) in [(&mut self.receive, answer), (&mut self.send, packet)] {
            // SAFETY: the caller's promise. No other code resets the core.
            let given = unsafe { lane.submit(&lane.side.at(&self.device), slot, operand, more) };
            // S2MM may fail before MM2S starts; the core then holds MM2S halted.
            given.map_err(|error| or_others(&self.device, lane.side, error))?;
        }
        Ok(())
    }
}

// SAFETY: as `AxiDmaChannel`'s, for both channels: a job has ended when both have reported its end,
// and `stop` halts and resets both. No other code resets the core.
unsafe impl<D: Device> Driver for AxiDma<D> {
    forward!(|this| this.device => port, simulated, arm_irq);

    fn name(&self) -> &'static str {
        "axi_dma"
    }

    fn addr_bits(&self) -> u32 {
        self.send.config.address_bits
    }

    fn operands(&self) -> &[OperandSpec] {
        &self.operands
    }

    fn depth(&self) -> usize {
        self.send.depth
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

    fn doorbell(&mut self) -> Result<()> {
        for lane in [&mut self.receive, &mut self.send] {
            let side = lane.side;
            lane.doorbell(&side.at(&self.device));
        }
        Ok(())
    }

    fn poll(&mut self, timeout: Duration) -> Result<Option<Completion>> {
        if self.receive.in_flight == 0 && self.answer.is_none() {
            return Ok(None);
        }
        let mut left = if self.receive.runs { timeout } else { Duration::ZERO };
        let (mut step_us, is_wide) =
            (self.send.step_us().min(self.receive.step_us()), self.send.config.address_bits > 32);
        let Self { device, send, receive, sent, answer, .. } = self;
        let mut look = |device: &D| -> Result<(bool, u32)> {
            if answer.is_none() {
                *answer = look_at(device, receive)?;
            }
            // Even without an answer: it may have failed, or may pause, and a kernel may need
            // several packets for one answer.
            let mut is_send_read = false;
            if *sent == 0 || answer.is_none() {
                let ended = look_at(device, send)?.is_some();
                *sent += usize::from(ended);
                is_send_read = !ended && send.in_flight > 0;
            }
            let over = *sent > 0 && answer.is_some();
            // Both channels share one line, and the wait is for the other one: an end of this one
            // must not keep the line up. It may have come after the poll, or have been found in a
            // descriptor.
            if !over && answer.is_some() {
                let _ = receive.acknowledge(&Side::S2mm.at(device));
            }
            if !over && *sent > 0 && !is_send_read {
                let _ = send.acknowledge(&Side::Mm2s.at(device));
            }
            Ok((over, send.step_us().min(receive.step_us())))
        };
        // Twice at most: a channel that may pause needs shorter steps from then on.
        for _ in 0..2 {
            let from_us = if is_wide { device.now_us() } else { 0 };
            let mut found = Ok((false, step_us));
            let ended = poll_every(device, step_us, left, |device| {
                found = look(device);
                !matches!(found, Ok((false, next_us)) if next_us >= step_us)
            })?;
            let (over, next_us) = found?;
            if over {
                return self.end();
            }
            if !ended {
                break;
            }
            left =
                left.saturating_sub(Duration::from_micros(device.now_us().saturating_sub(from_us)));
            step_us = next_us;
        }
        Ok(None)
    }

    fn stop(&mut self) -> Result<()> {
        for (lane, at) in self.both() {
            lane.keep_end(&at);
        }
        let config = self.send.config;
        // Before the reset: what was sent of a packet may come back as the start of an answer.
        if self.both().into_iter().any(|(lane, at)| lane.may_be_busy(&at)) {
            self.receive.cut();
        }
        for (lane, at) in self.both() {
            // RS=0 waits for the packet of a receive, which may never come.
            if lane.side == Side::Mm2s || !lane.is_busy(&at) {
                stop::halt(&at, &config)?;
            }
        }
        let [(_, receive), (_, send)] = self.both();
        stop::reset(&send, Side::Mm2s, &config)?;
        // The reset of the other channel reset it too.
        stop::reset(&receive, Side::S2mm, &config)?;
        self.send.stopped();
        self.receive.stopped();
        Ok(())
    }

    fn stop_program(&self) -> StopProgram {
        stop::program(&[Side::S2mm, Side::Mm2s], &self.send.config)
    }
}

forward_as_fd!({D: Device} AxiDma<D>, device: D);

impl<D: Device> Drop for AxiDma<D> {
    /// Stops the core. The descriptors' memory goes back only when it has stopped; otherwise it
    /// stays leaked.
    fn drop(&mut self) {
        let ran = self.send.runs || self.receive.runs;
        if ran && self.stop().is_err() {
            return;
        }
        for ring in [&mut self.send.ring, &mut self.receive.ring].into_iter().flatten() {
            // SAFETY: the core is halted, and gets other descriptors before it runs.
            unsafe { ring.release() }
        }
    }
}

/// One core with a driver for each channel, in one thread or in several.
///
/// **A reset of one channel resets both** (PG021, DMACR.Reset). A channel is stopped without a
/// reset if its transfers end by themselves. A receive that waits for a packet does not end, nor
/// does a channel that failed: then the core is reset, and the sibling returns
/// [`Error::EndedByReset`](contigo_core::Error::EndedByReset) if it has jobs.
///
/// **An error of one channel halts both**, and neither runs again before a reset, which a stop of
/// either makes. A channel that its sibling's error halted returns that error, with the sibling's
/// name.
///
/// The core has two interrupts. If the kernel gives a program one line, OR both in the block
/// design. A channel whose interrupt does not come finds its end when its wait is over.
#[derive(Debug)]
pub struct AxiDmaCore<D> {
    /// Bit N of its drivers' marks: channel N has jobs.
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

    /// Resets the core from outside, by `pull`. A channel that has jobs in flight then returns
    /// [`Error::EndedByReset`](contigo_core::Error::EndedByReset).
    ///
    /// # Errors
    /// [`Error::Contended`](contigo_core::Error::Contended), or the error of `pull`.
    pub(crate) fn reset(&self, pull: impl FnOnce() -> Result<()>) -> Result<()> {
        self.core.reset(|_| pull())
    }

    /// The driver of one channel, with `memory` for its descriptors if the core has scatter-gather.
    /// The channel is stopped, and the core is reset if its sibling has no jobs.
    ///
    /// # Errors
    /// [`Error::HasDriver`](contigo_core::Error::HasDriver), or as
    /// [`AxiDmaChannel::alone`]. The memory goes back to its pool.
    ///
    /// # Safety
    /// The core is built as `config` says.
    pub unsafe fn channel(
        &self,
        side: Side,
        config: AxiDmaConfig,
        memory: Option<CpuBuf>,
    ) -> Result<AxiDmaChannel<CoreChannel<D>>> {
        let window = 0..self.core.device().len_bytes().max(side.base() + regs::CHANNEL_BYTES);
        // SAFETY: a channel's driver writes only its own registers, and Reset by `Siblings::reset`.
        let device = unsafe { self.core.channel(side.index(), window)? };
        let sg = found_beside(&device, side, &config)?;
        let ring = ring(sg, memory, device.port(), &config)?;
        Ok(AxiDmaChannel::new(device, Lane::new(side, config, ring)))
    }
}
