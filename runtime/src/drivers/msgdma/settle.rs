//! Ends of a core without write responses: its last writes are accepted then, and not in memory.
//!
//! No register tells when they are. To read the last word back would not do: the driver does not
//! know it, and the old word may be the same. So the caller says a bound, and the driver tells an
//! end, and says that the core has stopped, after that.

use super::config::MsgdmaConfig;
use crate::{
    hw::{Device, Wait, wait::poll_every},
    types::Result,
};
use core::time::Duration;

/// The ends that may be told.
#[derive(Debug)]
pub(super) struct Settle {
    /// From the core's word to the bytes in memory; 0 where the core waits for them.
    us: u32,
    /// Ends that are over for certain.
    over: usize,
    /// Ends that were seen behind them, all before `since_us`.
    later: usize,
    since_us: u64,
    /// The core was stopped, and has waited.
    at_rest: bool,
}

impl Settle {
    pub(super) const fn new(config: &MsgdmaConfig) -> Self {
        Self { us: config.settles_us(), over: 0, later: 0, since_us: 0, at_rest: false }
    }

    /// The core begins anew.
    pub(super) const fn begin_anew(&mut self) {
        (self.over, self.later, self.at_rest) = (0, 0, false);
    }

    /// The core was stopped, and its writes are in memory.
    pub(super) const fn rest(&mut self) {
        (self.later, self.at_rest) = (0, true);
    }

    /// Does an end need time?
    pub(super) const fn needs_time(&self) -> bool {
        self.us > 0
    }

    /// Was an end seen that cannot be told yet?
    pub(super) const fn waits(&self) -> bool {
        self.later > 0
    }

    /// So many ends were seen and not told, in all. May the first one be told?
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

    /// Takes one that may be told.
    pub(super) const fn take(&mut self) -> bool {
        let some = self.over > 0;
        self.over -= some as usize;
        some
    }
}

/// Waits until writes that `device` has made before are in memory. False: its clock stands.
///
/// # Errors
/// That of the interrupt's file, which ends the wait early.
pub(super) fn settle(device: &impl Device, us: u32) -> Result<bool> {
    /// No interrupt announces the end of a wait.
    const STEP_US: u32 = 5;
    if us == 0 {
        return Ok(true);
    }
    let until_us = device.now_us().saturating_add(us.into());
    poll_every(device, STEP_US, Duration::from_micros(2 * u64::from(us)), |device| device.now_us() > until_us)
}
