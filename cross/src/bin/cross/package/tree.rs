//! The files of the packages, in a folder that looks as the root of an image does.

use super::MATURIN;
use crate::build::{self, Built, Link};
use crate::needs::Glibc;
use crate::workspace::{TOOL, Workspace};
use contigo_cross::cache_dir::CacheDir;
use contigo_cross::command::Tool;
use contigo_cross::failure::{Failure, Result};
use contigo_cross::packages;
use contigo_cross::targets::Target;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fs};
use tempfile::TempDir;

/// For a first build of the Python package, on two busy cores of a small machine.
const WHEEL_LIMIT: Duration = Duration::from_secs(3600);
/// Python's place for packages that Debian installs; it serves every version.
const PYTHON: &str = "usr/lib/python3/dist-packages";
/// The Python package's own library.
const EXTENSION: &str = "contigo/_contigo.abi3.so";
/// Files that are copied, from the root of the sources.
const COPIED: [(&str, &str); 6] = [
    ("kernel-helpers/udev/60-contigo.rules", "usr/lib/udev/rules.d/60-contigo.rules"),
    ("kernel-helpers/sysusers.d/contigo.conf", "usr/lib/sysusers.d/contigo.conf"),
    // An administrator chooses there, and older images read no other place.
    ("kernel-helpers/modprobe.d/contigo.conf", "etc/modprobe.d/contigo.conf"),
    // A boot complains of a module that is listed and missing, and a node loads it by itself.
    (
        "kernel-helpers/modules-load.d/contigo.conf",
        "usr/share/doc/contigo/examples/modules-load.d/contigo.conf",
    ),
    ("cross/packaging/man/contigo.1", "usr/share/man/man1/contigo.1"),
    ("cross/packaging/man/contigo-board-tests.1", "usr/share/man/man1/contigo-board-tests.1"),
];
/// The boards' compiled overlays.
const OVERLAYS: &str = "usr/share/contigo/overlays";

#[derive(Debug)]
pub(super) struct Parts {
    pub(super) programs: Vec<Built>,
    pub(super) library: Built,
}

/// The folder, which goes when this is dropped, and what its programs need.
#[derive(Debug)]
pub(super) struct Tree {
    folder: TempDir,
    /// The files of each package that need libraries.
    pub(super) programs: Vec<Built>,
    pub(super) library: Built,
    pub(super) python: crate::needs::Needs,
}

impl Tree {
    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The newest glibc version that something in it needs.
    pub(super) fn glibc(&self) -> Option<&Glibc> {
        let built =
            self.programs.iter().chain([&self.library]).filter_map(|built| built.glibc.as_ref());
        built.chain(&self.python.glibc).max()
    }

    /// The Python package's library in it.
    pub(super) fn extension(&self) -> PathBuf {
        self.path().join(PYTHON).join(EXTENSION)
    }
}

pub(super) fn lay(
    cache: &CacheDir,
    workspace: &Workspace,
    target: &'static Target,
    parts: Parts,
) -> Result<Tree> {
    let folder = cache.scratch()?;
    let root = folder.path();
    for program in &parts.programs {
        let name = program.binary.file_name().unwrap_or_default();
        copy(&program.binary, &root.join("usr/bin").join(name), 0o755)?;
    }
    for (from, to) in COPIED {
        copy(&workspace.root.join(from), &root.join(to), 0o644)?;
    }
    let built = parts.library.binary.parent().unwrap_or(Path::new("."));
    let make = |what: &str, folder: &str, goal: &str, variables: &[String]| {
        let tool = Tool::new("make", what.to_owned())?
            .arg("--directory")
            .arg(workspace.root.join(folder))
            .arg(goal);
        tool.arg(format!("DESTDIR={}", root.display()))
            .args(variables)
            .writes(root)
            .run(&cache.log(goal)?)
    };
    let to = [
        format!("BUILT={}", built.display()),
        "PREFIX=/usr".into(),
        format!("LIBDIR=lib/{}", target.gnu),
    ];
    make("laying out the C library", "bindings/c", "install", &to)?;
    make("laying out the module's sources", "kernel-helpers/module", "dkms", &[])?;
    overlays(cache, workspace, &root.join(OVERLAYS))?;
    python(cache, workspace, target, &root.join(PYTHON))?;
    let python = build::right(&root.join(PYTHON).join(EXTENSION), target, Link::Shared)?;
    let Parts { programs, library } = parts;
    Ok(Tree { folder, programs, library, python })
}

