#![allow(unsafe_code, reason = "stop and reset are bits of control registers")]
//! How the core is stopped: no descriptor begins, the one at work ends, and the prefetcher and then
//! the dispatcher are reset.
//!
//! The masters are stopped only if the descriptor does not end in time. This spoils a core that
//! counts the answers to its writes: STOP suppresses bursts that it has counted, and it waits for
//! their answers for ever, also after a reset by its register. Later jobs never end. So the driver
//! reports that the core will not stop, until an external reset: CONTROL keeps STOP, which such a
//! reset clears. A receiver waits for its packet without a burst under way, so its stop counts as a
//! success.
//!
//! A core without write responses has issued its last writes then, and no register shows when they
//! are in memory. The stop waits for the time that the caller configured.
//!
//! A prefetcher that waits for room in the dispatcher's FIFO does not see its own reset
//! (`altera_msgdma_prefetcher_read.v`, `WR_WAIT`), and a stopped dispatcher makes no room. This
//! happens if the core's FIFO is shallower than the setting `depth`. Resetting the dispatcher makes
//! room. The descriptor that then comes may begin, so the dispatcher is stopped and reset once
//! more.

use super::driver::{Msgdma, Spoilt, Way};
use super::regs::{self, At};
use crate::settle::settle;
use contigo_core::hw::Device;
use contigo_core::hw::wait::poll_every;
use contigo_core::job::{StopProgram, StopStep};
use contigo_core::types::{Error, Result};
use core::time::Duration;

/// The time between polls of a wait: no interrupt announces the end of a stop.
const STOP_STEP_US: u32 = 5;
/// The limit of each wait of the stop program, which the kernel runs if this process has died: six
/// of them, two of `settle_us`, and those below are less than a second.
const PROGRAM_US: u32 = 130_000;
/// The limit of the last poll, after all of these.
const ANSWER_US: u32 = 10_000;
/// The limit of the poll of a mark that was written before.
const MARK_US: u32 = 1;
/// A value that STATUS never has, not even in absent registers, which read ones.
const NEVER: u32 = 1 << 10;

/// Whether it did not stop in time. A failed interrupt file, which gave it no time, is an error.
const fn is_late(stopped: Result<()>) -> Result<bool> {
    match stopped {
        Ok(()) => Ok(false),
        Err(Error::WillNotStop { .. }) => Ok(true),
        Err(error) => Err(error),
    }
}

impl<D: Device> Msgdma<D> {
    /// Waits for `done`, at most until the limit.
    ///
    /// # Errors
    /// [`Error::WillNotStop`], with the register's last value; or the interrupt file's error.
    fn wait_for(
        &self,
        mut register: impl FnMut(&D) -> u32,
        done: impl Fn(u32) -> bool,
    ) -> Result<()> {
        let mut status = 0;
        let limit = Duration::from_micros(self.config.stop_us.into());
        let met = poll_every(&self.device, STOP_STEP_US, limit, |device| {
            status = register(device);
            done(status)
        })?;
        if met { Ok(()) } else { Err(self.will_not(status)) }
    }

    /// After waits for the descriptor, masters, prefetcher and reset, each at most twice.
    const fn will_not(&self, status: u32) -> Error {
        Error::WillNotStop {
            device: "msgdma",
            status,
            waited_us: self.config.stop_us.saturating_mul(8),
        }
    }

    /// Stops and resets the core. Between the two, saves ends that a reset would clear.
    pub(super) fn halt(&mut self) -> Result<()> {
        let control = regs::CONTROL.read(&At(&self.device, self.config.csr_at));
        if self.spoilt == Spoilt::Marked {
            if control & regs::STOP != 0 {
                return Err(self.will_not(control));
            }
            self.spoilt = Spoilt::No;
        }
        let stopped = self.rest(control);
        if self.spoilt == Spoilt::No {
            return stopped;
        }
        // Also if the reset was late: the next stop would find a core at rest.
        let stop = regs::STOP | regs::STOP_DESCRIPTORS;
        // SAFETY: a core that stops starts nothing. An external reset clears this mark.
        unsafe { regs::CONTROL.write(&At(&self.device, self.config.csr_at), stop) };
        self.spoilt = Spoilt::Marked;
        Err(stopped.err().unwrap_or_else(|| self.will_not(stop)))
    }

    /// Stops and resets the core; `control` is the previous value of CONTROL.
    fn rest(&mut self, control: u32) -> Result<()> {
        let stopped = self.stop_dispatcher();
        is_late(stopped)?;
        if let Some(at) = self.config.prefetcher_at {
            // SAFETY: a core that stops starts nothing.
            unsafe { regs::FETCH_CONTROL.write(&At(&self.device, at), regs::FETCH_RESET) };
            if is_late(self.prefetcher_stops(at))? {
                // The prefetcher may wait for room.
                self.reset_dispatcher(0)?;
                is_late(self.stop_dispatcher())?;
                self.prefetcher_stops(at)?;
            }
            // SAFETY: acknowledging moves no data.
            unsafe { regs::FETCH_STATUS.write(&At(&self.device, at), regs::FETCH_IRQ) };
        } else if let (Way::Slave(slave), Ok(())) = (&mut self.way, stopped) {
            slave.drain(&self.device);
        }
        self.reset_dispatcher(regs::EMPTY)?;
        if settle(&self.device, self.config.settles_us())? {
            Ok(())
        } else {
            Err(self.will_not(control))
        }
    }

