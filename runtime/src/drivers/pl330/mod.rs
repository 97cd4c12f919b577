#![allow(unsafe_code, reason = "implementing `Driver` is a promise about the hardware")]
//! Arm's DMA-330, known by its first name PL330: the DMA controller of Zynq-7000 and Cyclone V SoC, and of many others. It copies
//! memory by programs that it fetches from memory itself.
//!
//! One [`Pl330`] drives one controller, all of it, by one of its channels. A job has two operands, in this order:
//!
//! | operand | what | bytes | direction |
//! |---|---|---|---|
//! | from | any | `n`, 1 to the limit below | to the device |
//! | to | any | `n` or more; `n` are written | from the device |
//!
//! Any addresses and any length will do. Speed depends on how many low bits the two addresses have in common: at equal offsets in
//! a cache line it copies in bursts of a line or more, at offsets that differ by an odd number byte by byte. The limit depends
//! on the same: 2,097,152 blocks, whose size is the lowest bit in which the addresses differ, and at most 16 beats of the
//! controller's bus. That is 2 MiB at the worst, and 256 MiB on Zynq-7000 where the addresses agree in their lowest seven bits.
//!
//! Addresses have 32 bits.
//!
//! Whoever gives the controller to user space must have given it its clock and released its reset: `uio_pdrv_genirq` does neither
//! (Linux `drivers/uio/uio_pdrv_genirq.c`). No driver of the kernel may use it at the same time.
//!
//! # References
//! Arm DDI 0424C, CoreLink DMA Controller DMA-330 Technical Reference Manual. Linux `drivers/dma/pl330.c`. AMD UG585, chapter 9.

mod fault;
mod microcode;
#[cfg(feature = "sim")]
mod model;
pub mod regs;
#[cfg(all(feature = "linux", target_os = "linux"))]
pub(crate) mod row;

#[cfg(feature = "sim")]
pub use self::model::{Pl330Model, Pl330Spec, SimPl330};

use self::microcode::{BLOCKS_MAX, Core};
use crate::{
    hw::{Device, irq::poll_every, mmio::Mmio},
    job::{Completion, Driver, OperandSpec, StopProgram, StopStep, TypedDriver, fixed},
    mem::{CpuBuf, DevSlice, DriverBuf, Port},
    types::platform::forward_as_fd,
    types::{Align, Error, Refused, Result, Timeout},
};
use core::{fmt, mem::ManuallyDrop};

/// How many bytes of memory a driver needs for its program, whatever it copies.
pub const PROGRAM_BYTES: usize = microcode::PROGRAM_BYTES;

/// The controller's address registers.
const ADDR_BITS: u32 = 32;
/// How long the debug interface may be busy with one instruction. Linux waits as long (`_until_dmac_idle`).
const DEBUG_US: u32 = 5_000;
/// Between two looks at it: an instruction takes some hundred cycles.
const DEBUG_STEP_US: u32 = 1;
/// How long `stop` waits for the transfers under way to end: those of 256 bytes take 2 µs at the slowest memory here; five
/// thousand times that, for an interconnect that others congest.
const STOP_US: u32 = 10_000;
/// Between two looks while it waits: no interrupt announces the end of a kill.
const STOP_STEP_US: u32 = 50;
/// The longest time between two looks at a job. A fault raises the line `irq_abort` and not the event's, and uio delivers one
/// line of a device only: so a fault is found after this time.
const FAULT_STEP_US: u32 = 1_000;

/// DMAKILL and DMAGO, byte 0 (Arm DDI 0424C, 4.3.6, 4.3.5); DMAGO's bit 1 makes the channel Non-secure.
const DMAKILL: u32 = 0x01;
const DMAGO: u32 = 0xA0;
const DMAGO_NONSECURE: u32 = 0x02;

/// Which of the controller's resources a driver uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Pl330Config {
    /// The channel, from 0.
    pub channel: u8,
    /// The event that says that a job is done, from 0, and with it the interrupt. uio_pdrv_genirq delivers the first interrupt
    /// that the device tree's node lists, so that one must be this event's: on Zynq-7000 event 0 is `<0 14 4>`.
    pub event: u8,
}

