#![allow(unsafe_code, reason = "implementing `Driver` is a promise about the hardware")]
//! One controller, with a driver for each of its channels.

use super::config::{Found, Pl330Config};
use super::stop::{Stopping, kill};
use super::submit::Thread;
use super::{microcode, regs};
use contigo_core::forward;
use contigo_core::hw::{Device, Siblings, Wait as _};
use contigo_core::job::{Completion, Core, CoreChannel, Driver, StopProgram};
use contigo_core::mem::{CpuBuf, DevSlice};
use contigo_core::types::platform::forward_as_fd;
use contigo_core::types::{Error, Refused, Result};
use core::fmt;
use core::mem::ManuallyDrop;
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;

/// One controller, with a driver for each of its channels: up to eight copies at once, in one or
/// several threads.
///
/// All channels are started and stopped through one debug interface, under the core's lock. A
/// channel that faults or stops leaves the others at work. Each has an equal share of the
/// controller's data buffer.
///
/// An event belongs to one channel. If the kernel delivers only one of the controller's lines
/// (`uio_pdrv_genirq` delivers the first), a channel with another event sees its end within a
/// millisecond.
///
/// ```
/// use contigo::{Align, Queue, Region, drivers::pl330::{PROGRAM_BYTES, Pl330Config}};
/// use contigo::sim::{SimDevice, pl330::Pl330Model, SimBoard};
/// use core::time::Duration;
/// let board = SimBoard::new(1);
/// let region = Region::new(board.memory(64 * 1024)?)?;
/// let programs = region.pool(2, PROGRAM_BYTES)?;
/// let pool = region.pool(4, 4096)?;
/// let device = SimDevice::<Pl330Model>::new(&board, board.port());
///
/// let controller = device.window()?.controller()?;
/// let [first, second] = [0, 1].map(|n| Pl330Config { channel: n, event: n });
/// let mut first = Queue::new(controller.channel(first, programs.take()?)?, 1)?;
/// let mut second = Queue::new(controller.channel(second, programs.take()?)?, 1)?;
/// for queue in [&mut first, &mut second] {
///     queue.submit([pool.take()?.to_device(..4000), pool.take()?.from_device(..4000)], &[])?;
/// }
/// assert!(first.wait::<2>(Duration::from_millis(20))?.is_some() && second.wait::<2>(Duration::from_millis(20))?.is_some());
/// # Ok::<(), contigo::Error>(())
/// ```
#[derive(Debug)]
pub struct Controller<D> {
    /// Mark N of its drivers is set while event N belongs to a channel.
    core: Core<D>,
    found: Found,
}

impl<D: Device> Controller<D> {
    /// The controller behind `device`. Stops all its channels: a crashed program may have left some
    /// running.
    ///
    /// # Errors
    /// [`Error::RegisterWindow`], [`Error::WrongDevice`], [`Error::Unexpected`]: not a DMA-330, or
    /// one without a clock. [`Error::WillNotStop`].
    ///
    /// # Safety
    /// The window is a DMA-330's, and no other code drives any of its channels while this value or
    /// a channel of it lives. A correct ID is only a hint.
    pub unsafe fn open(device: D) -> Result<Self> {
        let found = Found::at(&device)?.shared();
        Stopping::new(0..found.all_channels, None).run(&device, |device, thread| {
            kill(device, thread);
            true
        })?;
        // SAFETY: no channel runs, and events move no data. They are cleared while INTEN makes them
        // interrupts, and then disabled as interrupts.
        unsafe {
            regs::INTEN.write(&device, u32::MAX);
            regs::INTCLR.write(&device, u32::MAX);
            regs::INTEN.write(&device, 0);
        }
        Ok(Self { core: Core::new(device)?, found })
    }

    /// The driver of one channel, with its own event. The channel fetches its programs from
    /// `program`: [`PROGRAM_BYTES`](super::PROGRAM_BYTES) or more in whole cache lines, on the
    /// device's port. The driver owns it until it is dropped.
    ///
    /// # Errors
    /// `program` comes back with [`Error::HasDriver`] if another driver has the channel or the
    /// event, or as from [`Pl330::open_with`](super::Pl330::open_with).
    pub fn channel(
        &self,
        config: Pl330Config,
        program: CpuBuf,
    ) -> Result<Pl330Channel<D>, Refused<CpuBuf>> {
        let (core, device) = match self.claim(config) {
            Ok(claimed) => claimed,
            Err(error) => return Err(Refused::new(error, program)),
        };
        match Thread::new(program, device.port(), core, config) {
            Ok(thread) => Ok(Pl330Channel { device: ManuallyDrop::new(device), thread }),
            Err(refused) => {
                give_back(&device, 1 << config.event);
                Err(refused)
            }
        }
    }

    fn claim(&self, config: Pl330Config) -> Result<(microcode::Core, CoreChannel<D>)> {
        let core = self.found.core(config)?;
        // SAFETY: the window belongs to the controller. A channel's driver writes the debug
        // interface and INTEN under the lock, and its own bit of INTCLR, where zeros do nothing;
        // the other registers cannot be written.
        let device = unsafe { self.core.channel(config.channel.into(), 0..regs::WINDOW_BYTES)? };
        let bit = 1 << config.event;
        if device
            .siblings()
            .is_some_and(|siblings| marks(siblings).fetch_or(bit, Ordering::Acquire) & bit != 0)
        {
            return Err(Error::HasDriver);
        }
        Ok((core, device))
    }

