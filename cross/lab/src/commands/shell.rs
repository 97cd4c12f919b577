//! `cargo lab shell`.

use crate::{
    board::Board,
    emulator::{self, Console, Function, Served},
    guest::{self, Programs, Task, Wanted},
    kernel::{self, Kernel},
};
use anyhow::Context;
use clap::Args;
use contigo_cross::{cache_dir::CacheDir, failure::Result, progress::say};
use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

/// Options of `cargo lab shell`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The board
    board: String,
    /// A static program to bring as contigo-board-tests; then `contigo` is not built either
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

pub(crate) fn shell(boards: &Path, helpers: &Path, options: &Options) -> Result<ExitCode> {
    let board = Board::named(boards, std::slice::from_ref(&options.board))?
        .pop()
        .context("there is no such board")?;
    let cache = CacheDir::open()?;
    let kernel = Kernel::of(&cache, &board, false)?;
    let function = Function::of(&cache, &board)?;
    let wanted = options.program.as_deref().map_or(Wanted::All, Wanted::Given);
    let programs = Programs::build(&cache, board.cpu(), wanted)?.read(&board)?;
    let modules =
        guest::modules(&board, &kernel, kernel::modules(&cache, &board, &kernel, helpers)?)?;
    let folder = cache.scratch()?;
    let initramfs = folder.path().join("initramfs");
    guest::pack(&board, &programs, &modules, Task::Shell, &initramfs)?;
    let tree = emulator::device_tree(&cache, &board, &kernel, folder.path())?;
    let served = function.as_ref().map(|function| function.serve(folder.path())).transpose()?;
    let function = function.as_ref().zip(served.as_ref().map(Served::socket));
    let qemu = emulator::command(
        &board,
        &kernel,
        &initramfs,
        tree.as_deref(),
        function,
        Console::Terminal,
    )?;
    say("leave with `exit`, or with Ctrl-A X at any time");
    let status = qemu.interactive()?;
    Ok(status
        .code()
        .and_then(|code| u8::try_from(code).ok())
        .map_or(ExitCode::FAILURE, ExitCode::from))
}
