//! The gate makes any core stoppable: `rtl/gate/axi_gate.v` goes between a core's AXI4 master and
//! the interconnect. `rtl/gate/README.md` says where to put it.
//!
//! [`Gated`] is a driver with a gate behind it. Stopping it blocks new bursts, waits for
//! outstanding ones, resets the core, and only then calls the driver's `stop`. So an HLS kernel,
//! which cannot be aborted, stops within the bus' time. A bus error ends the job with its address,
//! even if the core ignores answers.
//!
//! [`AxiGate`] is the gate alone, for a core without a driver here.

mod gate;
mod gated;
mod part;
mod regs;

pub use gate::{AxiGate, Owed};
pub use gated::Gated;
pub use part::Part;
pub use regs::WINDOW_BYTES;
