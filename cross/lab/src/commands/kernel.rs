//! `cargo lab kernel`.

use super::print;
use crate::{
    board::Board,
    guest::busybox,
    kernel::{self, Kernel},
};
use clap::Args;
use contigo_cross::{cache_dir::CacheDir, failure::Result};
use std::{path::Path, process::ExitCode};

/// Options of `cargo lab kernel`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Boards; all of them where none is named
    boards: Vec<String>,
    /// Bring the guest's busybox, too, and say where it is
    #[arg(long)]
    busybox: bool,
    /// Ask Debian for a newer version, too
    #[arg(long)]
    refresh: bool,
}

pub(crate) fn kernel(boards: &Path, helpers: &Path, options: &Options) -> Result<ExitCode> {
    let boards = Board::named(boards, &options.boards)?;
    let cache = CacheDir::open()?;
    for board in &boards {
        let kernel = Kernel::of(&cache, board, options.refresh)?;
        if options.busybox {
            let (name, path) = busybox::of(&cache, board.cpu())?;
            print(format_args!("{}: the guest's {name} in {}", board.name, path.display()))?;
        }
        print(format_args!("{}: Linux {} in {}", board.name, kernel.release, kernel.folder.display()))?;
        for module in kernel::modules(&cache, board, &kernel, helpers)? {
            let name = module.file_stem().unwrap_or_default().display();
            print(format_args!("{}: the module {name} in {}", board.name, module.display()))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
