//! A board's device tree: `board.dts`, or another that it names.
//! It may include the trees of the kernel's own source.

use crate::{
    board::Board,
    kernel::{Kernel, Source},
};
use contigo_cross::{cache_dir::CacheDir, command::Tool, failure::Result};
use std::path::{Path, PathBuf};

/// Compiles the tree into `folder`; `None` where the board has none because QEMU makes one.
pub(crate) fn device_tree(
    cache: &CacheDir,
    board: &Board,
    kernel: &Kernel,
    folder: &Path,
) -> Result<Option<PathBuf>> {
    let Some(source) = board.file(&board.about.tree) else { return Ok(None) };
    let log = cache.log(&format!("dts-{}", board.name))?;
    let (plain, blob) = (folder.join("board.dts"), folder.join("board.dtb"));
    let mut cpp = Tool::new("cpp", format!("reading {}'s device tree", board.name))?.args([
        "-nostdinc",
        "-undef",
        "-P",
        "-x",
        "assembler-with-cpp",
    ]);
    if let Some(linux) = &kernel.source {
        for include in Source::tree_folders(linux, board.cpu().linux()) {
            cpp = cpp.arg("-I").arg(include);
        }
    }
    cpp.arg(&source).arg("-o").arg(&plain).writes(folder).run(&log)?;
    // Without its warnings (-q): they are about the kernel's trees, not about ours.
    let mut dtc = Tool::new("dtc", format!("compiling {}'s device tree", board.name))?
        .args(["-q", "-I", "dts", "-O", "dtb"]);
    if board.about.image.is_some() {
        // An overlay will be applied.
        dtc = dtc.arg("-@");
    }
    dtc.arg("-o").arg(&blob).arg(&plain).writes(folder).run(&log)?;
    Ok(Some(blob))
}
