//! `contigo boards`: the boards that Contigo knows, and their ports.

use crate::{failure::Failure, output, table};
use clap::Args;
use contigo::Bus;
use contigo_boards::{ALL, Board};
use serde::Serialize;

/// What can be asked of the list.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Print a JSON array instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Entry {
    name: &'static str,
    title: &'static str,
    soc: &'static str,
    manual: &'static str,
    ports: Vec<PortEntry>,
}

#[derive(Serialize)]
struct PortEntry {
    name: &'static str,
    bus: &'static str,
    offset: String,
    addr_bits: u32,
    window_first: String,
    window_last: String,
    coherent: bool,
}

impl From<&Board> for Entry {
    fn from(board: &Board) -> Self {
        let ports = board.ports.iter().map(|port| PortEntry {
            name: port.name,
            bus: match port.bus {
                Bus::Soc => "soc",
                Bus::Gpu(_) => "gpu",
                Bus::Sim(_) => "sim",
                Bus::Iommu(_) => "iommu",
            },
            offset: format!("{:#x}", port.offset),
            addr_bits: port.addr_bits,
            window_first: format!("{:#x}", port.window.0),
            window_last: format!("{:#x}", port.window.1),
            coherent: port.coherent,
        });
        Self { name: board.name, title: board.title, soc: board.soc, manual: board.manual, ports: ports.collect() }
    }
}

/// Prints the list.
pub(crate) fn boards(options: &Options) -> Result<(), Failure> {
    let entries: Vec<_> = ALL.iter().map(Entry::from).collect();
    if options.json {
        return output::json(&entries);
    }
    let mut table = table::new(&["board", "port", "bus", "offset", "bits", "window", "coherent"]);
    for entry in &entries {
        let mut about = [entry.name, entry.title, entry.soc].into_iter();
        if entry.ports.is_empty() {
            table.add_row([about.next().unwrap_or(""), "none is known"]);
        }
        for port in &entry.ports {
            let coherent = if port.coherent { "yes" } else { "no" };
            let window = format!("{}..={}", port.window_first, port.window_last);
            let bits = port.addr_bits.to_string();
            table.add_row([about.next().unwrap_or(""), port.name, port.bus, &port.offset, &bits, &window, coherent]);
        }
        for line in about {
            table.add_row([line]);
        }
        table.add_row([""]);
    }
    output::text(table)
}
