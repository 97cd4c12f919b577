//! A camera as a test wants it, and the counts of its packets.

/// The camera's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CameraConfig {
    /// How many packets it sends, the lost ones included; then it is silent.
    pub packets: u32,
    /// How long a packet is: 256 at least, and a multiple of 4.
    pub packet_bytes: usize,
    /// The camera's rate.
    pub bytes_per_us: u64,
    /// From the end of a packet to the beginning of the next.
    pub gap_ns: u64,
    /// So much waits in front of a channel without a buffer.
    pub fifo_bytes: u64,
    /// This packet's write is answered with an error.
    pub error_at: Option<u32>,
    /// Each packet of this number and its multiples is shorter: a third, in whole words.
    pub short_every: Option<u32>,
    /// Once it runs it does not stop before its reset line is pulled.
    pub stuck: bool,
}

impl Default for CameraConfig {
    /// 4 KiB back to back at 400 MB/s, a FIFO of 512 bytes, and nothing goes wrong.
    fn default() -> Self {
        Self {
            packets: u32::MAX,
            packet_bytes: 4096,
            bytes_per_us: 400,
            gap_ns: 0,
            fifo_bytes: 512,
            error_at: None,
            short_every: None,
            stuck: false,
        }
    }
}

/// How many packets ended in each way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CameraCounts {
    /// In memory, with a status.
    pub written: u64,
    /// The FIFO was full.
    pub lost: u64,
    /// Under way when the channel was stopped, or when it failed.
    pub cut: u64,
    /// How often a buffer came to a channel that had none left.
    pub ran_dry: u64,
}
