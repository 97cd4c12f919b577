#![allow(unsafe_code, reason = "implementing `Driver` is a promise about the hardware")]
//! One channel: a frame a job.

use super::{AxiVdmaConfig, Side, regs};
use crate::{
    hw::{
        Device, Siblings,
        wait::{poll_every, poll_until},
    },
    job::{Completion, Driver, OperandSpec, StopProgram, StopStep, exactly},
    mem::{DevSlice, Port},
    types::{Error, Result, platform::forward_as_fd},
};
use core::time::Duration;

/// Between two looks while it waits for a reset's end.
const STOP_STEP_US: u32 = 10;
/// How often a channel that was started is looked at until Halted is gone: more than 100 us, since
/// a look across any bus takes more than 10 ns. It is some of the channel's clocks.
const START_LOOKS: u32 = 10_000;

/// The driver of one channel. It may share its core with the other one's
/// ([`AxiVdmaCore::channel`](super::AxiVdmaCore::channel)).
///
/// ```
/// use contigo::{Align, drivers::axi_vdma::{AxiVdmaChannel, AxiVdmaConfig, Side, SimAxiVdma}, sim::SimBoard, Queue, Region};
/// use core::time::Duration;
/// let board = SimBoard::new(1);
/// let region = Region::new(board.memory(64 * 1024)?)?;
/// let pool = region.pool(2, 4096)?;
/// // Its stream is a loopback, and holds two KiB.
/// let device = SimAxiVdma::new(&board, board.port());
/// let config = AxiVdmaConfig { hsize_bytes: 64, vsize_lines: 16, ..AxiVdmaConfig::default() };
/// let mut display = Queue::new(AxiVdmaChannel::simulated(device.window()?, Side::Mm2s, config)?, 1)?;
///
/// let mut frame = pool.take()?;
/// frame.view_mut::<u8>()?.fill(7);
/// let [_frame] = display.run([frame.to_device(..1024)], &[], Duration::from_millis(20))?.buffers;
/// # Ok::<(), contigo::Error>(())
/// ```
#[derive(Debug)]
pub struct AxiVdmaChannel<D: Device> {
    device: D,
    side: Side,
    config: AxiVdmaConfig,
    operand: [OperandSpec; 1],
    /// The core's, when the job was given.
    epoch: u32,
    /// Where the frame at work is.
    at_work: Option<u64>,
    /// It was over before the last stop: VDMASR of then.
    ended: Option<u32>,
    /// Between the first job and a stop.
    runs: bool,
    gaps: u64,
}

/// Is this a window of an AXI VDMA, and is there such a one?
pub(super) fn check(device: &impl Device, config: &AxiVdmaConfig) -> Result<()> {
    config.check()?;
    let (need_bytes, have_bytes) = (regs::WINDOW_BYTES, device.len_bytes());
    if have_bytes < need_bytes {
        return Err(Error::RegisterWindow { device: "axi_vdma", need_bytes, have_bytes });
    }
    let found = regs::VERSION.read(device);
    if found >> 28 != regs::MAJOR {
        let expected = regs::MAJOR << 28 | found & 0x0FFF_FFFF;
        return Err(Error::WrongDevice { device: "axi_vdma", register: "VDMA_VERSION", expected, found });
    }
    Ok(())
}

impl<D: Device> AxiVdmaChannel<D> {
    /// The driver of one channel of `device`, which nobody else drives, the other channel neither.
    ///
    /// # Errors
    /// [`Error::RegisterWindow`], [`Error::WrongDevice`]: this is no AXI VDMA, or none is there.
    /// [`Error::Argument`]: no core is built so, or has such frames. [`Error::WillNotStop`]: the
    /// channel is reset first, and does not end that.
    ///
    /// # Safety
    /// The window is an AXI VDMA's (PG020), built as `config` says. Where `frame_stores` is not 0,
    /// it has no more of them. Nobody else drives it while this value lives.
    pub unsafe fn alone(device: D, side: Side, config: AxiVdmaConfig) -> Result<Self> {
        check(&device, &config)?;
        Self::opened(device, side, config)
    }
}

impl<D: Device> AxiVdmaChannel<D> {
    /// `check` has passed. The channel is reset, whatever it did for whoever had it before.
    pub(super) fn opened(device: D, side: Side, config: AxiVdmaConfig) -> Result<Self> {
        reset(&device, side, config.stop_us)?;
        let (epoch, operand) = (device.reset_epoch(), [config.operand(side)]);
        Ok(Self { device, side, config, operand, epoch, at_work: None, ended: None, runs: false, gaps: 0 })
    }

