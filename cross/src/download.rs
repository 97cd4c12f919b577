//! Debian packages of any architecture, unpacked into a folder, without root and without touching
//! this machine's packages.
//!
//! apt works on a state of its own in the cache, with the package sources and keys of this machine.
//! A `.deb` that the user put into the cache's `packages/` is taken before apt is asked, so a
//! machine without a network can be served by hand.

mod backports;

use crate::cache_dir::CacheDir;
use crate::command::{Tool, last_lines};
use crate::failure::{Failure, Result};
use crate::packages;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tempfile::TempDir;

/// Package lists are read anew when they are older: kernels are updated about weekly.
const LISTS_LAST: Duration = Duration::from_secs(24 * 3600);
/// For the lists of one architecture, 60 MB or less.
const UPDATE_LIMIT: Duration = Duration::from_secs(600);
/// For the largest package, a kernel's source of 150 MB, on a slow line.
const DOWNLOAD_LIMIT: Duration = Duration::from_secs(3600);
/// Lines of apt's log that are searched for what went wrong.
const LOG_LINES: usize = 200;

/// Only what a package cannot do without.
const NEEDED_ONLY: [&str; 7] = [
    "--recurse",
    "--no-recommends",
    "--no-suggests",
    "--no-conflicts",
    "--no-breaks",
    "--no-replaces",
    "--no-enhances",
];

/// Debian's packages for one architecture.
#[derive(Debug)]
pub struct Packages<'c> {
    cache: &'c CacheDir,
    architecture: String,
    /// A release of Debian's with its backports, in place of this machine's own sources.
    release: Option<String>,
}

/// What was unpacked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    /// As Debian calls it.
    pub name: String,
    /// Debian's version, `6.12.117-1~deb12u1`.
    pub version: String,
}

impl<'c> Packages<'c> {
    /// `architecture` as Debian names it: `armhf`, `arm64`, `amd64`. Packages for all architectures
    /// are among them.
    pub fn new(cache: &'c CacheDir, architecture: &str) -> Self {
        Self { cache, architecture: architecture.into(), release: None }
    }

    /// The names of all packages that begin with `prefix`: those that apt knows and those put into
    /// the cache by hand.
    pub fn names(&self, prefix: &str) -> Result<Vec<String>> {
        let mut names: Vec<String> =
            self.by_hand(prefix)?.into_iter().map(|(name, _)| name).collect();
        if names.is_empty() {
            self.update(prefix)?;
            let log = self.log("names")?;
            let answer = self
                .apt("apt-cache", format!("looking for {prefix}…"))?
                .args(["pkgnames", prefix])
                .output(&log)?;
            names.extend(answer.lines().map(|line| line.trim().to_owned()));
        }
        names.sort();
        names.dedup();
        Ok(names)
    }

    /// Unpacks the newest version of a package into the folder `into`.
    pub fn unpack(&self, package: &str, into: &Path) -> Result<Package> {
        let by_hand = self.by_hand(package)?.into_iter().rfind(|(name, _)| name == package);
        // Deleted with its package when it is unpacked: what came out of it is kept.
        let folder = self.cache.scratch()?;
        let file = match by_hand {
            Some((_, file)) => file,
            None => {
                let mut files = self.download(package, &[package.to_owned()], &folder)?;
                files.pop().ok_or_else(|| {
                    self.cannot_be_had(package, "apt-get downloaded nothing".into())
                })?
            }
        };
        self.unpack_file(package, &file, into)
    }

    fn version_of(&self, package: &str, file: &Path) -> Result<String> {
        let version = Tool::new("dpkg-deb", format!("reading {}", file.display()))?
            .arg("-f")
            .arg(file)
            .arg("Version")
            .output(&self.log(package)?)?;
        Ok(version.trim().to_owned())
    }

    fn unpack_file(&self, package: &str, file: &Path, into: &Path) -> Result<Package> {
        let log = self.log(package)?;
        let version = self.version_of(package, file)?;
        let unpack =
            Tool::new("dpkg-deb", format!("unpacking {package}"))?.arg("-x").arg(file).arg(into);
        unpack.limit(DOWNLOAD_LIMIT).writes(into).run(&log)?;
        // A package's own folder has the date of its build, and what is that old among the
        // unfinished is swept away.
        let dated = fs::File::open(into).and_then(|folder| folder.set_modified(SystemTime::now()));
        dated.map_err(|error| Failure::of_io("dating what was unpacked", into, &error))?;
        Ok(Package { name: package.into(), version })
    }

