//! The time between an end that a core reports and its bytes in memory, or its answers back, where
//! no register and no interrupt announces that it is over.
//!
//! Reading the last word back does not help: the driver does not know its value, and the old one
//! may be the same. So the caller sets a bound, and the driver reports an end, or a stopped core,
//! after that. Meanwhile **each poll of a driver accesses a register**, because the time of a
//! simulated board passes by accesses, and **acknowledges a level interrupt**: otherwise each wait
//! for the rest of the time would return at once. [`settle`] itself does neither: its caller has
//! masked the interrupt, or has one that is an edge.

use contigo_core::hw::Wait;
use contigo_core::hw::wait::poll_every;
use contigo_core::types::Result;
use core::time::Duration;

/// The ends that were seen, and those that may be reported.
/// It counts ends, so it is not copied: a copy would report them twice.
#[derive(Debug)]
pub(super) struct Settle {
    /// The time from the core's report; 0 if nothing is under way then.
    us: u32,
    /// Ends whose time is over.
    over: usize,
    /// Ends that were seen after them, all before `since_us`.
    later: usize,
    since_us: u64,
    /// The core was stopped, and has waited.
    at_rest: bool,
}

impl Settle {
    pub(super) const fn new(us: u32) -> Self {
        Self { us, over: 0, later: 0, since_us: 0, at_rest: false }
    }

    /// The core begins anew.
    pub(super) const fn begin_anew(&mut self) {
        (self.over, self.later, self.at_rest) = (0, 0, false);
    }

    /// The core was stopped, and its accesses have ended.
    pub(super) const fn rest(&mut self) {
        (self.later, self.at_rest) = (0, true);
    }

    /// The time that an end needs.
    pub(super) const fn us(&self) -> u32 {
        self.us
    }

    /// Whether an end needs time.
    pub(super) const fn needs_time(&self) -> bool {
        self.us > 0
    }

    /// Whether an end was seen that cannot be reported yet.
    pub(super) const fn waits(&self) -> bool {
        self.later > 0
    }

    /// Whether the first of the `seen` ends that were not taken may be reported. An end that is
    /// first seen while others settle begins its own time when theirs is over.
    pub(super) fn look(&mut self, device: &impl Wait, seen: usize) -> bool {
        if self.us == 0 || self.at_rest {
            self.over = seen;
        } else {
            let now_us = device.now_us();
            if self.later > 0 && now_us.saturating_sub(self.since_us) > self.us.into() {
                (self.over, self.later) = (self.over + self.later, 0);
            }
            if self.later == 0 && seen > self.over {
                (self.later, self.since_us) = (seen - self.over, now_us);
            }
        }
        self.over > 0
    }

    /// Takes one end that may be reported.
    pub(super) const fn take(&mut self) -> bool {
        let some = self.over > 0;
        self.over -= some as usize;
        some
    }

    /// Takes all ends that may be reported.
    pub(super) const fn take_all(&mut self) -> usize {
        let over = self.over;
        self.over = 0;
        over
    }
}

/// Waits until what `device` began earlier, at most `us` ago, has ended. `false` if its clock does
/// not advance.
///
/// # Errors
/// The error of the interrupt's file, which ends the wait early.
pub(super) fn settle(device: &impl Wait, us: u32) -> Result<bool> {
    /// No interrupt announces the end of a wait.
    const STEP_US: u32 = 5;
    if us == 0 {
        return Ok(true);
    }
    let until_us = device.now_us().saturating_add(us.into());
    poll_every(device, STEP_US, Duration::from_micros(2 * u64::from(us)), |device| {
        device.now_us() > until_us
    })
}
