//! A board's crystal, and the rate that the device tree gives it.

use super::fabric::is_near;
use crate::{
    bitstream::Family,
    board::Known,
    fpga::family_of,
    machine::Machine,
    plain,
    tree::{self, Node},
};

/// Where a family's tree says the crystal's rate: the node's `compatible`, its name where that
/// matters, and the property. Zynq-7000's controller has it (Linux, `drivers/clk/zynq/clkc.c`), the
/// others a fixed clock (`zynqmp-clk-ccf.dtsi`, `socfpga.dtsi`).
const SAID: [(Family, &str, &[&str], &str); 3] = [
    (Family::Zynq7000, "xlnx,ps7-clkc", &[], "ps-clk-frequency"),
    (Family::ZynqMp, "fixed-clock", &["pss-ref-clk", "pss_ref_clk"], "clock-frequency"),
    (Family::CycloneV, "fixed-clock", &["osc1"], "clock-frequency"),
];
/// The most letters of a name that the tree gives.
const NAME_MAX: usize = 200;
/// Zynq-7000's, where the tree has none: the kernel's own default.
const ZYNQ_DEFAULT_HZ: u64 = 33_333_333;

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
    /// The kernel's name of that clock: the tree's, or the driver's own.
    pub clock: String,
}

impl Crystal {
    /// That of a machine, from files that everybody may read. `None`: the tree does not name a
    /// board whose crystal is known, or does not say the rate.
    #[must_use]
    pub fn of(machine: &Machine) -> Option<Self> {
        let board = Known::named(machine)?;
        let board_hz = board.crystal_hz?;
        let family = family_of(machine)?;
        let (_, compatible, names, property) = SAID.into_iter().find(|(of, ..)| *of == family)?;
        let is = |node: &&Node| {
            node.is(compatible) && (names.is_empty() || names.contains(&node.name()))
        };
        let nodes = tree::nodes(machine);
        let node = nodes.iter().find(is)?;
        let said = node.cells(machine, property).first().copied().map(u64::from);
        let tree_hz = said.or((family == Family::Zynq7000).then_some(ZYNQ_DEFAULT_HZ))?;
        let absent = if said.is_none() { ", which is absent: the kernel's default" } else { "" };
        // The kernel calls a fixed clock as the tree does, or else as its node is called.
        let own = machine.text(format!("{}/clock-output-names", node.folder())).unwrap_or_default();
        let own = own.split('\0').next().filter(|name| !name.is_empty()).unwrap_or(node.name());
        let clock =
            if family == Family::Zynq7000 { "ps_clk".to_owned() } else { plain(own, NAME_MAX) };
        let place = format!("{property} of /{}{absent}", plain(&node.path, NAME_MAX));
        Some(Self { board: board.name, board_hz, place, tree_hz, clock })
    }

    /// Whether both are the same, as near as numbers in a tree are.
    #[must_use]
    pub const fn is_right(&self) -> bool {
        is_near(self.tree_hz, self.board_hz)
    }
}
