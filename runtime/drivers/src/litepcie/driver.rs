#![allow(unsafe_code, reason = "implementing `Driver` is a promise about the hardware")]
//! The driver of a reader, of a writer, or of both with the loopback between them.

use super::config::{LitepcieConfig, Side};
use super::descriptors::{DEVICE, Lane};
use super::regs;
use crate::checks::{has_window, holds};
use contigo_core::forward;
use contigo_core::hw::mmio::{ReadWrite, Register};
use contigo_core::hw::wait::{Settling, poll_settling};
use contigo_core::hw::{Device, Siblings};
use contigo_core::job::{Completion, Core, CoreChannel, Driver, OperandSpec, StopProgram, exactly};
use contigo_core::mem::DevSlice;
use contigo_core::types::platform::forward_as_fd;
use contigo_core::types::{Align, Error, Result};
use core::fmt;
use core::mem::ManuallyDrop;
use core::time::Duration;

/// The driver of a part of one DMA of a card.
///
/// ```
/// use contigo::{Align, Queue, Region, drivers::litepcie::Side};
/// use contigo::sim::{SimDevice, litepcie::LitepcieModel, SimBoard};
/// use core::time::Duration;
/// let board = SimBoard::new(1);
/// let region = Region::new(board.memory(64 * 1024)?)?;
/// let pool = region.pool(4, 4096)?;
/// let card = SimDevice::<LitepcieModel>::new(&board, board.port());
/// let mut copier = Queue::new(card.window()?.driver(Side::Loopback)?, 64)?;
/// let mut from = pool.take()?;
/// from.view_mut::<u8>()?.fill(7);
/// copier.submit([from.to_device(..1000), pool.take()?.from_device(..)], &[])?;
/// let [_, to] = copier.wait(Duration::from_millis(5))?.ok_or(contigo::Error::Busy)?.buffers;
/// assert_eq!(to.view_at::<u8>(..1000)?, [7; 1000]);
/// # Ok::<(), contigo::Error>(())
/// ```
pub struct Litepcie<D: Device> {
    device: ManuallyDrop<D>,
    side: Side,
    config: LitepcieConfig,
    reader: Lane,
    writer: Lane,
    operands: [OperandSpec; 2],
    /// Jobs submitted, and reported, since the start.
    given: u32,
    told: u32,
    state: State,
}

/// The state of its lanes.
#[derive(Clone, Copy)]
enum State {
    /// The ends that the stop counted are still reported.
    Stopped,
    /// `epoch`: the device's reset epoch at their start.
    Running { epoch: u32 },
}

impl<D: Device> Litepcie<D> {
    /// The driver of `side` of the DMA behind `device`. Stops it first: a crashed program may have
    /// left it running.
    ///
    /// # Errors
    /// [`Error::Argument`] for a parameter that no design has; [`Error::RegisterWindow`];
    /// [`Error::Fault`] if there is no DMA at its address; [`Error::WillNotStop`].
    ///
    /// # Safety
    /// The window is a BAR of a card with LitePCIe, whose design is as `config` says, and no other
    /// code drives this DMA while this value lives. The host answers each read request within
    /// `settle_us`. If `config` is not `ordered`, each write that the card counted is in memory
    /// within that time. The host allows the card no request or payload of more than 512 bytes, if
    /// its PHY does not ensure it (Cyclone V).
    pub unsafe fn open(device: D, side: Side, config: LitepcieConfig) -> Result<Self> {
        let this = Self::part(device, side, config)?;
        // SAFETY: no lane runs.
        unsafe { begin(&*this.device, &config, side == Side::Loopback) };
        Ok(this)
    }

    /// A part; the caller sets its loopback and interrupts by `begin`.
    fn part(device: D, side: Side, config: LitepcieConfig) -> Result<Self> {
        config.check()?;
        has_window(&device, DEVICE, config.window_bytes())?;
        let max_bytes = regs::LENGTH as usize / config.word_bytes() * config.word_bytes();
        let spec = |operand: OperandSpec| {
            let align = Align::new(regs::REQUEST_BYTES)?;
            Ok::<_, Error>(OperandSpec { max_bytes, ..operand.aligned(align) })
        };
        let (send, receive) = (spec(OperandSpec::to_device())?, spec(OperandSpec::from_device())?);
        let operands = if side == Side::Writer { [receive; 2] } else { [send, receive] };
        let (reader, writer) = (
            Lane::new(config.reader_at, true, &config),
            Lane::new(config.writer_at, false, &config),
        );
        let (device, state) = (ManuallyDrop::new(device), State::Stopped);
        let mut this =
            Self { device, side, config, reader, writer, operands, given: 0, told: 0, state };
        let device = &*this.device;
        for lane in lanes(side, &mut this.writer, &mut this.reader) {
            lane.find(device)?;
            // SAFETY: it is stopped at once, and no running program owns its old jobs.
            unsafe { lane.prepare(device) };
            lane.stop(device)?;
        }
        Ok(this)
    }

