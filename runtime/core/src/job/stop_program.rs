#![allow(unsafe_code, reason = "a program writes registers")]
//! How a device is stopped, as data: for the kernel, when the program that drove it is gone.

use crate::hw::wait::poll_every;
use crate::hw::{Mmio, Wait};
use crate::types::{Error, MAX_TIMEOUT};
use core::time::Duration;

/// The most steps of a program: as many as the kernel module takes (`CONTIGO_MAX_STEPS`), and twice
/// what a driver here needs.
const MAX_STEPS: usize = 32;

/// One step, on one register of 32 bits.
///
/// The registers of a device that is gone read all ones. Behind the kernel module `contigo` they
/// read back what was written, in the same place of every page. So it is best to poll a register
/// that no step writes, with a bit in `mask` that the device never sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum StopStep {
    /// register = (register & !mask) | value. If `mask` has all bits, it is not read.
    Write {
        /// From the window's first byte; a multiple of 4.
        offset_bytes: u32,
        /// The bits that are written; not 0.
        mask: u32,
        /// Within `mask`.
        value: u32,
    },
    /// Polls until (register & mask) == value.
    PollUntil {
        /// From the window's first byte; a multiple of 4.
        offset_bytes: u32,
        /// The bits that are compared; not 0.
        mask: u32,
        /// Within `mask`.
        value: u32,
        /// The longest wait. All polls of a program together wait at most a second.
        timeout_us: u32,
    },
    /// Polls while (register & mask) == value.
    PollWhile {
        /// From the window's first byte; a multiple of 4.
        offset_bytes: u32,
        /// The bits that are compared; not 0.
        mask: u32,
        /// Within `mask`.
        value: u32,
        /// As in `PollUntil`.
        timeout_us: u32,
    },
    /// If all polls above were met, they have stopped the device, and the program ends here. If one
    /// was not met, the program goes on below: [`StopProgram::or_else`].
    Else,
}

/// `offset` as a step holds it. Beyond 4 GiB it is all ones, where no register is.
#[allow(clippy::cast_possible_truncation, reason = "compared before")]
const fn in_step(offset: usize) -> u32 {
    if offset > u32::MAX as usize { u32::MAX } else { offset as u32 }
}

impl StopStep {
    /// Writes `value` into the bits `mask` of the register at `offset` bytes.
    #[must_use]
    pub const fn write(offset: usize, mask: u32, value: u32) -> Self {
        Self::Write { offset_bytes: in_step(offset), mask, value }
    }

    /// Polls until the bits `mask` of the register at `offset` bytes are `value`.
    #[must_use]
    pub const fn poll_until(offset: usize, mask: u32, value: u32, timeout_us: u32) -> Self {
        Self::PollUntil { offset_bytes: in_step(offset), mask, value, timeout_us }
    }

    /// Polls while the bits `mask` of the register at `offset` bytes are `value`.
    #[must_use]
    pub const fn poll_while(offset: usize, mask: u32, value: u32, timeout_us: u32) -> Self {
        Self::PollWhile { offset_bytes: in_step(offset), mask, value, timeout_us }
    }
}

/// Steps that stop a device, in order. At a poll that is not met they end, or go on after the next
/// [`StopStep::Else`]. Each way to the end finishes with a poll: a write alone proves nothing. The
/// kernel runs them when the program that could call the driver's `stop` is gone (`Queue::arm`); a
/// driver may run them itself ([`run`](Self::run)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StopProgram {
    steps: heapless::Vec<StopStep, MAX_STEPS>,
}

/// The kernel module refuses the same programs (EINVAL).
const ENDS_UNSEEN: Error = Error::Unsupported {
    what: "a stop program that ends, or has an Else, after a write",
    fix: "poll what the write has changed: only a poll shows that the device has stopped",
};

impl StopProgram {
    /// The most steps of a program: as many as the kernel module takes (`CONTIGO_MAX_STEPS`).
    #[cfg(all(feature = "linux", target_os = "linux"))]
    pub(crate) const MAX_STEPS: usize = MAX_STEPS;

    /// No steps: for a device that no stop program stops.
    pub const NONE: Self = Self { steps: heapless::Vec::new() };

    /// A program of these steps.
    ///
    /// # Errors
    /// [`Error::TooMany`]: more than 32. [`Error::Argument`]: a mask is 0, or a value has bits
    /// outside its mask; or an `Else` is first, last, or beside another. [`Error::Unsupported`]:
    /// the last step, or the one before an `Else`, is a write.
    pub fn new(steps: &[StopStep]) -> Result<Self, Error> {
        Self::of(steps.iter().copied())
    }

