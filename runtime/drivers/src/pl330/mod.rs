#![allow(unsafe_code, reason = "implementing `Driver` is a promise about the hardware")]
//! Arm's DMA-330, known by its first name PL330: the DMA controller of Zynq-7000 and Cyclone V SoC,
//! and of many others. It copies memory by programs that it fetches from memory itself.
//!
//! One [`Pl330`] drives one controller, all of it, by one of its channels. A [`Controller`] gives
//! out its channels, up to eight: each is a driver of its own ([`Pl330Channel`]), in any
//! thread. By name, `pl330` with the setting `channel` is a channel, whose event is of the same
//! number unless `event` says another; without it, it is the whole controller.
//!
//! A job has two operands, in this order:
//!
//! | operand | what | bytes | direction |
//! |---|---|---|---|
//! | from | any | `n`, 1 to the limit below | to the device |
//! | to | any | `n` or more; `n` are written | from the device |
//!
//! Any addresses and any length will do. Speed depends on how many low bits the two addresses have
//! in common. At equal offsets in a cache line it copies in bursts of a line or more. At offsets
//! that differ by an odd number it copies byte by byte. The limit depends on the same: 2,097,152
//! blocks, whose size is the lowest bit in which the addresses differ, and at most 16 beats of the
//! controller's bus. That is 2 MiB at the worst, and 256 MiB on Zynq-7000 where the addresses agree
//! in their lowest seven bits.
//!
//! Addresses have 32 bits.
//!
//! Before the controller is given to user space, it must have its clock, and its reset must be
//! released: `uio_pdrv_genirq` does neither (Linux `drivers/uio/uio_pdrv_genirq.c`). No driver of
//! the kernel may use it at the same time.
//!
//! # References
//! Arm DDI 0424C, CoreLink DMA Controller DMA-330 Technical Reference Manual. Linux
//! `drivers/dma/pl330.c`. AMD UG585, chapter 9.

mod channel;
mod microcode;
pub(crate) mod registry;
pub mod regs;
mod stop;
mod submit;

pub use self::channel::{Controller, Pl330Channel};

use self::{
    microcode::Core,
    stop::{Stopping, kill},
    submit::Thread,
};
use contigo_core::{
    forward,
    hw::Device,
    job::{Completion, Driver, StopProgram, StopStep},
    mem::{CpuBuf, DevSlice},
    types::{Error, Refused, Result, platform::forward_as_fd},
};
use core::{fmt, time::Duration};

/// How many bytes of memory a driver needs for its program, whatever it copies.
pub const PROGRAM_BYTES: usize = microcode::PROGRAM_BYTES;

/// Which of the controller's resources a driver uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Pl330Config {
    /// The channel, from 0.
    pub channel: u8,
    /// The event that says that a job is done, from 0, and with it the interrupt. uio_pdrv_genirq
    /// delivers the first interrupt that the device tree's node lists, so that one must be this
    /// event's: on Zynq-7000 event 0 is `<0 14 4>`.
    pub event: u8,
}

/// A controller, as its own registers describe it.
#[derive(Clone, Copy, Debug)]
struct Found {
    all_channels: u32,
    /// How many of them have drivers.
    channels: u32,
    events: u32,
    bus_bytes: u32,
    buffer_words: u32,
    nonsecure: bool,
    /// CR3.
    nonsecure_events: u32,
    barriers: bool,
    coherent: bool,
}

