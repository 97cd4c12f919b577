//! `cargo lab`: emulated boards, each with a real Linux kernel and a real model of a DMA engine.

mod board;
mod commands;
mod cpu;
mod emulator;
mod guest;
mod kernel;
mod report;

use clap::{Parser, Subcommand};
use contigo_cross::failure::{self, Result};
use contigo_cross::interrupt;
use std::path::PathBuf;
use std::process::ExitCode;

/// Real kernels and real DMA engines on emulated boards
///
/// Kernels, sources and packages are kept in $CONTIGO_CACHE, else in ~/.cache/contigo; all of it
/// may be deleted. Exit status: 0 success, 1 failure, 2 wrong usage, 130 interrupted.
#[derive(Debug, Parser)]
#[command(name = "lab", bin_name = "cargo lab", version, arg_required_else_help = true)]
struct Cli {
    /// The folder with a folder for each board; the lab runs each FOLDER/lab/NAME.toml there
    #[arg(
        long = "boards",
        global = true,
        value_name = "DIR",
        default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../../boards"),
        hide_default_value = true
    )]
    folder: PathBuf,
    /// The folder with the sources of the kernel module contigo, which is built for every kernel
    /// that is built here
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../../kernel-helpers"),
        hide_default_value = true
    )]
    kernel_helpers: PathBuf,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check that every program is there; as root on a machine with apt, install what is missing
    Setup(commands::setup::Options),
    /// Build or download the kernel of a board, once: it is kept by the hash of its source,
    /// configuration and compiler
    ///
    /// For a kernel that is built here, the module contigo is built too, and checked: one warning
    /// of the compiler, sparse or checkpatch is an error.
    Kernel(commands::kernel::Options),
    /// Boot boards, run the board tests and the demo on each, and print one table
    ///
    /// With CONTIGO_MODULES=DIR in the environment, DIR/*.ko, or DIR/BOARD/*.ko where that folder
    /// exists, are loaded first.
    Test(commands::test::Options),
    /// Boot a board with the same programs in /bin, and open a shell in it
    Shell(commands::shell::Options),
    /// Pack a board's guest into a folder, and print the command line of its QEMU: for a program
    /// that starts it with a serial port of its own
    ///
    /// The guest opens a shell on its console, and has the same programs in /bin.
    #[command(name = "command")]
    Line(commands::shell::CommandOptions),
    /// List the boards: machine, kernel, DMA engines, memory
    List(commands::list::Options),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    failure::exit("cargo lab", run(&cli))
}

fn run(cli: &Cli) -> Result<ExitCode> {
    interrupt::listen()?;
    match &cli.command {
        Command::Setup(options) => commands::setup::setup(options),
        Command::Kernel(options) => {
            commands::kernel::kernel(&cli.folder, &cli.kernel_helpers, options)
        }
        Command::Test(options) => commands::test::test(&cli.folder, &cli.kernel_helpers, options),
        Command::Shell(options) => {
            commands::shell::shell(&cli.folder, &cli.kernel_helpers, options)
        }
        Command::Line(options) => {
            commands::shell::command(&cli.folder, &cli.kernel_helpers, options)
        }
        Command::List(options) => commands::list::list(&cli.folder, options),
    }
}
