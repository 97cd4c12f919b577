//! How a driver waits between two polls of a status register: for an interrupt, for a pause, or in
//! the simulator's virtual time.

use crate::types::{Error, timeout_us};
use core::time::Duration;

/// A clock, and perhaps an interrupt: all that a bounded wait for one device needs.
///
/// Its methods take a shared reference, so that threads whose channels share one interrupt
/// ([`Core`](crate::job::Core)) can wait side by side.
///
/// `Spin` has no interrupt: its wait is a short pause. `UioIrq` has a real interrupt, and
/// `sim::SimWindow` has the simulated board's.
pub trait Wait {
    /// A clock that never goes back, in microseconds.
    fn now_us(&self) -> u64;

    /// Returns when the interrupt came, and at the latest a microsecond after `timeout_us`. It may
    /// return early: the caller polls the device again. A lost interrupt costs time, and no result.
    ///
    /// # Errors
    /// The kernel's error for the interrupt's file.
    fn wait_at_most(&self, timeout_us: u32) -> Result<(), Error>;

    /// Discards an earlier interrupt, enables the next one, and returns the file descriptor that
    /// poll(2) finds readable then. `None`: there is none that an event loop can wait for.
    ///
    /// # Errors
    /// The kernel's error for the interrupt's file.
    fn arm_irq(&self) -> Result<Option<i32>, Error> {
        Ok(None)
    }

    /// How many polls come before the clock is read for the first time: more than 0 only if reading
    /// the clock costs more than a poll. A wait may exceed its limit by so many polls, at most
    /// 10,000.
    fn looks_before_clock(&self) -> u32 {
        0
    }
}

/// The most polls of one wait: 100 for each microsecond of its limit (a poll across any bus takes
/// more than 10 ns), and some for a limit of 0. This ends a wait whose clock stands still.
const fn looks_at_most(timeout_us: u32) -> u64 {
    1_000 + timeout_us as u64 * 100
}

/// The most polls before the clock is read, so that no implementor hangs its caller. About 2 ms if
/// a poll takes 0.2 us.
const LOOKS_BEFORE_CLOCK_AT_MOST: u32 = 10_000;

/// Polls until `done` returns true, for at most `timeout`; `Ok(false)` when the time is over. The
/// last poll comes after the deadline, so that it finds a completion whose interrupt was lost. A
/// time limit of zero is one poll without a system call.
///
/// # Errors
/// [`Error::Argument`], before the first poll: `timeout` is longer than an hour
/// ([`MAX_TIMEOUT`](crate::types::MAX_TIMEOUT)). The error of the wait.
pub fn poll_until<I: Wait>(
    device: &I,
    timeout: Duration,
    done: impl FnMut(&I) -> bool,
) -> Result<bool, Error> {
    poll_every(device, u32::MAX, timeout, done)
}

/// What a poll found, for a driver that may report an end some time after it saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settling {
    /// No end.
    Nothing,
    /// An end that was seen, and cannot be reported yet.
    Waits,
    /// An end that can be reported, or an error.
    Over,
}

/// As [`poll_until`], for a driver that reports an end `settle_us` after it saw it, without another
/// interrupt: sleeps up to an interrupt, and polls every `settle_us` only while an end waits.
///
/// # Errors
/// As [`poll_until`].
pub fn poll_settling<I: Wait>(
    device: &I,
    settle_us: u32,
    timeout: Duration,
    mut look: impl FnMut(&I) -> Settling,
) -> Result<(), Error> {
    if settle_us == 0 || timeout.is_zero() {
        return poll_until(device, timeout, |device| look(device) == Settling::Over).map(|_| ());
    }
    timeout_us(timeout)?;
    let (from_us, step_us) = (device.now_us(), settle_us.saturating_add(1));
    // Keeps two steps to see an end whose interrupt was lost, and to wait for it.
    let asleep = timeout.saturating_sub(Duration::from_micros(2 * u64::from(step_us)));
    let mut seen = Settling::Nothing;
    poll_every(device, u32::MAX, asleep, |device| {
        seen = look(device);
        seen != Settling::Nothing
    })?;
    if seen == Settling::Over {
        return Ok(());
    }
    let left =
        timeout.saturating_sub(Duration::from_micros(device.now_us().saturating_sub(from_us)));
    poll_every(device, step_us, left, |device| look(device) == Settling::Over).map(|_| ())
}

/// As [`poll_until`], with a poll every `step_us` at least: for what no interrupt announces.
///
/// # Errors
/// As [`poll_until`].
pub fn poll_every<I: Wait>(
    device: &I,
    step_us: u32,
    timeout: Duration,
    mut done: impl FnMut(&I) -> bool,
) -> Result<bool, Error> {
    let timeout_us = timeout_us(timeout)?;
    if done(device) {
        return Ok(true);
    }
    if timeout_us == 0 {
        return Ok(false);
    }
    for _ in 0..device.looks_before_clock().min(LOOKS_BEFORE_CLOCK_AT_MOST) {
        device.wait_at_most(0)?;
        if done(device) {
            return Ok(true);
        }
    }
    let deadline_us = device.now_us().saturating_add(u64::from(timeout_us));
    for _ in 0..looks_at_most(timeout_us) {
        let left_us = deadline_us.saturating_sub(device.now_us());
        if left_us == 0 {
            break;
        }
        device.wait_at_most(u32::try_from(left_us).unwrap_or(u32::MAX).min(step_us))?;
        if done(device) {
            return Ok(true);
        }
    }
    Ok(done(device))
}
