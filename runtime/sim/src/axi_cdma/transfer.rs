//! One transfer under way: what it moves, and how it will end.

use super::{AxiCdmaSpec, FIFO_ADDR, manual};
use crate::SimBus;
use crate::faults::Fate;
use crate::stream::SimStream;
use contigo_core::types::DevAddr;

/// The size of one burst.
const BURST_BYTES: usize = 256;

/// A transfer that registers started, or a descriptor as fetched.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transfer {
    /// The descriptor; `None`: registers started the transfer.
    pub(super) descriptor: Option<u64>,
    pub(super) next: u64,
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) len_bytes: usize,
    pub(super) moved: usize,
    pub(super) begins_ns: u64,
    pub(super) ends_ns: u64,
    /// How late the interrupt is; `None`: it got lost.
    pub(super) irq_delay_ns: Option<u64>,
    pub(super) fate: Fate,
}

/// One word of the bus, as Vivado builds it.
const WORD_BYTES: usize = 4;

impl Transfer {
    /// Returns the bit of an error that the core finds before it moves any byte.
    pub(super) fn nonsense(&self, spec: &AxiCdmaSpec, control: u32) -> Option<u32> {
        let (len, word) = (self.len_bytes as u64, spec.word_bytes());
        let sides = [
            (self.from, control & manual::CR_KEYHOLE_READ),
            (self.to, control & manual::CR_KEYHOLE_WRITE),
        ];
        let misaligned = sides
            .iter()
            .any(|(addr, fixed)| (!spec.dre || *fixed != 0) && !addr.is_multiple_of(word));
        let too_long = spec.lite_beats.is_some_and(|beats| {
            let crosses = |addr: u64| addr % 4096 + len > 4096;
            len > u64::from(beats) * word || crosses(self.from) || crosses(self.to)
        });
        (len == 0 || misaligned || too_long).then_some(manual::SR_DMA_INT)
    }

    /// Moves up to `limit` bytes. `false`: a FIFO makes the core wait.
    pub(super) fn run(
        &mut self,
        limit: usize,
        control: u32,
        fifo: &mut SimStream,
        bus: &mut SimBus<'_>,
    ) -> Result<bool, u32> {
        let limit = limit.min(self.len_bytes);
        while self.moved < limit {
            let (from, to) = (
                self.from.wrapping_add(self.moved as u64),
                self.to.wrapping_add(self.moved as u64),
            );
            let boundary = BURST_BYTES - usize::try_from(to % BURST_BYTES as u64).unwrap_or(0);
            let mut want = boundary.min(limit - self.moved);
            if control & manual::CR_KEYHOLE_WRITE != 0 {
                want = want.min(fifo.room_bytes());
            }
            let mut beats = [0; BURST_BYTES];
            let bytes = beats.get_mut(..want).unwrap_or_default();
            let mut got = bytes.len();
            if control & manual::CR_KEYHOLE_READ == 0 {
                bus.read_words(DevAddr(from), bytes, WORD_BYTES).map_err(|_| manual::SR_DMA_DEC)?;
            } else if self.from == FIFO_ADDR {
                got = fifo.take(bus.now_ns(), bytes).bytes;
            } else {
                // Fixed bursts reach only the FIFO.
                return Err(manual::SR_DMA_DEC);
            }
            let bytes = bytes.get(..got).unwrap_or_default();
            if got == 0 {
                return Ok(false);
            }
            if control & manual::CR_KEYHOLE_WRITE == 0 {
                bus.write(DevAddr(to), bytes).map_err(|_| manual::SR_DMA_DEC)?;
            } else if self.to == FIFO_ADDR {
                fifo.give(bytes, false);
            } else {
                return Err(manual::SR_DMA_DEC);
            }
            self.moved += got;
        }
        Ok(true)
    }

    /// Returns whether at most one burst is left.
    pub(super) const fn is_in_last_burst(&self) -> bool {
        self.len_bytes - self.moved <= BURST_BYTES
    }

    /// How many bytes are moved by `now_ns`, if the transfer goes on.
    pub(super) fn moved_by(&self, now_ns: u64) -> usize {
        let (passed, whole) =
            (now_ns.saturating_sub(self.begins_ns), (self.ends_ns - self.begins_ns).max(1));
        let bytes = u128::from(passed.min(whole)) * self.len_bytes as u128 / u128::from(whole);
        usize::try_from(bytes).unwrap_or(self.len_bytes)
    }
}