    /// How many jobs are over. A copy is over when its bytes have come back.
    const fn over(&self) -> u32 {
        match self.side {
            Side::Reader => self.reader.over,
            Side::Writer | Side::Loopback => self.writer.over,
        }
    }

    /// The next completion, if there is one.
    fn next_end(&mut self) -> Result<Option<Completion>> {
        let ended = self.over().wrapping_sub(self.told);
        let in_flight = self.given.wrapping_sub(self.told);
        if ended == 0 || in_flight == 0 {
            return Ok(None);
        }
        if ended > in_flight {
            let what = "more descriptors than it was given: does other code drive this card?";
            return Err(Error::Fault { device: DEVICE, status: self.over(), what });
        }
        let slot = self.told % u32::from(self.config.depth);
        self.told = self.told.wrapping_add(1);
        Ok(Some(Completion::of(slot as usize)))
    }
}

/// The lanes of `side`, the writer first: it is ready before the reader sends.
fn lanes<'l>(
    side: Side,
    writer: &'l mut Lane,
    reader: &'l mut Lane,
) -> impl Iterator<Item = &'l mut Lane> {
    let writer = (side != Side::Reader).then_some(writer);
    let reader = (side != Side::Writer).then_some(reader);
    writer.into_iter().chain(reader)
}

/// Turns the loopback on or off, and the interrupts on.
///
/// # Safety
/// No running lane would be connected to another stream.
unsafe fn begin(device: &impl Device, config: &LitepcieConfig, loopback: bool) {
    let register = |at: u32| Register::<ReadWrite>::at(at as usize);
    let bits = 1 << config.reader_irq | 1 << config.writer_irq;
    let enabled = register(config.msi_at).read(device);
    // SAFETY: neither write moves data.
    unsafe {
        register(config.loopback_at).write(device, loopback.into());
        register(config.msi_at).write(device, enabled | bits);
    }
}

// SAFETY: 1. A lane touches only the bytes of the descriptors in its table, whose address and
// length `submit` takes from the operands: it is not in loop mode. 2. A writer counts a descriptor
// when the last of its writes has left (`dma.py`, `LitePCIeDMAWriter`). On a card that is `ordered`
// the answer to the read of that count comes behind them. On others it may overtake them (PG213,
// "Transmit Transaction Ordering"), and `Lane::look` waits for the time that `open`'s caller
// guarantees. It also does so for a reader, which counts when its last request has left. A copy
// ends with its writer, whose bytes the reader had before. `stop` waits for the idle bit and as
// long. 3. No bytes are reported. 4. `check` reads no register, `poll` writes none. 5. The port is
// the device's. 6. `open`'s caller vouches for it. 7. The program clears RUN and waits for the idle
// bit; only a writer that is `ordered` has one. 8. Every wait has a limit. 9. `state` is set first.
unsafe impl<D: Device> Driver for Litepcie<D> {
    forward!(|this| *this.device => port, simulated);

    fn name(&self) -> &'static str {
        DEVICE
    }

    fn addr_bits(&self) -> u32 {
        self.config.address_bits.into()
    }

    fn operands(&self) -> &[OperandSpec] {
        let [first, ..] = &self.operands;
        if self.side == Side::Loopback { &self.operands } else { core::slice::from_ref(first) }
    }

    fn depth(&self) -> usize {
        self.config.depth.into()
    }

    fn check(&self, operands: &[DevSlice], args: &[u32]) -> Result<()> {
        let [] = exactly(args)?;
        let (Some(first), multiple_of) = (operands.first(), self.config.word_bytes() as u64) else {
            return Ok(());
        };
        let (value, max) = (first.len_bytes as u64, u64::from(regs::LENGTH));
        if !value.is_multiple_of(multiple_of) {
            return Err(Error::Argument {
                name: "bytes of a job",
                value,
                min: multiple_of,
                max,
                multiple_of,
            });
        }
        operands.get(1).map_or(Ok(()), |to| holds(to, first))
    }

    unsafe fn submit(&mut self, _slot: usize, operands: &[DevSlice], _: &[u32]) -> Result<()> {
        let Some(first) = operands.first() else { return Ok(()) };
        // A reset between a descriptor's words would leave one of address 0 in the table.
        let _lock = self.device.siblings().map(Siblings::lock).transpose()?;
        let epoch = self.device.reset_epoch();
        let starts = match self.state {
            State::Running { epoch: since } if epoch != since => {
                return Err(Error::EndedByReset { device: DEVICE });
            }
            State::Running { .. } => false,
            State::Stopped => {
                (self.state, self.given, self.told) = (State::Running { epoch }, 0, 0);
                true
            }
        };
        let device = &*self.device;
        let lanes = lanes(self.side, &mut self.writer, &mut self.reader);
        // The last operand is the writer's, and the first the reader's.
        for (lane, slice) in lanes.zip(operands.iter().rev()) {
            // SAFETY: the operands were handed over, the second is large enough, and the table has
            // room for `depth`.
            unsafe {
                if starts {
                    lane.prepare(device);
                }
                lane.give(device, slice, first.len_bytes);
                if starts {
                    lane.run(device);
                }
            }
        }
        self.given = self.given.wrapping_add(1);
        Ok(())
    }

    fn poll(&mut self, timeout: Duration) -> Result<Option<Completion>> {
        if self.given == self.told {
            return Ok(None);
        }
        let State::Running { epoch } = self.state else { return self.next_end() };
        if self.over() != self.told {
            return self.next_end();
        }
        let (told, mut found) = (self.told, Ok(()));
        let lane = if self.side == Side::Reader { &mut self.reader } else { &mut self.writer };
        poll_settling(&*self.device, lane.settle.us(), timeout, |device| {
            found = lane.look(device);
            // Read after the registers, whose values from before a reset are valid.
            if device.reset_epoch() != epoch {
                found = Err(Error::EndedByReset { device: DEVICE });
            }
            match found {
                Ok(()) if lane.over == told && lane.settle.waits() => Settling::Waits,
                Ok(()) if lane.over == told => Settling::Nothing,
                Ok(()) | Err(_) => Settling::Over,
            }
        })?;
        found?;
        self.next_end()
    }

    fn stop(&mut self) -> Result<()> {
        let reset =
            matches!(self.state, State::Running { epoch } if self.device.reset_epoch() != epoch);
        // The reader first: a loopback is empty when its writer stops after it.
        let read = if self.side == Side::Writer { Ok(()) } else { self.reader.stop(&*self.device) };
        let written =
            if self.side == Side::Reader { Ok(()) } else { self.writer.stop(&*self.device) };
        read.and(written)?;
        if reset {
            self.told = self.given;
        }
        self.state = State::Stopped;
        Ok(())
    }

    /// `None` if the driver reports an end some time after its interrupt.
    fn arm_irq(&self) -> Result<Option<i32>> {
        let lane = if self.side == Side::Reader { &self.reader } else { &self.writer };
        if lane.settle.needs_time() { Ok(None) } else { self.device.arm_irq() }
    }

    /// Only an ordered writer's. No register shows that a reader's requests were answered, or that
    /// overtaken writes are in memory.
    fn stop_program(&self) -> StopProgram {
        match self.side {
            Side::Writer if self.config.ordered => {
                StopProgram::new(&self.writer.stop_steps()).unwrap_or_default()
            }
            _ => StopProgram::NONE,
        }
    }
}