/// The overlay of each board that has one, compiled, by the board's name.
fn overlays(cache: &CacheDir, workspace: &Workspace, into: &Path) -> Result<()> {
    let boards = workspace.root.join("boards");
    let failed = |error| Failure::of_io("looking for the boards' overlays", &boards, &error);
    fs::create_dir_all(into).map_err(|error| Failure::of_io("making a folder", into, &error))?;
    for board in fs::read_dir(&boards).map_err(failed)? {
        let board = board.map_err(failed)?;
        let source = board.path().join("overlay.dtso");
        if !source.is_file() {
            continue;
        }
        let name = board.file_name();
        let name = name.to_string_lossy();
        // That warning is off in the kernel's own builds, too.
        Tool::new("dtc", format!("compiling the overlay of {name}"))?
            .args(["-@", "-W", "no-avoid_unnecessary_addr_size", "-I", "dts", "-O", "dtb", "-o"])
            .arg(into.join(format!("{name}.dtbo")))
            .arg(&source)
            .writes(into)
            .run(&cache.log("dtc")?)?;
    }
    Ok(())
}

/// The Python package, as pip unpacks a wheel, and as a package manager owns it. With no RECORD,
/// pip leaves it alone, and says whose it is.
fn python(cache: &CacheDir, workspace: &Workspace, target: &Target, into: &Path) -> Result<()> {
    let scratch = cache.scratch()?;
    let maturin = MATURIN.find(cache).ok_or_else(|| packages::missing("maturin"))?.join("bin");
    let path = env::join_paths(
        std::iter::once(maturin).chain(env::split_paths(&env::var_os("PATH").unwrap_or_default())),
    )?;
    let script = workspace.root.join("bindings/python/build-wheels");
    Tool::at(&script, format!("building the Python package for {}", target.triple))
        .arg("--out")
        .arg(scratch.path())
        .arg(target.triple)
        .env("PATH", path)
        .env("CONTIGO_CACHE", cache.path())
        .limit(WHEEL_LIMIT)
        .writes(&workspace.target_dir)
        .run(&cache.log(&format!("wheel-{}", target.debian))?)?;
    let failed = |error| Failure::of_io("looking for the wheel", scratch.path(), &error);
    let mut files = fs::read_dir(scratch.path()).map_err(failed)?;
    let wheel = files
        .next()
        .transpose()
        .map_err(failed)?
        .ok_or_else(|| anyhow::anyhow!("{} made no wheel", script.display()))?
        .path();
    fs::create_dir_all(into).map_err(|error| Failure::of_io("making a folder", into, &error))?;
    let unpack = Tool::new("python3", "unpacking the wheel")?
        .args(["-m", "zipfile", "-e"])
        .arg(&wheel)
        .arg(into);
    unpack.writes(into).run(&cache.log("unzip")?)?;
    let info = into.join(format!("{TOOL}-{}.dist-info", workspace.version));
    let failed = |error| Failure::of_io("looking at the Python package", &info, &error);
    fs::remove_file(info.join("RECORD")).map_err(failed)?;
    fs::write(info.join("INSTALLER"), "contigo-packages\n").map_err(failed)?;
    // They are those of the whole package.
    match fs::remove_dir_all(info.join("licenses")) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(failed(error)),
        _ => Ok(()),
    }
}

fn copy(from: &Path, to: &Path, mode: u32) -> Result<()> {
    let copied =
        fs::create_dir_all(to.parent().unwrap_or(Path::new("."))).and_then(|()| fs::copy(from, to));
    copied
        .and_then(|_| fs::set_permissions(to, fs::Permissions::from_mode(mode)))
        .map_err(|error| Failure::of_io("copying", from, &error))
}
