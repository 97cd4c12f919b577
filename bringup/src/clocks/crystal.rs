//! A board's crystal, and the rate that the device tree gives it.

use super::fabric::is_near;
use crate::{
    board::{Known, Sure},
    machine::Machine,
    tree::{self, Node},
};

/// Where the tree says the crystal's rate: the node's `compatible`, its name where that matters,
/// the property, and the kernel's clock of it.
/// Zynq-7000's controller has it (Linux, `drivers/clk/zynq/clkc.c`), the others a fixed clock
/// (`zynqmp-clk-ccf.dtsi`, `socfpga.dtsi`).
const SAID: [(&str, &[&str], &str, &str); 3] = [
    ("xlnx,ps7-clkc", &[], "ps-clk-frequency", "ps_clk"),
    ("fixed-clock", &["pss-ref-clk", "pss_ref_clk"], "clock-frequency", "pss_ref_clk"),
    ("fixed-clock", &["osc1"], "clock-frequency", "osc1"),
];

/// The crystal that a processor makes all its clocks from, as its board has it and as its device
/// tree has it.
///
/// The kernel cannot measure it. It reckons every rate from the tree's number, so a tree of another
/// board makes all of them wrong by one factor. A PYNQ-Z2 has 50 MHz, and most Zynq boards 33.3.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crystal {
    /// The board.
    pub board: &'static str,
    /// The crystal's rate on that board, in Hz.
    pub board_hz: u64,
    /// The node and the property with the tree's rate.
    pub place: String,
    /// The tree's rate, in Hz.
    pub tree_hz: u64,
    /// The kernel's name of that clock.
    pub clock: &'static str,
}

impl Crystal {
    /// That of a machine, from files that everybody may read. `None`: the tree does not name a
    /// board whose crystal is known, or does not say the rate.
    #[must_use]
    pub fn of(machine: &Machine) -> Option<Self> {
        let root = |name: &str| machine.bytes(format!("sys/firmware/devicetree/base/{name}")).unwrap_or_default();
        let compatible = root("compatible");
        let known = Known::of(&compatible, &root("model"), contigo_boards::by_compatible(&compatible));
        let board = known.boards.first().filter(|_| known.sure == Sure::ByName)?;
        let board_hz = board.crystal_hz?;
        let said = |node: &Node| {
            let named = |names: &[&str]| names.is_empty() || names.contains(&node.name());
            let (_, _, property, clock) = SAID.into_iter().find(|(compatible, names, ..)| node.is(compatible) && named(names))?;
            let tree_hz = u64::from(*node.cells(machine, property).first()?);
            Some(Self { board: board.name, board_hz, place: format!("{property} of /{}", node.path), tree_hz, clock })
        };
        tree::nodes(machine).iter().find_map(said)
    }

    /// Whether both are the same, as near as numbers in a tree are.
    #[must_use]
    pub const fn is_right(&self) -> bool {
        is_near(self.tree_hz, self.board_hz)
    }
}