    /// As [`new`](Self::new), from an iterator of steps.
    pub fn of(steps: impl Iterator<Item = StopStep>) -> Result<Self, Error> {
        let mut program = Self::NONE;
        let (mut after_else, mut after_write) = (true, false);
        for (at, step) in steps.enumerate() {
            if step == StopStep::Else && after_write {
                return Err(ENDS_UNSEEN);
            }
            after_write = matches!(step, StopStep::Write { .. });
            let (mask, value) = match step {
                StopStep::Write { mask, value, .. }
                | StopStep::PollUntil { mask, value, .. }
                | StopStep::PollWhile { mask, value, .. } => (mask, value),
                StopStep::Else if after_else => return Err(Self::stray_else(at)),
                // Any pair that passes the check below.
                StopStep::Else => (u32::MAX, 0),
            };
            after_else = step == StopStep::Else;
            if mask == 0 || value & !mask != 0 {
                let (value, max) = (value.into(), mask.into());
                return Err(Error::Argument {
                    name: "the value of a step, within its mask,",
                    value,
                    min: 0,
                    max,
                    multiple_of: 1,
                });
            }
            program.steps.push(step).map_err(|_| Error::TooMany {
                what: "steps of a stop program",
                most: MAX_STEPS as u64,
            })?;
        }
        match program.steps.len() {
            len if after_else && len > 0 => Err(Self::stray_else(len - 1)),
            _ if after_write => Err(ENDS_UNSEEN),
            _ => Ok(program),
        }
    }

    /// The `Else` at step `at` has no steps on one of its sides.
    const fn stray_else(at: usize) -> Error {
        let (value, max) = (at as u64, MAX_STEPS as u64 - 2);
        Error::Argument {
            name: "the place of an Else, between other steps,",
            value,
            min: 1,
            max,
            multiple_of: 1,
        }
    }

    /// This program, then `other` if this one does not find the device stopped: for example, to ask
    /// a core to stop, and to reset it by its own register if it does not.
    ///
    /// ```
    /// use contigo::job::{StopProgram, StopStep};
    /// // Of the status at 0x04 bit 0 is "halted", and bits 31:8 are always 0.
    /// let halted = StopStep::poll_until(0x04, 0xFFFF_FF01, 1, 10_000);
    /// let ask = StopProgram::new(&[StopStep::write(0x00, 1, 0), halted])?;
    /// let reset = StopProgram::new(&[StopStep::write(0x08, 1, 1), halted])?;
    /// assert_eq!(ask.or_else(&reset)?.steps().len(), 5);
    /// # Ok::<(), contigo::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::TooMany`]: more than 32 steps. [`Error::Argument`]: one of them has no steps.
    pub fn or_else(&self, other: &Self) -> Result<Self, Error> {
        Self::of(self.steps.iter().chain(&[StopStep::Else]).chain(&other.steps).copied())
    }

    /// Its steps.
    #[must_use]
    pub fn steps(&self) -> &[StopStep] {
        &self.steps
    }

    /// Runs the steps on `device`, polling every `step_us`. `Err`: the last value of the register
    /// whose poll was the last one that was not met.
    ///
    /// # Safety
    /// The steps start nothing: no write among them makes the device access memory.
    pub unsafe fn run(&self, device: &(impl Mmio + Wait), step_us: u32) -> Result<(), u32> {
        // The register's value at the poll that was not met, until an Else below it.
        let mut failed = None;
        for step in &self.steps {
            if failed.is_some() && *step != StopStep::Else {
                continue;
            }
            let (offset_bytes, mask, value, timeout_us, until) = match *step {
                StopStep::Else if failed.take().is_none() => return Ok(()),
                StopStep::Else => continue,
                StopStep::Write { offset_bytes, mask, value } => {
                    let offset = offset_bytes as usize;
                    let kept = if mask == u32::MAX { 0 } else { device.read32(offset) & !mask };
                    // SAFETY: the caller's promise.
                    unsafe { device.write32(offset, kept | value) };
                    continue;
                }
                StopStep::PollUntil { offset_bytes, mask, value, timeout_us } => {
                    (offset_bytes, mask, value, timeout_us, true)
                }
                StopStep::PollWhile { offset_bytes, mask, value, timeout_us } => {
                    (offset_bytes, mask, value, timeout_us, false)
                }
            };
            // An hour is more than any kernel allows for a step.
            let timeout = Duration::from_micros(timeout_us.into()).min(MAX_TIMEOUT);
            let (mut status, mut met) = (0, false);
            // An error of the interrupt's file only ends the waiting: the register's value decides.
            let _ = poll_every(device, step_us, timeout, |device| {
                status = device.read32(offset_bytes as usize);
                met = (status & mask == value) == until;
                met
            });
            if !met {
                failed = Some(status);
            }
        }
        failed.map_or(Ok(()), Err)
    }
}
