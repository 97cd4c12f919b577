//! A FIFO whose two ends are the same core's.

use super::{FIFO_MAX_BYTES, Taken};
use heapless::Deque;

/// The most packets that end inside the FIFO.
const ENDS: usize = 64;

#[derive(Debug)]
pub(super) struct Loopback {
    fifo: [u8; FIFO_MAX_BYTES],
    /// Positions since the beginning: the first byte that was not taken, and where the next one
    /// goes.
    taken: u64,
    given: u64,
    /// Where packets end.
    ends: Deque<u64, ENDS>,
}

impl Loopback {
    pub(super) const fn new() -> Self {
        Self { fifo: [0; FIFO_MAX_BYTES], taken: 0, given: 0, ends: Deque::new() }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.taken == self.given
    }

    fn used_bytes(&self) -> usize {
        // Never more than the FIFO holds.
        usize::try_from(self.given - self.taken).unwrap_or(FIFO_MAX_BYTES)
    }

    pub(super) fn room_bytes(&self, fifo_bytes: usize) -> usize {
        if self.ends.is_full() { 0 } else { fifo_bytes.saturating_sub(self.used_bytes()) }
    }

    pub(super) fn take(&mut self, to: &mut [u8]) -> Taken {
        let end = self.ends.front().copied();
        let until = usize::try_from(end.unwrap_or(self.given) - self.taken).unwrap_or(0);
        let bytes = until.min(to.len());
        for (byte, position) in to.iter_mut().take(bytes).zip(self.taken..) {
            *byte = self.fifo.get(place(position)).copied().unwrap_or(0);
        }
        self.taken += bytes as u64;
        let last = bytes > 0 && end == Some(self.taken);
        if last {
            self.ends.pop_front();
        }
        Taken { bytes, last }
    }

    pub(super) fn give(&mut self, bytes: &[u8], last: bool, fifo_bytes: usize) -> usize {
        let taken = bytes.len().min(self.room_bytes(fifo_bytes));
        for (byte, position) in bytes.iter().take(taken).zip(self.given..) {
            if let Some(place) = self.fifo.get_mut(place(position)) {
                *place = *byte;
            }
        }
        self.given += taken as u64;
        if last && taken == bytes.len() && taken > 0 {
            // There is room: `room_bytes` looked.
            let _ = self.ends.push_back(self.given);
        }
        taken
    }
}

fn place(position: u64) -> usize {
    usize::try_from(position % FIFO_MAX_BYTES as u64).unwrap_or(0)
}
