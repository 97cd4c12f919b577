//! `contigo board`: this machine's board, its ports, the loaded bitstream, and running programs.

use crate::failure::Failure;
use crate::output;
use crate::ports::{self, Prepare};
use clap::{Args, Subcommand};
use contigo_bringup::board::{Board, Fabric};
use contigo_bringup::fpga::FpgaError;
use contigo_bringup::known::Sure;
use contigo_bringup::plain;
use serde::Serialize;
use std::path::PathBuf;

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Options {
    #[command(subcommand)]
    command: Option<Command>,
    /// Read the registers around the fabric's ports, too: widths, level shifters, resets, snooping.
    /// Through /dev/mem, as root. Status 1 where one is wrong
    #[arg(long)]
    registers: bool,
    /// Compare them with a design: Vivado's design.hwh
    #[arg(long, value_name = "FILE", requires = "registers")]
    design: Option<PathBuf>,
    /// A bitstream runs, whatever the kernel's manager says: U-Boot or a debugger loaded it
    #[arg(long, requires = "registers")]
    loaded: bool,
    /// Look at a copy of a machine instead of this one; docs/doctor.md lists its folders
    #[arg(long, value_name = "FOLDER")]
    machine: Option<PathBuf>,
    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Set the registers around the fabric's ports that are wrong and safe to set
    ///
    /// Without --yes it writes nothing, and shows the writes. No program and no driver may have a
    /// node of the fabric; a core that runs by itself is not seen. A write that fails undoes those
    /// before it.
    Prepare(Prepare),
}

/// The longest sentence that contains names from the machine, in letters.
const WORDS_MAX: usize = 300;
/// A machine without a fabric is not missing a manager, so no cure is shown.
const NO_FABRIC: &str = "none of its own; an FPGA card is loaded by its maker's tools";
/// The columns beside the facts' names, so that the value stays readable.
const OTHERS: u16 = 40;

#[derive(Serialize)]
struct Report {
    /// Incremented when a field changes its meaning or is removed.
    version: u32,
    boards: Vec<&'static str>,
    /// "name", "soc" or "no": which part of the device tree identified the board.
    known_by: &'static str,
    model: Option<String>,
    soc: Option<&'static str>,
    kernel: Option<String>,
    ports: Vec<PortEntry>,
    fabric: Option<FabricEntry>,
    /// The reason why there is no fabric.
    no_fabric: Option<String>,
    devices: Vec<DeviceEntry>,
    /// Ways to memory other than ports, with their sources.
    facts: Vec<&'static str>,
}

#[derive(Serialize)]
struct PortEntry {
    name: &'static str,
    addr_bits: u32,
    window_first: String,
    window_last: String,
    coherent: bool,
}

#[derive(Serialize)]
struct FabricEntry {
    manager: String,
    device: String,
    state: String,
    way: Option<String>,
    bridges: Vec<String>,
    users: Vec<String>,
    /// The reason why the users cannot be seen.
    unseen: Option<String>,
}

#[derive(Serialize)]
struct DeviceEntry {
    name: String,
    node: String,
}

pub(crate) fn board(options: &Options) -> Result<(), Failure> {
    if let Some(Command::Prepare(prepare)) = &options.command {
        return ports::prepare(prepare);
    }
    let machine = crate::machine(options.machine.as_ref());
    if options.registers {
        return ports::registers(&machine, options.design.as_ref(), options.loaded, options.json);
    }
    let report = Report::of(Board::of(&machine));
    output::report(options.json, &report, Report::listed)
}

