#![allow(unsafe_code, reason = "implementing `Driver` is a promise about the hardware")]
//! One channel, with one frame per job; and the core that both channels share.

use super::config::{AxiVdmaConfig, Side, check};
use super::regs;
use crate::checks::{high, low, reset_program, stops};
use contigo_core::forward;
use contigo_core::hw::wait::poll_until;
use contigo_core::hw::{Device, Siblings};
use contigo_core::job::{Completion, Core, CoreChannel, Driver, OperandSpec, StopProgram, exactly};
use contigo_core::mem::DevSlice;
use contigo_core::types::platform::forward_as_fd;
use contigo_core::types::{Error, Result};
use core::time::Duration;

/// The time between polls for a reset's end.
const STOP_STEP_US: u32 = 10;
/// The most polls of a started channel until Halted clears: more than 100 us, since a read across
/// any bus takes more than 10 ns. The channel needs only some of its clocks.
const START_LOOKS: u32 = 10_000;

/// The driver of one channel. It may share its core with the other one's
/// ([`AxiVdmaCore::channel`](super::AxiVdmaCore::channel)).
///
/// ```
/// use contigo::{Align, Queue, Region, drivers::axi_vdma::{AxiVdmaConfig, Side}};
/// use contigo::sim::{SimDevice, axi_vdma::AxiVdmaModel, SimBoard};
/// use core::time::Duration;
/// let board = SimBoard::new(1);
/// let region = Region::new(board.memory(64 * 1024)?)?;
/// let pool = region.pool(2, 4096)?;
/// // Its stream is a loopback, and holds two KiB.
/// let device = SimDevice::<AxiVdmaModel>::new(&board, board.port());
/// let config = AxiVdmaConfig { hsize_bytes: 64, vsize_lines: 16, ..AxiVdmaConfig::default() };
/// let mut display = Queue::new(device.window()?.channel(Side::Mm2s, config)?, 1)?;
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
    /// The core's reset epoch when the job was submitted.
    epoch: u32,
    state: State,
    gaps: u64,
}

/// A channel's state. [`submit`](Driver::submit) starts it, unless the core was reset meanwhile,
/// and [`stop`](Driver::stop) stops it.
#[derive(Clone, Copy, Debug)]
enum State {
    /// A reset stopped it, and it has no frame to report.
    Stopped,
    /// It has the frame at `addr`. `over` is VDMASR of a stop that found the frame over, and whose
    /// reset then failed.
    Works { addr: u64, over: Option<u32> },
    /// It halted after a frame, which was reported.
    Told,
    /// A reset stopped it. Its frame is reported if it was `over` before: VDMASR of then.
    TakenBack { over: Option<u32> },
}

impl<D: Device> AxiVdmaChannel<D> {
    /// The driver of one channel of `device`. No other code drives the core, by either channel.
    ///
    /// # Errors
    /// [`Error::RegisterWindow`], [`Error::WrongDevice`]: the window is not an AXI VDMA's.
    /// [`Error::Argument`]: no core has these parameters or frames. [`Error::WillNotStop`]: the
    /// channel's reset at open does not end.
    ///
    /// # Safety
    /// The window is an AXI VDMA's (PG020), built as `config` says. If `frame_stores` is not 0, the
    /// core has no more of them. No other code drives it while this value lives.
    pub unsafe fn alone(device: D, side: Side, config: AxiVdmaConfig) -> Result<Self> {
        check(&device, &config)?;
        Self::opened(device, side, config)
    }

    /// Resets the channel, whatever it did before. `check` has passed.
    fn opened(device: D, side: Side, config: AxiVdmaConfig) -> Result<Self> {
        reset(&device, side, config.stop_us)?;
        let (epoch, operand) = (device.reset_epoch(), [config.operand(side)]);
        Ok(Self { device, side, config, operand, epoch, state: State::Stopped, gaps: 0 })
    }

    /// Writes every frame store's address.
    ///
    /// # Safety
    /// The channel is halted, and the frame at `addr` belongs to the device.
    unsafe fn put_address(&self, addr: u64) {
        let (registers, stores, bank) =
            (self.side.registers(), self.config.stores(), self.config.bank());
        for store in 0..stores {
            // SAFETY: the caller's promise; REG_INDEX chooses a bank.
            unsafe {
                if stores > bank && store % bank == 0 {
                    registers.index.write(&self.device, u32::from(store >= bank));
                }
                if self.config.is_wide() {
                    let at = registers.start + 8 * (store % bank);
                    self.device.write32(at, low(addr));
                    self.device.write32(at + 4, high(addr));
                } else {
                    self.device.write32(registers.start + 4 * (store % bank), low(addr));
                }
            }
        }
    }

