//! What the device tree says of clocks: those of a guarded device, the rates that it asks for, and
//! the rate of the board's crystal.
//!
//! # References
//! Linux, `Documentation/devicetree/bindings/clock/clock-bindings.txt` (`clocks`, `clock-names`,
//! `assigned-clocks`, `assigned-clock-rates`); `kernel-helpers/bindings` (`contigo,engine`).

use super::{Fabric, Wanted, control::is_near};
use crate::{
    bitstream::Family,
    known::{Known, family_of},
    machine::Machine,
    plain,
    tree::{self, Node},
};

const CLASS: &str = "sys/class/contigo";
/// The controllers of the processors whose clocks for the fabric are known by number.
const CONTROLLERS: [(&str, Family); 2] =
    [("xlnx,ps7-clkc", Family::Zynq7000), ("xlnx,zynqmp-clk", Family::ZynqMp)];
/// A node that only hands a clock on (AMD's Linux, `drivers/staging/xilinx-fclk`).
const HANDS_ON: &str = "xlnx,fclk";
/// A clock of the fabric that goes through a node of its own, as `xlnx,fclk` or a fixed factor.
const THROUGH_MAX: usize = 4;
/// A core has a few clocks.
const CLOCKS_MAX: usize = 16;

/// The clocks of the fabric that the tree gives each guarded device, with the rates that it asks
/// for. A rate is 0 where it says none; then the clock is still known, and whether it runs.
#[must_use]
pub fn wanted(machine: &Machine) -> Vec<Wanted> {
    let guards: Vec<_> = machine
        .list(CLASS)
        .into_iter()
        .map(|id| (format!("{CLASS}/{id}/device/of_node"), id))
        .collect();
    // Without guards the tree need not be read.
    if guards.is_empty() {
        return Vec::new();
    }
    let providers = providers(machine);
    let mut all = Vec::new();
    for (node, id) in guards {
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
    /// Another node makes it into one with a rate of its own.
    generated: bool,
}

/// A node that other nodes name as the source of a clock.
pub(crate) struct Provider {
    phandle: u32,
    /// The cells behind its name.
    cells: usize,
    /// The clock that it makes its own of.
    source: Vec<u32>,
    node: Node,
}

/// The providers of a tree, by phandle. Each is read once: every node may name each of them.
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

/// The clocks in a property, in order: those of the fabric, and `None` for each other one.
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

/// The providers and their cells, up to one that is not known: where the next begins is not known
/// then.
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

/// The clock of the fabric that a provider gives, by its own or handed on.
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
        // It runs if its own clock does. AMD's node hands that on as it is; a clk_wiz or a fixed
        // factor gives another rate.
        generated |= !provider.node.is(HANDS_ON);
        let next = specifiers(providers, &provider.source).into_iter().next()?;
        (provider, arguments) = next;
    }
    None
}

/// A property's cells, of the node that a folder or a link to it is.
fn cells(machine: &Machine, folder: &str, property: &str) -> Vec<u32> {
    tree::cells(&machine.bytes(format!("{folder}/{property}")).unwrap_or_default())
}

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
    /// That of a machine, from files that need no privilege. `None`: the tree does not name a
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
        let said = node.cell(machine, property).map(u64::from);
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
