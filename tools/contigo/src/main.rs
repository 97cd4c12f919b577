//! The command-line tool `contigo`: lists this machine's memory, and runs the runtime on it.

mod board;
mod boards;
mod clocks;
mod demo;
mod doctor;
mod failure;
mod fpga;
mod info;
mod log;
mod map;
mod memory;
mod nvtx;
mod output;
mod overlay;
mod ports;
mod power;
mod reset;
mod selftest;

use clap::{Parser, Subcommand};
use contigo_bringup::machine::Machine;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Contiguous DMA memory for FPGA accelerators: see what a machine has, and try it
///
/// Exit status: 0 success, 1 failure, 2 wrong usage.
#[derive(Debug, Parser)]
#[command(name = "contigo", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "there is one of it")]
enum Command {
    /// Classify real handwritten digits on the gemm8 engine, check every score, and measure
    ///
    /// Two jobs for each image, chained on the device. The engine is simulated; the memory is what
    /// --memory names. Prints the accuracy, what was copied and synchronised, and the latency;
    /// writes a contact sheet.
    Demo(demo::Options),
    /// Prove that this board's memory, addresses, caches and interrupts work together, before any
    /// bitstream is loaded
    ///
    /// Random copies by a DMA engine that the board has, every byte compared. On a machine with
    /// none, by a simulated one.
    Selftest(selftest::Options),
    /// List the DMA memory and the devices of this machine, and what keeps the rest from working
    ///
    /// Reads files only: opens no device, changes nothing, needs no privilege; only NVIDIA's driver
    /// is loaded and asked, where it is.
    Info(info::Options),
    /// Find what keeps DMA from working on this machine, each with its cause and its cure
    ///
    /// Reads files: memory, drivers, interrupts, clocks, rights, kernel. Only --probe opens a
    /// device. Exit status: 0 no fault, 1 faults found, 2 could not look.
    Doctor(doctor::Options),
    /// Show which board this is, its ports, what is loaded, and what is running
    ///
    /// Reads files only, except for --registers. Programs that use the fabric are seen by root
    /// alone. `contigo board prepare` sets the wrong registers around the fabric's ports.
    Board(board::Options),
    /// List the boards that Contigo knows, and what their bus masters reach
    Boards(boards::Options),
    /// Show a block design of Vivado's, and write the device-tree overlay for its cores
    ///
    /// Reads design.hwh: each core's driver, registers, interrupt, port to memory, and clock. It
    /// touches no core.
    Overlay(overlay::Options),
    /// Show the map of a Vitis HLS kernel from its header, and complete it
    ///
    /// The file has the offset of every argument. It does not have what the kernel does with a
    /// pointer, nor how many bytes: say that, and every job is checked by it.
    Map(map::Options),
    /// Load bitstreams into the fabric, and see what is in one
    ///
    /// It checks the file and the board first, and uses the way that the kernel has.
    Fpga(fpga::Options),
    /// Show the rails that this board measures, and their power
    ///
    /// Reads files only. `contigo demo --power` has the energy of an image.
    Power(power::Options),
    /// Reset a core by its line, or list the lines that this machine has
    ///
    /// By the kernel module where it has the core, else by a GPIO: an EMIO line, or a carrier's.
    /// A line that is in use is refused.
    Reset(reset::Options),
    /// Show the fabric's clocks, compare them with a design, or set one
    ///
    /// Reads the kernel's account in debugfs, as root. No register is read. Status 1 where the tree
    /// has another crystal than the board.
    Clocks(clocks::Options),
    /// Print the events that a program logged with contigo-log: while it runs, or after a kill
    ///
    /// Each event has its time since the start, its level, its text, and its line in the program's
    /// source. The texts are in the program's own file.
    Log(log::Options),
}

fn main() -> ExitCode {
    // Before any name is parsed, because parsing checks whether the name is built in.
    #[cfg(feature = "gpu")]
    if let Err(error) = contigo_gpu::register() {
        return end(Err(failure::Failure::Runtime(error)));
    }
    let done = match &Cli::parse().command {
        Command::Demo(options) => demo::demo(options),
        Command::Selftest(options) => selftest::selftest(options),
        Command::Info(options) => info::info(options),
        Command::Doctor(options) => return end(doctor::doctor(options)),
        Command::Board(options) => board::board(options),
        Command::Boards(options) => boards::boards(options),
        Command::Overlay(options) => overlay::overlay(options),
        Command::Map(options) => map::map(options),
        Command::Fpga(options) => fpga::fpga(options),
        Command::Power(options) => power::power(options),
        Command::Reset(options) => reset::reset(options),
        Command::Clocks(options) => clocks::clocks(options),
        Command::Log(options) => log::log(options),
    };
    end(done.map(|()| ExitCode::SUCCESS))
}

/// The exit status of a command; a failure is printed in one line.
fn end(done: Result<ExitCode, failure::Failure>) -> ExitCode {
    match done {
        Ok(status) => status,
        Err(failure) => {
            // If even standard error is closed, the exit status must do.
            let _ = writeln!(io::stderr(), "contigo: {failure}");
            ExitCode::from(failure.status())
        }
    }
}

/// This machine, or a copy of one.
fn machine(folder: Option<&PathBuf>) -> Machine {
    folder.map_or_else(Machine::this, Machine::copy)
}
