//! `cargo cross package`: what an image gets, as one archive for each processor, or as Debian
//! packages. Both are made of one tree of files.

mod archive;
mod deb;
mod depends;
mod plain;
mod tree;

use crate::build::Link;
use crate::workspace::Workspace;
use crate::{boards, build, pip};
use clap::Args;
use contigo_cross::cache_dir::CacheDir;
use contigo_cross::failure::{Failure, Result};
use contigo_cross::targets::{self, Target};
use contigo_cross::{packages, terminal};
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};

/// In cargo's target folder.
pub(crate) const FOLDER: &str = "contigo-packages";
/// The programs that packing runs; the last three for Debian's packages alone.
pub(crate) const PROGRAMS: [&str; 6] =
    ["make", "dtc", "readelf", "dh", "dpkg-architecture", "lintian"];
/// It builds the Python package.
pub(crate) const MATURIN: pip::Packages = pip::Packages {
    what: "maturin from PyPI (10 MB)",
    requirements: include_str!("maturin.txt"),
    folder: "maturin/1.16.0",
    program: "bin/maturin",
};

#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Debian packages instead of one archive for each processor
    #[arg(long)]
    deb: bool,
    /// A board of `contigo boards`, or a processor such as x86_64-unknown-linux-gnu; all where none
    /// is given
    #[arg(long, value_name = "B")]
    board: Option<String>,
    /// Where the packages go: contigo-packages in cargo's target folder where it is not given
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// The version of the Debian packages, for a build of your own: Contigo's where it is not given
    #[arg(long, value_name = "VERSION", requires = "deb", value_parser = deb::version)]
    deb_version: Option<String>,
    /// Print a JSON array instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Entry {
    package: PathBuf,
    /// The processor, or `all`.
    target: &'static str,
    boards: Vec<&'static str>,
    size_bytes: u64,
    sha256: String,
}

/// One package that is made, and not yet in its place.
struct Packed {
    /// Its file's name.
    name: String,
    target: &'static str,
    boards: Vec<&'static str>,
    bytes: Vec<u8>,
}

/// Builds for every processor, and writes the packages: all of them, or none.
pub(crate) fn package(options: &Options) -> Result<()> {
    let targets = match &options.board {
        Some(board) => vec![boards::target(board)?],
        None => targets::PACKAGED.to_vec(),
    };
    let cache = CacheDir::open()?;
    let workspace = Workspace::find(&cache)?;
    need(&cache, options.deb)?;
    let date = if options.deb { deb::date(&cache, &workspace.root)? } else { archive::TIME };
    let folder = options.out.clone().unwrap_or_else(|| workspace.target_dir.join(FOLDER));
    fs::create_dir_all(&folder)
        .map_err(|error| Failure::of_io("making the folder of packages", &folder, &error))?;
    let mut packed = Vec::new();
    for target in targets {
        let parts = tree::Parts {
            programs: build::all(&cache, &workspace, target, Link::Shared)?,
            library: build::c_library(&cache, &workspace, target)?,
        };
        let tree = tree::lay(&cache, &workspace, target, parts)?;
        if options.deb {
            let version = options.deb_version.as_deref().unwrap_or(&workspace.version);
            // Those for every processor are made once, of the first tree.
            packed.extend(deb::pack(
                &cache,
                &workspace,
                target,
                &tree,
                &deb::Of { version, date, with_all: packed.is_empty() },
            )?);
        } else {
            packed.push(plain::pack(&workspace, target, &tree)?);
        }
    }
    let entries = put(&folder, packed)?;
    if options.json {
        return terminal::json(&entries);
    }
    let mut table = terminal::table(&["package", "boards", "size", "SHA-256"]);
    for Entry { package, boards, size_bytes, sha256, .. } in entries {
        let shown = package.strip_prefix(&workspace.root).unwrap_or(&package).display().to_string();
        table.add_row([shown, boards.join(", "), terminal::size(size_bytes), sha256]);
    }
    terminal::print(table)
}

/// Are the tools here? Before a build that takes minutes.
fn need(cache: &CacheDir, deb: bool) -> Result<()> {
    let missing = |program: &str, how: String| Failure::MissingTool {
        program: program.into(),
        remedy: format!("{how}`cargo cross setup --packages` for all at once"),
    };
    let of_deb = ["dh", "dpkg-architecture"];
    // lintian looks at the packages afterwards: cross/packaging/debian/test.
    let wanted = PROGRAMS
        .iter()
        .filter(|program| **program != "lintian" && (deb || !of_deb.contains(program)));
    for program in wanted {
        if packages::find(program).is_none() {
            return Err(
                missing(program, format!("`apt install {}`, or ", packages::of(program))).into()
            );
        }
    }
    match MATURIN.find(cache) {
        Some(_) => Ok(()),
        None => Err(missing("maturin", String::new()).into()),
    }
}

/// Puts all packages into their folder. They are written beside it first, so a disk that fills up
/// leaves none.
fn put(folder: &Path, packed: Vec<Packed>) -> Result<Vec<Entry>> {
    let failed = |error| Failure::of_io("writing the packages", folder, &error);
    let beside =
        tempfile::Builder::new().prefix(".unfinished-").tempdir_in(folder).map_err(failed)?;
    for Packed { name, bytes, .. } in &packed {
        archive::write_synced(&beside.path().join(name), bytes)?;
    }
    let mut entries = Vec::new();
    for Packed { name, target, boards, bytes } in packed {
        let package = folder.join(&name);
        fs::rename(beside.path().join(&name), &package).map_err(failed)?;
        let (size_bytes, sha256) = (u64::try_from(bytes.len())?, archive::sum(&bytes));
        entries.push(Entry { package, target, boards, size_bytes, sha256 });
    }
    Ok(entries)
}

/// The name of a processor's package, and its boards.
fn of(target: &'static Target) -> (&'static str, Vec<&'static str>) {
    (target.triple, boards::of(target))
}
