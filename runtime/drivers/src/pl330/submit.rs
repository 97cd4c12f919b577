#![allow(unsafe_code, reason = "a program is started here, for operands that were handed over")]
//! One channel's thread of execution: its program, and how it is started and polled. Its device is
//! a whole controller, or a channel of a core.

use super::config::Pl330Config;
use super::microcode::{self, BLOCKS_MAX, Core, PROGRAM_BYTES};
use super::regs;
use crate::checks::{holds, within};
use contigo_core::hw::wait::poll_every;
use contigo_core::hw::{Device, Mmio};
use contigo_core::job::{Completion, OperandSpec, exactly};
use contigo_core::mem::{CpuBuf, DevSlice, DriverBuf, Port};
use contigo_core::types::{Align, Error, Refused, Result};
use core::mem::ManuallyDrop;
use core::time::Duration;

/// How long the debug interface may be busy with one instruction, as in Linux (`_until_dmac_idle`).
pub(super) const DEBUG_US: u32 = 5_000;
/// The time between polls of it: an instruction takes some hundred cycles.
const DEBUG_STEP_US: u32 = 1;
/// The longest time between polls of a job. A fault raises the line `irq_abort` and not the
/// event's, and uio delivers only one line of a device, so the driver finds a fault after this
/// time.
const FAULT_STEP_US: u32 = 1_000;

/// The controller's address registers.
const ADDR_BITS: u32 = 32;

/// DMAGO, byte 0 (Arm DDI 0424C, 4.3.5); bit 1 makes the channel Non-secure.
const DMAGO: u32 = 0xA0;
const DMAGO_NONSECURE: u32 = 0x02;

#[derive(Debug)]
pub(super) struct Thread {
    /// Leaked on drop if the channel will not stop: it would execute what the next owner writes.
    program: ManuallyDrop<DriverBuf>,
    pub(super) core: Core,
    pub(super) config: Pl330Config,
    state: State,
}

/// The known state of the channel.
#[derive(Clone, Copy, Debug)]
enum State {
    /// It was seen stopped, or was not started yet.
    Stopped,
    /// DMAGO was issued in this reset epoch of the device, and its program's end was not seen.
    Started { epoch: u32 },
}

impl Thread {
    /// A channel with its programs in `program`, on `port`.
    ///
    /// # Errors
    /// `program` comes back with [`Error::BlockSize`], or an error of [`DriverBuf::new`].
    pub(super) fn new(
        program: CpuBuf,
        port: &Port,
        core: Core,
        config: Pl330Config,
    ) -> Result<Self, Refused<CpuBuf>> {
        if program.len_bytes() < PROGRAM_BYTES {
            let (len_bytes, line_bytes) = (program.len_bytes(), Align::LINE.bytes());
            return Err(Refused::new(
                Error::BlockSize { len_bytes, need_bytes: PROGRAM_BYTES, line_bytes },
                program,
            ));
        }
        let program = ManuallyDrop::new(DriverBuf::new(program, port, ADDR_BITS)?);
        Ok(Self { program, core, config, state: State::Stopped })
    }