    /// Starts the channel on one frame.
    ///
    /// # Safety
    /// The frame belongs to the device, and the channel is halted.
    unsafe fn begin(&self, addr: u64) -> Result<()> {
        let (registers, device) = (self.side.registers(), &self.device);
        let control = regs::RUN
            | regs::CIRCULAR
            | regs::FRAME_COUNT
            | regs::FRAMES
            | regs::ERROR
            | 1 << regs::COUNT_SHIFT;
        // SAFETY: addresses and sizes come first, as in AMD's own driver, so nothing later uses old
        // ones. `operands` made the frame as long as the sizes. FrmCnt_Irq is cleared before RS, so
        // it will be this frame's. RS alone starts no frame.
        unsafe {
            self.put_address(addr);
            registers.stride.write(device, self.config.stride());
            registers.hsize.write(device, self.config.hsize_bytes);
            registers.status.write(device, regs::CLEARED);
            registers.control.write(device, control);
        }
        // The core drops a VSIZE while Halted is set, and no frame would begin. Halted is polled
        // without waiting for an interrupt, which may be the other channel's.
        let mut status = 0;
        let mut has_started = || {
            status = registers.status.read(device);
            status & regs::HALTED == 0
        };
        if !(0..START_LOOKS).any(|_| has_started()) {
            return Err(Error::Fault {
                device: self.side.name(),
                status,
                what: regs::describe_start(status),
            });
        }
        // SAFETY: as above.
        unsafe { registers.vsize.write(device, self.config.vsize_lines) };
        Ok(())
    }

    /// The completion of a frame that is over, by its VDMASR.
    fn completion(&self, status: u32) -> Completion {
        let completion = Completion { status, ..Completion::of(0) };
        if status & regs::SHAPE != 0 {
            return Completion { failed: Some(regs::describe(status)), ..completion };
        }
        match self.side {
            Side::Mm2s => completion,
            Side::S2mm => Completion { bytes: Some(self.config.frame_bytes()), ..completion },
        }
    }
}

/// Resets one channel, and waits for the reset's end.
fn reset(device: &impl Device, side: Side, stop_us: u32) -> Result<()> {
    let registers = side.registers();
    // SAFETY: the reset starts nothing.
    unsafe { registers.control.write(device, regs::RESET) };
    stops(device, side.name(), STOP_STEP_US, stop_us, |device| {
        let (control, status) = (registers.control.read(device), registers.status.read(device));
        let halted = status & (regs::HALTED | regs::RESERVED) == regs::HALTED;
        (control & regs::RESET == 0 && halted, control)
    })
}

// SAFETY: 1. PG020: the channel reads, or writes, VSIZE lines of HSIZE bytes, STRIDE apart, from
// one of the start addresses on. All of these are the job's frame, which `operands` found long
// enough. MM2S reads the rest of a line's first and last bus word too, as `word_bytes` says. 2.
// With `FrameCntEn` and a count of 1 the channel halts after one frame. Halted says that its
// operations have ended ("VDMASR"). `FrmCnt_Irq`, cleared before, shows that it is this frame. A
// reset ends gracefully, and leaves the channel halted ("VDMACR", Reset). After an external reset
// no register is trusted: the epoch is read after them. 3. The bytes are the frame's. 4. `check`
// touches nothing, and `poll` acknowledges interrupts. 5. The port is the device's. 6. The
// constructor's caller guarantees it, and `Core` gives each channel to one driver. 7. The program
// writes Reset alone. 8. Each wait has a limit. 9. The state is set before the doorbell.
unsafe impl<D: Device> Driver for AxiVdmaChannel<D> {
    forward!(|this| this.device => port, simulated, arm_irq);