/// The driver of one controller.
///
/// ```
/// use contigo::{Align, Engine, Pool, Region, Timeout, drivers::{pl330::{PROGRAM_BYTES, Pl330, SimPl330}}, sim::SimBoard};
/// let board = SimBoard::new(1);
/// let region = Region::new(board.memory(64 * 1024)?)?;
/// let program = region.carve(PROGRAM_BYTES, Align::LINE)?.into_buf();
/// let pool = Pool::<4>::new(region.carve(4 * 4096, Align::LINE)?, 4096)?;
/// let device = SimPl330::new(&board, board.port());
/// let mut copier = Engine::new(Pl330::open_simulated(device.window()?, program)?)?;
///
/// let mut from = pool.take()?;
/// from.view_mut::<u8>()?.fill(7);
/// let job = copier.start([from.to_device(3..1003), pool.take()?.from_device(..1000)], &())?;
/// let [_, to] = job.wait(Timeout::ms(20))?.buffers;
/// assert_eq!(to.view_at::<u8>(..1000)?, [7; 1000]);
/// # Ok::<(), contigo::Error>(())
/// ```
pub struct Pl330<'p, D: Device> {
    device: D,
    /// Leaked by `Drop` where the controller will not stop: it would execute what the next owner writes.
    program: ManuallyDrop<DriverBuf<'p>>,
    core: Core,
    config: Pl330Config,
    /// How many of [`regs::CHANNELS`] this controller has.
    channels: u32,
    /// DMAGO was given, and the end of its program was not seen.
    unsettled: bool,
}