    /// Writes every frame store's address.
    ///
    /// # Safety
    /// The channel is halted, and the frame at `addr` belongs to the device.
    #[allow(clippy::cast_possible_truncation, reason = "the halves of an address")]
    unsafe fn put_address(&self, addr: u64) {
        let (registers, stores, bank) = (self.side.registers(), self.config.stores(), self.config.bank());
        for store in 0..stores {
            // SAFETY: the caller's promise; REG_INDEX chooses a bank.
            unsafe {
                if stores > bank && store % bank == 0 {
                    registers.index.write(&self.device, u32::from(store >= bank));
                }
                if self.config.is_wide() {
                    self.device.write32(registers.start + 8 * (store % bank), addr as u32);
                    self.device.write32(registers.start + 8 * (store % bank) + 4, (addr >> 32) as u32);
                } else {
                    self.device.write32(registers.start + 4 * (store % bank), addr as u32);
                }
            }
        }
    }

    /// Gives the channel one frame.
    ///
    /// # Safety
    /// It belongs to the device, and the channel is halted.
    unsafe fn begin(&self, addr: u64) -> Result<()> {
        let (registers, device) = (self.side.registers(), &self.device);
        let control = regs::RUN | regs::CIRCULAR | regs::FRAME_COUNT | regs::FRAMES | regs::ERROR | 1 << regs::COUNT_SHIFT;
        // SAFETY: addresses and sizes come first, as in AMD's own driver: nothing that follows
        // finds an old one. The frame is as long as the sizes say, by `operands`. FrmCnt_Irq is
        // cleared before RS, so that it is of this frame. RS alone starts no frame.
        unsafe {
            self.put_address(addr);
            registers.stride.write(device, self.config.stride());
            registers.hsize.write(device, self.config.hsize_bytes);
            registers.status.write(device, regs::CLEARED);
            registers.control.write(device, control);
        }
        // A VSIZE that comes while Halted is set is dropped, and no frame would begin. It is looked
        // at without an interrupt: that may be the other channel's.
        let mut status = 0;
        let mut has_started = || {
            status = registers.status.read(device);
            status & regs::HALTED == 0
        };
        if !(0..START_LOOKS).any(|_| has_started()) {
            return Err(Error::Fault { device: self.side.name(), status, what: regs::describe_start(status) });
        }
        // SAFETY: as above.
        unsafe { registers.vsize.write(device, self.config.vsize_lines) };
        Ok(())
    }

    /// The completion of a frame that is over, as VDMASR said.
    fn completion(&self, status: u32) -> Completion {
        let completion = Completion { status, ..Completion::of(0) };
        if status & regs::SHAPE != 0 {
            return Completion { failed: Some(regs::describe(status)), ..completion };
        }
        match self.side {
            Side::Mm2s => completion,
            Side::S2mm => completion.with_bytes(self.config.frame_bytes()),
        }
    }

    /// Resets the channel, and waits for the reset's end.
    fn halt(&mut self) -> Result<()> {
        let registers = self.side.registers();
        if self.at_work.is_some() && self.ended.is_none() {
            // The reset clears what tells.
            let status = registers.status.read(&self.device);
            self.ended = (regs::is_over(status) && self.device.reset_epoch() == self.epoch).then_some(status);
        }
        reset(&self.device, self.side, self.config.stop_us)?;
        self.runs = false;
        Ok(())
    }
}

/// Resets one channel, and waits for the reset's end.
fn reset(device: &impl Device, side: Side, stop_us: u32) -> Result<()> {
    let (registers, mut control) = (side.registers(), 0);
    // SAFETY: the reset starts nothing.
    unsafe { registers.control.write(device, regs::RESET) };
    let over = poll_every(device, STOP_STEP_US, Duration::from_micros(stop_us.into()), |device| {
        control = registers.control.read(device);
        let status = registers.status.read(device);
        control & regs::RESET == 0 && status & (regs::HALTED | regs::RESERVED) == regs::HALTED
    })?;
    if over { Ok(()) } else { Err(Error::WillNotStop { device: side.name(), status: control, waited_us: stop_us }) }
}

