//! `contigo boards`: the boards that Contigo knows, and their ports.

use crate::failure::Failure;
use crate::output;
use clap::Args;
use contigo::Bus;
use contigo_boards::{ALL, Board};
use serde::Serialize;

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
    #[serde(skip_serializing_if = "Option::is_none")]
    crystal_hz: Option<u64>,
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
                Bus::Objects(_) => "objects",
            },
            offset: format!("{:#x}", port.offset),
            addr_bits: port.addr_bits,
            window_first: format!("{:#x}", port.window.0),
            window_last: format!("{:#x}", port.window.1),
            coherent: port.coherent,
        });
        Self {
            name: board.name,
            title: board.title,
            soc: board.soc,
            manual: board.manual,
            crystal_hz: board.crystal_hz,
            ports: ports.collect(),
        }
    }
}

pub(crate) fn boards(options: &Options) -> Result<(), Failure> {
    let entries: Vec<_> = ALL.iter().map(Entry::from).collect();
    if options.json {
        return output::json(&entries);
    }
    entries.iter().try_for_each(|board| output::text(listed(board)))
}

/// A board, with a table of its ports.
fn listed(board: &Entry) -> String {
    let soc = if board.soc == "none" { String::new() } else { format!("; {}", board.soc) };
    let title = format!("{}: {}{soc}", board.name, board.title);
    if board.ports.is_empty() {
        return format!("{title}; no port is known");
    }
    let mut table = output::table(&["port", "offset", "bits", "window", "coherent"]);
    for port in &board.ports {
        let coherent = if port.coherent { "yes" } else { "no" };
        let window = format!("{}..={}", port.window_first, port.window_last);
        table.add_row([port.name, &port.offset, &port.addr_bits.to_string(), &window, coherent]);
    }
    format!("{title}\n{table}")
}