    /// Downloads these packages, of which `package` is the one that is wanted.
    fn download(&self, package: &str, all: &[String], folder: &TempDir) -> Result<Vec<PathBuf>> {
        self.update(package)?;
        let log = self.log(package)?;
        let get = self
            .apt("apt-get", format!("downloading {package} ({})", self.architecture))?
            .arg("download")
            .args(all);
        get.current_dir(folder)
            .limit(DOWNLOAD_LIMIT)
            .writes(folder.path())
            .run(&log)
            .map_err(|error| self.refused(package, &log, error))?;
        debs(folder.path())
    }

    /// Reads the package lists where that was never done, or not lately. Old lists will do when the
    /// network is away, and some of them will do while a mirror is being written to. The request
    /// for the package shows whether they have it.
    fn update(&self, package: &str) -> Result<()> {
        if packages::find("apt-get").is_none() || packages::find("dpkg-deb").is_none() {
            return Err(self.cannot_be_had(package, "this machine has no apt".into()));
        }
        let _lock = self.cache.lock(&format!("apt-{}", self.own()))?;
        let read = self.cache.place(format!("apt/{}/lists-read", self.own()))?;
        let age = fs::metadata(&read)
            .and_then(|file| file.modified())
            .ok()
            .and_then(|at| SystemTime::now().duration_since(at).ok());
        if age.is_some_and(|age| age < LISTS_LAST) {
            return Ok(());
        }
        self.choose_sources()?;
        let log = self.log("update")?;
        let update = self
            .apt("apt-get", format!("reading Debian's package lists ({})", self.architecture))?
            .arg("update");
        match update.limit(UPDATE_LIMIT).writes(self.cache.path()).run(&log) {
            Ok(_) => fs::write(&read, "")
                .map_err(|error| Failure::of_io("noting that the lists are read", &read, &error)),
            Err(error)
                if matches!(
                    error.downcast_ref(),
                    Some(Failure::Failed { .. } | Failure::TimedOut { .. })
                ) && self.has_lists() =>
            {
                Ok(())
            }
            Err(error) => Err(self.refused(package, &log, error)),
        }
    }

    /// Whether there is any package list at all.
    fn has_lists(&self) -> bool {
        let lists = self.cache.path().join(format!("apt/{}/state/lists", self.own()));
        fs::read_dir(lists).is_ok_and(|files| {
            files.flatten().any(|file| file.file_name().to_string_lossy().contains("_Packages"))
        })
    }

    /// One of apt's programs on the private state. Nothing that is installed here counts: the
    /// packages are for another machine.
    fn apt(&self, program: &str, what: String) -> Result<Tool> {
        let own = format!("apt/{}", self.own());
        self.cache.folder(format!("{own}/state/lists/partial"))?;
        self.cache.folder(format!("{own}/cache/archives/partial"))?;
        let home = self.cache.path().join(own);
        let option = |name: &str, value: &Path| {
            let mut option = OsString::from(format!("{name}="));
            option.push(value);
            [OsString::from("-o"), option]
        };
        let tool = Tool::new(program, what)?.args(self.sources(&home));
        Ok(tool
            .args(option("APT::Architecture", Path::new(&self.architecture)))
            .args(option("APT::Architectures", Path::new(&self.architecture)))
            .args(option("Dir::State", &home.join("state")))
            .args(option("Dir::State::status", Path::new("/dev/null")))
            .args(option("Dir::Cache", &home.join("cache")))
            // As root, apt would change to a user that cannot write here.
            .args(option("APT::Sandbox::User", Path::new("root")))
            // Neither translations nor icons.
            .args([
                "-o",
                "Acquire::Languages=none",
                "-o",
                "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false",
            ])
            .env("LC_ALL", "C.UTF-8"))
    }