// SAFETY: 1. PG020: the channel reads, or writes, VSIZE lines of HSIZE bytes, STRIDE apart, from
// one of the start addresses on. All of these are the job's frame, and `operands` found it long
// enough. MM2S reads the rest of a line's first and last bus word too, as `word_bytes` says.
// 2. With `FrameCntEn` and a count of 1 the channel halts after one frame. Halted says that
// its operations have ended ("VDMASR"). `FrmCnt_Irq`, which was cleared before, says that it is
// this frame. The end of a reset is graceful, and leaves it halted ("VDMACR", Reset). After a reset
// from outside no register is believed: the epoch is read after them. 3. The bytes are the frame's.
// 4. `check` touches nothing, and `poll` only reads. 5. The port is the device's. 6. The caller of
// the function that made it promised it, and `Core` gives each channel to one driver. 7. The
// program writes Reset alone. 8. Each wait has a limit. 9. The job's fields are set before the
// doorbell.
unsafe impl<D: Device> Driver for AxiVdmaChannel<D> {
    fn name(&self) -> &'static str {
        self.side.name()
    }

    fn port(&self) -> &Port {
        self.device.port()
    }

    fn simulated(&self) -> Option<&dyn crate::mem::SimulatedDevice> {
        self.device.simulated()
    }

    fn addr_bits(&self) -> u32 {
        self.config.address_bits
    }

    fn operands(&self) -> &[OperandSpec] {
        &self.operand
    }

    fn check(&self, _: &[DevSlice], args: &[u32]) -> Result<()> {
        let [] = exactly(args)?;
        Ok(())
    }

    unsafe fn submit(&mut self, _: usize, operands: &[DevSlice], _: &[u32]) -> Result<()> {
        let [frame] = exactly(operands)?;
        // A reset between the first register and the doorbell would clear the addresses.
        let _lock = self.device.siblings().map(Siblings::lock).transpose()?;
        let epoch = self.device.reset_epoch();
        if epoch != self.epoch && self.at_work.is_some() {
            return Err(Error::EndedByReset { device: self.side.name() });
        }
        self.epoch = epoch;
        if core::mem::replace(&mut self.runs, true) {
            self.gaps += 1;
        }
        (self.at_work, self.ended) = (Some(frame.addr.0), None);
        // SAFETY: the caller's promise. The last frame's end was seen, or the channel was reset: by
        // `stop`, or where it was opened.
        unsafe { self.begin(frame.addr.0) }
    }

    fn poll(&mut self, timeout: Duration) -> Result<Option<Completion>> {
        let Some(addr) = self.at_work else { return Ok(None) };
        if !self.runs {
            self.at_work = None;
            return Ok(self.ended.take().map(|status| self.completion(status)));
        }
        let (registers, mut status) = (self.side.registers(), 0);
        let failed = |status: u32| {
            let halted_by_shape = status & regs::HALTED != 0 && status & regs::SHAPE != 0 && status & regs::FRAMES == 0;
            status == u32::MAX || status & regs::FATAL != 0 || halted_by_shape
        };
        poll_until(&self.device, timeout, |device| {
            status = registers.status.read(device);
            regs::is_over(status) || failed(status)
        })?;
        if self.device.reset_epoch() != self.epoch {
            return Err(Error::EndedByReset { device: self.side.name() });
        }
        if failed(status) {
            return Err(Error::FaultAt { device: self.side.name(), status, what: regs::describe(status), addr });
        }
        if !regs::is_over(status) {
            return Ok(None);
        }
        // SAFETY: acknowledging moves no data.
        unsafe { registers.status.write(&self.device, regs::CLEARED) };
        self.at_work = None;
        Ok(Some(self.completion(status)))
    }

    /// Resets the channel. A frame that was over before is told still.
    fn stop(&mut self) -> Result<()> {
        self.halt()
    }

    fn stop_program(&self) -> StopProgram {
        let (control, status) = (self.side.registers().control.offset(), self.side.registers().status.offset());
        StopProgram::new(&[
            StopStep::write(control, u32::MAX, regs::RESET),
            StopStep::poll_until(control, regs::RESET, 0, self.config.stop_us),
            StopStep::poll_until(status, regs::HALTED | regs::RESERVED, regs::HALTED, self.config.stop_us),
        ])
        .unwrap_or_default()
    }

    fn arm_irq(&self) -> Result<Option<i32>> {
        self.device.arm_irq()
    }

    /// How often a receive's frame came to a channel that had halted after the one before.
    fn ran_dry(&self) -> Option<u64> {
        match self.side {
            Side::Mm2s => None,
            Side::S2mm => Some(self.gaps),
        }
    }
}

forward_as_fd!({D: Device} AxiVdmaChannel<D>, device: D);

impl<D: Device> Drop for AxiVdmaChannel<D> {
    fn drop(&mut self) {
        // The queue has stopped it before, where it had jobs.
        let _ = self.halt();
    }
}
