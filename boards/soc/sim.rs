//! The simulated board of [`contigo::sim`]: no hardware, no root.
//!
//! Every [`SimBoard`](contigo::sim::SimBoard) is a bus of its own, so these constants leave the bus
//! open ([`Bus::Sim`] of 0): a [`SimDevice`](contigo::sim::SimDevice) puts its board's in its
//! place.

pub use crate::SIM;
use contigo::{Bus, Port};

/// The simulated board's port that does not snoop: as Zynq's HP0, but it reaches all of 32 bits.
pub const HP0: Port = Port {
    name: "sim-hp0",
    bus: Bus::Sim(0),
    offset: 0,
    addr_bits: 32,
    window: (0, 0xFFFF_FFFF),
    coherent: false,
};
/// The simulated board's port that snoops.
pub const ACP: Port = Port { name: "sim-acp", coherent: true, ..HP0 };

/// For a simulated master on real memory ([`contigo::sim::OnBoard`]), wherever the kernel put that;
/// it does not snoop.
pub const WIDE: Port = Port { name: "sim-wide", addr_bits: 64, window: (0, u64::MAX), ..HP0 };
/// As [`WIDE`], and it snoops.
pub const WIDE_COHERENT: Port = Port { name: "sim-wide-coherent", coherent: true, ..WIDE };

#[cfg(test)]
mod tests {
    use super::{ACP, HP0};
    use contigo::Port;
    use contigo::sim::SimBoard;

    #[test]
    fn they_are_the_runtime_s_own_but_for_the_bus() {
        let board = SimBoard::new(1);
        assert_eq!(Port { bus: board.bus(), ..HP0 }, board.port());
        assert_eq!(Port { bus: board.bus(), ..ACP }, board.coherent_port());
    }
}
