//! `cargo cross build`: the tool and the board tests for the boards' processors.

use crate::boards;
use crate::check::{BOARDS_GLIBC, library, too_new};
use crate::needs::{self, Glibc, Needs};
use crate::pip::Zigbuild;
use crate::workspace::{LIBRARY, PROGRAMS, Workspace, cargo};
use clap::Args;
use contigo_cross::cache_dir::CacheDir;
use contigo_cross::command::Tool;
use contigo_cross::failure::{Failure, Result};
use contigo_cross::targets::{self, Target};
use contigo_cross::terminal;
use contigo_cross::toolchain::{self, Variables};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fs};

/// For a first build, on two busy cores of a small machine.
const BUILD_LIMIT: Duration = Duration::from_secs(3600);

#[derive(Args, Debug)]
pub(crate) struct Options {
    /// A board of `contigo boards`, or a processor such as armv7-unknown-linux-gnueabihf; all where
    /// it is not given
    #[arg(long, value_name = "B")]
    board: Option<String>,
    /// With the C library inside, for an initramfs
    #[arg(long)]
    r#static: bool,
    /// Print a JSON array instead of a table
    #[arg(long)]
    json: bool,
}

/// Where the C library is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    /// The board's, which may be as old as [`BOARDS_GLIBC`].
    Shared,
    /// Inside.
    Static,
}

/// A program that was built, and what was read back from it.
#[derive(Debug, Serialize)]
pub(crate) struct Built {
    pub(crate) binary: PathBuf,
    pub(crate) target: &'static str,
    pub(crate) boards: Vec<&'static str>,
    pub(crate) r#static: bool,
    pub(crate) size_bytes: u64,
    pub(crate) glibc: Option<Glibc>,
    /// The shared libraries that it names.
    pub(crate) libraries: Vec<String>,
}

pub(crate) fn build(options: &Options) -> Result<()> {
    let targets = match &options.board {
        Some(board) => vec![boards::target(board)?],
        None => targets::ALL.to_vec(),
    };
    let link = if options.r#static { Link::Static } else { Link::Shared };
    let cache = CacheDir::open()?;
    let workspace = Workspace::find(&cache)?;
    let mut built = Vec::new();
    for target in targets {
        built.extend(all(&cache, &workspace, target, link)?);
    }
    if options.json {
        return terminal::json(&built);
    }
    let mut table = terminal::table(&["binary", "target", "size", "C library"]);
    for Built { binary, target, r#static, size_bytes, glibc, .. } in built {
        let shown = binary.strip_prefix(&workspace.root).unwrap_or(&binary).display().to_string();
        table.add_row([
            shown,
            target.to_owned(),
            terminal::size(size_bytes),
            library(r#static, glibc.as_ref()),
        ]);
    }
    terminal::print(table)
}

/// Builds the programs for `target`, and looks whether they are what was asked for.
pub(crate) fn all(
    cache: &CacheDir,
    workspace: &Workspace,
    target: &'static Target,
    link: Link,
) -> Result<Vec<Built>> {
    let how = if link == Link::Static { " (static)" } else { "" };
    let what = format!("building the programs for {}{how}", target.triple);
    let parts =
        PROGRAMS.iter().flat_map(|(package, program)| ["--package", package, "--bin", program]);
    let folder = run(cache, workspace, target, link, what, parts)?;
    PROGRAMS.iter().map(|(_, program)| built(&folder.join(program), target, link)).collect()
}

/// Builds the C library, shared and static: the shared one, which was looked at, beside which the
/// other is.
pub(crate) fn c_library(
    cache: &CacheDir,
    workspace: &Workspace,
    target: &'static Target,
) -> Result<Built> {
    let what = format!("building the C library for {}", target.triple);
    let folder =
        run(cache, workspace, target, Link::Shared, what, ["--package", LIBRARY.0, "--lib"])?;
    built(&folder.join(LIBRARY.1), target, Link::Shared)
}

/// Has cargo build `parts`: the folder in which they are.
fn run<'a>(
    cache: &CacheDir,
    workspace: &Workspace,
    target: &'static Target,
    link: Link,
    what: String,
    parts: impl IntoIterator<Item = &'a str>,
) -> Result<PathBuf> {
    let (cargo, variables, triple, profile) = match link {
        Link::Static => (
            Tool::at(&cargo()?, what).arg("build"),
            toolchain::static_build(cache, target.triple)?,
            target.triple.into(),
            "board-static",
        ),
        Link::Shared => {
            let zigbuild = Zigbuild::need(cache)?;
            let mut tool = Tool::at(&zigbuild.program(), what).arg("zigbuild");
            for (name, value) in zigbuild.variables() {
                tool = tool.env(name, value);
            }
            (
                tool,
                toolchain::variables(cache, target)?,
                format!("{}.{BOARDS_GLIBC}", target.triple),
                "board",
            )
        }
    };
    let log = cache.log(&format!("build-{}-{profile}", target.debian))?;
    let mut tool = cargo
        .args(["--locked", "--profile", profile, "--target", &triple])
        .args(parts)
        .current_dir(&workspace.root)
        .env("CARGO_TERM_COLOR", "never")
        // Cargo would take these in the place of the flags for the target.
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS");
    for (name, value) in without_our_paths(target, variables) {
        tool = tool.env(name, value);
    }
    tool.limit(BUILD_LIMIT).writes(&workspace.target_dir).run(&log)?;
    Ok(workspace.target_dir.join(target.triple).join(profile))
}

