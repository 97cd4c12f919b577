//! The archive for images without apt: the tree as it is installed, the papers, and a manifest.

use super::archive::{self, Content, Member};
use super::tree::Tree;
use super::{Packed, of};
use crate::workspace::{TOOL, Workspace};
use contigo_cross::failure::Result;
use contigo_cross::targets::Target;
use serde::Serialize;

/// The files that go along, from the root of the sources.
const PAPERS: [&str; 4] = ["CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT", "README.md"];
/// The list of the package's files and their sums, for a check.
const MANIFEST: &str = "MANIFEST.json";

#[derive(Serialize)]
struct Manifest<'a> {
    name: &'a str,
    version: &'a str,
    target: &'a str,
    boards: &'a [&'a str],
    /// The newest glibc version that a program or a library needs.
    glibc: Option<String>,
    files: Vec<File<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum File<'a> {
    Regular { path: &'a str, size_bytes: usize, sha256: String },
    Link { path: &'a str, link: &'a str },
}

pub(super) fn pack(workspace: &Workspace, target: &'static Target, tree: &Tree) -> Result<Packed> {
    let mut members = Member::all(tree.path())?;
    for paper in PAPERS {
        members.push(Member::read(&workspace.root.join(paper), paper.to_owned())?);
    }
    members.sort_by(|one, other| one.path.cmp(&other.path));
    let files = members.iter().map(|member| match &member.content {
        Content::File { bytes, .. } => File::Regular {
            path: &member.path,
            size_bytes: bytes.len(),
            sha256: archive::sum(bytes),
        },
        Content::Link(link) => File::Link { path: &member.path, link },
    });
    let (triple, boards) = of(target);
    let manifest = Manifest {
        name: TOOL,
        version: &workspace.version,
        target: triple,
        boards: &boards,
        glibc: tree.glibc().map(ToString::to_string),
        files: files.collect(),
    };
    let mut text = serde_json::to_vec_pretty(&manifest)?;
    text.push(b'\n');
    members.push(Member {
        path: MANIFEST.into(),
        content: Content::File { mode: 0o644, bytes: text },
    });
    let name = format!("{TOOL}-{}-{triple}", workspace.version);
    let bytes = archive::tar_gz(&name, members)?;
    Ok(Packed { name: format!("{name}.tar.gz"), target: triple, boards, bytes })
}
