//! The settings of a core on the board.

use crate::axi::{LiteConfig, SlaveConfig};
use crate::core::PowerOn;
use contigo::sim::stream::StreamConfig;

/// The settings of a core on the board.
#[derive(Clone, Debug)]
pub struct RtlConfig {
    /// The time of a clock cycle: 5 is 200 MHz.
    pub cycle_ns: u64,
    /// The window of its registers, at most 64 KiB.
    pub window_bytes: usize,
    /// The processor's side of its registers.
    pub lite: LiteConfig,
    /// Memory behind each of its masters.
    pub memory: SlaveConfig,
    /// The other end of its streams, if it has any.
    pub stream: StreamConfig,
    /// In so many cycles of 1,000 a stream is not ready.
    pub stream_stalls: u16,
    /// The values of its registers at power-on.
    pub power_on: PowerOn,
    /// A second core gets the same inputs, with ones in its registers at power-on: where it says
    /// something else, an output depends on them ([`Breach::Unknown`](crate::axi::Breach)). It
    /// takes twice the time.
    pub finds_unknowns: bool,
    /// So many cycles it runs at once, at most; then its clock is moved on, which is a breach.
    pub most_cycles: u64,
    /// Its driver waits for interrupts: a wait that has seen the core's work end, and no interrupt,
    /// is a breach.
    pub has_irq: bool,
}

impl Default for RtlConfig {
    /// 200 MHz, a page of registers, calm memory, a loopback. At most 100 ms at once, which is 20
    /// million cycles.
    fn default() -> Self {
        Self {
            cycle_ns: 5,
            window_bytes: 4096,
            lite: LiteConfig::default(),
            memory: SlaveConfig::CALM,
            stream: StreamConfig::default(),
            stream_stalls: 0,
            power_on: PowerOn::Random(1),
            finds_unknowns: false,
            most_cycles: 20_000_000,
            has_irq: false,
        }
    }
}