fn built(binary: &Path, target: &'static Target, link: Link) -> Result<Built> {
    let size_bytes = fs::metadata(binary)
        .map_err(|error| Failure::of_io("looking at what was built", binary, &error))?
        .len();
    let Needs { glibc, libraries, .. } = right(binary, target, link)?;
    let binary = binary.to_owned();
    Ok(Built {
        binary,
        target: target.triple,
        boards: boards::of(target),
        r#static: link == Link::Static,
        size_bytes,
        glibc,
        libraries,
    })
}

/// Is this program for `target`, and does it find its C library there? Its needs.
pub(crate) fn right(binary: &Path, target: &Target, link: Link) -> Result<Needs> {
    let needs = Needs::of(binary)?;
    let limit =
        BOARDS_GLIBC.parse().map_err(|what| anyhow::anyhow!("{BOARDS_GLIBC} is not {what}"))?;
    if needs.machine != target.machine {
        let (has, wants) = (needs::machine(needs.machine), needs::machine(target.machine));
        return Err(anyhow::anyhow!("{} is for {has}, not for {wants}", binary.display()));
    }
    if link == Link::Static && (needs.is_dynamic || needs.glibc.is_some()) {
        return Err(anyhow::anyhow!(
            "{} has no C library inside: a `rustflags` of cargo's configuration may be in the way",
            binary.display()
        ));
    }
    match too_new(binary, &needs, &limit) {
        Some(refused) => Err(anyhow::anyhow!("{refused}")),
        None => Ok(needs),
    }
}

/// Adds to the flags for `target` that the program does not name the folder of downloaded sources.
/// The same sources then give the same bytes on another machine, and these do not show where they
/// were built. A path with a space cannot be said in such a variable.
fn without_our_paths(target: &Target, mut variables: Variables) -> Variables {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = set("CARGO_HOME").or_else(|| set("HOME").map(|home| home.join(".cargo")));
    let Some(home) = home
        .and_then(|home| home.to_str().map(str::to_owned))
        .filter(|home| !home.contains(char::is_whitespace))
    else {
        return variables;
    };
    let flag = format!("--remap-path-prefix={home}/registry/src=crates");
    let name = target.variable("RUSTFLAGS");
    match variables.iter_mut().find(|(set, _)| *set == *name) {
        Some((_, flags)) => flags.push(format!(" {flag}")),
        None => variables.push((name.into(), flag.into())),
    }
    variables
}
