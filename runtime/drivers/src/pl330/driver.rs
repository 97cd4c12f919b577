#![allow(unsafe_code, reason = "implementing `Driver` is a promise about the hardware")]
//! A whole controller, driven through one of its channels.

use super::config::{Found, Pl330Config};
use super::regs;
use super::stop::{Stopping, kill};
use super::submit::Thread;
use contigo_core::forward;
use contigo_core::hw::Device;
use contigo_core::job::{Completion, Driver, StopProgram, StopStep};
use contigo_core::mem::{CpuBuf, DevSlice};
use contigo_core::types::platform::forward_as_fd;
use contigo_core::types::{Refused, Result};
use core::fmt;
use core::time::Duration;

/// The driver of one controller.
///
/// ```
/// use contigo::{Align, Queue, Region, drivers::pl330::PROGRAM_BYTES};
/// use contigo::sim::{SimDevice, pl330::Pl330Model, SimBoard};
/// use core::time::Duration;
/// let board = SimBoard::new(1);
/// let region = Region::new(board.memory(64 * 1024)?)?;
/// let program = region.alloc(PROGRAM_BYTES, Align::LINE)?;
/// let pool = region.pool(4, 4096)?;
/// let device = SimDevice::<Pl330Model>::new(&board, board.port());
/// let mut copier = Queue::new(device.window()?.driver(program)?, 1)?;
///
/// let mut from = pool.take()?;
/// from.view_mut::<u8>()?.fill(7);
/// let operands = [from.to_device(3..1003), pool.take()?.from_device(..1000)];
/// let [_, to] = copier.run(operands, &[], Duration::from_millis(20))?.buffers;
/// assert_eq!(to.view_at::<u8>(..1000)?, [7; 1000]);
/// # Ok::<(), contigo::Error>(())
/// ```
pub struct Pl330<D: Device> {
    device: D,
    thread: Thread,
    /// How many of [`regs::CHANNELS`] this controller has.
    channels: u32,
}

impl<D: Device> Pl330<D> {
    /// The driver of `device`, with channel 0 and event 0. The controller fetches its programs from
    /// `program`: [`PROGRAM_BYTES`](super::PROGRAM_BYTES) or more in whole cache lines, on the
    /// device's port. The driver owns it until it is dropped.
    ///
    /// # Errors
    /// As [`open_with`](Self::open_with).
    ///
    /// # Safety
    /// The window is a DMA-330's, and no other code drives any of its channels while this value
    /// lives.
    pub unsafe fn open(device: D, program: CpuBuf) -> Result<Self, Refused<CpuBuf>> {
        // SAFETY: the caller's promise.
        unsafe { Self::open_with(device, program, Pl330Config::default()) }
    }

    /// As [`open`](Self::open), with a channel and an event of the caller's choice. The channel's
    /// Secure or Non-secure state is not a choice: it is the manager's, as DSR has it.
    ///
    /// # Errors
    /// `program` comes back with:
    /// - [`Error::RegisterWindow`](contigo_core::Error::RegisterWindow),
    ///   [`Error::WrongDevice`](contigo_core::Error::WrongDevice),
    ///   [`Error::Unexpected`](contigo_core::Error::Unexpected): not a DMA-330, or one without a
    ///   clock. Check the address.
    /// - [`Error::Argument`](contigo_core::Error::Argument): it has no such channel or event.
    /// - [`Error::Setting`](contigo_core::Error::Setting): the event is Secure and the manager is
    ///   not. Take another event.
    /// - [`Error::BlockSize`](contigo_core::Error::BlockSize): `program` is too small. Or an error
    ///   of [`DriverBuf::new`](contigo_core::mem::DriverBuf::new).
    ///
    /// # Safety
    /// As [`open`](Self::open): a correct ID is only a hint.
    pub unsafe fn open_with(
        device: D,
        program: CpuBuf,
        config: Pl330Config,
    ) -> Result<Self, Refused<CpuBuf>> {
        let (found, core) =
            match Found::at(&device).and_then(|found| Ok((found, found.core(config)?))) {
                Ok(found) => found,
                Err(error) => return Err(Refused::new(error, program)),
            };
        let thread = Thread::new(program, device.port(), core, config)?;
        Ok(Self { device, thread, channels: found.all_channels })
    }