    /// Lets no descriptor begin, and waits for the one at work; stops the masters if that takes too
    /// long.
    fn stop_dispatcher(&mut self) -> Result<()> {
        let csr_at = self.config.csr_at;
        // SAFETY: a core that stops starts nothing.
        unsafe { regs::CONTROL.write(&At(&self.device, csr_at), regs::STOP_DESCRIPTORS) };
        let (bits, stopped) = (regs::STOPPED | regs::RESERVED, regs::STOPPED);
        let done = self.wait_for(
            |device| regs::STATUS.read(&At(device, csr_at)),
            |status| status & bits == stopped,
        );
        if !is_late(done)? {
            return Ok(());
        }
        if self.config.is_spoilt_by_stop() {
            self.spoilt = Spoilt::Cut;
        }
        // SAFETY: as above.
        unsafe {
            regs::CONTROL.write(&At(&self.device, csr_at), regs::STOP | regs::STOP_DESCRIPTORS)
        };
        self.wait_for(
            |device| regs::STATUS.read(&At(device, csr_at)),
            |status| status & bits == stopped,
        )
    }

    fn prefetcher_stops(&self, at: usize) -> Result<()> {
        let bits = regs::RUN | regs::FETCH_RESET | regs::FETCH_RESERVED;
        self.wait_for(
            |device| regs::FETCH_CONTROL.read(&At(device, at)),
            |status| status & bits == 0,
        )
    }

    /// Resets the dispatcher and the masters, which must then be idle, with the bit `empty`.
    fn reset_dispatcher(&self, empty: u32) -> Result<()> {
        let csr_at = self.config.csr_at;
        // SAFETY: a core that is reset starts nothing.
        unsafe { regs::CONTROL.write(&At(&self.device, csr_at), regs::RESET) };
        let bits =
            regs::RESETTING | regs::RESERVED | if empty == 0 { 0 } else { regs::BUSY | empty };
        self.wait_for(
            |device| regs::STATUS.read(&At(device, csr_at)),
            |status| status & bits == empty,
        )
    }

    /// The same as steps. The polls include bits that the core never sets. The second part stops
    /// the masters, and makes room for a prefetcher. A core that needs time gets it by a poll that
    /// never succeeds, so there the second part always runs, and a third part has the answer. A
    /// mark in CONTROL, which a reset clears, shows that the second part has waited: a core that
    /// becomes idle only after its last poll has not. A core that a stop spoils keeps STOP for the
    /// next program; the last poll still reads STATUS, where STOPPED is set because no descriptor
    /// is at work.
    pub(super) fn program(&self) -> StopProgram {
        let (control, status) = (
            self.config.csr_at + regs::CONTROL.offset(),
            self.config.csr_at + regs::STATUS.offset(),
        );
        let wait = StopStep::write(control, u32::MAX, regs::STOP_DESCRIPTORS);
        let ended =
            StopStep::poll_until(status, regs::STOPPED | regs::RESERVED, regs::STOPPED, PROGRAM_US);
        let stop = StopStep::write(control, u32::MAX, regs::STOP | regs::STOP_DESCRIPTORS);
        let reset = StopStep::write(control, u32::MAX, regs::RESET);
        let idle = regs::RESETTING | regs::BUSY | regs::EMPTY | regs::RESERVED;
        let over = StopStep::poll_until(status, idle, regs::EMPTY, PROGRAM_US);
        let answer = StopStep::poll_until(status, idle, regs::EMPTY, ANSWER_US);
        let room = StopStep::poll_until(status, regs::RESETTING | regs::RESERVED, 0, PROGRAM_US);
        let fetch = self.config.prefetcher_at.map(|at| {
            let fetch = at + regs::FETCH_CONTROL.offset();
            let begin = StopStep::write(fetch, u32::MAX, regs::FETCH_RESET);
            (
                begin,
                StopStep::poll_until(
                    fetch,
                    regs::RUN | regs::FETCH_RESET | regs::FETCH_RESERVED,
                    0,
                    PROGRAM_US,
                ),
            )
        });
        let settles_us = self.config.settles_us();
        let settled = (settles_us > 0).then_some([
            StopStep::write(control, u32::MAX, regs::STOP_DESCRIPTORS),
            StopStep::poll_until(status, NEVER | NEVER << 1, NEVER, settles_us),
        ]);
        let settled = settled.as_ref().map_or(&[][..], |steps| &steps[..]);
        let marks = regs::RESET | regs::STOP | regs::STOP_DESCRIPTORS;
        let marked = StopStep::poll_until(control, marks, regs::STOP_DESCRIPTORS, MARK_US);
        let kept = StopStep::poll_until(
            status,
            idle | regs::STOPPED,
            regs::EMPTY | regs::STOPPED,
            ANSWER_US,
        );
        let spoilt: &[StopStep] = if self.config.is_spoilt_by_stop() { &[stop, kept] } else { &[] };
        let steps = |parts: &[&[StopStep]]| {
            StopProgram::of(parts.iter().flat_map(|part| part.iter().copied()))
        };
        let program = || {
            let (first, second) = match &fetch {
                Some((begin, done)) => {
                    let first = steps(&[&[wait, ended, *begin, *done, reset, over], settled])?;
                    let second = [stop, *begin, reset, room, stop, *done, reset, over];
                    (first, steps(&[&second, spoilt, settled])?)
                }
                None => {
                    let first = steps(&[&[wait, ended, reset, over], settled])?;
                    (first, steps(&[&[stop, reset, over], spoilt, settled])?)
                }
            };
            let both = first.or_else(&second)?;
            if settled.is_empty() { Ok(both) } else { both.or_else(&steps(&[&[answer, marked]])?) }
        };
        program().unwrap_or_default()
    }
}
