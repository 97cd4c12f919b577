//! The line from the camera to the channel: a packet on it, and the bytes that arrived of one.

use super::packet;
use contigo::{
    DevAddr,
    sim::{BusError, SimBus},
};

/// How much is written at once.
const BURST_BYTES: usize = 256;

/// The signal of the camera.
#[derive(Clone, Copy, Debug)]
pub(super) enum Line {
    Silent,
    /// The next packet begins then; `waits`: it has begun, and is in the FIFO.
    Begins {
        at_ns: u64,
        waits: bool,
    },
    Arrives {
        begin_ns: u64,
        end_ns: u64,
        reception: Reception,
    },
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Reception {
    pub(super) number: u32,
    pub(super) len_bytes: usize,
    pub(super) descriptor: u32,
    pub(super) next: u32,
    pub(super) buffer: u64,
    pub(super) fails: bool,
}

impl Reception {
    /// Writes the first `arrived` bytes into the buffer, a burst at a time.
    pub(super) fn put(&self, arrived: usize, bus: &mut SimBus<'_>) -> Result<(), BusError> {
        let arrived = arrived.min(self.len_bytes);
        for (first, at) in (0..).step_by(BURST_BYTES / 4).zip((0..arrived).step_by(BURST_BYTES)) {
            let mut burst = [0; BURST_BYTES];
            let (burst, _) = burst.split_at_mut((arrived - at).min(BURST_BYTES));
            packet::part(self.number, self.len_bytes, first, burst);
            bus.write(DevAddr(self.buffer + at as u64), burst)?;
        }
        Ok(())
    }
}