    /// How many channels can have drivers: all of them, if each gets a word of the data buffer.
    pub const fn channels(&self) -> u32 {
        self.found.channels
    }

    /// Resets the controller externally: `pull` pulses its reset line, which none of its registers
    /// does. Channels with jobs in flight then return [`Error::EndedByReset`].
    ///
    /// # Errors
    /// [`Error::Contended`], or the error of `pull`.
    pub fn reset(&self, pull: impl FnOnce() -> Result<()>) -> Result<()> {
        self.core.reset(|_| pull())
    }
}

/// The driver of one channel of a [`Controller`]. Dropping it stops the channel, and returns the
/// channel, its event and its program's memory; if it will not stop, they stay claimed.
pub struct Pl330Channel<D: Device> {
    device: ManuallyDrop<CoreChannel<D>>,
    thread: Thread,
}

/// Releases the event of `bit` from its channel.
fn give_back(device: &impl Device, bit: u32) {
    if let Some(siblings) = device.siblings() {
        marks(siblings).fetch_and(!bit, Ordering::Release);
    }
}

impl<D: Device> Pl330Channel<D> {
    /// The channel and event that it uses.
    pub const fn config(&self) -> Pl330Config {
        self.thread.config
    }

    /// As [`Pl330::run_program`](super::Pl330::run_program).
    ///
    /// # Errors
    /// As [`Pl330::run_program`](super::Pl330::run_program), and [`Error::Contended`].
    ///
    /// # Safety
    /// As [`Pl330::run_program`](super::Pl330::run_program); and the program raises no event of
    /// another channel, waits for none, and leaves room for the other channels' bursts in the data
    /// buffer.
    pub unsafe fn run_program(&mut self, code: &[u8]) -> Result<()> {
        self.thread.load_code(&*self.device, code)?;
        // SAFETY: the program is in place, and the caller vouches for it.
        unsafe { self.go() }
    }

    /// # Safety
    /// As [`Thread::go`], except for the registers that channels share.
    unsafe fn go(&mut self) -> Result<()> {
        let _block = self.device.lock()?;
        let others = regs::INTEN.read(&*self.device);
        // SAFETY: the caller's promise, and the lock.
        unsafe { self.thread.go(&*self.device, others) }
    }
}

// SAFETY: 1. As `Pl330`'s. No channel executes another's program: DMAGO names the channel and the
// program, and the debug interface takes it from one driver at a time, under the core's lock. 2. As
// `Pl330`'s, for this channel alone. 3. A completion reports no bytes. 4. `check` reads no
// register, `poll` starts nothing. 5. The port belongs to the device. 6. `Controller::open`'s
// caller guarantees it, and `Core` gives each channel to one driver. 7. The steps kill this
// channel, and the last one is what `stop` trusts.
unsafe impl<D: Device> Driver for Pl330Channel<D> {
    forward!(|this| this.thread => name, addr_bits, operands);
    forward!(|this| *this.device => port, simulated, arm_irq);

    fn check(&self, operands: &[DevSlice], args: &[u32]) -> Result<()> {
        self.thread.check(self.device.port(), operands, args)
    }

    unsafe fn submit(&mut self, _slot: usize, operands: &[DevSlice], _: &[u32]) -> Result<()> {
        // SAFETY: the channel is stopped, as the last job's `poll` or `stop` saw.
        unsafe { self.thread.load_copy(self.device.port(), operands)? };
        // SAFETY: the program is in place, the channel is stopped, and the caller handed both
        // operands over.
        unsafe { self.go() }
    }

    fn poll(&mut self, timeout: Duration) -> Result<Option<Completion>> {
        self.thread.poll(&*self.device, timeout)
    }

    fn stop(&mut self) -> Result<()> {
        let number = u32::from(self.thread.config.channel);
        Stopping::new(number..number + 1, self.thread.unsettled()).run(
            &*self.device,
            |device, thread| {
                let Ok(_block) = device.lock() else { return false };
                // A sibling may have issued an instruction since this channel's poll.
                if regs::DBGSTATUS.read(device) & regs::DBG_BUSY != 0 {
                    return false;
                }
                kill(device, thread);
                true
            },
        )?;
        self.thread.is_stopped();
        let _block = self.device.lock()?;
        self.thread.acknowledge(&*self.device, regs::INTEN.read(&*self.device));
        Ok(())
    }

    /// Kills this channel, and ignores the others.
    fn stop_program(&self) -> StopProgram {
        StopProgram::new(&self.thread.stop_steps()).unwrap_or_default()
    }
}

forward_as_fd!({D: Device} Pl330Channel<D>, device: D);

impl<D: Device> Drop for Pl330Channel<D> {
    fn drop(&mut self) {
        if self.stop().is_ok() {
            // SAFETY: the channel is stopped.
            unsafe { self.thread.release() };
            give_back(&*self.device, self.thread.event_bit());
            // SAFETY: `drop` runs once, and nothing uses the device after it.
            unsafe { ManuallyDrop::drop(&mut self.device) };
        }
    }
}

impl<D: Device> fmt::Debug for Pl330Channel<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pl330Channel")
            .field("port", &self.device.port().name)
            .field("config", &self.thread.config)
            .finish_non_exhaustive()
    }
}

/// The events in use by channels, one bit each.
fn marks(siblings: &Siblings) -> &AtomicU32 {
    // SAFETY: a channel changes the bit of its own event alone.
    unsafe { siblings.marks() }
}