    fn name(&self) -> &'static str {
        self.side.name()
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
        if epoch != self.epoch
            && matches!(self.state, State::Works { .. } | State::TakenBack { .. })
        {
            return Err(Error::EndedByReset { device: self.side.name() });
        }
        self.epoch = epoch;
        self.gaps += u64::from(matches!(self.state, State::Works { .. } | State::Told));
        self.state = State::Works { addr: frame.addr.0, over: None };
        // SAFETY: the caller's promise. The last frame's end was seen, or the channel was reset by
        // `stop` or at open.
        unsafe { self.begin(frame.addr.0) }
    }

    fn poll(&mut self, timeout: Duration) -> Result<Option<Completion>> {
        let addr = match self.state {
            State::Stopped | State::Told => return Ok(None),
            State::TakenBack { over } => {
                self.state = State::Stopped;
                return Ok(over.map(|status| self.completion(status)));
            }
            State::Works { addr, .. } => addr,
        };
        let (registers, mut status) = (self.side.registers(), 0);
        let failed = |status: u32| {
            let halted_by_shape = status & regs::HALTED != 0
                && status & regs::SHAPE != 0
                && status & regs::FRAMES == 0;
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
            return Err(Error::FaultAt {
                device: self.side.name(),
                status,
                what: regs::describe(status),
                addr,
            });
        }
        if !regs::is_over(status) {
            return Ok(None);
        }
        // SAFETY: acknowledging moves no data.
        unsafe { registers.status.write(&self.device, regs::CLEARED) };
        self.state = State::Told;
        Ok(Some(self.completion(status)))
    }

    /// Resets the channel. A frame that was already over is still reported.
    fn stop(&mut self) -> Result<()> {
        if let State::Works { over: over @ None, .. } | State::TakenBack { over: over @ None } =
            &mut self.state
        {
            // The reset clears the bits that show it.
            let status = self.side.registers().status.read(&self.device);
            *over = (regs::is_over(status) && self.device.reset_epoch() == self.epoch)
                .then_some(status);
        }
        reset(&self.device, self.side, self.config.stop_us)?;
        self.state = match self.state {
            State::Works { over, .. } | State::TakenBack { over } => State::TakenBack { over },
            State::Told | State::Stopped => State::Stopped,
        };
        Ok(())
    }

    fn stop_program(&self) -> StopProgram {
        let (control, status) =
            (self.side.registers().control.offset(), self.side.registers().status.offset());
        reset_program(
            (control, regs::RESET, regs::RESET),
            (status, regs::HALTED | regs::RESERVED, regs::HALTED),
            self.config.stop_us,
        )
    }

    /// How often a receive's frame came to a channel that the previous one had halted.
    fn underruns(&self) -> Option<u64> {
        match self.side {
            Side::Mm2s => None,
            Side::S2mm => Some(self.gaps),
        }
    }
}

forward_as_fd!({D: Device} AxiVdmaChannel<D>, device: D);

impl<D: Device> Drop for AxiVdmaChannel<D> {
    fn drop(&mut self) {
        // If it had jobs, the queue has stopped it.
        let _ = self.stop();
    }
}

/// One core whose channels have a driver each, in one thread or in several.
#[derive(Debug)]
pub struct AxiVdmaCore<D> {
    core: Core<D>,
}

impl<D: Device> AxiVdmaCore<D> {
    /// The core behind `device`. The core is not touched before a channel is opened.
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

    /// Resets the core externally by `pull`. A channel with jobs in flight then returns
    /// [`Error::EndedByReset`](contigo_core::Error::EndedByReset).
    ///
    /// # Errors
    /// [`Error::Contended`](contigo_core::Error::Contended), or the error of `pull`.
    pub fn reset(&self, pull: impl FnOnce() -> Result<()>) -> Result<()> {
        self.core.reset(|_| pull())
    }

    /// The driver of one channel.
    ///
    /// # Errors
    /// [`Error::HasDriver`](contigo_core::Error::HasDriver), or as [`AxiVdmaChannel::alone`].
    ///
    /// # Safety
    /// The core is built as `config` says.
    pub unsafe fn channel(
        &self,
        side: Side,
        config: AxiVdmaConfig,
    ) -> Result<AxiVdmaChannel<CoreChannel<D>>> {
        check(self.core.device(), &config)?;
        // SAFETY: a channel's driver writes its own registers alone (`Side::registers`).
        let device = unsafe { self.core.channel(side.index(), 0..regs::WINDOW_BYTES)? };
        AxiVdmaChannel::opened(device, side, config)
    }
}