impl<'p, D: Device> Pl330<'p, D> {
    /// The driver of `device`, by channel 0 and event 0. `program` is where the controller fetches its programs: [`PROGRAM_BYTES`] or
    /// more in whole cache lines, on the device's port. It is the driver's until it is dropped.
    ///
    /// # Errors
    /// As [`open_with`](Self::open_with).
    ///
    /// # Safety
    /// The window is a DMA-330's, and nobody else drives any of its channels while this value
    /// lives.
    pub unsafe fn open(device: D, program: CpuBuf<'p>) -> Result<Self, Refused<CpuBuf<'p>>> {
        // SAFETY: the caller's promise.
        unsafe { Self::open_with(device, program, Pl330Config::default()) }
    }

    /// As [`open`](Self::open), by a channel and an event of one's choice. Whether the channel runs in the Secure or in the Non-secure
    /// state is not a choice: it is the manager's state, which DSR tells.
    ///
    /// # Errors
    /// `program` comes back with:
    /// - [`Error::RegisterWindow`], [`Error::WrongDevice`], [`Error::AttributeNonsense`]: this is
    ///   no DMA-330, or it has no clock. Check the address.
    /// - [`Error::Argument`]: it has no such channel or event.
    /// - [`Error::Unsuitable`]: the event is Secure and the manager is not. Take another event.
    /// - [`Error::BlockSize`]: `program` is too small; or what [`DriverBuf::new`] says of it.
    ///
    /// # Safety
    /// As [`open`](Self::open): an ID that is right is a hint, and no proof.
    pub unsafe fn open_with(device: D, program: CpuBuf<'p>, config: Pl330Config) -> Result<Self, Refused<CpuBuf<'p>>> {
        let (core, channels) = match identify(&device, config) {
            Ok(found) => found,
            Err(error) => return Err(Refused::new(error, program)),
        };
        if program.len_bytes() < PROGRAM_BYTES {
            let (len_bytes, line_bytes) = (program.len_bytes(), Align::LINE.bytes());
            return Err(Refused::new(Error::BlockSize { len_bytes, need_bytes: PROGRAM_BYTES, line_bytes }, program));
        }
        let program = DriverBuf::new(program, device.port(), ADDR_BITS)?;
        Ok(Self { device, program: ManuallyDrop::new(program), core, config, channels, unsettled: false })
    }

    /// Which channel and event it uses.
    pub const fn config(&self) -> Pl330Config {
        self.config
    }

    /// Runs a program of one's own on this driver's channel: `code` as the controller fetches it (Arm DDI 0424C, chapter 4). Wait for
    /// its end with [`poll`](Driver::poll), and stop it with [`stop`](Driver::stop).
    ///
    /// A program is done when it has raised this driver's event (`DMAWMB`, `DMASEV`) and has ended (`DMAEND`). One that ends without
    /// the event looks as if it ran for ever.
    ///
    /// # Errors
    /// [`Error::Busy`] while the channel runs, and until a program that was started has been seen to end; [`Error::OutOfRange`] where the program is larger than the memory that
    /// [`open`](Self::open) was given; the backend's sync; [`Error::Fault`] where the controller takes no instruction: stop it then.
    ///
    /// # Safety
    /// The program touches only memory that belongs to the device alone until it has ended: until `poll` has returned `Ok(true)`, or
    /// `stop` `Ok(())`.
    pub unsafe fn run_program(&mut self, code: &[u8]) -> Result<()> {
        /// So many bytes are written at once: a cache line.
        const CHUNK: usize = 64;
        let end = code.len().next_multiple_of(4);
        if end > self.program.len_bytes() {
            return Err(Error::OutOfRange { start: 0, end, len_bytes: self.program.len_bytes() });
        }
        // A channel whose DMAGO was given may still be stopped, and about to fetch.
        if self.unsettled || self.registers().is_some_and(|channel| channel.csr.read(&self.device) & regs::STATUS != regs::STOPPED) {
            return Err(Error::Busy);
        }
        for (offset_bytes, chunk) in (0..).step_by(CHUNK).zip(code.chunks(CHUNK)) {
            let mut words = [0; CHUNK / 4];
            for (word, bytes) in words.iter_mut().zip(chunk.chunks(4)) {
                *word = bytes.iter().rev().fold(0, |word, &byte| word << 8 | u32::from(byte));
            }
            // SAFETY: the channel is stopped, and no other channel fetches from this memory: it is this driver's.
            unsafe { self.program.write(offset_bytes, words.get(..chunk.len().div_ceil(4)).unwrap_or_default())? }
        }
        // SAFETY: the program is in place, and the caller answers for what it does.
        unsafe { self.go() }
    }

    /// This driver's channel. `open` has checked that there is one.
    fn registers(&self) -> Option<&'static regs::Channel> {
        regs::CHANNELS.get(usize::from(self.config.channel))
    }

    /// This driver's event as a bit.
    const fn event_bit(&self) -> u32 {
        1 << self.config.event
    }

    /// Starts the channel at the beginning of the program buffer.
    ///
    /// # Safety
    /// The buffer holds a program, the channel is stopped, and what the program touches was handed over.
    unsafe fn go(&mut self) -> Result<()> {
        let mut status = 0;
        let idle = poll_every(&self.device, DEBUG_STEP_US, Timeout::us(DEBUG_US), |device| {
            status = regs::DBGSTATUS.read(device);
            status & regs::DBG_BUSY == 0
        })?;
        if !idle {
            return Err(fault::of_debug_interface(status));
        }
        // SAFETY: an event that is nobody's yet moves no data.
        unsafe {
            regs::INTEN.write(&self.device, self.event_bit());
            regs::INTCLR.write(&self.device, self.event_bit());
        }
        let security = if self.core.nonsecure { DMAGO_NONSECURE } else { 0 };
        let program = addr32(self.device.port(), self.program.addr_at(0).0, self.program.len_bytes())?;
        self.unsettled = true;
        // SAFETY: the caller's promise.
        unsafe { debug_instruction(&self.device, 0, [DMAGO | security, u32::from(self.config.channel)], program) }
        Ok(())
    }

    /// Takes this driver's event back. It is taken back only while INTEN makes it an interrupt.
    fn acknowledge(&self) {
        // SAFETY: as in `go`.
        unsafe { regs::INTCLR.write(&self.device, self.event_bit()) }
    }
}

/// Is it a DMA-330, and one that can do what `config` asks? Only reads.
fn identify(device: &impl Device, config: Pl330Config) -> Result<(Core, u32)> {
    if device.len_bytes() < regs::WINDOW_BYTES {
        return Err(Error::RegisterWindow { device: fault::DEVICE, need_bytes: regs::WINDOW_BYTES, have_bytes: device.len_bytes() });
    }
    let wrong = |register, expected, found| Error::WrongDevice { device: fault::DEVICE, register, expected, found };
    let (periph_id, pcell_id) = (regs::id(regs::PERIPH_ID, device), regs::id(regs::PCELL_ID, device));
    if periph_id & regs::PERIPH_ID_MASK != regs::PERIPH_ID_VALUE {
        let expected = regs::PERIPH_ID_VALUE | periph_id & !regs::PERIPH_ID_MASK;
        return Err(wrong("periph_id", expected, periph_id));
    }
    if pcell_id != regs::PCELL_ID_VALUE {
        return Err(wrong("pcell_id", regs::PCELL_ID_VALUE, pcell_id));
    }
    let (cr0, crd) = (regs::CR0.read(device), regs::CRD.read(device));
    let (channels, events) = (regs::channels(cr0), regs::events(cr0));
    for (name, value, count) in [("channel", config.channel, channels), ("event", config.event, events)] {
        if u32::from(value) >= count {
            let (value, max) = (u64::from(value), u64::from(count - 1));
            return Err(Error::Argument { name, value, min: 0, max, multiple_of: 1 });
        }
    }
    let bus_bytes = regs::bus_bytes(crd).ok_or(Error::AttributeNonsense { name: "pl330's CRD register", value: crd.into() })?;
    let nonsecure = regs::DSR.read(device) & regs::DSR_NONSECURE != 0;
    let nonsecure_events = regs::CR3.read(device);
    if nonsecure && nonsecure_events >> config.event & 1 == 0 {
        let fix = "take an event whose bit is set, or make the manager Secure";
        return Err(Error::Unsuitable { name: "pl330's CR3 register", value: u64::from(nonsecure_events), fix });
    }
    let barriers = regs::revision(periph_id) == 0;
    let (buffer_words, coherent) = (regs::buffer_words(crd), device.port().coherent);
    Ok((Core { bus_bytes, buffer_words, nonsecure, coherent, barriers, event: config.event }, channels))
}

/// An address as the controller's registers hold it. `ADDR_BITS` has kept others from getting here.
fn addr32(port: &Port, addr: u64, len_bytes: usize) -> Result<u32> {
    let last = u64::from(u32::MAX);
    u32::try_from(addr).map_err(|_| Error::Unreachable { port: port.name, addr, len_bytes, first: 0, last })
}

/// Gives one instruction to the debug interface, which is idle: its first two bytes, and the other four.
///
/// # Safety
/// As [`Mmio::write32`]: DMAKILL ends transfers, DMAGO starts a program.
unsafe fn debug_instruction(device: &impl Mmio, thread: u32, [byte0, byte1]: [u32; 2], rest: u32) {
    // SAFETY: the caller's promise.
    unsafe {
        regs::DBGINST0.write(device, byte1 << 24 | byte0 << 16 | thread);
        regs::DBGINST1.write(device, rest);
        regs::DBGCMD.write(device, 0);
    }
}

/// What stopping the controller has come to.
#[derive(Clone, Copy, Debug)]
struct Stopping {
    channels: u32,
    /// A channel that may be about to start: its DMAGO is done with in the debug interface, and maybe not yet in the channel. DMAKILL
    /// comes after it, and does no harm to a channel that is stopped (Altera HWLIB, `alt_dma_channel_kill`).
    unsettled: Option<u8>,
    /// What keeps it from being stopped: DBGSTATUS, CSRn or FTRD.
    last: u32,
}

impl Stopping {
    /// One step: waits for what will end by itself, and kills one thread that will not. True when all channels are stopped, the
    /// manager does not fault, and no instruction is on its way that could start one.
    fn step(&mut self, device: &impl Mmio) -> bool {
        self.last = regs::DBGSTATUS.read(device);
        if self.last & regs::DBG_BUSY != 0 {
            return false;
        }
        for (thread, channel) in (0..self.channels).zip(&regs::CHANNELS) {
            self.last = channel.csr.read(device);
            match self.last & regs::STATUS {
                regs::STOPPED if self.unsettled.map(u32::from) != Some(thread) => continue,
                regs::KILLING | regs::COMPLETING | regs::FAULTING_COMPLETING => {}
                _ => {
                    self.unsettled = None;
                    // SAFETY: DMAKILL starts no transfer.
                    unsafe { debug_instruction(device, thread << 8 | 1, [DMAKILL, 0], 0) }
                }
            }
            return false;
        }
        if regs::FSRD.read(device) & regs::FSRD_MANAGER == 0 {
            return true;
        }
        self.last = regs::FTRD.read(device);
        // SAFETY: as above.
        unsafe { debug_instruction(device, 0, [DMAKILL, 0], 0) };
        false
    }
}

/// What one look at a job found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    Running,
    Done,
    Failed(Error),
}

