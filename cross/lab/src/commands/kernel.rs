//! `cargo lab kernel`.

use crate::board::Board;
use crate::emulator;
use crate::guest::busybox;
use crate::kernel::{self, Kernel};
use clap::Args;
use contigo_cross::cache_dir::CacheDir;
use contigo_cross::failure::{Failure, Result};
use contigo_cross::terminal;
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

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
    /// Print a JSON array
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Entry<'a> {
    board: &'a str,
    release: String,
    image: PathBuf,
    /// The project's module for this kernel, where it was built.
    module: Option<PathBuf>,
    tree: Option<PathBuf>,
}

pub(crate) fn kernel(boards: &Path, helpers: &Path, options: &Options) -> Result<ExitCode> {
    let boards = Board::named(boards, &options.boards)?;
    let cache = CacheDir::open()?;
    if options.json {
        let entries: Result<Vec<_>> =
            boards.iter().map(|board| entry(&cache, board, helpers, options.refresh)).collect();
        terminal::json(&entries?)?;
        return Ok(ExitCode::SUCCESS);
    }
    for board in &boards {
        let kernel = Kernel::of(&cache, board, options.refresh)?;
        if options.busybox {
            let (name, path) = busybox(&cache, board.cpu())?;
            let path = path.display();
            terminal::print(format_args!("{}: the guest's {name} in {path}", board.name))?;
        }
        let (release, folder) = (&kernel.release, kernel.folder.display());
        terminal::print(format_args!("{}: Linux {release} in {folder}", board.name))?;
        for module in kernel::modules(&cache, board, &kernel, helpers)? {
            let name = module.file_stem().unwrap_or_default().display();
            let place = module.display();
            terminal::print(format_args!("{}: the module {name} in {place}", board.name))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn entry<'a>(
    cache: &CacheDir,
    board: &'a Board,
    helpers: &Path,
    refresh: bool,
) -> Result<Entry<'a>> {
    let kernel = Kernel::of(cache, board, refresh)?;
    let modules = kernel::modules(cache, board, &kernel, helpers)?;
    let module =
        modules.into_iter().find(|module| module.file_stem().is_some_and(|name| name == "contigo"));
    let trees = cache.path().join("trees").join(&board.name);
    fs::create_dir_all(&trees)
        .map_err(|error| Failure::of_io("making a folder for the tree", &trees, &error))?;
    let tree = emulator::device_tree(cache, board, &kernel, &trees)?;
    Ok(Entry { board: &board.name, release: kernel.release, image: kernel.image, module, tree })
}
