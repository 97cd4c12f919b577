//! `cargo cross image`: an SD-card image of Debian. The lab makes the kernel, and
//! `cross/packaging/image/build` the card.

use crate::package::FOLDER;
use crate::workspace::{Workspace, cargo};
use anyhow::{Context, bail};
use clap::Args;
use contigo_cross::cache_dir::CacheDir;
use contigo_cross::command::{Tool, in_words};
use contigo_cross::failure::{Failure, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A kernel is built in ten minutes on two idle cores.
const KERNEL_LIMIT: Duration = Duration::from_secs(2 * 3600);

#[derive(Args, Debug)]
pub(crate) struct Options {
    /// The board: a file's name in cross/packaging/image/boards
    #[arg(long)]
    board: String,
    /// The file; contigo-BOARD.img here where nothing is said
    #[arg(long)]
    out: Option<PathBuf>,
    /// The folder with the packages of `cargo cross package --deb`, where they were put elsewhere
    #[arg(long, value_name = "FOLDER")]
    packages: Option<PathBuf>,
    /// Debian's release
    #[arg(long, default_value = "trixie")]
    suite: String,
}

pub(crate) fn image(options: &Options) -> Result<()> {
    let cache = CacheDir::open()?;
    let workspace = Workspace::find(&cache)?;
    let folder = workspace.root.join("cross/packaging/image");
    let lab = lab(&folder, &options.board)?;
    let build = folder.join("build");
    let packages = options.packages.clone().unwrap_or_else(|| workspace.target_dir.join(FOLDER));
    let out =
        options.out.clone().unwrap_or_else(|| format!("contigo-{}.img", options.board).into());
    let with = |tool: Tool| {
        let tool = tool.args(["--board", &options.board, "--suite", &options.suite, "--packages"]);
        tool.arg(&packages).arg("--out").arg(&out)
    };
    // Before the kernel, which may take ten minutes.
    finished(
        with(Tool::at(&build, format!("looking for what the image of {} needs", options.board)))
            .arg("--check"),
        options,
    )?;
    let log = cache.log(&format!("image-kernel-{}", options.board))?;
    let ask = Tool::at(&cargo()?, format!("the kernel of {}", options.board)).args([
        "lab",
        "kernel",
        lab.as_str(),
        "--json",
    ]);
    let answer = ask.current_dir(&workspace.root).limit(KERNEL_LIMIT).output(&log)?;
    let kernel = workspace.target_dir.join(format!("image-kernel-{}.json", options.board));
    fs::write(&kernel, answer)
        .map_err(|error| Failure::of_io("noting the kernel", &kernel, &error))?;
    let what = format!("the image of {}", options.board);
    // Its files get their owners: that alone is root's work.
    let tool = if nix::unistd::geteuid().is_root() {
        Tool::at(&build, what)
    } else {
        let kept = format!("CONTIGO_CACHE={}", cache.path().display());
        Tool::new("sudo", what)?.args(["env", &kept]).arg(&build)
    };
    finished(with(tool).arg("--kernel").arg(&kernel), options)
}

fn finished(tool: Tool, options: &Options) -> Result<()> {
    let status = tool.interactive()?;
    if !status.success() {
        bail!(
            "the image of {} was not made ({}): the lines above say why",
            options.board,
            in_words(status)
        );
    }
    Ok(())
}

/// The lab's board that boots the image, by the image's own words on its board.
fn lab(folder: &Path, board: &str) -> Result<String> {
    let boards = folder.join("boards");
    let named = |name: &str| {
        !name.is_empty()
            && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-')
    };
    let text = if named(board) { fs::read_to_string(boards.join(board)).ok() } else { None };
    let Some(text) = text else {
        let entries = fs::read_dir(&boards)
            .map_err(|error| Failure::of_io("looking for the images' boards", &boards, &error))?;
        let mut known: Vec<_> =
            entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        known.sort();
        bail!("no image is known for the board \"{board}\"; there are {}", known.join(", "));
    };
    let lab = text.lines().find_map(|line| line.strip_prefix("lab=")).map(str::to_owned);
    lab.with_context(|| format!("{} names no board of the lab", boards.join(board).display()))
}