impl Found {
    /// Is it a DMA-330? Only reads.
    fn at(device: &impl Device) -> Result<Self> {
        if device.len_bytes() < regs::WINDOW_BYTES {
            let (need_bytes, have_bytes) = (regs::WINDOW_BYTES, device.len_bytes());
            return Err(Error::RegisterWindow { device: regs::DEVICE, need_bytes, have_bytes });
        }
        let wrong = |register, expected, found| Error::WrongDevice {
            device: regs::DEVICE,
            register,
            expected,
            found,
        };
        let [periph_id, pcell_id] = [regs::PERIPH_ID, regs::PCELL_ID].map(|registers| {
            registers
                .into_iter()
                .rev()
                .fold(0, |word, register| word << 8 | register.read(device) & 0xFF)
        });
        if periph_id & regs::PERIPH_ID_MASK != regs::PERIPH_ID_VALUE {
            let expected = regs::PERIPH_ID_VALUE | periph_id & !regs::PERIPH_ID_MASK;
            return Err(wrong("periph_id", expected, periph_id));
        }
        if pcell_id != regs::PCELL_ID_VALUE {
            return Err(wrong("pcell_id", regs::PCELL_ID_VALUE, pcell_id));
        }
        let (cr0, crd) = (regs::CR0.read(device), regs::CRD.read(device));
        let bus_bytes = match crd & 7 {
            width @ 2..=4 => 1 << width,
            _ => return Err(Error::Unexpected { name: "pl330's CRD register", value: crd.into() }),
        };
        let channels = (cr0 >> 4 & 7) + 1;
        Ok(Self {
            all_channels: channels,
            channels,
            events: (cr0 >> 17 & 0x1F) + 1,
            bus_bytes,
            buffer_words: (crd >> 20 & 0x3FF) + 1,
            nonsecure: regs::DSR.read(device) & regs::DSR_NONSECURE != 0,
            nonsecure_events: regs::CR3.read(device),
            barriers: periph_id >> 20 & 0xF == 0,
            coherent: device.port().coherent,
        })
    }

    /// The same with an equal share of the data buffer for each channel: together their bursts must
    /// fit, or they lock up (Arm DDI 0424C, "MFIFO usage overview"). Linux shares it so
    /// (`drivers/dma/pl330.c`, `get_burst_len`). A buffer of fewer words than channels serves as
    /// many channels as it has words.
    fn shared(self) -> Self {
        let channels = self.all_channels.min(self.buffer_words);
        Self {
            buffer_words: self.buffer_words.checked_div(channels).unwrap_or(1),
            channels,
            ..self
        }
    }

    /// The facts for the assembler, where this controller has the channel and the event of
    /// `config`.
    fn core(&self, config: Pl330Config) -> Result<Core> {
        for (name, value, count) in
            [("channel", config.channel, self.channels), ("event", config.event, self.events)]
        {
            if u32::from(value) >= count {
                let (value, max) = (u64::from(value), u64::from(count - 1));
                return Err(Error::Argument { name, value, min: 0, max, multiple_of: 1 });
            }
        }
        let Self {
            bus_bytes, buffer_words, nonsecure, nonsecure_events, barriers, coherent, ..
        } = *self;
        if nonsecure && nonsecure_events >> config.event & 1 == 0 {
            let fix = "take an event whose bit is set, or make the manager Secure";
            return Err(Error::Setting {
                name: "pl330's CR3 register",
                value: u64::from(nonsecure_events),
                fix,
            });
        }
        Ok(Core { bus_bytes, buffer_words, nonsecure, coherent, barriers, event: config.event })
    }
}

