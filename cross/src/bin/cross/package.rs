//! `cargo cross package`: what one copies to a board, as one file for each processor.

mod archive;

use crate::{
    boards,
    build::{self, Built, Link},
    output,
    workspace::{TOOL, Workspace},
};
use archive::Member;
use clap::Args;
use contigo_cross::{
    cache_dir::CacheDir,
    failure::{Failure, Result},
    table,
    targets::{self, Target},
};
use serde::Serialize;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// In cargo's target folder.
const FOLDER: &str = "contigo-packages";
/// The files that go along with the programs, from the root of the sources.
const PAPERS: [&str; 4] = ["CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT", "README.md"];
/// The list of the package's files and their sums, for a check.
const MANIFEST: &str = "MANIFEST.json";

/// How it is told.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Print a JSON array instead of a table
    #[arg(long)]
    json: bool,
}

/// One package, as it was written.
#[derive(Serialize)]
struct Entry {
    package: PathBuf,
    target: &'static str,
    boards: Vec<&'static str>,
    size_bytes: u64,
    sha256: String,
}

/// The manifest in a package.
#[derive(Serialize)]
struct Manifest<'a> {
    name: &'a str,
    version: &'a str,
    target: &'a str,
    boards: &'a [&'a str],
    /// The newest glibc version that a program needs.
    glibc: Option<String>,
    files: Vec<File<'a>>,
}

#[derive(Serialize)]
struct File<'a> {
    path: &'a str,
    size_bytes: usize,
    sha256: String,
}

/// Builds for every processor, and writes the packages.
pub(crate) fn package(options: &Options) -> Result<()> {
    let cache = CacheDir::open()?;
    let workspace = Workspace::find(&cache)?;
    let folder = workspace.target_dir.join(FOLDER);
    fs::create_dir_all(&folder).map_err(|error| Failure::of_io("making the folder of packages", &folder, &error))?;
    let mut entries = Vec::new();
    for target in targets::ALL {
        let built = build::all(&cache, &workspace, target, Link::Shared)?;
        entries.push(pack(&workspace, target, &built, &folder)?);
    }
    if options.json {
        return output::json(&entries);
    }
    let mut table = table::new(&["package", "boards", "size", "SHA-256"]);
    for Entry { package, boards, size_bytes, sha256, .. } in entries {
        let shown = package.strip_prefix(&workspace.root).unwrap_or(&package).display().to_string();
        table.add_row([shown, boards.join(", "), output::size(size_bytes), sha256]);
    }
    output::text(table)
}

fn pack(workspace: &Workspace, target: &'static Target, built: &[Built], folder: &Path) -> Result<Entry> {
    let mut members = Vec::new();
    for program in built {
        let name = program.binary.file_name().unwrap_or_default().to_string_lossy();
        members.push(Member::read(&program.binary, format!("bin/{name}"), 0o755)?);
    }
    for paper in PAPERS {
        members.push(Member::read(&workspace.root.join(paper), paper.to_owned(), 0o644)?);
    }
    let files =
        members.iter().map(|member| File { path: &member.path, size_bytes: member.bytes.len(), sha256: archive::sum(&member.bytes) });
    let boards = boards::of(target);
    let manifest = Manifest {
        name: TOOL,
        version: &workspace.version,
        target: target.triple,
        boards: &boards,
        glibc: built.iter().filter_map(|program| program.glibc.as_ref()).max().map(ToString::to_string),
        files: files.collect(),
    };
    let mut text = serde_json::to_vec_pretty(&manifest)?;
    text.push(b'\n');
    members.push(Member { path: MANIFEST.into(), mode: 0o644, bytes: text });
    let name = format!("{TOOL}-{}-{}", workspace.version, target.triple);
    let bytes = archive::tar_gz(&name, members)?;
    let package = folder.join(format!("{name}.tar.gz"));
    archive::write_whole(&package, &bytes)?;
    let (size_bytes, sha256) = (u64::try_from(bytes.len())?, archive::sum(&bytes));
    Ok(Entry { package, target: target.triple, boards, size_bytes, sha256 })
}
