//! `cargo lab list`.

use crate::board::{Board, Origin};
use crate::kernel::Kernel;
use clap::Args;
use contigo_cross::cache_dir::CacheDir;
use contigo_cross::failure::Result;
use contigo_cross::terminal;
use serde::Serialize;
use std::path::Path;
use std::process::ExitCode;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// One JSON array
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Line<'b> {
    board: &'b str,
    about: &'b str,
    machine: &'b str,
    architecture: &'static str,
    kernel: String,
    /// Its release, where it is in the cache.
    cached: Option<String>,
    engines: &'b [String],
    memories: &'b [String],
}

pub(crate) fn list(boards: &Path, options: &Options) -> Result<ExitCode> {
    let boards = Board::all(boards)?;
    let cache = CacheDir::open()?;
    let lines = boards.iter().map(|board| line(&cache, board)).collect::<Result<Vec<_>>>()?;
    if options.json {
        terminal::json(&lines)?;
        return Ok(ExitCode::SUCCESS);
    }
    let about = ["board", "what it is", "QEMU's machine", "cpu", "kernel"];
    let mut table = terminal::table(&[&about[..], &["in the cache", "engines", "memory"]].concat());
    for line in lines {
        table.add_row([
            line.board.to_owned(),
            line.about.to_owned(),
            line.machine.to_owned(),
            line.architecture.to_owned(),
            line.kernel,
            line.cached.unwrap_or_else(|| "no".into()),
            line.engines.join(", "),
            line.memories.join(", "),
        ]);
    }
    terminal::print(table)?;
    Ok(ExitCode::SUCCESS)
}

fn line<'b>(cache: &CacheDir, board: &'b Board) -> Result<Line<'b>> {
    let about = &board.about;
    Ok(Line {
        board: &board.name,
        about: &about.about,
        machine: &about.qemu.machine,
        architecture: about.architecture.name(),
        kernel: match board.origin()? {
            Origin::Source(version) => format!("{version}, built here"),
            Origin::Stock(version) => format!("{version}, Debian's own"),
        },
        cached: Kernel::cached(cache, board).map(|kernel| kernel.release),
        engines: &about.engines,
        memories: &about.memories,
    })
}