    /// The packages in `packages/` whose name begins with `prefix` and that fit, the newest file
    /// last.
    fn by_hand(&self, prefix: &str) -> Result<Vec<(String, PathBuf)>> {
        let fits = |path: &Path| {
            let file = path.file_name()?.to_str()?.strip_suffix(".deb")?;
            let (name, rest) = file.split_once('_')?;
            let (_, architecture) = rest.rsplit_once('_')?;
            let fits = name.starts_with(prefix)
                && (architecture == self.architecture || architecture == "all");
            fits.then(|| name.to_owned())
        };
        let files = debs(&self.cache.folder("packages")?)?;
        Ok(files.into_iter().filter_map(|path| fits(&path).map(|name| (name, path))).collect())
    }

    fn log(&self, step: &str) -> Result<PathBuf> {
        self.cache.log(&format!("apt-{}-{step}", self.own()))
    }

    /// The name of its state in the cache.
    fn own(&self) -> String {
        self.release.as_ref().map_or_else(
            || self.architecture.clone(),
            |release| format!("{release}-{}", self.architecture),
        )
    }

    /// The line of apt's output that counts.
    fn refused(&self, package: &str, log: &Path, error: anyhow::Error) -> anyhow::Error {
        if !matches!(error.downcast_ref(), Some(Failure::Failed { .. })) {
            return error;
        }
        let said = last_lines(log, LOG_LINES);
        let line =
            said.iter().rev().find_map(|line| line.strip_prefix("E: ")).unwrap_or("apt-get failed");
        self.cannot_be_had(package, format!("apt says \"{line}\" (the log is {})", log.display()))
    }

    fn cannot_be_had(&self, package: &str, why: String) -> anyhow::Error {
        let by_hand = self.cache.path().join("packages");
        let reason = format!(
            "{why}; Debian 12 or newer has it: put {package}_*.deb into {} by hand",
            by_hand.display()
        );
        Failure::NoPackage {
            package: package.into(),
            architecture: self.architecture.clone(),
            reason,
        }
        .into()
    }
}

/// Apt's facts about a package, without downloading it.
impl Packages<'_> {
    /// The version that [`unpack`](Self::unpack) would take; `None` where there is no such package.
    pub fn version(&self, package: &str) -> Result<Option<String>> {
        if let Some((_, file)) =
            self.by_hand(package)?.into_iter().rfind(|(name, _)| name == package)
        {
            return self.version_of(package, &file).map(Some);
        }
        self.update(package)?;
        let log = self.log("policy")?;
        let answer = self
            .apt("apt-cache", format!("looking for {package}"))?
            .args(["policy", package])
            .output(&log)?;
        let candidate = answer.lines().find_map(|line| line.trim().strip_prefix("Candidate: "));
        Ok(candidate.filter(|version| *version != "(none)").map(str::to_owned))
    }

    /// `package` and all that it needs, and what that needs in turn. Where apt has no lists,
    /// everything that the user put into the cache's `packages/` for this architecture.
    pub fn with_all_it_needs(&self, package: &str) -> Result<Vec<String>> {
        if let Err(error) = self.update(package) {
            let by_hand: Vec<_> = self.by_hand("")?.into_iter().map(|(name, _)| name).collect();
            return if by_hand.iter().any(|name| name == package) {
                Ok(by_hand)
            } else {
                Err(error)
            };
        }
        let log = self.log("depends")?;
        let ask = self.apt("apt-cache", format!("looking for what {package} needs"))?;
        let answer = ask.arg("depends").args(NEEDED_ONLY).arg(package).output(&log)?;
        // Names begin their lines; the needs of each are indented. `<name>` is not a package:
        // several packages offer to be it.
        Ok(answer
            .lines()
            .filter(|line| line.starts_with(|first: char| first.is_ascii_alphanumeric()))
            .map(str::to_owned)
            .collect())
    }
}

/// The `.deb` files of a folder, the newest last.
fn debs(folder: &Path) -> Result<Vec<PathBuf>> {
    let failed = |error| Failure::of_io("looking for packages", folder, &error);
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "deb") {
            files.push((
                fs::metadata(&path)
                    .and_then(|file| file.modified())
                    .unwrap_or(SystemTime::UNIX_EPOCH),
                path,
            ));
        }
    }
    files.sort();
    Ok(files.into_iter().map(|(_, path)| path).collect())
}
