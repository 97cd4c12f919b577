//! `contigo fpga`: bitstreams, read and checked anywhere, and loaded on a board.

mod report;

use crate::failure::Failure;
use crate::output;
use clap::{Args, Subcommand};
use contigo_bringup::bitstream::Image;
use contigo_bringup::fpga::{Fpga, FpgaError, Options as LoadOptions, around};
use contigo_bringup::machine::Machine;
use report::{AroundEntry, BridgeEntry, FileReport, LoadReport, StatusReport, UnloadReport};
use std::path::{Path, PathBuf};

#[derive(Args, Debug)]
#[command(arg_required_else_help = true)]
pub(crate) struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show what is in a bitstream: its design, its device, and whether it is whole
    ///
    /// Needs no board: it reads the file only.
    Info {
        /// A .bit, .bin, .xclbin or .rbf
        file: PathBuf,
        /// Print JSON instead of a table
        #[arg(long)]
        json: bool,
    },
    /// Check a bitstream, load it, and wait until the fabric runs
    ///
    /// Refused before the fabric is touched: a file for another device, a damaged one, and a fabric
    /// that a program or a driver uses.
    Load {
        /// A .bit, .bin, .xclbin or .rbf; a .bit is turned into what the kernel takes
        file: PathBuf,
        /// It is for a part of the fabric, and the rest goes on
        #[arg(long)]
        partial: bool,
        /// Check everything, and write nothing
        #[arg(long)]
        dry_run: bool,
        /// A node that may be open, because its core is outside that part; again for another one
        #[arg(long, value_name = "NODE", requires = "partial")]
        outside: Vec<String>,
        #[command(flatten)]
        which: Which,
    },
    /// Take away what contigo applied: the overlay on a region, or what fpgad loaded
    Unload {
        #[command(flatten)]
        which: Which,
    },
    /// Show the fabric: its device, its state, the way to it, bridges, and who uses it
    Status {
        #[command(flatten)]
        which: Which,
    },
}

/// Which fabric, and how its answer is printed.
#[derive(Args, Debug)]
struct Which {
    /// The board, where the machine does not say which device it has: contigo boards lists them
    #[arg(long, value_name = "NAME")]
    board: Option<String>,
    /// The FPGA manager, where there are several: fpga0
    #[arg(long, value_name = "NAME")]
    manager: Option<String>,
    /// The region of the device tree that the bitstream is for, where there are several
    #[arg(long, value_name = "NODE")]
    region: Option<String>,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

pub(crate) fn fpga(options: &Options) -> Result<(), Failure> {
    let machine = Machine::this();
    match &options.command {
        Command::Info { file, json } => {
            let report = FileReport::of(file, &open(&machine, file)?);
            output::report(*json, &report, FileReport::listed)
        }
        Command::Load { file, partial, dry_run, outside, which } => {
            let options =
                LoadOptions { partial: *partial, outside: outside.clone(), dry_run: *dry_run };
            let report = load(&machine, file, &options, which)?;
            output::report(which.json, &report, LoadReport::listed)
        }
        Command::Unload { which } => {
            output::report(which.json, &unload(&machine, which)?, UnloadReport::listed)
        }
        Command::Status { which } => {
            output::report(which.json, &status(&machine, which)?, StatusReport::listed)
        }
    }
}

fn open(machine: &Machine, file: &Path) -> Result<Image, Failure> {
    Image::open(machine, file).map_err(|error| refused(file)(error.into()))
}

/// A failure that names the file.
fn refused(file: &Path) -> impl FnOnce(FpgaError) -> Failure {
    let file = file.to_owned();
    move |error| Failure::Bitstream { file, error }
}

fn find<'a>(machine: &'a Machine, which: &Which) -> Result<Fpga<'a>, Failure> {
    let fpga = Fpga::find(machine, which.manager.as_deref(), which.board.as_deref())?;
    match which.region.as_deref() {
        Some(region) => Ok(fpga.in_region(region)?),
        None => Ok(fpga),
    }
}

fn load(
    machine: &Machine,
    file: &Path,
    options: &LoadOptions,
    which: &Which,
) -> Result<LoadReport, Failure> {
    let image = open(machine, file)?;
    let fpga = find(machine, which)?;
    let loaded = fpga.load(&image, options).map_err(refused(file))?;
    let around = around(fpga.target.family, fpga.way.as_ref(), options.partial);
    Ok(LoadReport::of(FileReport::of(file, &image), &fpga, &loaded, &around, options.dry_run))
}

fn unload(machine: &Machine, which: &Which) -> Result<UnloadReport, Failure> {
    let fpga = find(machine, which)?;
    fpga.unload()?;
    Ok(UnloadReport {
        manager: fpga.manager.id.clone(),
        state: fpga.state().to_string(),
        bridges: BridgeEntry::all(&fpga.bridges()),
    })
}

fn status(machine: &Machine, which: &Which) -> Result<StatusReport, Failure> {
    let fpga = find(machine, which)?;
    let around =
        around(fpga.target.family, fpga.way.as_ref(), false).iter().map(AroundEntry::of).collect();
    // Without the privilege, the rest of the status is still useful.
    let (users, unseen) = match fpga.users() {
        Ok(users) => (users.iter().map(ToString::to_string).collect(), None),
        Err(error) => (Vec::new(), Some(error.to_string())),
    };
    Ok(StatusReport {
        manager: fpga.manager.id.clone(),
        name: fpga.manager.name.clone(),
        state: fpga.state().to_string(),
        way: fpga.way.as_ref().map(ToString::to_string),
        regions: fpga.regions.clone(),
        device: fpga.target.to_string(),
        bridges: BridgeEntry::all(&fpga.bridges()),
        users,
        unseen,
        around,
    })
}

/// A table of two columns without a header: the name, and the value.
fn listed(rows: &[(&str, String)]) -> String {
    let mut table = output::table(&["fact", "value"]);
    for (name, value) in rows {
        table.add_row([name, value.as_str()]);
    }
    output::keep_names(&mut table, 40);
    table.to_string()
}

#[cfg(test)]
mod tests;
