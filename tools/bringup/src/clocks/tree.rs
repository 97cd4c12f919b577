//! Clocks in the device tree: those of a contigo device, the rates that it asks for, and the rate
//! of the board's crystal.
//!
//! # References
//! Linux, `Documentation/devicetree/bindings/clock/clock-bindings.txt` (`clocks`, `clock-names`,
//! `assigned-clocks`, `assigned-clock-rates`); `kernel-helpers/bindings` (`contigo,engine`).

use super::control::is_near;
use super::{Fabric, Wanted};
use crate::bitstream::Family;
use crate::known::{Known, family_of};
use crate::machine::Machine;
use crate::plain;
use crate::tree::{self, Node};

const CLASS: &str = "sys/class/contigo";
/// The controllers of the processors whose fabric clocks are known by number.
const CONTROLLERS: [(&str, Family); 2] =
    [("xlnx,ps7-clkc", Family::Zynq7000), ("xlnx,zynqmp-clk", Family::ZynqMp)];
/// A node that passes a clock on unchanged (AMD's Linux, `drivers/staging/xilinx-fclk`).
const HANDS_ON: &str = "xlnx,fclk";
/// The most nodes between a fabric clock and a core, such as `xlnx,fclk` or a fixed factor.
const THROUGH_MAX: usize = 4;
/// A core has a few clocks.
const CLOCKS_MAX: usize = 16;

/// The fabric clocks that the tree gives each contigo device, with the rates that the device asks
/// for. If it asks for none, the rate is 0: the clock is still known, and whether it runs.
#[must_use]
pub fn wanted(machine: &Machine) -> Vec<Wanted> {
    let dev_nodes: Vec<_> = machine
        .list(CLASS)
        .into_iter()
        .map(|id| (format!("{CLASS}/{id}/device/of_node"), id))
        .collect();
    // Without contigo devices the tree is not read.
    if dev_nodes.is_empty() {
        return Vec::new();
    }
    let providers = providers(machine);
    let mut all = Vec::new();
    for (node, id) in dev_nodes {
        let rates = cells(machine, &node, "assigned-clock-rates");
        let assigned = fabrics(machine, &providers, &node, "assigned-clocks");
        let names = machine.text(format!("{node}/clock-names")).unwrap_or_default();
        let mut names = names.split('\0');
        for fabric in fabrics(machine, &providers, &node, "clocks") {
            let name = names.next().unwrap_or_default();
            let Some(found) = fabric else { continue };
            let rate = assigned
                .iter()
                .zip(&rates)
                .find_map(|(one, rate)| (*one == fabric).then_some(*rate));
            let who = format!("{id} {name}").trim_end().to_owned();
            all.push(Wanted {
                who,
                fabric: found.fabric,
                hz: rate.map_or(0, u64::from),
                generated: found.generated,
            });
        }
    }
    all
}

/// A clock of the fabric that a node names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// The clock.
    pub(crate) fabric: Fabric,
    /// Another node derives a clock with another rate from it.
    generated: bool,
}

/// A node that other nodes name as the source of a clock.
pub(crate) struct Provider {
    phandle: u32,
    /// The number of cells behind its phandle.
    cells: usize,
    /// The clock from which it derives its own.
    source: Vec<u32>,
    node: Node,
}

/// The clock providers of a tree, by phandle. Each is read once, as any node may name all of them.
pub(crate) fn providers(machine: &Machine) -> Vec<Provider> {
    let provider = |node: Node| {
        let cells = node.cell(machine, "#clock-cells")?;
        let phandle = node.cell(machine, "phandle")?;
        Some(Provider {
            phandle,
            cells: usize::try_from(cells).ok()?,
            source: node.cells(machine, "clocks"),
            node,
        })
    };
    let mut all: Vec<_> = tree::nodes(machine).into_iter().filter_map(provider).collect();
    all.sort_by_key(|provider| provider.phandle);
    all
}

/// The clocks in a property, in order: a fabric clock, or `None` for any other.
pub(crate) fn fabrics(
    machine: &Machine,
    providers: &[Provider],
    folder: &str,
    property: &str,
) -> Vec<Option<Found>> {
    specifiers(providers, &cells(machine, folder, property))
        .into_iter()
        .map(|(provider, arguments)| fabric(providers, provider, &arguments))
        .collect()
}

