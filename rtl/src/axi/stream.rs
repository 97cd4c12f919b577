//! The other ends of a core's streams (AXI-Stream, IHI 0051): the runtime's loopback, source or
//! sink.

use super::watch::Watch;
use super::{Channel, Findings};
use crate::ports::{Beat, DATA_WORDS, In, Out, Shape};
use contigo::sim::SimBus;
use contigo::sim::stream::{SimStream, StreamConfig, StreamCounts};

/// The bytes of a beat at most.
const BEAT_BYTES: usize = 4 * DATA_WORDS;

/// The other ends of a core's streams: what it sends goes into a [`SimStream`], what it receives
/// comes out of it.
///
/// A beat is whole unless it is a packet's last. The beat on the wires is one more than the FIFO
/// holds.
#[derive(Debug)]
pub struct StreamPorts {
    stream: SimStream,
    stalls: u16,
    in_bytes: usize,
    out_bytes: usize,
    /// The bytes of the next beat that have come, and whether its last ends a packet.
    next: ([u8; BEAT_BYTES], usize, bool),
    sent: Watch<Beat>,
}

impl StreamPorts {
    /// The ends of a core's streams. In `stalls` of 1,000 cycles they are not ready.
    #[must_use]
    pub fn new(shape: &Shape, config: StreamConfig, stalls: u16) -> Self {
        let bytes = |bits: u32| (bits as usize / 8).min(BEAT_BYTES);
        let (in_bytes, out_bytes) = (bytes(shape.stream_in_bits), bytes(shape.stream_out_bits));
        let next = ([0; BEAT_BYTES], 0, false);
        Self {
            stream: SimStream::new(config),
            stalls,
            in_bytes,
            out_bytes,
            next,
            sent: Watch::new(Channel::Stream),
        }
    }

    /// The counts of the stream.
    #[must_use]
    pub const fn counts(&self) -> StreamCounts {
        self.stream.counts
    }

    /// When something comes by itself, if the core has a stream that receives.
    #[must_use]
    pub fn comes_at_ns(&self, now_ns: u64) -> Option<u64> {
        let (_, len, _) = self.next;
        if self.in_bytes == 0 {
            None
        } else if len > 0 {
            Some(now_ns)
        } else {
            self.stream.ready_at_ns(now_ns, 1)
        }
    }

    fn is_whole(&self) -> bool {
        let (_, len, last) = self.next;
        len > 0 && (last || len == self.in_bytes)
    }

    /// The core's inputs. A source begins when the core is ready for the first time after a reset.
    pub fn drive(&mut self, now_ns: u64, input: &mut In, bus: &mut SimBus<'_>) {
        if self.in_bytes > 0 {
            let (bytes, len, last) = &mut self.next;
            if *len < self.in_bytes && !*last {
                let taken = self
                    .stream
                    .take(now_ns, bytes.get_mut(*len..self.in_bytes).unwrap_or_default());
                (*len, *last) = (*len + taken.bytes, taken.last);
            }
            // Once on the wires, it stays there.
            let offered = input.stream.valid == 1 || !bus.strikes(self.stalls);
            input.stream = Beat::default();
            if self.is_whole() && offered {
                let (bytes, len, last) = &self.next;
                for (to, from) in input.stream.data.iter_mut().zip(bytes.as_chunks().0) {
                    *to = u32::from_le_bytes(*from);
                }
                let keep = if *len < 64 { (1 << len) - 1 } else { u64::MAX };
                (input.stream.keep, input.stream.valid, input.stream.last) =
                    (halves(keep), 1, u32::from(*last));
            }
        }
        let room = self.out_bytes > 0 && self.stream.room_bytes() >= self.out_bytes;
        input.stream_ready = u32::from(room && !bus.strikes(self.stalls));
    }

    /// The core's outputs in cycle `cycle`, after it has seen `input`.
    pub fn take(
        &mut self,
        cycle: u64,
        now_ns: u64,
        input: &mut In,
        out: &Out,
        findings: &mut Findings,
    ) {
        if out.stream_ready == 1 && self.in_bytes > 0 {
            self.stream.trigger(now_ns);
            if input.stream.valid == 1 {
                self.next = ([0; BEAT_BYTES], 0, false);
                input.stream.valid = 0;
            }
        }
        let beat = &out.stream;
        if let Some(breach) = self.sent.see(beat.valid, input.stream_ready, *beat) {
            findings.add(cycle, None, breach);
        }
        if beat.valid & input.stream_ready == 1 {
            let keep = u64::from(beat.keep[0]) | u64::from(beat.keep[1]) << 32;
            let bytes = beat.data.iter().flat_map(|word| word.to_le_bytes()).take(self.out_bytes);
            let kept: Vec<u8> = bytes
                .zip(0..)
                .filter(|(_, lane)| keep >> lane & 1 == 1)
                .map(|(byte, _)| byte)
                .collect();
            self.stream.give(&kept, beat.last == 1);
        }
    }

    /// The core was reset. `keeps`: the FIFO outside keeps what it has, since the core's reset line
    /// does not reach it.
    pub fn reset(&mut self, keeps: bool) {
        self.stream.cut(keeps);
        self.next = ([0; BEAT_BYTES], 0, false);
        self.sent.reset();
    }
}

/// The two words of 64 bits.
#[allow(clippy::cast_possible_truncation, reason = "that is what they are")]
const fn halves(bits: u64) -> [u32; 2] {
    [bits as u32, (bits >> 32) as u32]
}
