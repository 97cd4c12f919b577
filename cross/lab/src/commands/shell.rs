//! `cargo lab shell` and `cargo lab command`: a board whose guest opens a shell, on this terminal
//! or for another program that starts it.

use crate::board::Board;
use crate::emulator::{self, Console, Function, Served};
use crate::guest::{self, Programs, Task, Wanted};
use crate::kernel::{self, Kernel};
use anyhow::{Context, bail};
use clap::Args;
use contigo_cross::cache_dir::CacheDir;
use contigo_cross::failure::Result;
use contigo_cross::terminal::{self, say};
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Options of both.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The board
    board: String,
    /// A static program to bring as contigo-board-tests; then `contigo` is not built either
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct CommandOptions {
    #[command(flatten)]
    both: Options,
    /// The folder for the initramfs and the device tree, which is made where it is absent
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// One JSON object instead of the line
    #[arg(long)]
    json: bool,
}

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

struct Guest {
    kernel: Kernel,
    initramfs: PathBuf,
    tree: Option<PathBuf>,
}

impl Options {
    fn board(&self, boards: &Path) -> Result<Board> {
        let named = Board::named(boards, std::slice::from_ref(&self.board))?.pop();
        named.context("there is no such board")
    }

    fn pack(
        &self,
        cache: &CacheDir,
        board: &Board,
        helpers: &Path,
        folder: &Path,
    ) -> Result<Guest> {
        let kernel = Kernel::of(cache, board, false)?;
        let wanted = self.program.as_deref().map_or(Wanted::All, Wanted::Given);
        let programs = Programs::build(cache, board.cpu(), wanted)?.read(board)?;
        let modules = kernel::modules(cache, board, &kernel, helpers)?;
        let modules = guest::modules(board, &kernel, modules)?;
        let initramfs = folder.join("initramfs");
        guest::pack(board, &programs, &modules, Task::Shell, &initramfs)?;
        let tree = emulator::device_tree(cache, board, &kernel, folder)?;
        Ok(Guest { kernel, initramfs, tree })
    }
}

pub(crate) fn shell(boards: &Path, helpers: &Path, options: &Options) -> Result<ExitCode> {
    let board = options.board(boards)?;
    let cache = CacheDir::open()?;
    let function = Function::of(&cache, &board)?;
    let folder = cache.scratch()?;
    let Guest { kernel, initramfs, tree } = options.pack(&cache, &board, helpers, folder.path())?;
    let served = function.as_ref().map(|function| function.serve(folder.path())).transpose()?;
    let function = function.as_ref().zip(served.as_ref().map(Served::socket));
    let console = Console::Terminal;
    let qemu = emulator::command(&board, &kernel, &initramfs, tree.as_deref(), function, console)?;
    say("leave with `exit`, or with Ctrl-A X at any time");
    let status = qemu.interactive()?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

pub(crate) fn command(boards: &Path, helpers: &Path, options: &CommandOptions) -> Result<ExitCode> {
    let CommandOptions { both, out, json } = options;
    let board = both.board(boards)?;
    if let Some(model) = &board.about.qemu.model {
        bail!(
            "{} has a model beside QEMU, {model}, which only `cargo lab test` and \
             `cargo lab shell` start",
            board.name
        );
    }
    let cache = CacheDir::open()?;
    fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
    let out = fs::canonicalize(out).with_context(|| format!("cannot find {}", out.display()))?;
    let Guest { kernel, initramfs, tree } = both.pack(&cache, &board, helpers, &out)?;
    let console = Console::Another;
    let qemu = emulator::command(&board, &kernel, &initramfs, tree.as_deref(), None, console)?;
    if !json {
        terminal::print(qemu.line())?;
        return Ok(ExitCode::SUCCESS);
    }
    terminal::json(&Command {
        board: &board.name,
        about: &board.about.about,
        architecture: board.cpu().name(),
        kernel: &kernel.release,
        image: &kernel.image,
        initramfs: &initramfs,
        tree: tree.as_deref(),
        argv: qemu.words(),
    })?;
    Ok(ExitCode::SUCCESS)
}
