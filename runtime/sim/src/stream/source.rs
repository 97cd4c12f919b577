//! A source: it sends packets at its rate into a FIFO, which loses what does not fit.

use super::{SourceConfig, StreamCounts, Taken, packet};
use heapless::Deque;

/// The most packets that the FIFO holds at once. A further packet is lost.
const PACKETS: usize = 64;
/// From the trigger to the first packet: the delay of a sensor.
const TRIGGER_NS: u64 = 1_000;
/// After a long time without an access, the model loses this many packets one by one, and the
/// others in one step.
const ONE_BY_ONE: u64 = 256;

/// A packet in the FIFO, or arriving there.
#[derive(Clone, Copy, Debug)]
struct Packet {
    number: u32,
    /// The packet's length, before it was cut.
    whole_bytes: usize,
    /// How many of its bytes will ever reach the FIFO.
    len_bytes: usize,
    arrived: usize,
    taken: usize,
}

impl Packet {
    const fn waits(&self) -> usize {
        self.arrived - self.taken
    }
}

#[derive(Debug)]
pub(super) struct Source {
    fifo: Deque<Packet, PACKETS>,
    /// The number of the packet that is arriving, or the next one.
    number: u32,
    /// When that packet began or will begin; `None`: the source is silent.
    begins_ns: Option<u64>,
    /// That packet is counted as begun, and is in the FIFO or lost.
    begun: bool,
    /// That packet is lost: its bytes are discarded.
    is_lost: bool,
}

impl Source {
    pub(super) const fn new() -> Self {
        Self { fifo: Deque::new(), number: 0, begins_ns: None, begun: false, is_lost: false }
    }

    pub(super) const fn trigger(&mut self, now_ns: u64, config: &SourceConfig) {
        if self.begins_ns.is_none() && self.number < config.packets {
            self.begins_ns = Some(now_ns + TRIGGER_NS);
        }
    }

    /// Adds the bytes that arrived by `now_ns`.
    pub(super) fn settle(
        &mut self,
        now_ns: u64,
        config: &SourceConfig,
        fifo_bytes: usize,
        counts: &mut StreamCounts,
    ) {
        let period_ns = (config.duration_ns(config.packet_bytes as u64) + config.gap_ns).max(1);
        let mut turns = 0;
        // Each round handles a packet that is over; a core's long silence is one round.
        while let Some(begins_ns) = self.begins_ns.filter(|&begins_ns| begins_ns <= now_ns) {
            let len_bytes = config.len_bytes(self.number);
            if !core::mem::replace(&mut self.begun, true) {
                counts.begun += 1;
                let packet = Packet {
                    number: self.number,
                    whole_bytes: len_bytes,
                    len_bytes,
                    arrived: 0,
                    taken: 0,
                };
                self.is_lost = self.fifo.push_back(packet).is_err();
                counts.lost += u64::from(self.is_lost);
            }
            let end_ns = begins_ns + config.duration_ns(len_bytes as u64);
            self.arrive(
                (now_ns - begins_ns).saturating_mul(config.bytes_per_us) / 1_000,
                fifo_bytes,
                counts,
            );
            if end_ns > now_ns {
                return;
            }
            (self.number, self.begun, self.is_lost) = (self.number.wrapping_add(1), false, false);
            let mut next_ns = end_ns + config.gap_ns;
            turns += 1;
            if turns > ONE_BY_ONE && next_ns < now_ns {
                let skipped = ((now_ns - next_ns) / period_ns)
                    .min(u64::from(config.packets.saturating_sub(self.number)));
                (counts.begun, counts.lost) = (counts.begun + skipped, counts.lost + skipped);
                self.number = self.number.wrapping_add(u32::try_from(skipped).unwrap_or(u32::MAX));
                next_ns += skipped * period_ns;
            }
            self.begins_ns = (self.number < config.packets).then_some(next_ns);
        }
    }

    /// Updates the arriving packet: this many of its bytes have arrived since it began.
    fn arrive(&mut self, bytes: u64, fifo_bytes: usize, counts: &mut StreamCounts) {
        if self.is_lost {
            return;
        }
        let used: usize = self.fifo.iter().map(Packet::waits).sum();
        let Some(packet) = self.fifo.back_mut() else { return };
        let arrived = usize::try_from(bytes).unwrap_or(usize::MAX).min(packet.len_bytes);
        if used + (arrived - packet.arrived) <= fifo_bytes {
            packet.arrived = arrived;
            return;
        }
        self.is_lost = true;
        if packet.taken > 0 {
            packet.arrived += fifo_bytes - used;
            packet.len_bytes = packet.arrived;
            counts.cut += 1;
        } else {
            self.fifo.pop_back();
            counts.lost += 1;
        }
    }

