//! `cargo cross`: Contigo built for the boards on another machine.

mod boards;
mod build;
mod check;
mod image;
mod needs;
mod package;
mod pip;
mod setup;
mod workspace;

use clap::{Parser, Subcommand};
use contigo_cross::{failure, interrupt};
use std::process::ExitCode;

/// Build Contigo for the boards: armv7 (Zynq-7000, Cyclone V) and arm64 (Zynq UltraScale+, Jetson)
///
/// After `cargo cross setup`, the tests run for both as well, under an emulator:
///
///     cargo test --target armv7-unknown-linux-gnueabihf
///
/// Downloads are kept in $CONTIGO_CACHE, else in ~/.cache/contigo. Exit status: 0 success, 1
/// failure, 2 wrong usage.
#[derive(Debug, Parser)]
#[command(
    name = "cargo cross",
    bin_name = "cargo cross",
    version,
    arg_required_else_help = true,
    verbatim_doc_comment
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Get what building and testing for the boards needs: linkers, emulators, Rust's standard
    /// libraries, cargo-zigbuild
    ///
    /// Standard libraries come from rustup, else from Debian into a folder of their own. Only the
    /// linkers and emulators are installed on the machine, with apt and as root; for anybody else
    /// it says what to install.
    Setup(setup::Options),
    /// Build the tool `contigo` and the board tests for one board, or for all of them
    ///
    /// The programs run with the C library of images since 2018 (glibc 2.27: PYNQ 2.7, JetPack 4),
    /// which is checked in the result. With --static they need none at all, for an initramfs.
    Build(build::Options),
    /// Build for every board and for a PC, and put all that an image wants into one .tar.gz for
    /// each processor, or into Debian packages
    ///
    /// The tool, the board tests, the C library, the Python package, udev's rules, the module's
    /// sources, compiled overlays. The same sources give the same bytes.
    Package(package::Options),
    /// Make an SD-card image of Debian with the packages, a kernel and the board's overlay
    ///
    /// As root. The packages are those of `cargo cross package --deb`, and the kernel is that of
    /// `cargo lab kernel`. The same input gives the same bytes.
    Image(image::Options),
    /// Say which processor and which C library a program needs, and fail where a board's image may
    /// lack it
    Check(check::Options),
}

fn main() -> ExitCode {
    let Cli { command } = Cli::parse();
    let run = || {
        interrupt::listen()?;
        match &command {
            Command::Setup(options) => setup::setup(options),
            Command::Build(options) => build::build(options),
            Command::Package(options) => package::package(options),
            Command::Image(options) => image::image(options),
            Command::Check(options) => check::check(options),
        }
    };
    failure::exit("cargo cross", run().map(|()| ExitCode::SUCCESS))
}
