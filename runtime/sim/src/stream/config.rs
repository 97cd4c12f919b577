//! A stream's settings, and its counts.

/// The most bytes that can wait between a core and the other end of its stream.
pub(crate) const FIFO_MAX_BYTES: usize = 4096;

/// The other end of a core's stream, and the FIFO before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamConfig {
    /// The other end.
    pub end: StreamEnd,
    /// The FIFO's size: at most 4096 bytes. A source loses bytes that do not fit.
    pub fifo_bytes: usize,
}

/// The other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEnd {
    /// The core's packets come back to it. A full FIFO makes the sender wait.
    Loopback,
    /// Sends packets and never waits. It accepts everything that the core sends.
    Source(SourceConfig),
    /// Accepts everything that the core sends, and sends nothing.
    Sink,
}

/// A camera or a converter: it sends packets back to back, whether the core takes them or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceConfig {
    /// How many packets the source sends, lost ones included; then it is silent.
    pub packets: u32,
    /// How long a packet is: 1 to 4 GiB - 1 B.
    pub packet_bytes: usize,
    /// The source's rate.
    pub bytes_per_us: u64,
    /// From the end of a packet to the beginning of the next.
    pub gap_ns: u64,
    /// Every packet whose number is a multiple of this is shorter: a third, in whole words.
    pub short_every: Option<u32>,
    /// Whether the source marks the last byte of a packet (TLAST).
    pub marks_last: bool,
    /// No stop or reset of the core reaches the source or the FIFO: the rest of a packet waits.
    pub goes_on: bool,
}

impl Default for SourceConfig {
    /// 4 KiB back to back at 400 MB/s, without end. A reset of the core resets it.
    fn default() -> Self {
        Self {
            packets: u32::MAX,
            packet_bytes: 4096,
            bytes_per_us: 400,
            gap_ns: 0,
            short_every: None,
            marks_last: true,
            goes_on: false,
        }
    }
}

impl SourceConfig {
    pub(super) const fn len_bytes(&self, number: u32) -> usize {
        match self.short_every {
            Some(every) if every > 0 && number.is_multiple_of(every) && self.packet_bytes >= 12 => {
                self.packet_bytes / 12 * 4
            }
            _ => self.packet_bytes,
        }
    }

    pub(super) const fn duration_ns(&self, bytes: u64) -> u64 {
        let rate = if self.bytes_per_us == 0 { 1 } else { self.bytes_per_us };
        bytes.saturating_mul(1_000).div_ceil(rate)
    }
}

impl Default for StreamConfig {
    /// A loopback whose FIFO holds 2 KiB.
    fn default() -> Self {
        Self { end: StreamEnd::Loopback, fifo_bytes: 2048 }
    }
}

impl StreamConfig {
    /// A source behind a FIFO of `fifo_bytes`.
    #[must_use]
    pub const fn source(source: SourceConfig, fifo_bytes: usize) -> Self {
        Self { end: StreamEnd::Source(source), fifo_bytes }
    }

    /// A sink.
    #[must_use]
    pub const fn sink() -> Self {
        Self { end: StreamEnd::Sink, fifo_bytes: 0 }
    }
}

/// How packets ended, and what the core sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamCounts {
    /// Packets that the source began, the lost ones included.
    pub begun: u64,
    /// Packets that the core took to their last byte.
    pub taken: u64,
    /// Packets of which the core got nothing because the FIFO was full.
    pub lost: u64,
    /// Packets of which the core got only the beginning.
    pub cut: u64,
    /// Packets that the core sent to their end.
    pub sent: u64,
    /// Bytes that the core sent.
    pub sent_bytes: u64,
    /// FNV-1a of all bytes that the core sent, in their order.
    pub sent_hash: u64,
}

/// The initial value of FNV-1a.
pub(super) const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;

/// Continues FNV-1a from `hash` over `bytes`; the first `hash` is [`FNV_START`].
#[must_use]
pub(super) fn fnv1a(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
