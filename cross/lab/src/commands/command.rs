//! `cargo lab command`.

use super::print;
use crate::{
    board::Board,
    emulator::{self, Console},
    guest::{self, Programs, Task, Wanted},
    kernel::{self, Kernel},
};
use anyhow::{Context, bail};
use clap::Args;
use contigo_cross::{cache_dir::CacheDir, failure::Result};
use serde::Serialize;
use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

/// Options of `cargo lab command`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The board
    board: String,
    /// The folder for the initramfs and the device tree, which is made where it is absent
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// One JSON object instead of the line
    #[arg(long)]
    json: bool,
    /// A static program to bring as contigo-board-tests; then `contigo` is not built either
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

/// All that starts the board.
#[derive(Debug, Serialize)]
struct Command<'a> {
    board: &'a str,
    about: &'a str,
    architecture: &'static str,
    kernel: &'a str,
    image: &'a Path,
    initramfs: &'a Path,
    tree: Option<&'a Path>,
    /// The program, and its arguments. Its next serial port is the board's console.
    argv: Vec<String>,
}

pub(crate) fn command(boards: &Path, helpers: &Path, options: &Options) -> Result<ExitCode> {
    let board = Board::named(boards, std::slice::from_ref(&options.board))?
        .pop()
        .context("there is no such board")?;
    if let Some(model) = &board.about.qemu.model {
        bail!(
            "{} has a model beside QEMU, {model}, which only `cargo lab test` and `cargo lab shell` start",
            board.name
        );
    }
    let cache = CacheDir::open()?;
    fs::create_dir_all(&options.out)
        .with_context(|| format!("cannot make {}", options.out.display()))?;
    let out = fs::canonicalize(&options.out)
        .with_context(|| format!("cannot find {}", options.out.display()))?;
    let kernel = Kernel::of(&cache, &board, false)?;
    let wanted = options.program.as_deref().map_or(Wanted::All, Wanted::Given);
    let programs = Programs::build(&cache, board.cpu(), wanted)?.read(&board)?;
    let modules =
        guest::modules(&board, &kernel, kernel::modules(&cache, &board, &kernel, helpers)?)?;
    let initramfs = out.join("initramfs");
    guest::pack(&board, &programs, &modules, Task::Shell, &initramfs)?;
    let tree = emulator::device_tree(&cache, &board, &kernel, &out)?;
    let qemu =
        emulator::command(&board, &kernel, &initramfs, tree.as_deref(), None, Console::Another)?;
    if !options.json {
        print(qemu.line())?;
        return Ok(ExitCode::SUCCESS);
    }
    let command = Command {
        board: &board.name,
        about: &board.about.about,
        architecture: board.cpu().name(),
        kernel: &kernel.release,
        image: &kernel.image,
        initramfs: &initramfs,
        tree: tree.as_deref(),
        argv: qemu.words(),
    };
    print(serde_json::to_string_pretty(&command)?)?;
    Ok(ExitCode::SUCCESS)
}
