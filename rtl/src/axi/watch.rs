//! A channel on which the core speaks: once valid, it stays as it is until ready (A3.2.1), and
//! waits for no ready.

use super::cycle::Cycle;
use super::{Breach, Channel};

/// The core's offer of the last cycle, which was not taken.
#[derive(Debug)]
pub(crate) struct Watch<T> {
    channel: Channel,
    offered: Option<T>,
}

impl<T: PartialEq> Watch<T> {
    pub(crate) const fn new(channel: Channel) -> Self {
        Self { channel, offered: None }
    }

    /// A cycle of the channel.
    pub(crate) fn see(&mut self, valid: u32, ready: u32, payload: T) -> Option<Breach> {
        let channel = self.channel;
        let before = self.offered.take();
        let breach = match &before {
            Some(_) if valid == 0 => Some(Breach::ValidDropped { channel }),
            Some(before) if *before != payload => Some(Breach::PayloadChanged { channel }),
            _ => None,
        };
        self.offered = (valid == 1 && ready == 0).then_some(payload);
        breach
    }

    pub(crate) fn reset(&mut self) {
        self.offered = None;
    }
}

/// Counts the cycles for which something is owed, and tells once when it was too long.
#[derive(Debug)]
pub(crate) struct Patience {
    cycles: u32,
}

impl Patience {
    pub(crate) const fn new() -> Self {
        Self { cycles: 0 }
    }

    pub(crate) const fn is_over(&mut self, owed: bool, most_cycles: u32) -> bool {
        self.cycles = if owed { self.cycles.saturating_add(1) } else { 0 };
        owed && self.cycles == most_cycles
    }
}

/// In so many silent cycles of 1,000 memory is ready without a valid, to see whether one comes.
/// A core that speaks then by chance does so 6 times in a row once in 10^9.
const PROBES: u16 = 16;
/// After so many valids in a row that came only with a ready, the core waits for it.
const MOST_LED: u32 = 6;

/// The ready of one channel, with memory that waits for its valid.
#[derive(Debug)]
pub(super) struct Ready {
    channel: Channel,
    /// The core's valid was seen in the last cycle, and not taken.
    asked: bool,
    /// For so many cycles there was no valid.
    silent_cycles: u32,
    /// Memory was ready without a valid in this cycle, and in the one before.
    probes: [bool; 2],
    /// So many valids in a row came only with a ready.
    led: u32,
}

impl Ready {
    pub(super) const fn new(channel: Channel) -> Self {
        Self { channel, asked: false, silent_cycles: 0, probes: [false; 2], led: 0 }
    }

    /// The core's input, where memory has room. `after_valid`: memory waits for valid. A channel
    /// that is silent for half of the patience sees a ready now and then all the same.
    pub(super) fn drive(
        &mut self,
        room: bool,
        after_valid: bool,
        cycle: &mut Cycle<'_, '_>,
    ) -> u32 {
        let can = room && !cycle.stalls();
        let waits = after_valid && !self.asked && self.led < MOST_LED;
        let silent = waits && can && self.silent_cycles >= cycle.config.patience_cycles / 2;
        self.probes = [silent && cycle.bus.strikes(PROBES), self.probes[0]];
        u32::from(can && (!waits || self.probes[0]))
    }

    /// A cycle of the channel, and the breach of a core that waits for ready: once.
    pub(super) fn see(&mut self, valid: u32, ready: u32) -> Option<Breach> {
        let (rises, led) = (valid == 1 && !self.asked, self.led);
        if rises && self.probes.contains(&true) {
            self.led += 1;
        } else if rises && ready == 0 {
            self.led = 0;
        }
        self.asked = valid == 1 && ready == 0;
        self.silent_cycles = if valid == 1 { 0 } else { self.silent_cycles.saturating_add(1) };
        (led < MOST_LED && self.led == MOST_LED)
            .then_some(Breach::ValidWaitsForReady { channel: self.channel, times: MOST_LED })
    }
}
