#![allow(unsafe_code, reason = "CONTROL is a register")]
//! The gate alone.

use super::regs;
use contigo_core::hw::wait::poll_every;
use contigo_core::hw::{Mmio, Wait};
use contigo_core::job::{StopProgram, StopStep};
use contigo_core::types::{Error, Result};
use core::time::Duration;

/// The name in messages.
const NAME: &str = "axi_gate";
/// The limit for the interconnect. 8 bursts of 256 beats each way take 0.4 ms at 100 MHz with 10
/// cycles a beat.
const OWED_US: u32 = 10_000;
/// The limit for the beats that the core owes. A core that takes longer loses nothing: the stop
/// ends its job.
const BEATS_US: u32 = 1_000;
/// The time between polls.
const STEP_US: u32 = 1;
/// STATUS of a gate that is shut, with its core in reset. Its 0 bits distinguish it from all ones.
const SHUT: u32 = regs::IDLE | regs::STOPPED | regs::IN_RESET;
const SHUT_MASK: u32 = SHUT | regs::ZEROS;

/// Bursts that have passed and are not answered yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owed {
    /// Bursts of reads.
    pub reads: u8,
    /// Bursts of writes.
    pub writes: u8,
    /// Beats that the core owes for the burst that it is writing.
    pub beats: u16,
}

/// The gate alone: outstanding bursts, the first error, and the stop.
#[derive(Debug)]
pub struct AxiGate<W> {
    window: W,
}

impl<W: Mmio + Wait> AxiGate<W> {
    /// The gate whose registers are `window`. Open it before the core's driver: if a program died
    /// and left the core in reset, this ends the reset, and the core's registers answer. Still
    /// nothing passes. Otherwise `open` writes nothing.
    ///
    /// # Errors
    /// [`Error::RegisterWindow`]; [`Error::WrongDevice`]: no gate, or a later version.
    /// [`Error::WillNotStop`]: the interconnect owes an answer, and the core stays in reset.
    ///
    /// # Safety
    /// No other code writes these registers while this value lives.
    pub unsafe fn open(window: W) -> Result<Self> {
        let (need_bytes, have_bytes) = (regs::ERRORS.offset() + 4, window.len_bytes());
        if have_bytes < need_bytes {
            return Err(Error::RegisterWindow { device: NAME, need_bytes, have_bytes });
        }
        let wrong = |register, expected, found| {
            Err(Error::WrongDevice { device: NAME, register, expected, found })
        };
        let (id, version) = (regs::ID.read(&window), regs::VERSION.read(&window));
        match version >> 16 {
            _ if id != regs::GATE => return wrong("ID", regs::GATE, id),
            regs::MAJOR => {}
            _ => return wrong("VERSION", regs::MAJOR << 16, version),
        }
        let gate = Self { window };
        if regs::STATUS.read(&gate.window) & (regs::IN_RESET | regs::ZEROS) == regs::IN_RESET {
            gate.release()?;
        }
        Ok(gate)
    }

    /// Bursts that have passed and are not answered yet.
    pub fn owed(&self) -> Owed {
        let [reads, writes, beats, more] = regs::OWED.read(&self.window).to_le_bytes();
        Owed { reads, writes, beats: u16::from_le_bytes([beats, more]) }
    }

    /// The first error since the last clear, with the address of its burst.
    pub fn error(&self) -> Option<Error> {
        self.error_in(regs::STATUS.read(&self.window))
    }

    fn error_in(&self, status: u32) -> Option<Error> {
        let fault = |what| Some(Error::Fault { device: NAME, status, what });
        if status & regs::ZEROS != 0 {
            return fault("all ones: the gate is gone, or its clock is off");
        }
        if status & regs::FAILED != 0 {
            let status = regs::ERROR.read(&self.window);
            let (low, high) =
                (regs::ERROR_ADDR_LOW.read(&self.window), regs::ERROR_ADDR_HIGH.read(&self.window));
            let what = match (status & regs::BY_WRITE != 0, status & regs::DECERR != 0) {
                (true, true) => {
                    "DECERR for a burst of writes: no memory is at its address; compare it with \
                     the operands and the address map"
                }
                (true, false) => {
                    "SLVERR for a burst of writes: memory refused it; check that it may be \
                     written, and that its port is enabled"
                }
                (false, true) => {
                    "DECERR for a burst of reads: no memory is at its address; compare it with \
                     the operands and the address map"
                }
                (false, false) => {
                    "SLVERR for a burst of reads: memory refused it; check that its port is enabled"
                }
            };
            return Some(Error::FaultAt {
                device: NAME,
                status,
                what,
                addr: u64::from(high) << 32 | u64::from(low),
            });
        }
        if status & regs::MISFRAMED != 0 {
            return fault(
                "the core's WLAST was not where its burst ends: its data are shifted; it breaks \
                 AXI, or was reset alone",
            );
        }
        if status & regs::STRAY != 0 {
            fault(
                "an answer came that no burst had asked for; the interconnect was reset alone, or \
                 breaks AXI",
            )
        } else {
            None
        }
    }