    pub(super) const fn name(&self) -> &'static str {
        regs::DEVICE
    }

    pub(super) const fn addr_bits(&self) -> u32 {
        ADDR_BITS
    }

    /// The operands of a copy: from, to.
    pub(super) const fn operands(&self) -> &'static [OperandSpec] {
        const { &[OperandSpec::to_device(), OperandSpec::from_device()] }
    }

    /// The channel's registers, which exist by `Found::core`'s check.
    pub(super) fn registers(&self) -> Option<&'static regs::Channel> {
        regs::CHANNELS.get(usize::from(self.config.channel))
    }

    /// Its event as a bit.
    pub(super) const fn event_bit(&self) -> u32 {
        1 << self.config.event
    }

    /// Its number if it may be about to start.
    pub(super) fn unsettled(&self) -> Option<u32> {
        matches!(self.state, State::Started { .. }).then_some(self.config.channel.into())
    }

    /// It was seen stopped, whatever instruction it had.
    pub(super) const fn is_stopped(&mut self) {
        self.state = State::Stopped;
    }

    /// As [`Driver::check`](contigo_core::Driver::check).
    pub(super) fn check(&self, port: &Port, operands: &[DevSlice], args: &[u32]) -> Result<()> {
        let ([from, to], []) = (exactly(operands)?, exactly(args)?);
        holds(to, from)?;
        let [from_addr, to_addr] =
            [addr32(port, from.addr.0, from.len_bytes)?, addr32(port, to.addr.0, to.len_bytes)?];
        let max = u64::from(BLOCKS_MAX) * u64::from(self.core.block_bytes(from_addr, to_addr));
        within("bytes to copy", from.len_bytes as u64, 1_u8, max)
    }

    /// Writes the program of a copy.
    ///
    /// # Safety
    /// The channel is stopped.
    pub(super) unsafe fn load_copy(&mut self, port: &Port, operands: &[DevSlice]) -> Result<()> {
        let [from, to] = exactly(operands)?;
        let [from_addr, to_addr] =
            [addr32(port, from.addr.0, from.len_bytes)?, addr32(port, to.addr.0, to.len_bytes)?];
        let len_bytes = addr32(port, from.len_bytes as u64, from.len_bytes)?;
        let program = microcode::copy(&self.core, from_addr, to_addr, len_bytes)?;
        // SAFETY: the caller's promise.
        unsafe { self.program.write(0, program.words()) }
    }

    /// Writes the caller's own program.
    ///
    /// # Errors
    /// [`Error::OutOfRange`], or [`Error::Busy`] if the channel is not certainly stopped.
    pub(super) fn load_code(&mut self, device: &impl Device, code: &[u8]) -> Result<()> {
        /// The bytes of one write: a cache line.
        const CHUNK: usize = 64;
        let end = code.len().next_multiple_of(4);
        if end > self.program.len_bytes() {
            return Err(Error::OutOfRange { start: 0, end, len_bytes: self.program.len_bytes() });
        }
        // A channel whose DMAGO was issued may still read as stopped, and be about to fetch.
        if self.unsettled().is_some()
            || self
                .registers()
                .is_some_and(|channel| channel.csr.read(device) & regs::STATUS != regs::STOPPED)
        {
            return Err(Error::Busy);
        }
        for (offset_bytes, chunk) in (0..).step_by(CHUNK).zip(code.chunks(CHUNK)) {
            let mut words = [0; CHUNK / 4];
            for (word, bytes) in words.iter_mut().zip(chunk.chunks(4)) {
                *word = bytes.iter().rev().fold(0, |word, &byte| word << 8 | u32::from(byte));
            }
            // SAFETY: the channel is stopped, and no other channel fetches from this driver's
            // memory.
            unsafe {
                self.program
                    .write(offset_bytes, words.get(..chunk.len().div_ceil(4)).unwrap_or_default())?
            }
        }
        Ok(())
    }

    /// Starts the channel at the beginning of its program, keeping INTEN's bits `others`.
    ///
    /// # Safety
    /// The buffer holds a program, the channel is stopped, and what the program touches was handed
    /// over. No other code uses the debug interface or INTEN until it returns.
    pub(super) unsafe fn go(&mut self, device: &impl Device, others: u32) -> Result<()> {
        let mut status = 0;
        let idle =
            poll_every(device, DEBUG_STEP_US, Duration::from_micros(DEBUG_US.into()), |device| {
                status = regs::DBGSTATUS.read(device);
                status & regs::DBG_BUSY == 0
            })?;
        if !idle {
            return Err(regs::fault_of_debug_interface(status));
        }
        let epoch = device.reset_epoch();
        self.acknowledge(device, others);
        let security = if self.core.nonsecure { DMAGO_NONSECURE } else { 0 };
        let program = addr32(device.port(), self.program.addr_at(0).0, self.program.len_bytes())?;
        self.state = State::Started { epoch };
        // SAFETY: the caller's promise.
        unsafe {
            debug_instruction(
                device,
                0,
                [DMAGO | security, u32::from(self.config.channel)],
                program,
            )
        }
        Ok(())
    }

    /// Makes its event an interrupt, and clears it: INTCLR clears it only while INTEN makes it one.
    pub(super) fn acknowledge(&self, device: &impl Device, others: u32) {
        // SAFETY: an event that no job uses yet, or that was seen, moves no data.
        unsafe {
            regs::INTEN.write(device, others | self.event_bit());
            regs::INTCLR.write(device, self.event_bit());
        }
    }

    /// As [`Driver::poll`](contigo_core::Driver::poll).
    pub(super) fn poll(
        &mut self,
        device: &impl Device,
        timeout: Duration,
    ) -> Result<Option<Completion>> {
        let (mut found, mut reset, event_bit) = (Look::Running, false, self.event_bit());
        let Some(channel) = self.registers() else { return Ok(None) };
        poll_every(device, FAULT_STEP_US, timeout, |device| {
            found = Look::at(device, channel, event_bit);
            // Read after the registers, whose values from before a reset are valid.
            reset = matches!(self.state, State::Started { epoch } if device.reset_epoch() != epoch);
            reset || found != Look::Running
        })?;
        match found {
            _ if reset => Err(Error::EndedByReset { device: regs::DEVICE }),
            Look::Running => Ok(None),
            Look::Done => {
                self.state = State::Stopped;
                // SAFETY: as in `acknowledge`; bits of other channels stay as they are.
                unsafe { regs::INTCLR.write(device, event_bit) };
                Ok(Some(Completion::of(0)))
            }
            Look::Failed(error) => Err(error),
        }
    }

    /// Returns the program's memory.
    ///
    /// # Safety
    /// It is called once, nothing uses the program afterwards, and the channel is stopped.
    pub(super) unsafe fn release(&mut self) {
        // SAFETY: the caller's promise.
        let program = unsafe { ManuallyDrop::take(&mut self.program) };
        // SAFETY: the channel is stopped, and only a driver starts it, by a program of its own.
        drop(unsafe { program.release() });
    }
}