impl FabricEntry {
    fn of(fabric: &Fabric) -> Self {
        let words = |text: String| plain(&text, WORDS_MAX);
        let open = |open| match open {
            Some(true) => "open",
            Some(false) => "closed",
            None => "not said",
        };
        let (users, unseen) = match &fabric.users {
            Ok(users) => (users.iter().map(|user| words(user.to_string())).collect(), None),
            Err(error) => (Vec::new(), Some(words(error.to_string()))),
        };
        Self {
            manager: fabric.manager.clone(),
            device: fabric.device.clone(),
            state: fabric.state.to_string(),
            way: fabric.way.as_ref().map(|way| words(way.to_string())),
            bridges: fabric
                .bridges
                .iter()
                .map(|bridge| words(format!("{}: {}", bridge.name, open(bridge.open))))
                .collect(),
            users,
            unseen,
        }
    }
}

impl Report {
    fn of(board: Board) -> Self {
        let ports = board.known.ports().into_iter().filter_map(contigo_boards::port).map(|port| {
            PortEntry {
                name: port.name,
                addr_bits: port.addr_bits,
                window_first: format!("{:#x}", port.window.0),
                window_last: format!("{:#x}", port.window.1),
                coherent: port.coherent,
            }
        });
        Self {
            version: 1,
            boards: board.known.boards.iter().map(|board| board.name).collect(),
            known_by: match board.known.sure {
                Sure::ByName => "name",
                Sure::BySoc => "soc",
                Sure::No => "no",
            },
            model: board.model,
            soc: board.soc.map(|soc| soc.name),
            kernel: board.kernel,
            ports: ports.collect(),
            fabric: board.fabric.as_ref().ok().map(FabricEntry::of),
            no_fabric: board.fabric.err().map(|error| match error {
                FpgaError::NoManager if board.is_fabricless => NO_FABRIC.to_owned(),
                error => plain(&error.to_string(), WORDS_MAX),
            }),
            devices: board
                .devices
                .into_iter()
                .map(|device| DeviceEntry { name: device.name, node: device.node })
                .collect(),
            facts: board
                .known
                .boards
                .iter()
                .map(|board| board.facts)
                .filter(|facts| !facts.is_empty())
                .collect(),
        }
    }

    fn listed(&self) -> String {
        let board = match (self.known_by, self.boards.as_slice()) {
            ("name", [name]) => (*name).to_owned(),
            ("soc", names) => format!("one with this SoC, as {}", names.join(" or ")),
            _ => "not known here: contigo boards lists those that are".to_owned(),
        };
        let text = |text: Option<&str>| text.unwrap_or("not said").to_owned();
        let mut rows = vec![
            ("board", board),
            ("model", text(self.model.as_deref())),
            ("SoC", self.soc.unwrap_or("not known here").to_owned()),
            ("kernel", text(self.kernel.as_deref())),
        ];
        let list =
            |names: &[String]| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        if let Some(fabric) = &self.fabric {
            rows.extend([
                ("fabric", format!("{}, {}", fabric.device, fabric.manager)),
                ("loaded", fabric.state.clone()),
                (
                    "way to load",
                    fabric.way.clone().unwrap_or_else(|| "none in this kernel".to_owned()),
                ),
                ("bridges", list(&fabric.bridges)),
                ("users", fabric.unseen.clone().unwrap_or_else(|| list(&fabric.users))),
            ]);
        }
        rows.extend(self.no_fabric.iter().map(|why| ("fabric", why.clone())));
        let devices: Vec<_> = self.devices.iter().map(|device| device.name.clone()).collect();
        rows.push(("devices", list(&devices)));
        rows.extend(self.facts.iter().map(|facts| ("facts", (*facts).to_owned())));
        let mut facts = output::table(&["fact", "value"]);
        for (name, value) in rows {
            facts.add_row([name, &value]);
        }
        output::keep_names(&mut facts, OTHERS);
        if self.ports.is_empty() {
            return format!("{facts}\nports: none is known");
        }
        let mut ports = output::table(&["port", "bits", "window", "coherent"]);
        for port in &self.ports {
            let window = format!("{}..={}", port.window_first, port.window_last);
            ports.add_row([
                port.name,
                &port.addr_bits.to_string(),
                &window,
                if port.coherent { "yes" } else { "no" },
            ]);
        }
        format!("{facts}\n{ports}")
    }
}
