//! The gate, which makes any core stoppable: `rtl/gate/axi_gate.v` between a core's AXI4 master and
//! the interconnect. `rtl/gate/README.md` says where to put it.
//!
//! [`Gated`] is a driver with a gate behind it. Stopping it lets no new burst pass, waits for
//! what is owed, resets the core, and only then asks the driver. So a kernel of HLS, which cannot
//! be aborted, stops within the bus' time. An error of the bus ends the job with its address, also
//! where the core looks at no answer.
//!
//! [`AxiGate`] is the gate alone, for a core without a driver here.

mod gate;
mod gated;
mod part;
pub mod regs;

pub use gate::{AxiGate, Owed};
pub use gated::Gated;
pub use part::Part;
