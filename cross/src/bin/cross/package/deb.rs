//! Debian packages of the tree, by debhelper: `cross/packaging/debian` says which file is in which.

use super::depends::{self, Needed};
use super::tree::Tree;
use super::{Packed, of};
use crate::build::Built;
use crate::needs::Glibc;
use crate::workspace::{TOOL, Workspace};
use contigo_cross::cache_dir::CacheDir;
use contigo_cross::command::Tool;
use contigo_cross::failure::{Failure, Result};
use contigo_cross::packages;
use contigo_cross::targets::Target;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fs};

/// The name of the date wherever builds repeat.
const VARIABLE: &str = "SOURCE_DATE_EPOCH";

/// The one date of Debian's packages, so that the same sources give the same bytes: in seconds
/// since 1970, `SOURCE_DATE_EPOCH` where it is set, else the newest commit's.
pub(super) fn date(cache: &CacheDir, root: &Path) -> Result<u64> {
    if let Some(set) = env::var_os(VARIABLE).filter(|set| !set.is_empty()) {
        let set = set.to_string_lossy();
        return set.parse().map_err(|_| {
            anyhow::anyhow!("{VARIABLE} is \"{set}\", and no number of seconds since 1970")
        });
    }
    let ask = packages::find("git").map(|git| {
        let tool = Tool::at(&git, "asking git for the newest commit's date").args([
            "log",
            "-1",
            "--format=%ct",
        ]);
        tool.current_dir(root).output(&cache.log("git")?)
    });
    let answer = ask.and_then(Result::ok).and_then(|text| text.trim().parse().ok());
    answer.ok_or_else(|| {
        anyhow::anyhow!(
            "git tells no date of these sources: set {VARIABLE} to one, in seconds since 1970"
        )
    })
}

/// Its files, from the root of the sources.
const RULES: &str = "cross/packaging/debian";
/// Who packs, where `DEBFULLNAME` and `DEBEMAIL` do not say so.
const PACKER: (&str, &str) = ("The Contigo developers", "contigo@localhost");
/// For xz over some 50 MB, on two busy cores of a small machine.
const LIMIT: Duration = Duration::from_secs(1800);

#[derive(Debug)]
pub(super) struct Of<'a> {
    pub(super) version: &'a str,
    /// Seconds since 1970.
    pub(super) date: u64,
    /// Also the packages that every processor has alike.
    pub(super) with_all: bool,
}

/// A version that dpkg takes, for a package with no Debian revision of its own.
pub(super) fn version(text: &str) -> std::result::Result<String, String> {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || ".+~".contains(letter);
    let right = text.starts_with(|first: char| first.is_ascii_digit()) && text.chars().all(plain);
    right.then(|| text.to_owned()).ok_or_else(|| {
        "a version like 0.1.0+board2: a digit, then letters, digits, '.', '+' or '~'".to_owned()
    })
}