/// An address as the controller's registers hold it. `ADDR_BITS` excludes wider ones.
fn addr32(port: &Port, addr: u64, len_bytes: usize) -> Result<u32> {
    let last = u64::from(u32::MAX);
    u32::try_from(addr).map_err(|_| Error::Unreachable {
        port: port.name,
        addr,
        len_bytes,
        first: 0,
        last,
    })
}

/// Issues one instruction to the idle debug interface: its first two bytes, and the other four.
/// `thread` is DBGINST0's lower half, 0 for the manager.
///
/// # Safety
/// As [`Mmio::write32`]: DMAKILL ends transfers, DMAGO starts a program.
pub(super) unsafe fn debug_instruction(
    device: &impl Mmio,
    thread: u32,
    [byte0, byte1]: [u32; 2],
    rest: u32,
) {
    // SAFETY: the caller's promise.
    unsafe {
        regs::DBGINST0.write(device, byte1 << 24 | byte0 << 16 | thread);
        regs::DBGINST1.write(device, rest);
        regs::DBGCMD.write(device, 0);
    }
}

/// The result of one poll of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    Running,
    Done,
    Failed(Error),
}

impl Look {
    /// A job is done if its channel is stopped *and* has raised its event. Each alone can appear
    /// too early: a channel is stopped until the manager has executed DMAGO, and the event comes
    /// before DMAEND. So the event is read first: a channel that is stopped after its event was
    /// seen has ended its job.
    fn at(device: &impl Mmio, channel: &regs::Channel, event_bit: u32) -> Self {
        let raised = regs::INT_EVENT_RIS.read(device) & event_bit != 0;
        let csr = channel.csr.read(device);
        match csr & regs::STATUS {
            regs::FAULTING | regs::FAULTING_COMPLETING => {
                Self::Failed(regs::fault_of_channel(channel.ftr.read(device)))
            }
            regs::STOPPED if raised => Self::Done,
            regs::STOPPED if regs::FSRD.read(device) & regs::FSRD_MANAGER != 0 => {
                Self::Failed(regs::fault_of_manager(regs::FTRD.read(device)))
            }
            _ => Self::Running,
        }
    }
}