impl Look {
    /// Done is a channel that is stopped *and* has raised its event. Each alone can be seen too early: a channel is stopped until the
    /// manager has executed DMAGO, and the event comes before DMAEND. So the event is read first: a channel that is stopped after its
    /// event was seen has ended, and not yet to begin.
    fn at(device: &impl Mmio, channel: &regs::Channel, event_bit: u32) -> Self {
        let raised = regs::INT_EVENT_RIS.read(device) & event_bit != 0;
        let csr = channel.csr.read(device);
        match csr & regs::STATUS {
            regs::FAULTING | regs::FAULTING_COMPLETING => Self::Failed(fault::of_channel(channel.ftr.read(device))),
            regs::STOPPED if raised => Self::Done,
            regs::STOPPED if regs::FSRD.read(device) & regs::FSRD_MANAGER != 0 => Self::Failed(fault::of_manager(regs::FTRD.read(device))),
            _ => Self::Running,
        }
    }
}

forward_as_fd!({'p, D: Device} Pl330<'p, D>, device: D);

// SAFETY: 1. The program reads `from.len_bytes` bytes from the first operand and writes as many into the second (`microcode`, whose
// tests execute every program), which `check` found large enough; the controller executes nothing else, for `stop` has stopped
// every channel, and its programs lie in memory that is the driver's alone. 2. `poll` says true only for a channel in the state
// Stopped, and `stop` only when all channels are: a channel that has ended its program or was killed is Completing or Killing until
// its transfers are answered (Arm DDI 0424C, "Operating states"), the program's DMAWMB has waited for the answers before that, and
// no write is bufferable, so that an answered one has arrived. No instruction that could start a channel is left in the debug
// interface: it is idle. 3. `check` reads no register. 4. The port is the device's. 5. `Mmio`, 2. 6. The program's only instruction is
// DMAKILL, and its last polls are what `stop` believes: Stopped, of every channel.
unsafe impl<D: Device> Driver for Pl330<'_, D> {
    fn name(&self) -> &'static str {
        fault::DEVICE
    }

    fn port(&self) -> &Port {
        self.device.port()
    }

    fn addr_bits(&self) -> u32 {
        ADDR_BITS
    }

    fn operands(&self) -> &[OperandSpec] {
        const { &[OperandSpec::to_device(), OperandSpec::from_device()] }
    }

    fn check(&self, operands: &[DevSlice], _: &[u32]) -> Result<()> {
        let [from, to] = fixed(operands)?;
        let need_bytes = from.len_bytes as u64;
        if (to.len_bytes as u64) < need_bytes {
            return Err(Error::BufferSize { index: 1, need_bytes, have_bytes: to.len_bytes });
        }
        let port = self.device.port();
        let [from_addr, to_addr] = [addr32(port, from.addr.0, from.len_bytes)?, addr32(port, to.addr.0, to.len_bytes)?];
        let max = u64::from(BLOCKS_MAX) * u64::from(self.core.block_bytes(from_addr, to_addr));
        if (1..=max).contains(&need_bytes) {
            return Ok(());
        }
        Err(Error::Argument { name: "bytes to copy", value: need_bytes, min: 1, max, multiple_of: 1 })
    }

    unsafe fn submit(&mut self, _slot: usize, operands: &[DevSlice], _: &[u32]) -> Result<()> {
        let [from, to] = fixed(operands)?;
        let port = self.device.port();
        let [from_addr, to_addr] = [addr32(port, from.addr.0, from.len_bytes)?, addr32(port, to.addr.0, to.len_bytes)?];
        let len_bytes = addr32(port, from.len_bytes as u64, from.len_bytes)?;
        let program = microcode::copy(&self.core, from_addr, to_addr, len_bytes)?;
        // SAFETY: no channel runs: the last job's `poll` or `stop` saw to that.
        unsafe { self.program.write(0, program.words())? };
        // SAFETY: the program is in place, the channel is stopped, and the caller handed both operands over.
        unsafe { self.go() }
    }

    fn poll(&mut self, timeout: Timeout) -> Result<Option<Completion>> {
        let (mut found, event_bit) = (Look::Running, self.event_bit());
        let Some(channel) = self.registers() else { return Ok(None) };
        poll_every(&self.device, FAULT_STEP_US, timeout, |device| {
            found = Look::at(device, channel, event_bit);
            found != Look::Running
        })?;
        match found {
            Look::Running => Ok(None),
            Look::Done => {
                self.unsettled = false;
                self.acknowledge();
                Ok(Some(Completion::of(0)))
            }
            Look::Failed(error) => Err(error),
        }
    }

    fn stop(&mut self) -> Result<()> {
        let unsettled = self.unsettled.then_some(self.config.channel);
        let (mut stopping, mut stopped) = (Stopping { channels: self.channels, unsettled, last: 0 }, false);
        // An interrupt's file that fails only ends the waiting: what counts is what the registers say.
        let _ = poll_every(&self.device, STOP_STEP_US, Timeout::us(STOP_US), |device| {
            stopped = stopping.step(device);
            stopped
        });
        if !stopped {
            return Err(Error::WillNotStop { device: fault::DEVICE, status: stopping.last, waited_us: STOP_US });
        }
        self.unsettled = false;
        // SAFETY: interrupt enables move no data.
        unsafe { regs::INTEN.write(&self.device, self.event_bit()) };
        self.acknowledge();
        Ok(())
    }

    /// Kills this driver's channel, which also stops the manager's DMAGO from taking effect later; a channel that ends its transfers after a
    /// fault is waited for first, as in `stop`. No other channel runs, or the program says so: a driver of another channel has not armed.
    fn arm_irq(&self) -> Result<Option<i32>> {
        self.device.arm_irq()
    }

    fn stop_program(&self) -> StopProgram {
        let channel = u32::from(self.config.channel);
        let csr = self.registers().map_or(0, |channel| channel.csr.offset());
        let kill = [
            StopStep::poll_while(csr, regs::STATUS, regs::FAULTING_COMPLETING, STOP_US),
            StopStep::poll_while(regs::DBGSTATUS.offset(), regs::DBG_BUSY, regs::DBG_BUSY, DEBUG_US),
            StopStep::write(regs::DBGINST0.offset(), u32::MAX, DMAKILL << 16 | channel << 8 | 1),
            StopStep::write(regs::DBGINST1.offset(), u32::MAX, 0),
            StopStep::write(regs::DBGCMD.offset(), u32::MAX, 0),
            StopStep::poll_while(regs::DBGSTATUS.offset(), regs::DBG_BUSY, regs::DBG_BUSY, DEBUG_US),
            StopStep::poll_until(csr, regs::STATUS, regs::STOPPED, STOP_US),
        ];
        let channels = regs::CHANNELS.iter().take(self.channels as usize);
        let others = channels.map(|channel| StopStep::poll_until(channel.csr.offset(), regs::STATUS, regs::STOPPED, 0));
        StopProgram::of(kill.into_iter().chain(others)).unwrap_or_default()
    }
}

impl<D: Device> TypedDriver<2> for Pl330<'_, D> {
    type Args = ();
    type Words = [u32; 0];
    type Report = ();
    fn words((): &()) -> [u32; 0] {
        []
    }
    fn report(&self, _: &Completion) {}
}

impl<D: Device> Drop for Pl330<'_, D> {
    /// Stops the controller, and gives the program's memory back where it has stopped.
    fn drop(&mut self) {
        if self.stop().is_ok() {
            // SAFETY: `drop` runs once, and nothing uses the program after it.
            let program = unsafe { ManuallyDrop::take(&mut self.program) };
            // SAFETY: every channel is stopped, and only a driver starts one, by a program of its own.
            drop(unsafe { program.release() });
        }
    }
}

impl<D: Device> fmt::Debug for Pl330<'_, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pl330").field("port", &self.device.port().name).field("config", &self.config).field("core", &self.core).finish()
    }
}