    /// Runs the caller's own program on this driver's channel: `code` as the controller fetches it
    /// (Arm DDI 0424C, chapter 4). Wait for its end with [`poll`](Driver::poll), and stop it with
    /// [`stop`](Driver::stop).
    ///
    /// A program is done when it has raised this driver's event (`DMAWMB`, `DMASEV`) and has ended
    /// (`DMAEND`). One that ends without the event seems to run for ever.
    ///
    /// # Errors
    /// [`Error::Busy`](contigo_core::Error::Busy): the channel runs, or the end of an earlier
    /// program was not seen. [`Error::OutOfRange`](contigo_core::Error::OutOfRange): the program is
    /// larger than the memory that [`open`](Self::open) was given. The error of the backend's sync.
    /// [`Error::Fault`](contigo_core::Error::Fault): the controller takes no instruction; stop it.
    ///
    /// # Safety
    /// The program touches only memory that belongs to the device alone until it has ended: until
    /// `poll` has reported its end, or `stop` has returned `Ok(())`.
    pub unsafe fn run_program(&mut self, code: &[u8]) -> Result<()> {
        self.thread.load_code(&self.device, code)?;
        // SAFETY: the program is in place, the caller vouches for it, and no other code drives the
        // controller.
        unsafe { self.thread.go(&self.device, 0) }
    }
}

forward_as_fd!({D: Device} Pl330<D>, device: D);

// SAFETY: 1. The program reads `from.len_bytes` bytes from the first operand and writes as many
// into the second (`microcode`, whose tests execute every program), which `check` found large
// enough. The controller executes nothing else: `stop` has stopped every channel, and its programs
// lie in memory that belongs to the driver alone. 2. `poll` reports an end only for a channel in
// the state Stopped, and `stop` succeeds only when all channels are. A channel that has ended its
// program or was killed is Completing or Killing until its transfers are answered (Arm DDI 0424C,
// "Operating states"). The program's DMAWMB has waited for the answers before that. No write is
// bufferable, so an answered one has arrived. No instruction that could start a channel is left in
// the debug interface: it is idle. 3. No bytes are reported. 4. `check` reads no register. 5. The
// port is the device's. 6. The constructor's caller guarantees it. 7. The program's only
// instruction is DMAKILL, and its last polls are what `stop` trusts: Stopped, for every channel. 8.
// Each poll has a limit. 9. The state is Started before DMAGO is issued.
unsafe impl<D: Device> Driver for Pl330<D> {
    forward!(|this| this.thread => name, addr_bits, operands);
    forward!(|this| this.device => port, simulated, arm_irq);

    fn check(&self, operands: &[DevSlice], args: &[u32]) -> Result<()> {
        self.thread.check(self.device.port(), operands, args)
    }

    unsafe fn submit(&mut self, _slot: usize, operands: &[DevSlice], _: &[u32]) -> Result<()> {
        // SAFETY: no channel runs, as the last job's `poll` or `stop` saw.
        unsafe { self.thread.load_copy(self.device.port(), operands)? };
        // SAFETY: the program is in place, the channel is stopped, the caller handed both operands
        // over, and no other code drives the controller.
        unsafe { self.thread.go(&self.device, 0) }
    }

    fn poll(&mut self, timeout: Duration) -> Result<Option<Completion>> {
        self.thread.poll(&self.device, timeout)
    }

    fn stop(&mut self) -> Result<()> {
        Stopping::new(0..self.channels, self.thread.unsettled()).run(
            &self.device,
            |device, thread| {
                kill(device, thread);
                true
            },
        )?;
        self.thread.is_stopped();
        self.thread.acknowledge(&self.device, 0);
        Ok(())
    }

    /// Kills this driver's channel, and fails if another channel runs whose driver has not armed.
    fn stop_program(&self) -> StopProgram {
        let channels = regs::CHANNELS.iter().take(self.channels as usize);
        let others = channels.map(|channel| {
            StopStep::poll_until(channel.csr.offset(), regs::STATUS, regs::STOPPED, 0)
        });
        StopProgram::of(self.thread.stop_steps().into_iter().chain(others)).unwrap_or_default()
    }
}

impl<D: Device> Drop for Pl330<D> {
    /// Stops the controller, and returns the program's memory if it has stopped.
    fn drop(&mut self) {
        if self.stop().is_ok() {
            // SAFETY: `drop` runs once, nothing uses the program after it, and every channel is
            // stopped.
            unsafe { self.thread.release() }
        }
    }
}

impl<D: Device> fmt::Debug for Pl330<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pl330")
            .field("port", &self.device.port().name)
            .field("config", &self.thread.config)
            .field("core", &self.thread.core)
            .finish()
    }
}
