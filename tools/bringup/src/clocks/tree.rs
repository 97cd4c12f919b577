//! The clocks that the device tree gives a guarded device, and the rates that it asks for.
//!
//! # References
//! Linux, `Documentation/devicetree/bindings/clock/clock-bindings.txt` (`clocks`, `clock-names`,
//! `assigned-clocks`, `assigned-clock-rates`); `kernel-helpers/bindings` (`contigo,engine`).

use super::{Fabric, Wanted};
use crate::{
    bitstream::Family,
    machine::Machine,
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
        let cells = *node.cells(machine, "#clock-cells").first()?;
        let phandle = *node.cells(machine, "phandle").first()?;
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
