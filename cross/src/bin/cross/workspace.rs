//! Where Contigo's sources are, and where cargo puts what it builds.

use contigo_cross::cache_dir::CacheDir;
use contigo_cross::command::Tool;
use contigo_cross::failure::Result;
use contigo_cross::packages;
use serde::Deserialize;
use std::env;
use std::path::PathBuf;

/// The tool, and what is downloaded is named after it.
pub(crate) const TOOL: &str = "contigo";
/// The package that has the tool.
const PACKAGE: &str = "contigo-cli";
/// The programs for a board: each with its package. The tests are the ones that the lab runs.
pub(crate) const PROGRAMS: [(&str, &str); 2] =
    [(PACKAGE, TOOL), ("contigo-tests", "contigo-board-tests")];
/// The package of the C library, and the shared one's file. The static one is `libcontigo_c.a`.
pub(crate) const LIBRARY: (&str, &str) = ("contigo-c", "libcontigo_c.so");

#[derive(Debug)]
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    pub(crate) target_dir: PathBuf,
    pub(crate) version: String,
}

/// The answer of `cargo metadata`, as far as it is needed here.
#[derive(Deserialize)]
struct Metadata {
    workspace_root: PathBuf,
    target_directory: PathBuf,
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
}

impl Workspace {
    pub(crate) fn find(cache: &CacheDir) -> Result<Self> {
        let ask = Tool::at(&cargo()?, "asking cargo for the workspace").args([
            "metadata",
            "--format-version",
            "1",
            "--no-deps",
        ]);
        let metadata: Metadata = serde_json::from_str(&ask.output(&cache.log("metadata")?)?)?;
        let package = metadata.packages.into_iter().find(|package| package.name == PACKAGE);
        let outside = || {
            anyhow::anyhow!(
                "{} is not Contigo's workspace: it has no {PACKAGE}",
                metadata.workspace_root.display()
            )
        };
        let version = package.ok_or_else(outside)?.version;
        Ok(Self { root: metadata.workspace_root, target_dir: metadata.target_directory, version })
    }
}

/// The cargo that runs this program, else the one on the `PATH`.
pub(crate) fn cargo() -> Result<PathBuf> {
    match env::var_os("CARGO").filter(|cargo| !cargo.is_empty()) {
        Some(cargo) => Ok(cargo.into()),
        None => packages::need("cargo"),
    }
}