/// The providers and their cells, up to the first unknown provider, because the number of its cells
/// is not known.
fn specifiers<'a>(providers: &'a [Provider], cells: &[u32]) -> Vec<(&'a Provider, Vec<u32>)> {
    let (mut found, mut rest) = (Vec::new(), cells);
    while let Some((phandle, after)) = rest.split_first().filter(|_| found.len() < CLOCKS_MAX) {
        let first = providers.partition_point(|provider| provider.phandle < *phandle);
        let Some(provider) = providers.get(first).filter(|provider| provider.phandle == *phandle)
        else {
            break;
        };
        let Some((arguments, next)) = after.split_at_checked(provider.cells) else { break };
        found.push((provider, arguments.to_vec()));
        rest = next;
    }
    found
}

/// The fabric clock that a provider gives: its own, or one that it passes on.
fn fabric(providers: &[Provider], provider: &Provider, arguments: &[u32]) -> Option<Found> {
    let (mut provider, mut arguments, mut generated) = (provider, arguments.to_vec(), false);
    for _ in 0..THROUGH_MAX {
        if let Some(&(_, family)) =
            CONTROLLERS.iter().find(|(compatible, _)| provider.node.is(compatible))
        {
            return Some(Found {
                fabric: Fabric::of_number(family, *arguments.first()?)?,
                generated,
            });
        }
        if let Some(fabric) = Fabric::named(provider.node.full_name()) {
            return Some(Found { fabric, generated });
        }
        // It runs if its own clock runs. AMD's node passes that on unchanged; a clk_wiz or a fixed
        // factor gives another rate.
        generated |= !provider.node.is(HANDS_ON);
        let next = specifiers(providers, &provider.source).into_iter().next()?;
        (provider, arguments) = next;
    }
    None
}

/// A property's cells. `folder` is the node's folder, or a link to it.
fn cells(machine: &Machine, folder: &str, property: &str) -> Vec<u32> {
    tree::cells(&machine.bytes(format!("{folder}/{property}")).unwrap_or_default())
}

/// The place of the crystal's rate in a family's tree: the node's `compatible`, its name if that
/// matters, and the property. Zynq-7000's controller has it (Linux, `drivers/clk/zynq/clkc.c`); the
/// others have a fixed clock (`zynqmp-clk-ccf.dtsi`, `socfpga.dtsi`).
const SAID: [(Family, &str, &[&str], &str); 3] = [
    (Family::Zynq7000, "xlnx,ps7-clkc", &[], "ps-clk-frequency"),
    (Family::ZynqMp, "fixed-clock", &["pss-ref-clk", "pss_ref_clk"], "clock-frequency"),
    (Family::CycloneV, "fixed-clock", &["osc1"], "clock-frequency"),
];
/// The longest name from the tree, in letters.
const NAME_MAX: usize = 200;
/// Zynq-7000's rate if the tree has none: the kernel's own default.
const ZYNQ_DEFAULT_HZ: u64 = 33_333_333;

/// The crystal from which a processor derives all its clocks, by the board and by the device tree.
///
/// The kernel cannot measure it, and computes every rate from the tree's number: another board's
/// tree makes all rates wrong by one factor. A PYNQ-Z2 has 50 MHz, and most Zynq boards 33.3.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crystal {
    /// The board.
    pub board: &'static str,
    /// The crystal's rate on that board, in Hz.
    pub board_hz: u64,
    /// The node and the property that give the tree's rate.
    pub place: String,
    /// The tree's rate, in Hz.
    pub tree_hz: u64,
    /// The kernel's name of that clock: from the tree, or the driver's own.
    pub clock: String,
}

impl Crystal {
    /// The crystal of a machine, from files that need no privilege. `None`: the tree names no board
    /// whose crystal is known, or gives no rate.
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
        let said = node.cell(machine, property).map(u64::from);
        let tree_hz = said.or((family == Family::Zynq7000).then_some(ZYNQ_DEFAULT_HZ))?;
        let absent = if said.is_none() { ", which is absent: the kernel's default" } else { "" };
        // The kernel names a fixed clock by the tree's property, or else by its node.
        let own = machine.text(format!("{}/clock-output-names", node.folder())).unwrap_or_default();
        let own = own.split('\0').next().filter(|name| !name.is_empty()).unwrap_or(node.name());
        let clock =
            if family == Family::Zynq7000 { "ps_clk".to_owned() } else { plain(own, NAME_MAX) };
        let place = format!("{property} of /{}{absent}", plain(&node.path, NAME_MAX));
        Some(Self { board: board.name, board_hz, place, tree_hz, clock })
    }

    /// Whether both rates are the same, within a tree's precision.
    #[must_use]
    pub const fn is_right(&self) -> bool {
        is_near(self.tree_hz, self.board_hz)
    }
}