pub(super) fn pack(
    cache: &CacheDir,
    workspace: &Workspace,
    target: &'static Target,
    tree: &Tree,
    how: &Of<'_>,
) -> Result<Vec<Packed>> {
    let scratch = cache.scratch()?;
    let source = scratch.path().join("source");
    let (debian, out) = (source.join("debian"), scratch.path().join("out"));
    let failed = |error| Failure::of_io("laying out the packages", scratch.path(), &error);
    for folder in [&debian, &out] {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    std::os::unix::fs::symlink(tree.path(), source.join("tree")).map_err(failed)?;
    fill(cache, &workspace.root.join(RULES), &debian, how)?;
    substitute(tree, &debian)?;
    let goals: &[&str] =
        if how.with_all { &["binary-indep", "binary-arch"] } else { &["binary-arch"] };
    for goal in goals {
        let what = format!("packing for {} ({goal})", target.debian);
        Tool::new("dpkg-architecture", what)?
            .args(["--host-arch", target.debian, "--force", "--command", "debian/rules", goal])
            .current_dir(&source)
            .env("SOURCE_DATE_EPOCH", how.date.to_string())
            // No file's owner is asked for: dpkg-deb writes root.
            .env("DEB_RULES_REQUIRES_ROOT", "no")
            .env("CONTIGO_OUT", &out)
            .env("LC_ALL", "C.UTF-8")
            // Another processor's programs are not run.
            .env("DEB_BUILD_OPTIONS", "nocheck")
            .limit(LIMIT)
            .writes(scratch.path())
            .run(&cache.log(&format!("deb-{}-{goal}", target.debian))?)?;
    }
    let (triple, boards) = of(target);
    let mut packed = Vec::new();
    for entry in fs::read_dir(&out).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name().to_string_lossy().into_owned();
        let bytes = fs::read(out.join(&name)).map_err(failed)?;
        let (target, boards) =
            if name.ends_with("_all.deb") { ("all", Vec::new()) } else { (triple, boards.clone()) };
        packed.push(Packed { name, target, boards, bytes });
    }
    packed.sort_by(|one, other| one.name.cmp(&other.name));
    if packed.is_empty() {
        Err(anyhow::anyhow!("debhelper made no package for {}", target.debian))
    } else {
        Ok(packed)
    }
}

/// Copies debhelper's files, with the version and the packer in them, and writes the changelog.
fn fill(cache: &CacheDir, rules: &Path, debian: &Path, how: &Of<'_>) -> Result<()> {
    let said = |name: &str, otherwise: &str| {
        env::var(name).ok().filter(|said| !said.is_empty()).unwrap_or_else(|| otherwise.into())
    };
    let packer = format!("{} <{}>", said("DEBFULLNAME", PACKER.0), said("DEBEMAIL", PACKER.1));
    let failed = |error| Failure::of_io("copying debhelper's files", rules, &error);
    for entry in fs::read_dir(rules).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let to = debian.join(entry.file_name());
        // The permissions come along, `rules` is a program.
        fs::copy(entry.path(), &to).map_err(failed)?;
        let text = fs::read_to_string(&to).map_err(failed)?;
        fs::write(&to, text.replace("@PACKER@", &packer)).map_err(failed)?;
    }
    let date = Tool::new("date", "writing the date")?
        .args(["-u", "-R", "-d"])
        .arg(format!("@{}", how.date));
    let date = date.env("LC_ALL", "C").output(&cache.log("date")?)?;
    let changelog = format!(
        "{TOOL} ({}) unstable; urgency=medium\n\n  * CHANGELOG.md in Contigo's sources says what \
         is new.\n\n -- {packer}  {}\n",
        how.version,
        date.trim()
    );
    fs::write(debian.join("changelog"), changelog).map_err(failed)
}

/// Writes what the packages' programs need, as their headers say, for debhelper to fill in.
fn substitute(tree: &Tree, debian: &Path) -> Result<()> {
    type Needs = (PathBuf, Vec<String>, Option<Glibc>);
    let extension = tree.extension();
    let needed = |built: &Built| -> Needs {
        (built.binary.clone(), built.libraries.clone(), built.glibc.clone())
    };
    let packages = [
        ("contigo", tree.programs.iter().map(needed).collect::<Vec<_>>()),
        ("libcontigo2", vec![needed(&tree.library)]),
        (
            "python3-contigo",
            vec![(extension, tree.python.libraries.clone(), tree.python.glibc.clone())],
        ),
    ];
    for (package, files) in packages {
        let files: Vec<_> = files
            .iter()
            .map(|(file, libraries, glibc)| Needed { file, libraries, glibc: glibc.as_ref() })
            .collect();
        let file = debian.join(format!("{package}.needs"));
        fs::write(&file, format!("shlibs:Depends={}\n", depends::line(&files)?))
            .map_err(|error| Failure::of_io("writing", &file, &error))?;
    }
    Ok(())
}
