//! How a core is built, and what goes wrong with it.

use crate::stream::{SourceConfig, StreamConfig};

/// How a core is built, what its streams lead to, and what goes wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoreSpec {
    /// Scatter-gather; otherwise direct register mode.
    pub sg: bool,
    /// It has the channel that sends.
    pub has_mm2s: bool,
    /// It has the channel that receives.
    pub has_s2mm: bool,
    /// The bits of a length, 8 to 26: others are cut off.
    pub length_bits: u32,
    /// The bits of an address.
    pub address_bits: u32,
    /// The other end.
    pub stream: StreamConfig,
    /// A reset of the core resets what is at the other end.
    pub resets_stream: bool,
    /// How fast a channel moves data.
    pub bytes_per_us: u64,
    /// The write of this packet of a source is answered with an error, once.
    pub error_at: Option<u32>,
    /// Memory answers this fetch of a descriptor of S2MM with an error; the first one is 0.
    pub fetch_error_at: Option<u32>,
    /// Once it runs it does not stop before its reset line is pulled.
    pub stuck: bool,
}

impl Default for CoreSpec {
    /// As Vivado builds one, and a loopback: 800 MB/s.
    fn default() -> Self {
        Self {
            sg: true,
            has_mm2s: true,
            has_s2mm: true,
            length_bits: 14,
            address_bits: 32,
            stream: StreamConfig::default(),
            resets_stream: true,
            bytes_per_us: 800,
            error_at: None,
            fetch_error_at: None,
            stuck: false,
        }
    }
}

impl CoreSpec {
    /// The receive channel alone, with scatter-gather, behind a camera whose FIFO holds
    /// `fifo_bytes`: one that is not taken in time is lost.
    #[must_use]
    pub const fn camera(source: SourceConfig, fifo_bytes: usize) -> Self {
        let stream = StreamConfig::source(source, fifo_bytes);
        let (length_bits, address_bits, bytes_per_us) = (14, 32, 800);
        let (sg, has_mm2s, has_s2mm, resets_stream, stuck) = (true, false, true, true, false);
        let (error_at, fetch_error_at) = (None, None);
        Self {
            sg,
            has_mm2s,
            has_s2mm,
            length_bits,
            address_bits,
            stream,
            resets_stream,
            bytes_per_us,
            error_at,
            fetch_error_at,
            stuck,
        }
    }

    pub(super) const fn duration_ns(&self, bytes: usize) -> u64 {
        (bytes as u64).saturating_mul(1_000).div_ceil(if self.bytes_per_us == 0 {
            1
        } else {
            self.bytes_per_us
        })
    }

    /// The bits of a length that the core has.
    pub(super) const fn length(&self, value: u32) -> u32 {
        value & ((1 << self.length_bits) - 1)
    }
}