forward_as_fd!({D: Device} Litepcie<D>, device: D);

impl<D: Device> Drop for Litepcie<D> {
    /// Stops it and returns the device, or keeps the device claimed.
    fn drop(&mut self) {
        if self.stop().is_ok() {
            // SAFETY: `drop` runs once, nothing uses it afterwards, and it is stopped.
            unsafe { ManuallyDrop::drop(&mut self.device) };
        }
    }
}

impl<D: Device> fmt::Debug for Litepcie<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Litepcie")
            .field("port", &self.device.port().name)
            .field("side", &self.side)
            .finish_non_exhaustive()
    }
}

/// A DMA with one driver for its reader and one for its writer, in any thread.
#[derive(Debug)]
pub struct LitepcieCore<D> {
    core: Core<D>,
}

impl<D: Device> LitepcieCore<D> {
    /// The DMA behind `device`.
    ///
    /// # Errors
    /// As [`Core::new`].
    ///
    /// # Safety
    /// The window is a BAR of a card with LitePCIe. No other driver has this DMA while this value
    /// or a side of it lives. Reads and writes are as [`Litepcie::open`] requires.
    pub unsafe fn open(device: D) -> Result<Self> {
        Ok(Self { core: Core::new(device)? })
    }

    /// The driver of one side, with the loopback off.
    ///
    /// # Errors
    /// [`Error::HasDriver`]; [`Error::Unsupported`] for the loopback, which needs both sides. As
    /// [`Litepcie::open`].
    ///
    /// # Safety
    /// The design is as `config` says.
    pub unsafe fn channel(
        &self,
        side: Side,
        config: LitepcieConfig,
    ) -> Result<Litepcie<CoreChannel<D>>> {
        let index = match side {
            Side::Reader => 0,
            Side::Writer => 1,
            Side::Loopback => {
                return Err(Error::Unsupported {
                    what: "the loopback needs both sides",
                    fix: "open it without a channel",
                });
            }
        };
        // SAFETY: a side writes the registers of its own lane alone.
        let part = Litepcie::part(
            unsafe { self.core.channel(index, 0..self.core.device().len_bytes())? },
            side,
            config,
        )?;
        let lock = self.core.lock()?;
        // SAFETY: if the other side runs, the loopback is already off.
        unsafe { begin(self.core.device(), &config, false) };
        drop(lock);
        Ok(part)
    }

    /// The device, for a simulated card's parameters.
    #[doc(hidden)]
    pub fn device(&self) -> &D {
        self.core.device()
    }

    /// Resets the card externally by `pull`. Sides with jobs in flight then return
    /// [`Error::EndedByReset`].
    ///
    /// # Errors
    /// [`Error::Contended`], or the error of `pull`.
    pub fn reset(&self, pull: impl FnOnce() -> Result<()>) -> Result<()> {
        self.core.reset(|_| pull())
    }
}
