//! A channel on which the core speaks: once valid, it stays as it is until ready (A3.2.1).

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
