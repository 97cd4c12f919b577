//! AXI4, AXI-Lite and AXI-Stream around a core, by IHI 0022 and IHI 0051: the other ends, as
//! unpleasant as the rules allow, and the rules that a core can break.

mod breach;
mod burst;
mod chance;
mod config;
mod cycle;
mod lite;
mod reads;
mod slave;
mod stream;
mod watch;
mod writes;

pub use breach::{Breach, Channel, Finding, Findings};
pub use burst::{Burst, BurstKind};
pub use config::{Landing, SlaveConfig, SlaveCounts};
pub use lite::{LiteConfig, LiteMaster};
pub use slave::AxiSlave;
pub use stream::StreamPorts;