/// The driver of one controller.
///
/// ```
/// use contigo::{Align, Queue, Region, drivers::pl330::PROGRAM_BYTES};
/// use contigo::sim::{pl330::SimPl330, SimBoard};
/// use core::time::Duration;
/// let board = SimBoard::new(1);
/// let region = Region::new(board.memory(64 * 1024)?)?;
/// let program = region.alloc(PROGRAM_BYTES, Align::LINE)?;
/// let pool = region.pool(4, 4096)?;
/// let device = SimPl330::new(&board, board.port());
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
    /// The driver of `device`, by channel 0 and event 0. `program` is where the controller fetches
    /// its programs: [`PROGRAM_BYTES`] or more in whole cache lines, on the device's port. It is
    /// the driver's until it is dropped.
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

    /// As [`open`](Self::open), by a channel and an event of one's choice. Whether the channel runs
    /// in the Secure or in the Non-secure state is not a choice: it is the manager's state, which
    /// DSR tells.
    ///
    /// # Errors
    /// `program` comes back with:
    /// - [`Error::RegisterWindow`], [`Error::WrongDevice`], [`Error::Unexpected`]: this is no
    ///   DMA-330, or it has no clock. Check the address.
    /// - [`Error::Argument`]: it has no such channel or event.
    /// - [`Error::Setting`]: the event is Secure and the manager is not. Take another event.
    /// - [`Error::BlockSize`]: `program` is too small; or what
    ///   [`DriverBuf::new`](contigo_core::mem::DriverBuf::new) says of it.
    ///
    /// # Safety
    /// As [`open`](Self::open): an ID that is right is a hint, and no proof.
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

    /// Which channel and event it uses.
    pub const fn config(&self) -> Pl330Config {
        self.thread.config
    }

    /// Runs a program of one's own on this driver's channel: `code` as the controller fetches it
    /// (Arm DDI 0424C, chapter 4). Wait for its end with [`poll`](Driver::poll), and stop it with
    /// [`stop`](Driver::stop).
    ///
    /// A program is done when it has raised this driver's event (`DMAWMB`, `DMASEV`) and has ended
    /// (`DMAEND`). One that ends without the event looks as if it ran for ever.
    ///
    /// # Errors
    /// [`Error::Busy`]: the channel runs, or a program that was started has not been seen to end.
    /// [`Error::OutOfRange`]: the program is larger than the memory that [`open`](Self::open) was
    /// given. The error of the backend's sync. [`Error::Fault`]: the controller takes no
    /// instruction; stop it then.
    ///
    /// # Safety
    /// The program touches only memory that belongs to the device alone until it has ended: until
    /// `poll` has told its end, or `stop` `Ok(())`.
    pub unsafe fn run_program(&mut self, code: &[u8]) -> Result<()> {
        self.thread.load_code(&self.device, code)?;
        // SAFETY: the program is in place, the caller answers for what it does, and no other
        // code drives the controller.
        unsafe { self.thread.go(&self.device, 0) }
    }
}

forward_as_fd!({D: Device} Pl330<D>, device: D);

// SAFETY: 1. The program reads `from.len_bytes` bytes from the first operand and writes as many
// into the second (`microcode`, whose tests execute every program), which `check` found large
// enough. The controller executes nothing else: `stop` has stopped every channel, and its programs
// lie in memory that belongs to the driver alone. 2. `poll` says true only for a channel in the
// state Stopped, and `stop` only when all channels are. A channel that has ended its program or was
// killed is Completing or Killing until its transfers are answered (Arm DDI 0424C, "Operating
// states"). The program's DMAWMB has waited for the answers before that. No write is bufferable, so
// an answered one has arrived. No instruction that could start a channel is left in the debug
// interface: it is idle. 3. No bytes are told. 4. `check` reads no register. 5. The port is the
// device's.
// 6. The caller of the function that made it promised it. 8. Each poll has a limit. 9. The state
//    is Started before DMAGO is given. 7. The program's only instruction is DMAKILL, and its last
//    polls are what `stop` believes: Stopped, of every channel.
unsafe impl<D: Device> Driver for Pl330<D> {
    forward!(|this| this.thread => name, addr_bits, operands);
    forward!(|this| this.device => port, simulated, arm_irq);

    fn check(&self, operands: &[DevSlice], args: &[u32]) -> Result<()> {
        self.thread.check(self.device.port(), operands, args)
    }

    unsafe fn submit(&mut self, _slot: usize, operands: &[DevSlice], _: &[u32]) -> Result<()> {
        // SAFETY: no channel runs: the last job's `poll` or `stop` saw to that.
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

    /// Kills this driver's channel, and fails where another channel runs, whose driver has not
    /// armed.
    fn stop_program(&self) -> StopProgram {
        let channels = regs::CHANNELS.iter().take(self.channels as usize);
        let others = channels.map(|channel| {
            StopStep::poll_until(channel.csr.offset(), regs::STATUS, regs::STOPPED, 0)
        });
        StopProgram::of(self.thread.stop_steps().into_iter().chain(others)).unwrap_or_default()
    }
}

impl<D: Device> Drop for Pl330<D> {
    /// Stops the controller, and gives the program's memory back where it has stopped.
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
