//! The other end of a core's stream: a loopback, a source that never waits, or a sink.
//!
//! The model of a core with a stream holds a [`SimStream`]. It takes incoming bytes with
//! [`take`](SimStream::take), and sends with [`give`](SimStream::give), at the times of its own
//! bursts. The stream has no clock: every call passes the time, which never goes back.
//!
//! A source never waits. Its bytes arrive in a FIFO at its rate. A packet that finds no room there
//! is lost; a packet that runs out of room in the middle is cut. The stream counts both.

mod config;
pub mod packet;
mod source;

use config::{FIFO_MAX_BYTES, FNV_START, fnv1a};
pub use config::{SourceConfig, StreamConfig, StreamCounts, StreamEnd};
use heapless::Deque;
use source::Source;

/// The result of one [`SimStream::take`]: at most the last byte ends a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// How many bytes.
    pub bytes: usize,
    /// The last of these bytes is the last of a packet (TLAST).
    pub last: bool,
}

/// The other end of a core's stream.
///
/// ```
/// use contigo::sim::stream::{SimStream, SourceConfig, StreamConfig, packet};
/// let source = SourceConfig { packets: 1, packet_bytes: 100, bytes_per_us: 100, ..SourceConfig::default() };
/// let mut stream = SimStream::new(StreamConfig::source(source, 512));
/// stream.trigger(0);
/// let mut bytes = [0; 128];
/// assert_eq!(stream.take(1_500, &mut bytes).bytes, 50, "it began after 1 µs, and half of it has arrived");
/// let rest = stream.take(2_500, &mut bytes[50..]);
/// assert!(rest.last && packet::is(0, &bytes[..50 + rest.bytes]));
/// ```
#[derive(Debug)]
pub struct SimStream {
    config: StreamConfig,
    /// How packets ended, and what the core sent.
    pub counts: StreamCounts,
    loopback: Loopback,
    source: Source,
}

impl Default for SimStream {
    fn default() -> Self {
        Self::new(StreamConfig::default())
    }
}

impl SimStream {
    /// A stream by `config`. A FIFO size of 0, or above 4096, is set to one byte, or
    /// to that maximum.
    #[must_use]
    pub fn new(config: StreamConfig) -> Self {
        let config =
            StreamConfig { fifo_bytes: config.fifo_bytes.clamp(1, FIFO_MAX_BYTES), ..config };
        let counts = StreamCounts { sent_hash: FNV_START, ..StreamCounts::default() };
        Self { config, counts, loopback: Loopback::new(), source: Source::new() }
    }

    /// Starts a source at `now_ns`, when the core's channel runs. A source that has begun goes on.
    pub fn trigger(&mut self, now_ns: u64) {
        if let StreamEnd::Source(source) = self.config.end {
            self.source.trigger(now_ns, &source);
        }
    }

    /// Takes what has arrived by `now_ns`, up to the end of a packet.
    pub fn take(&mut self, now_ns: u64, to: &mut [u8]) -> Taken {
        match self.config.end {
            StreamEnd::Loopback => {
                let taken = self.loopback.take(to);
                self.counts.taken += u64::from(taken.last);
                taken
            }
            StreamEnd::Source(source) => {
                self.source.settle(now_ns, &source, self.config.fifo_bytes, &mut self.counts);
                self.source.take(to, &source, &mut self.counts)
            }
            StreamEnd::Sink => Taken::default(),
        }
    }

    /// When `want_bytes`, or the rest of the packet, can be taken; `now_ns` if they are there. It
    /// never waits for more than half of the FIFO. `None`: no bytes are coming.
    #[must_use]
    pub fn ready_at_ns(&self, now_ns: u64, want_bytes: usize) -> Option<u64> {
        let want_bytes = want_bytes.clamp(1, (self.config.fifo_bytes / 2).max(1));
        match self.config.end {
            StreamEnd::Loopback => (!self.loopback.is_empty()).then_some(now_ns),
            StreamEnd::Source(source) => self.source.ready_at_ns(now_ns, want_bytes, &source),
            StreamEnd::Sink => None,
        }
    }

    /// Sends `bytes`; `last`: they end a packet. Returns how many were accepted. If these are
    /// fewer, the rest and the packet's end wait.
    pub fn give(&mut self, bytes: &[u8], last: bool) -> usize {
        let taken = match self.config.end {
            StreamEnd::Loopback => self.loopback.give(bytes, last, self.config.fifo_bytes),
            StreamEnd::Source(_) | StreamEnd::Sink => bytes.len(),
        };
        let given = bytes.get(..taken).unwrap_or_default();
        self.counts.sent_bytes += given.len() as u64;
        self.counts.sent_hash = fnv1a(self.counts.sent_hash, given);
        self.counts.sent += u64::from(last && taken == bytes.len());
        taken
    }

    /// How many bytes can be sent without waiting; a sink has room for any number.
    #[must_use]
    pub fn room_bytes(&self) -> usize {
        match self.config.end {
            StreamEnd::Loopback => self.loopback.room_bytes(self.config.fifo_bytes),
            StreamEnd::Source(_) | StreamEnd::Sink => usize::MAX,
        }
    }

    /// Tells the stream that the core was stopped or reset. A source is silent until its next
    /// trigger, and the packet under way is cut, unless the source goes on
    /// ([`SourceConfig::goes_on`]). Bytes in a loopback's FIFO stay there if `keeps` is set: an
    /// FIFO outside of the core, which the core's reset does not reach.
    pub fn cut(&mut self, keeps: bool) {
        if let StreamEnd::Source(SourceConfig { goes_on: false, .. }) = self.config.end {
            self.source.cut(&mut self.counts);
        }
        if !keeps {
            self.loopback = Loopback::new();
        }
    }
}

/// The most packets that end inside the FIFO.
const ENDS: usize = 64;

/// A FIFO with the same core at both ends.
#[derive(Debug)]
struct Loopback {
    fifo: [u8; FIFO_MAX_BYTES],
    /// Positions since the beginning: the first byte that was not taken, and the end of the bytes
    /// sent.
    taken: u64,
    given: u64,
    /// The positions at which packets end.
    ends: Deque<u64, ENDS>,
}

impl Loopback {
    const fn new() -> Self {
        Self { fifo: [0; FIFO_MAX_BYTES], taken: 0, given: 0, ends: Deque::new() }
    }

    const fn is_empty(&self) -> bool {
        self.taken == self.given
    }

    fn used_bytes(&self) -> usize {
        // This is never more than the FIFO's size.
        usize::try_from(self.given - self.taken).unwrap_or(FIFO_MAX_BYTES)
    }

    fn room_bytes(&self, fifo_bytes: usize) -> usize {
        if self.ends.is_full() { 0 } else { fifo_bytes.saturating_sub(self.used_bytes()) }
    }

    fn take(&mut self, to: &mut [u8]) -> Taken {
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

    fn give(&mut self, bytes: &[u8], last: bool, fifo_bytes: usize) -> usize {
        let taken = bytes.len().min(self.room_bytes(fifo_bytes));
        for (byte, position) in bytes.iter().take(taken).zip(self.given..) {
            if let Some(place) = self.fifo.get_mut(place(position)) {
                *place = *byte;
            }
        }
        self.given += taken as u64;
        if last && taken == bytes.len() && taken > 0 {
            // There is room: `room_bytes` checked.
            let _ = self.ends.push_back(self.given);
        }
        taken
    }
}

fn place(position: u64) -> usize {
    usize::try_from(position % FIFO_MAX_BYTES as u64).unwrap_or(0)
}