    pub(super) fn take(
        &mut self,
        to: &mut [u8],
        config: &SourceConfig,
        counts: &mut StreamCounts,
    ) -> Taken {
        let Some(packet) = self.fifo.front_mut() else { return Taken::default() };
        let bytes = packet.waits().min(to.len());
        let part = to.get_mut(..bytes).unwrap_or_default();
        packet::part(packet.number, packet.whole_bytes, packet.taken, part);
        packet.taken += bytes;
        let over = packet.taken == packet.len_bytes;
        if over {
            counts.taken += u64::from(packet.len_bytes == packet.whole_bytes);
            self.fifo.pop_front();
        }
        Taken { bytes, last: over && config.marks_last && bytes > 0 }
    }

    pub(super) fn ready_at_ns(
        &self,
        now_ns: u64,
        want_bytes: usize,
        config: &SourceConfig,
    ) -> Option<u64> {
        // Time does not go back, so the bytes in the FIFO arrived earlier.
        let waiting = self
            .fifo
            .front()
            .filter(|packet| packet.waits() >= want_bytes || packet.arrived == packet.len_bytes);
        if waiting.is_some() {
            return Some(now_ns);
        }
        let begins_ns = self.begins_ns?;
        let taken = self.fifo.front().map_or(0, |packet| packet.taken);
        let wanted = (taken + want_bytes).min(config.len_bytes(self.number)) as u64;
        // The FIFO holds no whole packet before the arriving one, so that is the first.
        Some((begins_ns + config.duration_ns(wanted)).max(now_ns))
    }

    pub(super) fn cut(&mut self, counts: &mut StreamCounts) {
        // Packets that lost their end were counted at that time.
        counts.cut +=
            self.fifo.iter().filter(|packet| packet.len_bytes == packet.whole_bytes).count() as u64;
        self.fifo.clear();
        if core::mem::take(&mut self.begun) {
            self.number = self.number.wrapping_add(1);
        }
        (self.begins_ns, self.is_lost) = (None, false);
    }
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that panics has failed, which is its purpose"
)]
mod tests {
    use super::*;

    #[test]
    fn each_packet_is_taken_lost_or_cut() {
        let mut rng = fastrand::Rng::with_seed(1);
        let (mut all, mut bytes) = (StreamCounts::default(), [0; 512]);
        for _ in 0..300 {
            let short_every = rng.bool().then_some(3);
            let packet_bytes = rng.usize(12..400);
            let (bytes_per_us, gap_ns) = (rng.u64(1..900), rng.u64(..300));
            let config = SourceConfig { packets: 100, short_every, ..SourceConfig::default() };
            let config = SourceConfig { packet_bytes, bytes_per_us, gap_ns, ..config };
            let (mut source, mut counts, mut now_ns) = (Source::new(), StreamCounts::default(), 0);
            let fifo_bytes = rng.usize(64..600);
            source.trigger(0, &config);
            let (mut got, mut last_number) = (0, None);
            while source.begins_ns.is_some() || !source.fifo.is_empty() {
                now_ns += rng.u64(..4_000);
                source.settle(now_ns, &config, fifo_bytes, &mut counts);
                let want = rng.usize(1..100).min(bytes.len() - got);
                let taken = source.take(&mut bytes[got..got + want], &config, &mut counts);
                got += taken.bytes;
                if taken.last {
                    let number = packet::number(&bytes).unwrap();
                    assert!(last_number.is_none_or(|last| last < number));
                    let whole = packet::begins(number, config.len_bytes(number), &bytes[..got]);
                    assert!(whole && got <= config.len_bytes(number));
                    (got, last_number) = (0, Some(number));
                }
            }
            assert_eq!(
                (counts.begun, counts.taken + counts.lost + counts.cut),
                (100, 100),
                "{counts:?}"
            );
            all.taken += counts.taken;
            all.lost += counts.lost;
            all.cut += counts.cut;
        }
        assert!(all.taken > 1_000 && all.lost > 1_000 && all.cut > 100, "{all:?}");
    }

    #[test]
    fn a_long_silence_is_counted_at_once() {
        let config = SourceConfig { packets: 1_000_000, gap_ns: 10, ..SourceConfig::default() };
        let (mut source, mut counts) = (Source::new(), StreamCounts::default());
        source.trigger(0, &config);
        source.settle(u64::MAX / 4_000_000, &config, 512, &mut counts);
        assert_eq!((counts.begun, counts.lost), (1_000_000, 1_000_000));
    }
}