    /// Clears the error.
    pub fn clear_error(&self) {
        // SAFETY: it moves no data.
        unsafe { regs::ERROR.write(&self.window, 1) };
    }

    /// Blocks new bursts, waits for outstanding ones, and puts the core into reset; the gate then
    /// supplies the beats that the core owed. Afterwards nothing passes or is under way. The bound
    /// is 11 ms; a working core takes as long as its bursts, and a hung core 1 ms.
    ///
    /// # Errors
    /// [`Error::WillNotStop`]: the interconnect owes an answer. The gate stays shut.
    pub fn shut(&self) -> Result<()> {
        self.control(regs::STOP);
        // This wait may fail: a dead core owes its beats until its reset, and so does a core that
        // needs a read, which the gate now blocks, to produce them.
        let _ = self.until(regs::STOPPED, regs::STOPPED, BEATS_US);
        self.control(regs::STOP | regs::RESET);
        self.until(SHUT_MASK, SHUT, OWED_US)
    }

    /// Ends the core's reset; the gate stays shut.
    ///
    /// # Errors
    /// [`Error::WillNotStop`], as in [`shut`](Self::shut), which the caller calls first.
    pub fn release(&self) -> Result<()> {
        self.control(regs::STOP);
        self.until(SHUT_MASK, SHUT & !regs::IN_RESET, OWED_US)
    }

    /// Shuts the gate and resets the core, as steps that the kernel runs when the device's process
    /// has died. The gate's registers are at `offset` in the window that the steps are for.
    #[must_use]
    pub(crate) fn program(offset: usize) -> StopProgram {
        let (control, status) = (
            offset.saturating_add(regs::CONTROL.offset()),
            offset.saturating_add(regs::STATUS.offset()),
        );
        let steps = [
            StopStep::write(control, u32::MAX, regs::STOP | regs::RESET),
            StopStep::poll_until(status, SHUT_MASK, SHUT, OWED_US),
            // The core's registers answer again, and the gate stays shut.
            StopStep::write(control, u32::MAX, regs::STOP),
            StopStep::poll_until(status, SHUT_MASK, SHUT & !regs::IN_RESET, OWED_US),
        ];
        StopProgram::new(&steps).unwrap_or_default()
    }

    fn control(&self, value: u32) {
        // SAFETY: the gate has no address; it only blocks bursts, or `open_again`'s caller vouches.
        unsafe { regs::CONTROL.write(&self.window, value) };
    }

    fn until(&self, mask: u32, value: u32, limit_us: u32) -> Result<()> {
        let status = self.status_once(mask, value, limit_us);
        if status & mask == value {
            Ok(())
        } else {
            Err(Error::WillNotStop { device: NAME, status, waited_us: limit_us })
        }
    }

    /// Returns STATUS once the bits `mask` equal `value`, or when the limit has passed.
    fn status_once(&self, mask: u32, value: u32, limit_us: u32) -> u32 {
        let mut status = 0;
        // A failing interrupt file only ends the wait: STATUS decides.
        let _ =
            poll_every(&self.window, STEP_US, Duration::from_micros(limit_us.into()), |window| {
                status = regs::STATUS.read(window);
                status & mask == value
            });
        status
    }

    /// Blocks new bursts, waits for outstanding ones, resets the core, and ends that reset.
    /// Afterwards nothing passes or is under way. If it fails, the core may be in reset, and a
    /// write may be under way.
    pub(super) fn stop_core(&self) -> Result<()> {
        self.shut()?;
        self.release()
    }

    /// Clears the error, and lets bursts pass.
    ///
    /// # Safety
    /// The core touches only memory that is mapped for it. This holds for a core that its driver
    /// has stopped since its reset.
    pub(super) unsafe fn open_again(&self) {
        self.clear_error();
        self.control(0);
    }

    /// The first error since the gate opened; a gate shut by another program is one. With `settled`
    /// it first waits for memory's answers, and an answer that takes too long is an error too.
    pub(super) fn failure(&self, settled: bool) -> Option<Error> {
        let status = if settled {
            self.status_once(regs::IDLE, regs::IDLE, OWED_US)
        } else {
            regs::STATUS.read(&self.window)
        };
        let what = if status & regs::STOPPED != 0 {
            Some(
                "another program shut the gate, as a stop program does; stop the queue, which \
                 opens it",
            )
        } else if settled && status & regs::IDLE == 0 {
            Some("the core said that its job is done, and memory still owes it an answer")
        } else {
            None
        };
        self.error_in(status).or(what.map(|what| Error::Fault { device: NAME, status, what }))
    }

    /// The error for a gate that did not shut.
    pub(super) fn held(&self) -> Error {
        Error::WillNotStop {
            device: NAME,
            status: regs::STATUS.read(&self.window),
            waited_us: OWED_US,
        }
    }
}
