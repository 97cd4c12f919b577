//! A burst's arithmetic: the address and the lanes of each beat (IHI 0022, A3.4.1).

use super::Breach;
use crate::ports::AxiAddress;
use std::ops::Range;

/// The way in which the address goes on from beat to beat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BurstKind {
    /// It stays: a FIFO.
    Fixed,
    /// It rises.
    Incr,
    /// It rises, and begins again at a boundary of the burst's length: a cache line.
    Wrap,
}

/// A burst that a core asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// Its transaction's ID.
    pub id: u32,
    /// The first byte's address.
    pub addr: u64,
    /// 1 to 256.
    pub beats: usize,
    /// The bytes of each beat: a power of two, and at most the bus has.
    pub beat_bytes: u64,
    /// The addresses of the others.
    pub kind: BurstKind,
}

impl Burst {
    /// The burst of an address channel over `bus_bytes`, and the rule that it breaks. A burst of a
    /// reserved kind rises; one of wider beats than the bus has the bus' own.
    #[must_use]
    pub fn new(address: &AxiAddress, bus_bytes: usize) -> (Self, Option<Breach>) {
        let addr = u64::from(address.addr[0]) | u64::from(address.addr[1]) << 32;
        let kind = match address.burst {
            0 => BurstKind::Fixed,
            2 => BurstKind::Wrap,
            _ => BurstKind::Incr,
        };
        let asked_bytes = 1_u64 << (address.size & 7);
        let beat_bytes = asked_bytes.min(bus_bytes as u64);
        let burst = Self {
            id: address.id,
            addr,
            beats: (address.len & 0xFF) as usize + 1,
            beat_bytes,
            kind,
        };
        let breach = if address.burst > 2 {
            Some(Breach::ReservedBurst { addr, burst: address.burst })
        } else if asked_bytes > bus_bytes as u64 {
            Some(Breach::SizeOverBus { addr, beat_bytes: asked_bytes, bus_bytes })
        } else {
            burst.breach()
        };
        (burst, breach)
    }

    /// The rule that its addresses break.
    fn breach(&self) -> Option<Breach> {
        let &Self { addr, beats, beat_bytes, kind, .. } = self;
        match kind {
            BurstKind::Incr => {
                let end = (addr & !(beat_bytes - 1)).wrapping_add(self.bytes());
                (addr >> 12 != end.wrapping_sub(1) >> 12)
                    .then_some(Breach::Crosses4KiB { addr, bytes: self.bytes() })
            }
            BurstKind::Fixed => (beats > 16).then_some(Breach::BurstLength { addr, beats }),
            BurstKind::Wrap if ![2, 4, 8, 16].contains(&beats) => {
                Some(Breach::BurstLength { addr, beats })
            }
            BurstKind::Wrap => (!addr.is_multiple_of(beat_bytes))
                .then_some(Breach::WrapUnaligned { addr, beat_bytes }),
        }
    }

    /// The bytes of all beats, where the first is aligned.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.beats as u64 * self.beat_bytes
    }

    /// The address of beat `n`.
    #[must_use]
    pub const fn beat_addr(&self, n: usize) -> u64 {
        let aligned = self.addr & !(self.beat_bytes - 1);
        let rising = aligned.wrapping_add(n as u64 * self.beat_bytes);
        match self.kind {
            _ if n == 0 => self.addr,
            BurstKind::Fixed => self.addr,
            BurstKind::Incr => rising,
            BurstKind::Wrap => {
                let low = self.addr - self.addr % self.bytes();
                low.wrapping_add(rising.wrapping_sub(low) % self.bytes())
            }
        }
    }

    /// The address of the bus' word that beat `n` is in, and the lanes of that word that it has.
    #[must_use]
    pub fn lanes(&self, n: usize, bus_bytes: usize) -> (u64, Range<usize>) {
        let addr = self.beat_addr(n);
        let word = addr & !(bus_bytes as u64 - 1);
        let end = (addr & !(self.beat_bytes - 1)).wrapping_add(self.beat_bytes).wrapping_sub(word);
        // Both are at most the bytes of a bus.
        let lane = |bytes: u64| usize::try_from(bytes).unwrap_or(bus_bytes).min(bus_bytes);
        (word, lane(addr - word)..lane(end))
    }
}

/// The strobes of these lanes.
pub(super) const fn strobes(lanes: &Range<usize>) -> u64 {
    below(lanes.end) & !below(lanes.start)
}

const fn below(end: usize) -> u64 {
    if end < 64 { (1 << end) - 1 } else { u64::MAX }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn burst(addr: u64, beats: usize, beat_bytes: u64, kind: BurstKind) -> Burst {
        Burst { id: 0, addr, beats, beat_bytes, kind }
    }

    fn seen(burst: Burst, bus_bytes: usize) -> Vec<(u64, Range<usize>)> {
        (0..burst.beats).map(|n| burst.lanes(n, bus_bytes)).collect()
    }

    /// The manual's own examples: A3.4.2 (narrow), A3.4.3 (unaligned), A3.4.1 (wrapping).
    #[test]
    fn beats_are_where_the_manual_has_them() {
        use BurstKind::{Fixed, Incr, Wrap};
        assert_eq!(
            seen(burst(0, 5, 1, Incr), 4),
            [(0, 0..1), (0, 1..2), (0, 2..3), (0, 3..4), (4, 0..1)]
        );
        assert_eq!(seen(burst(4, 3, 4, Incr), 8), [(0, 4..8), (8, 0..4), (8, 4..8)]);
        assert_eq!(seen(burst(0x01, 3, 4, Incr), 4), [(0, 1..4), (4, 0..4), (8, 0..4)]);
        assert_eq!(seen(burst(0x07, 3, 4, Incr), 8), [(0, 7..8), (8, 0..4), (8, 4..8)]);
        assert_eq!(seen(burst(0x04, 4, 4, Wrap), 8), [(0, 4..8), (8, 0..4), (8, 4..8), (0, 0..4)]);
        assert_eq!(seen(burst(0x1003, 2, 2, Fixed), 4), [(0x1000, 3..4), (0x1000, 3..4)]);
    }

    #[test]
    fn a_bus_of_64_lanes_has_as_many_strobes() {
        assert_eq!(
            (strobes(&(0..64)), strobes(&(63..64)), strobes(&(4..8))),
            (u64::MAX, 1 << 63, 0xF0)
        );
    }
}
