//! The checks that drivers share, at open and at submit, and the wait until a core has stopped.

use contigo_core::hw::wait::poll_every;
use contigo_core::hw::{Mmio, Wait};
use contigo_core::job::{StopProgram, StopStep};
use contigo_core::mem::DevSlice;
use contigo_core::types::{Error, Result};
use core::time::Duration;

/// The error for a number outside `min` to `max`.
pub(super) const fn outside(name: &'static str, value: u64, min: u64, max: u64) -> Error {
    Error::Argument { name, value, min, max, multiple_of: 1 }
}

/// Checks that `value` is from `min` to `max`.
pub(super) fn within(
    name: &'static str,
    value: impl Into<u64>,
    min: impl Into<u64>,
    max: impl Into<u64>,
) -> Result<()> {
    let (value, min, max) = (value.into(), min.into(), max.into());
    if (min..=max).contains(&value) { Ok(()) } else { Err(outside(name, value, min, max)) }
}

/// Checks a data bus width: a power of two from `min` to 1,024 bits.
pub(super) fn is_width(name: &'static str, bits: u32, min: u32) -> Result<()> {
    if bits.is_power_of_two() && (min..=1024).contains(&bits) {
        return Ok(());
    }
    let (value, min) = (bits.into(), min.into());
    Err(Error::Argument { name, value, min, max: 1024, multiple_of: min })
}

/// Checks that the window of `device`, called `name`, has at least `need_bytes`.
pub(super) fn has_window(device: &impl Mmio, name: &'static str, need_bytes: usize) -> Result<()> {
    let have_bytes = device.len_bytes();
    if have_bytes < need_bytes {
        return Err(Error::RegisterWindow { device: name, need_bytes, have_bytes });
    }
    Ok(())
}

/// Checks that `found`, read from `register`, has the bits `zeroes` at 0, as this core has.
pub(super) const fn reads_zero(
    device: &'static str,
    register: &'static str,
    found: u32,
    zeroes: u32,
) -> Result<()> {
    if found & zeroes == 0 {
        return Ok(());
    }
    Err(Error::WrongDevice { device, register, expected: found & !zeroes, found })
}

/// Checks that a copy's second operand, `to`, is at least as long as its first.
pub(super) const fn holds(to: &DevSlice, from: &DevSlice) -> Result<()> {
    if to.len_bytes < from.len_bytes {
        let (need_bytes, have_bytes) = (from.len_bytes as u64, to.len_bytes);
        return Err(Error::BufferSize { index: 1, need_bytes, have_bytes });
    }
    Ok(())
}

/// Waits until the core called `name` has stopped: polls every `step_us`, for at most `stop_us`.
/// `look` returns whether it has, and the status for the error.
///
/// # Errors
/// [`Error::WillNotStop`], or the error of the interrupt's file.
pub(super) fn stops<D: Wait>(
    device: &D,
    name: &'static str,
    step_us: u32,
    stop_us: u32,
    mut look: impl FnMut(&D) -> (bool, u32),
) -> Result<()> {
    let mut status = 0;
    let stopped = poll_every(device, step_us, Duration::from_micros(stop_us.into()), |device| {
        let (stopped, found) = look(device);
        status = found;
        stopped
    })?;
    if stopped {
        return Ok(());
    }
    Err(Error::WillNotStop { device: name, status, waited_us: stop_us })
}

/// A reset as steps: writes `reset` to `control`, waits until `control` has the bits `over` clear,
/// then until `status` has the bits `mask` equal to `rests`.
pub(super) fn reset_program(
    (control, reset, over): (usize, u32, u32),
    (status, mask, rests): (usize, u32, u32),
    stop_us: u32,
) -> StopProgram {
    StopProgram::new(&[
        StopStep::write(control, u32::MAX, reset),
        StopStep::poll_until(control, over, 0, stop_us),
        StopStep::poll_until(status, mask, rests, stop_us),
    ])
    .unwrap_or_default()
}

/// The lower half of an address.
#[allow(clippy::cast_possible_truncation, reason = "half of an address")]
pub(super) const fn low(addr: u64) -> u32 {
    addr as u32
}

/// The upper half of an address.
pub(super) const fn high(addr: u64) -> u32 {
    low(addr >> 32)
}
